//! One cache line of an IPv6 bucket: nine boundaries in a 32-bit window of the address, ten results.
//!
//! Words 0 to 8 are the boundaries less one, in order, padded with ones; words 9 to 13 hold ten 16-bit results;
//! word 14 is the first child; word 15 the first bit of the window. The result at *n* counts from boundary *n* − 1
//! up to boundary *n*; with the high bit set it names a child, whose window may be the same (many boundaries) or
//! start later (longer prefixes).

use std::sync::atomic::{AtomicU32, Ordering};

/// A line as it lies in memory.
pub(crate) type Line = [AtomicU32; 16];

/// Results in a line.
pub(crate) const FAN_OUT: usize = 10;
/// Set in a result that names a child.
pub(crate) const CHILD: u16 = 0x8000;

/// What a line's result at a place says.
#[inline(always)]
pub(crate) fn result(line: &Line, rank: usize) -> u16 {
    // A rank is at most 9: the mask only tells the compiler.
    (line[(9 + rank / 2) & 15].load(Ordering::Relaxed) >> (16 * (rank & 1))) as u16
}

/// The window of an address that a line compares.
#[inline(always)]
fn window(line: &Line, address: u128) -> u32 {
    let start = line[15].load(Ordering::Relaxed) & 127;
    if start < 64 {
        // Nearly always; half the work of shifting 128 bits. The lower half comes in below in two steps because
        // `start` may be zero.
        let (upper, lower) = ((address >> 64) as u64, address as u64);
        return ((upper << start | (lower >> 1) >> (63 - start)) >> 32) as u32;
    }
    ((address << start) >> 96) as u32
}

/// One step down: the result, and should it have [`CHILD`] set, the line to go on with.
#[inline(always)]
pub(crate) fn step<const FAST: bool>(line: &Line, address: u128) -> (u16, u32) {
    let found = result(line, rank::<FAST>(line, window(line, address)));
    (found, line[14].load(Ordering::Relaxed).wrapping_add(u32::from(found & !CHILD)))
}

/// How many boundaries are at or below `key`. `FAST` only in code that runs when AVX2 was found.
#[inline(always)]
fn rank<const FAST: bool>(line: &Line, key: u32) -> usize {
    #[cfg(target_arch = "x86_64")]
    if FAST {
        // SAFETY: `FAST` instances are reached through `multiversioned!` alone, which checks for AVX2.
        return unsafe { rank_avx2(line, key) };
    }
    line[..9].iter().map(|boundary| usize::from(boundary.load(Ordering::Relaxed) < key)).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn rank_avx2(line: &Line, key: u32) -> usize {
    use std::arch::x86_64::*;
    let first = line.as_ptr().cast::<__m256i>();
    let keys = _mm256_set1_epi32(key as i32);
    // SAFETY: a line is 64 bytes long and no longer written once a reader can reach it.
    let boundaries = unsafe { _mm256_loadu_si256(first) };
    // boundary < key, unsigned: max(boundary, key) != boundary.
    let above = _mm256_cmpeq_epi32(_mm256_max_epu32(boundaries, keys), boundaries);
    let not_above = !_mm256_movemask_ps(_mm256_castsi256_ps(above)) & 0xff;
    not_above.count_ones() as usize + usize::from(line[8].load(Ordering::Relaxed) < key)
}

/// Fills a line. `results` are (first key, result), sorted, the first at key 0, at most [`FAN_OUT`].
pub(crate) fn write(line: &Line, window_start: u8, children: u32, results: &[(u32, u16)]) {
    for (place, word) in line[..FAN_OUT - 1].iter().enumerate() {
        let boundary = results.get(place + 1).map_or(u32::MAX, |result| result.0 - 1);
        word.store(boundary, Ordering::Relaxed);
    }
    for pair in 0..FAN_OUT / 2 {
        let half = |place: usize| u32::from(results.get(place).map_or(0, |result| result.1));
        line[9 + pair].store(half(2 * pair) | half(2 * pair + 1) << 16, Ordering::Relaxed);
    }
    line[14].store(children, Ordering::Relaxed);
    line[15].store(u32::from(window_start), Ordering::Relaxed);
}

/// The children of a line as a block: first and count.
pub(crate) fn children(line: &Line) -> Option<(u32, u32)> {
    let named = (0..FAN_OUT).map(|rank| result(line, rank)).filter(|found| found & CHILD != 0);
    let count = named.map(|found| u32::from(found & !CHILD) + 1).max()?;
    Some((line[14].load(Ordering::Relaxed), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ranks_agree_at_every_boundary() {
        let line: Line = std::array::from_fn(|_| AtomicU32::new(0));
        let keys = [0, 1, 2, 100, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        let results: Vec<_> = keys.iter().zip(1..).map(|(&key, result)| (key, result)).collect();
        write(&line, 0, 0, &results);
        for key in keys.iter().flat_map(|&key| [key.saturating_sub(1), key, key.saturating_add(1)]) {
            let expected = results.iter().rev().find(|result| result.0 <= key).unwrap().1;
            let address = u128::from(key) << 96;
            assert_eq!(step::<false>(&line, address).0, expected, "{key}");
            #[cfg(target_arch = "x86_64")]
            if crate::mapping::has_avx2() {
                assert_eq!(step::<true>(&line, address).0, expected, "{key}");
            }
        }
    }
}
