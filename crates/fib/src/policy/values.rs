//! What rules look at besides the source, and a hash table of the values that they want.

use super::{PolicyPlace, Rule};
use crate::address::Address;

/// Which fields besides the source a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub tos: bool,
    pub interface: bool,
    /// Zero if the rule does not look at the mark.
    pub mask: u32,
}

impl Shape {
    pub const ANY: Shape = Shape { tos: false, interface: false, mask: 0 };

    pub fn of<A: Address>(rule: &Rule<A>) -> Self {
        Shape {
            tos: rule.tos.is_some(),
            interface: rule.interface.is_some(),
            mask: rule.mark.map_or(0, |(_, mask)| mask),
        }
    }
}

/// What a hash entry stands for: group, number of the shape, and the values of the fields the shape names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Values {
    group: u16,
    shape: u8,
    tos: u8,
    mark: u32,
    interface: u32,
}

impl Values {
    #[inline]
    pub fn new(group: u32, number: usize, shape: Shape, tos: u8, mark: u32, interface: u32) -> Self {
        Values {
            group: group as u16, // at most `Structure::ADJACENCY_MAX`, which is 15 bits
            shape: number as u8, // at most 4 × (MASKS_MAX + 1)
            tos: if shape.tos { tos } else { 0 },
            mark: mark & shape.mask,
            interface: if shape.interface { interface } else { 0 },
        }
    }

    #[inline]
    fn hash(self) -> u64 {
        let low = u64::from(self.group) << 48 | u64::from(self.shape) << 40 | u64::from(self.tos) << 32;
        let mixed = (low | u64::from(self.mark)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ u64::from(self.interface).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// Open addressing, at most half full; list 0 marks a free place.
#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<(Values, u32)>,
    shift: u32,
}

impl Table {
    pub fn new(lists: impl ExactSizeIterator<Item = (Values, u32)>) -> Self {
        let places = (lists.len() * 2).next_power_of_two().max(2);
        let mut table =
            Table { entries: vec![(Values::default(), 0); places], shift: 64 - places.trailing_zeros() };
        for (values, list) in lists {
            let place = table.place(values, &mut |_| ());
            table.entries[place] = (values, list);
        }
        table
    }

    /// Where these values are or would be.
    #[inline]
    fn place(&self, values: Values, reads: &mut impl FnMut(PolicyPlace)) -> usize {
        let mut place = (values.hash() >> self.shift) as usize;
        reads(PolicyPlace::Values(place as u32));
        while self.entries[place].1 != 0 && self.entries[place].0 != values {
            place = (place + 1) & (self.entries.len() - 1);
            reads(PolicyPlace::Values(place as u32));
        }
        place
    }

    #[inline]
    pub fn list(&self, values: Values, reads: &mut impl FnMut(PolicyPlace)) -> u32 {
        self.entries[self.place(values, reads)].1
    }
}
