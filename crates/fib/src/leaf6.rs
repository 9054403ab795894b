//! The last cache line of an IPv6 lookup: ten boundaries in a 32-bit window of the address, eleven results.
//!
//! Result *n* counts from boundary *n* − 1 up to boundary *n*. Boundaries are stored less one and with the highest
//! bit turned over, so that "below the key" is one signed comparison, which is what AVX2 has. The window starts at a
//! whole byte, so that its bits are four bytes in memory.
//!
//! A result with [`CHILD`] set is none: the leaf leads to further ones and holds nine results at most. Their block
//! starts where its last two results would be, or with [`BOX`] set as well, these name what to go on with.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use crate::address::Address;
use crate::lines6::{LEAF, Run};
use crate::mapping::Zeroed;

/// Results in a leaf.
pub(crate) const FAN_OUT: usize = 11;
/// Results in a leaf of leaves.
pub(crate) const CHILDREN: usize = FAN_OUT - 2;
/// Set in a result that names a leaf, by its place in a block.
pub(crate) const CHILD: u16 = 1 << 15;
/// Set besides in one that stands for what the block would be.
pub(crate) const BOX: u16 = CHILD | 1 << 14;
/// Turns unsigned order into signed order.
const FLIP: u32 = 1 << 31;
/// Bits of an address that a leaf compares.
const WINDOW_BITS: u8 = 32;

/// A leaf as it lies in memory.
#[repr(C, align(64))]
pub(crate) struct Leaf {
    boundaries: [AtomicU32; FAN_OUT - 1],
    results: [AtomicU16; FAN_OUT],
    /// Bytes of the address below the window, at most 12.
    window: AtomicU16,
}

// SAFETY: integers only, valid for every bit pattern.
unsafe impl Zeroed for Leaf {}

/// Where the window of a leaf lies, in bytes below it, if it can tell boundaries apart. The addresses that reach the
/// leaf agree on the first `position` bits.
pub(crate) fn window(mut boundaries: impl Iterator<Item = u128>, position: u8) -> Option<u16> {
    let start = (position & !7).min(128 - WINDOW_BITS);
    let end = start + WINDOW_BITS;
    boundaries.all(|boundary| boundary & !u128::mask(end) == 0).then_some(u16::from((128 - end) / 8))
}

/// The window of a leaf that holds runs, if one leaf can.
pub(crate) fn one_leaf(runs: &[Run], position: u8) -> Option<u16> {
    if runs.len() > FAN_OUT {
        return None;
    }
    window(runs[1..].iter().map(|run| run.0), position)
}

