//! The last cache line of an IPv6 lookup: boundaries in a window of the address and the results between them.
//!
//! Result *n* counts from boundary *n* − 1 up to boundary *n*. A wide leaf has 11 results and boundaries of 32 bits, a
//! narrow one 16 and boundaries of 16 bits, which are the upper half of the same window: where a table is crowded,
//! the bits that are left are few. Boundaries are stored less one and with the highest bit turned over, so that
//! "below the key" is one signed comparison, which is what AVX2 has. Windows start at whole bytes, so that their bits
//! are four bytes in memory.
//!
//! | half words | wide | narrow |
//! | --- | --- | --- |
//! | 0 to 14 | ten boundaries (lower half first) up to 19 | 15 boundaries |
//! | up to 30 | results from 20 on | results from 15 on |
//! | 31 | window | window and [`NARROW`] |
//!
//! A result with [`CHILD`] set is none: the leaf leads to further ones and has two results less. Their block starts
//! where half words 29 and 30 say; with [`BOX`] set as well, these name what to go on with.

use std::sync::atomic::{AtomicU16, Ordering};

use crate::address::Address;
use crate::memory::mapping::{Isa, Zeroed};
use crate::v6::walk::{LEAF, Run};

/// Results in a wide leaf.
pub(crate) const FAN_OUT: usize = 11;
/// Results in a narrow leaf.
pub(crate) const NARROW_FAN_OUT: usize = 16;
/// What a leaf of leaves has less.
pub(crate) const PARENT_LESS: usize = 2;
/// Set in a result that names a leaf, by its place in a block.
pub(crate) const CHILD: u16 = 1 << 15;
/// Set besides in one that stands for what the block would be.
pub(crate) const BOX: u16 = CHILD | 1 << 14;
/// Where the results of a wide and of a narrow leaf start, where the block is named, and where the window is.
const WIDE_RESULTS: usize = 20;
const NARROW_RESULTS: usize = 15;
const BLOCK: usize = 29;
const WINDOW: usize = 31;
/// Set in the window of a narrow leaf; the low bits are the bytes of the address below 32 bits of window.
const NARROW: u16 = 1 << 8;
const BYTES_BELOW: u16 = 15;
/// Turns unsigned order into signed order.
const FLIP: u32 = 1 << 31;

/// A leaf as it lies in memory.
#[repr(C, align(64))]
pub(crate) struct Leaf([AtomicU16; 32]);

// SAFETY: integers only, valid for every bit pattern.
unsafe impl Zeroed for Leaf {}

/// The bits that a wide and a narrow leaf see, for addresses that agree on the first `position` bits: up to where.
pub(crate) fn window_ends(position: u8) -> (u8, u8) {
    let start = (position & !7).min(96);
    (start + 32, start + 16)
}

/// The window of a leaf that tells `count` results apart, if one leaf can, with `less` results than it could have.
/// The addresses that reach the leaf agree on the first `position` bits.
fn window(boundaries: impl Iterator<Item = u128>, count: usize, position: u8, less: usize) -> Option<u16> {
    if count > NARROW_FAN_OUT - less {
        return None;
    }
    let (wide, narrow) = window_ends(position);
    let bits = boundaries.fold(0, |bits, boundary| bits | boundary);
    let bytes_below = u16::from((128 - wide) / 8);
    if bits & !u128::mask(narrow) == 0 {
        return Some(bytes_below | NARROW);
    }
    (count <= FAN_OUT - less && bits & !u128::mask(wide) == 0).then_some(bytes_below)
}

/// The window of a leaf that holds runs, if one leaf can.
pub(crate) fn one_leaf(runs: &[Run], position: u8) -> Option<u16> {
    window(runs[1..].iter().map(|run| run.0), runs.len(), position, 0)
}

/// The window of a leaf of leaves with these boundaries, if one can be.
pub(crate) fn one_parent(boundaries: &[u128], position: u8) -> Option<u16> {
    window(boundaries.iter().copied(), boundaries.len() + 1, position, PARENT_LESS)
}

