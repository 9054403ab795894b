//! Repeatable random numbers: those of the series of [`nth`], one after the other.

use causeway_results::traffic::nth;

/// The generator; the same seed gives the same numbers.
pub struct Random {
    seed: u64,
    place: u64,
}

impl Random {
    /// The numbers of a seed, from the first on.
    pub fn new(seed: u64) -> Random {
        Random { seed, place: 0 }
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.place += 1;
        nth(self.seed, self.place - 1)
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
