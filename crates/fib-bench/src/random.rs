//! A small generator of repeatable random numbers (SplitMix64, Steele et al., OOPSLA 2014).

/// The generator; the same seed gives the same numbers.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// A number in 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Zipf-distributed ranks (exponent 1) below `count`.
pub struct Zipf(Vec<f64>);

impl Zipf {
    /// The distribution over `count` ranks.
    pub fn new(count: usize) -> Self {
        let mut sum = 0.0;
        Zipf(
            (1..=count)
                .map(|rank| {
                    sum += 1.0 / rank as f64;
                    sum
                })
                .collect(),
        )
    }

    /// A rank, 0 the most frequent.
    pub fn draw(&self, random: &mut Random) -> usize {
        let total = self.0.last().copied().unwrap_or(0.0);
        let at = random.unit() * total;
        self.0.partition_point(|&sum| sum < at).min(self.0.len() - 1)
    }
}
