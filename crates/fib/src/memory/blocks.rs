//! Which parts of an array are in use: blocks of any size out of one range.

use std::collections::BTreeMap;

/// So many free units are nothing to care about.
const FEW: u32 = 1 << 10;
/// And up to this part of all that were handed out, nor are more.
const WASTE: u32 = 4;

/// Hands out blocks of units from a range, reusing freed ones of the same size first.
///
/// Sizes are few and tables keep their mix of sizes, so most of the time a block of the right size is free. Where the
/// mix changes, much is free and nothing fits: then larger blocks are split, and neighbours that are free are joined,
/// all at once and not at every release, which would cost each change a search.
#[derive(Debug)]
pub(crate) struct Blocks {
    start: u32,
    /// From here on nothing was handed out.
    next: u32,
    end: u32,
    /// Units in use.
    used: u32,
    /// First units of free blocks, by size.
    free: BTreeMap<u32, Vec<u32>>,
    /// Units released since neighbours were joined.
    loose: u32,
}

impl Blocks {
    pub(crate) fn new(start: u32, end: u32) -> Self {
        Blocks { start, next: start, end, used: 0, free: BTreeMap::new(), loose: 0 }
    }

    /// The first unit of a block of `size`, or `None` if nothing is left.
    pub(crate) fn allocate(&mut self, size: usize) -> Option<u32> {
        let size = u32::try_from(size).ok()?;
        let at = self.find(size)?;
        self.used += size;
        Some(at)
    }

    fn find(&mut self, size: u32) -> Option<u32> {
        if let Some(at) = self.free.get_mut(&size).and_then(Vec::pop) {
            return Some(at);
        }
        let touched = self.next - self.start;
        let wasteful = touched - self.used > FEW.max(touched / WASTE);
        if wasteful && let Some(at) = self.split(size) {
            return Some(at);
        }
        if wasteful && self.loose > touched / (2 * WASTE) {
            self.join();
            if let Some(at) = self.split(size) {
                return Some(at);
            }
        }
        if let Some(at) = self.advance(size).or_else(|| self.split(size)) {
            return Some(at);
        }
        self.join();
        self.split(size).or_else(|| self.advance(size))
    }

    /// A block at the front.
    fn advance(&mut self, size: u32) -> Option<u32> {
        let at = self.next;
        self.next = at.checked_add(size).filter(|&next| next <= self.end)?;
        Some(at)
    }

    /// A block out of the smallest that is large enough.
    fn split(&mut self, size: u32) -> Option<u32> {
        let (&larger, blocks) = self.free.range_mut(size..).find(|(_, blocks)| !blocks.is_empty())?;
        let at = blocks.pop()?;
        if larger > size {
            self.free.entry(larger - size).or_default().push(at + size);
        }
        Some(at)
    }

    /// Makes one block of free neighbours, and gives what lies before the front back to it.
    fn join(&mut self) {
        self.loose = 0;
        let sizes = std::mem::take(&mut self.free);
        let mut all: Vec<(u32, u32)> = sizes
            .into_iter()
            .flat_map(|(size, blocks)| blocks.into_iter().map(move |at| (at, size)))
            .collect();
        all.sort_unstable();
        all.dedup_by(|next, block| {
            let adjoins = block.0 + block.1 == next.0;
            if adjoins {
                block.1 += next.1;
            }
            adjoins
        });
        if let Some(last) = all.pop_if(|last| last.0 + last.1 == self.next) {
            self.next = last.0;
        }
        for (at, size) in all {
            self.free.entry(size).or_default().push(at);
        }
    }

    pub(crate) fn release(&mut self, at: u32, size: usize) {
        let size = size as u32;
        self.used -= size;
        if self.used == 0 {
            self.next = self.start;
            self.loose = 0;
            self.free.clear();
        } else {
            self.loose += size;
            self.free.entry(size).or_default().push(at);
        }
    }

    /// Units handed out since nothing was in use.
    pub(crate) fn touched(&self) -> usize {
        (self.next - self.start) as usize
    }

    /// Units in use.
    pub(crate) fn used(&self) -> usize {
        self.used as usize
    }

    /// Bytes that the account takes.
    pub(crate) fn bytes(&self) -> usize {
        self.free.values().map(|blocks| blocks.capacity() * 4).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_reused_and_split_before_the_range_is_full() {
        let mut blocks = Blocks::new(100, 108);
        let four = blocks.allocate(4).unwrap();
        assert_eq!(blocks.allocate(4), Some(104));
        assert_eq!(blocks.allocate(1), None);
        blocks.release(four, 4);
        assert_eq!(blocks.allocate(3), Some(100));
        assert_eq!(blocks.allocate(1), Some(103));
        assert_eq!(blocks.allocate(1), None);
        assert_eq!(blocks.touched(), 8);
    }

    #[test]
    fn free_neighbours_become_one_block() {
        let mut blocks = Blocks::new(100, 108);
        let single: Vec<_> = (0..8).map(|_| blocks.allocate(1).unwrap()).collect();
        for &at in &single[1..7] {
            assert_eq!(blocks.allocate(6), None);
            blocks.release(at, 1);
        }
        assert_eq!(blocks.allocate(6), Some(101));
    }

    /// Blocks of one size after the other, each set in use until the next is, as a table does whose words get route
    /// after route.
    #[test]
    fn a_mix_of_sizes_that_moves_on_wastes_little() {
        let mut blocks = Blocks::new(0, u32::MAX);
        let mut held: Vec<_> = (0..10_000).map(|_| blocks.allocate(1).unwrap()).collect();
        for size in 2..64 {
            for at in &mut held {
                let old = std::mem::replace(at, blocks.allocate(size).unwrap());
                blocks.release(old, size - 1);
            }
        }
        let used = 10_000 * 63;
        assert!(blocks.touched() < used * 3 / 2, "{} units for {used}", blocks.touched());
    }

    proptest! {
        /// Against a list of units: blocks never meet, and none is refused that would fit.
        #[test]
        fn blocks_are_apart_and_refused_only_when_none_is_left(
            requests in prop::collection::vec((1_usize..9, any::<prop::sample::Index>(), 0_u8..3), 1..200),
        ) {
            const UNITS: usize = 64;
            let mut blocks = Blocks::new(7, 7 + UNITS as u32);
            let mut taken = [false; UNITS];
            let mut held: Vec<(u32, usize)> = Vec::new();
            for (size, which, kind) in requests {
                if kind == 0 && !held.is_empty() {
                    let (at, size) = held.swap_remove(which.index(held.len()));
                    blocks.release(at, size);
                    taken[at as usize - 7..][..size].fill(false);
                    continue;
                }
                let fits = taken.windows(size).any(|units| !units.contains(&true));
                let found = blocks.allocate(size);
                prop_assert_eq!(found.is_some(), fits, "{} of {:?}", size, taken);
                if let Some(at) = found {
                    let units = &mut taken[at as usize - 7..][..size];
                    prop_assert!(!units.contains(&true), "{} at {} is in use", size, at);
                    units.fill(true);
                    held.push((at, size));
                }
            }
        }
    }
}
