//! Which of the kernel's tables are meant.

use std::ops::{BitOr, BitOrAssign};

use crate::model::Family;

/// Which of the kernel's tables: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope(u16);

impl Scope {
    /// IPv4 settings of interfaces.
    pub const SETTINGS4: Scope = Scope(1);
    /// IPv6 settings of interfaces.
    pub const SETTINGS6: Scope = Scope(2);
    /// Links.
    pub const LINKS: Scope = Scope(4);
    /// Addresses.
    pub const ADDRESSES: Scope = Scope(8);
    /// Neighbours.
    pub const NEIGHBOURS: Scope = Scope(16);
    /// Next hop objects.
    pub const NEXT_HOPS: Scope = Scope(32);
    /// IPv4 routes.
    pub const ROUTES4: Scope = Scope(64);
    /// IPv6 routes.
    pub const ROUTES6: Scope = Scope(128);
    /// Policy rules.
    pub const RULES: Scope = Scope(256);
    /// Queueing disciplines.
    pub const QDISCS: Scope = Scope(512);
    /// Everything.
    pub const ALL: Scope = Scope((1 << Scope::COUNT) - 1);
    /// Tables that there are.
    pub(crate) const COUNT: usize = 10;

    /// The routes of a family.
    pub fn routes(family: Family) -> Scope {
        match family {
            Family::V4 => Scope::ROUTES4,
            Family::V6 => Scope::ROUTES6,
        }
    }

    /// The settings of a family.
    pub fn settings(family: Family) -> Scope {
        match family {
            Family::V4 => Scope::SETTINGS4,
            Family::V6 => Scope::SETTINGS6,
        }
    }

    /// Whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two sets have something in common.
    pub fn touches(self, other: Scope) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in the set and not in the other.
    pub fn without(self, other: Scope) -> Scope {
        Scope(self.0 & !other.0)
    }

    /// The tables in the set, in the order in which they are best dumped: what others refer to comes first.
    pub fn tables(self) -> impl Iterator<Item = Scope> {
        (0..Scope::COUNT).map(|bit| Scope(1 << bit)).filter(move |table| self.touches(*table))
    }

    /// The place of the first table of the set in the order of all.
    pub(crate) fn index(self) -> usize {
        (self.0.trailing_zeros() as usize).min(Scope::COUNT - 1)
    }
}

impl BitOr for Scope {
    type Output = Scope;

    fn bitor(self, other: Scope) -> Scope {
        Scope(self.0 | other.0)
    }
}

impl BitOrAssign for Scope {
    fn bitor_assign(&mut self, other: Scope) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_each_table_once_and_each_has_its_place() {
        for (place, table) in Scope::ALL.tables().enumerate() {
            assert_eq!((table.index(), table | table), (place, table));
        }
        assert_eq!((Scope::ALL.tables().count(), Scope(0).index()), (Scope::COUNT, Scope::COUNT - 1));
        assert_eq!((Scope::RULES | Scope::LINKS).index(), Scope::LINKS.index().min(Scope::RULES.index()));
        assert_eq!([Family::V4, Family::V6].map(Scope::settings), [Scope::SETTINGS4, Scope::SETTINGS6]);
    }
}