impl Leaf {
    /// The result for an address. `FAST` only in code that runs when AVX2 was found.
    #[inline(always)]
    pub(crate) fn find<const FAST: bool>(&self, address: &u128) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if FAST {
            // SAFETY: `FAST` instances are reached through `multiversioned!` alone, which checks for AVX2.
            return unsafe { self.find_avx2(address) };
        }
        let key = (address >> (8 * (self.window.load(Ordering::Relaxed) & 15))) as u32;
        let below = |boundary: &&AtomicU32| boundary.load(Ordering::Relaxed) ^ FLIP < key;
        self.result(self.boundaries.iter().filter(below).count())
    }

    #[inline(always)]
    fn result(&self, rank: usize) -> u32 {
        u32::from(self.results[rank].load(Ordering::Relaxed))
    }

    /// What lies behind what [`Self::find`] gave: itself if it is a result, or an entry as below a branch.
    #[inline(always)]
    pub(crate) fn then(&self, found: u32) -> u32 {
        if found & u32::from(CHILD) == 0 {
            return found;
        }
        let below = self.below();
        let child = LEAF | below.wrapping_add(found & u32::from(!BOX));
        if found & u32::from(BOX ^ CHILD) == 0 { child } else { below }
    }

    fn below(&self) -> u32 {
        let half = |place: usize| u32::from(self.results[place].load(Ordering::Relaxed));
        half(FAN_OUT - 2) | half(FAN_OUT - 1) << 16
    }

    /// The block of leaves below this one: first and count.
    pub(crate) fn children(&self) -> Option<(u32, u32)> {
        let results = self.results[..CHILDREN].iter().map(|result| result.load(Ordering::Relaxed));
        let count =
            results.filter(|result| result & BOX == CHILD).map(|child| u32::from(child & !BOX) + 1).max();
        count.map(|count| (self.below(), count))
    }

    /// What this leaf stands for, if it is a box.
    pub(crate) fn boxed(&self) -> Option<u32> {
        (self.results[0].load(Ordering::Relaxed) & BOX == BOX).then(|| self.below())
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    fn find_avx2(&self, address: &u128) -> u32 {
        use std::arch::x86_64::*;
        let window = usize::from(self.window.load(Ordering::Relaxed));
        // SAFETY: the four bytes are inside the address, because `write` stores a window of at most 12.
        let key =
            unsafe { std::ptr::from_ref(address).cast::<u8>().add(window).cast::<i32>().read_unaligned() };
        let keys = _mm256_xor_si256(_mm256_set1_epi32(key), _mm256_set1_epi32(FLIP as i32));
        let start = std::ptr::from_ref(self);
        // SAFETY: a leaf is 64 bytes long and no longer written once a reader can reach it.
        let (low, high) =
            unsafe { (_mm256_load_si256(start.cast()), _mm_load_si128(start.cast::<__m128i>().add(2))) };
        let low = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(keys, low))) as u32;
        // The upper half of this one holds results.
        let high = _mm_cmpgt_epi32(_mm256_castsi256_si128(keys), high);
        let high = _mm_movemask_ps(_mm_castsi128_ps(high)) as u32 & 3;
        self.result((low | high << 8).count_ones() as usize)
    }

    /// Makes this a leaf of leaves: `runs` hold children, the block of leaves starts at `block`.
    pub(crate) fn write_parent(&self, runs: &[Run], window: u16, block: u32) {
        self.write(runs, window);
        self.results[FAN_OUT - 2].store(block as u16, Ordering::Relaxed);
        self.results[FAN_OUT - 1].store((block >> 16) as u16, Ordering::Relaxed);
    }

    /// Makes this a box around what lies below it.
    pub(crate) fn write_box(&self, entry: u32) {
        self.write_parent(&[(0, BOX)], 0, entry);
    }

    /// Fills a leaf with at most [`FAN_OUT`] runs whose window this is; the first run starts at or before everything
    /// that reaches the leaf.
    pub(crate) fn write(&self, runs: &[Run], window: u16) {
        for (place, boundary) in self.boundaries.iter().enumerate() {
            let first = runs.get(place + 1).map_or(0, |run| (run.0 >> (8 * window)) as u32);
            boundary.store(first.wrapping_sub(1) ^ FLIP, Ordering::Relaxed);
        }
        for (place, result) in self.results.iter().enumerate() {
            result.store(runs.get(place).map_or(0, |run| run.1), Ordering::Relaxed);
        }
        self.window.store(window.min(12), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_searches_agree_at_every_boundary_of_every_window() {
        for position in [0, 16, 30, 48, 95, 97, 127] {
            let window = window(std::iter::empty(), position).unwrap();
            let leaf = Leaf {
                boundaries: Default::default(),
                results: Default::default(),
                window: AtomicU16::new(0),
            };
            let keys = [0, 1, 2, 100, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
            let address = |key: u32| u128::from(key) << (8 * window);
            let runs: Vec<Run> = keys.iter().zip(1..).map(|(&key, result)| (address(key), result)).collect();
            leaf.write(&runs, window);
            for key in keys.iter().flat_map(|&key| [key.saturating_sub(1), key, key.saturating_add(1)]) {
                let expected = keys.iter().filter(|&&boundary| boundary <= key).count() as u32;
                let address = address(key) | ((1 << (8 * window)) - 1);
                assert_eq!(leaf.find::<false>(&address), expected, "{key} by the plain code");
                #[cfg(target_arch = "x86_64")]
                if crate::mapping::has_avx2() {
                    assert_eq!(leaf.find::<true>(&address), expected, "{key} by AVX2");
                }
            }
        }
    }

    #[test]
    fn runs_of_different_scale_need_more_than_a_leaf() {
        let runs = [(0, 1), (1 << 80, 2), (1 << 79, 3)];
        assert_eq!(one_leaf(&runs[..2], 16), Some(10));
        assert_eq!(one_leaf(&runs, 16), None);
        assert_eq!(one_leaf(&runs, 24), Some(9));
    }
}
