//! A cache line on the way down where directories do not fit: three boundaries of whole addresses, four entries.
//!
//! Compares all 128 bits, so whatever routes have in common is passed in one step, and any set of runs can be split
//! in four. Entries are those of a bucket; see [`crate::v6::walk`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::memory::mapping::Zeroed;

/// Entries in a branch.
pub(crate) const WAYS: usize = 4;

/// A branch as it lies in memory: boundaries less one (upper and lower half), so that an unused one is the highest
/// address, and entries.
#[repr(C, align(64))]
pub(crate) struct Branch {
    boundaries: [[AtomicU64; 2]; WAYS - 1],
    entries: [AtomicU32; WAYS],
}

// SAFETY: integers only, valid for every bit pattern.
unsafe impl Zeroed for Branch {}

impl Branch {
    /// Which entry an address leads to.
    #[inline(always)]
    pub(crate) fn rank(&self, address: u128) -> usize {
        let below = |boundary: &&[AtomicU64; 2]| {
            let [upper, lower] = boundary.each_ref().map(|half| u128::from(half.load(Ordering::Relaxed)));
            (upper << 64 | lower) < address
        };
        self.boundaries.iter().filter(below).count()
    }

    /// An entry.
    #[inline(always)]
    pub(crate) fn entry(&self, rank: usize) -> u32 {
        // A rank is at most 3: the mask only tells the compiler.
        self.entries[rank & (WAYS - 1)].load(Ordering::Relaxed)
    }

    /// Fills a branch: entry *n* counts from the boundary before it (the first from the start) up to the next.
    pub(crate) fn write(&self, boundaries: &[u128], entries: &[u32]) {
        for (place, halves) in self.boundaries.iter().enumerate() {
            let last = boundaries.get(place).map_or(u128::MAX, |boundary| boundary.wrapping_sub(1));
            halves[0].store((last >> 64) as u64, Ordering::Relaxed);
            halves[1].store(last as u64, Ordering::Relaxed);
        }
        for (place, entry) in self.entries.iter().enumerate() {
            entry.store(entries.get(place).copied().unwrap_or(0), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_change_at_boundaries_only() {
        let branch = Branch { boundaries: Default::default(), entries: Default::default() };
        let boundaries = [1, 1 << 64, u128::MAX];
        for used in 0..=boundaries.len() {
            branch.write(&boundaries[..used], &[10, 11, 12, 13][..=used]);
            for address in boundaries.iter().flat_map(|&b| [b - 1, b, b.saturating_add(1)]) {
                let expected = boundaries[..used].iter().filter(|&&boundary| boundary <= address).count();
                assert_eq!(branch.rank(address), expected, "{address} of {used} boundaries");
                assert_eq!(branch.entry(expected), 10 + expected as u32);
            }
        }
    }
}