impl Leaf {
    fn half(&self, place: usize) -> u16 {
        self.0[place].load(Ordering::Relaxed)
    }

    /// The result for an address.
    #[inline(always)]
    pub(crate) fn find<I: Isa>(&self, _isa: I, address: &u128) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if I::AVX2 {
            // SAFETY: the processor has AVX2, of which `_isa` is the proof.
            return unsafe { self.find_avx2(address) };
        }
        let window = self.half(WINDOW);
        let key = (address >> (8 * (window & BYTES_BELOW))) as u32 ^ FLIP;
        let place = if window & NARROW == 0 {
            let boundary = |place: usize| u32::from(self.half(place)) | u32::from(self.half(place + 1)) << 16;
            let below = |&place: &usize| (boundary(place) as i32) < key as i32;
            WIDE_RESULTS + (0..WIDE_RESULTS).step_by(2).filter(below).count()
        } else {
            let below = |&place: &usize| (self.half(place) as i16) < (key >> 16) as i16;
            NARROW_RESULTS + (0..NARROW_RESULTS).filter(below).count()
        };
        self.half(place).into()
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    fn find_avx2(&self, address: &u128) -> u32 {
        use std::arch::x86_64::*;
        let window = self.0[WINDOW].load(Ordering::Relaxed);
        let bytes_below = usize::from(window & BYTES_BELOW);
        // SAFETY: the four bytes are inside the address, because `write` stores at most 12 bytes below.
        let key = unsafe {
            std::ptr::from_ref(address).cast::<u8>().add(bytes_below).cast::<i32>().read_unaligned()
        };
        let keys = _mm256_xor_si256(_mm256_set1_epi32(key), _mm256_set1_epi32(FLIP as i32));
        let start = std::ptr::from_ref(self);
        // SAFETY: a leaf is 64 bytes long and no longer written once a reader can reach it.
        let (low, high) =
            unsafe { (_mm256_load_si256(start.cast()), _mm_load_si128(start.cast::<__m128i>().add(2))) };
        let wide_low = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(keys, low))) as u32;
        // The upper half of this one holds results, as do the last two bytes of the narrow one.
        let wide_high = _mm_cmpgt_epi32(_mm256_castsi256_si128(keys), high);
        let wide_high = _mm_movemask_ps(_mm_castsi128_ps(wide_high)) as u32 & 3;
        let upper_halves = _mm256_shuffle_epi8(keys, _mm256_set1_epi16(0x0302));
        let narrow = _mm256_movemask_epi8(_mm256_cmpgt_epi16(upper_halves, low)) as u32 & (u32::MAX >> 2);
        let wide = WIDE_RESULTS as u32 + (wide_low | wide_high << 8).count_ones();
        let narrow = NARROW_RESULTS as u32 + narrow.count_ones() / 2;
        let place = std::hint::select_unpredictable(window & NARROW == 0, wide, narrow);
        u32::from(self.0[place as usize & 31].load(Ordering::Relaxed))
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
        u32::from(self.half(BLOCK)) | u32::from(self.half(BLOCK + 1)) << 16
    }

    fn results(&self) -> usize {
        if self.half(WINDOW) & NARROW == 0 { WIDE_RESULTS } else { NARROW_RESULTS }
    }

    /// The block of leaves below this one: first and count.
    pub(crate) fn children(&self) -> Option<(u32, u32)> {
        let results = (self.results()..BLOCK).map(|place| self.half(place));
        let count =
            results.filter(|result| result & BOX == CHILD).map(|child| u32::from(child & !BOX) + 1).max();
        count.map(|count| (self.below(), count))
    }

    /// What this leaf stands for, if it is a box.
    pub(crate) fn boxed(&self) -> Option<u32> {
        (self.half(self.results()) & BOX == BOX).then(|| self.below())
    }

    /// Makes this a leaf of leaves: `runs` hold children, the block of leaves starts at `block`.
    pub(crate) fn write_parent(&self, runs: &[Run], window: u16, block: u32) {
        self.write(runs, window);
        self.0[BLOCK].store(block as u16, Ordering::Relaxed);
        self.0[BLOCK + 1].store((block >> 16) as u16, Ordering::Relaxed);
    }

    /// Makes this a box around what lies below it.
    pub(crate) fn write_box(&self, entry: u32) {
        self.write_parent(&[(0, BOX)], 0, entry);
    }

    /// Makes this what another leaf is. No reader may reach this one yet, and nobody writes the other any more.
    pub(crate) fn copy(&self, other: &Leaf) {
        self.0
            .iter()
            .zip(&other.0)
            .for_each(|(to, from)| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
    }

    /// Fills a leaf with runs whose window this is; the first run starts at or before everything that reaches the
    /// leaf.
    pub(crate) fn write(&self, runs: &[Run], window: u16) {
        let bytes_below = (window & BYTES_BELOW).min(12);
        let boundary =
            |place: usize| runs.get(place + 1).map_or(0, |run| (run.0 >> (8 * bytes_below)) as u32);
        let mut halves = [0; 32];
        let results = if window & NARROW == 0 {
            for (place, halves) in halves[..WIDE_RESULTS].chunks_mut(2).enumerate() {
                let stored = boundary(place).wrapping_sub(1) ^ FLIP;
                halves.copy_from_slice(&[stored as u16, (stored >> 16) as u16]);
            }
            WIDE_RESULTS
        } else {
            for (place, half) in halves[..NARROW_RESULTS].iter_mut().enumerate() {
                *half = ((boundary(place) >> 16) as u16).wrapping_sub(1) ^ (FLIP >> 16) as u16;
            }
            NARROW_RESULTS
        };
        halves[results..WINDOW].iter_mut().zip(runs).for_each(|(half, run)| *half = run.1);
        halves[WINDOW] = bytes_below | window & NARROW;
        self.0.iter().zip(halves).for_each(|(place, half)| place.store(half, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mapping::{Avx2, Baseline};

    /// A leaf of runs at the keys of a window against counting, with both searches.
    fn check(keys: &[u32], position: u8) {
        let (wide, _) = window_ends(position);
        let below = u32::from(128 - wide);
        let address = |key: u32| u128::from(key) << below;
        let runs: Vec<Run> = keys.iter().zip(1..).map(|(&key, result)| (address(key), result)).collect();
        let leaf = Leaf(Default::default());
        leaf.write(&runs, one_leaf(&runs, position).unwrap());
        for key in keys.iter().flat_map(|&key| [key.saturating_sub(1), key, key.saturating_add(1)]) {
            let expected = keys.iter().filter(|&&boundary| boundary <= key).count() as u32;
            let address = address(key) | ((1 << below) - 1);
            assert_eq!(leaf.find(Baseline, &address), expected, "{key:x} at {position} by the plain code");
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = Avx2::detect() {
                assert_eq!(leaf.find(avx2, &address), expected, "{key:x} at {position} by AVX2");
            }
        }
    }

    #[test]
    fn both_searches_agree_at_every_boundary_of_every_window() {
        let wide = [0, 1, 2, 100, 1 << 16, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        let narrow: Vec<u32> = (0..13).chain([0x7fff, 0x8000, 0xffff]).map(|key| key << 16).collect();
        for position in [0, 16, 30, 48, 95, 97, 127] {
            check(&wide, position);
            check(&narrow, position);
        }
    }

    #[test]
    fn runs_of_different_scale_need_more_than_a_leaf() {
        let runs = [(0, 1), (1 << 80, 2), (1 << 79, 3)];
        assert_eq!(one_leaf(&runs[..2], 16), Some(10));
        assert_eq!(one_leaf(&runs[..2], 32), Some(8 | NARROW));
        assert_eq!(one_leaf(&runs, 16), None);
        assert_eq!(one_leaf(&runs, 24), Some(9));
        let many: Vec<Run> = (0..17).map(|n| (n << 80, 1)).collect();
        assert_eq!(one_leaf(&many[..16], 32), Some(8 | NARROW));
        assert_eq!(one_leaf(&many, 32), None);
        assert_eq!(one_leaf(&many[..12], 31), None, "too many for 32-bit boundaries");
    }
}
