//! Numbers that look random and follow from their place in a series, so that nobody has to draw those before.

/// The `n`-th number of the series `seed` (SplitMix64: Steele, Lea and Flood, 2014).
pub fn nth(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A series of its own for each `part` of what `seed` decides.
pub fn series(seed: u64, part: u64) -> u64 {
    nth(nth(seed, 0), part)
}
