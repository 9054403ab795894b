//! Links: what a frame takes on the wire, and who sends frames by it.

use crate::event::{SECOND, Time};
use fastrand::Rng;

/// Bytes of preamble, start of frame and gap that each frame needs beside its own (IEEE 802.3, clauses 3.1.1 and 4.4.2).
pub const PREAMBLE_AND_GAP: u32 = 20;

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its speed.
    pub rate_bps: u64,
}

impl Link {
    /// Picoseconds that a frame of so many bytes, with its checksum, keeps the wire busy.
    pub fn frame_ps(self, bytes: u32) -> Time {
        let bits = u128::from(bytes + PREAMBLE_AND_GAP) * 8;
        (bits * u128::from(SECOND) / u128::from(self.rate_bps.max(1))) as Time
    }

    /// Frames a second of so many bytes that it carries at most.
    pub fn most_fps(self, bytes: u32) -> f64 {
        SECOND as f64 / self.frame_ps(bytes) as f64
    }
}

/// When the frames of a source depart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly, as a router tester sends.
    Even,
    /// As if each frame knew of no other.
    Poisson,
}

/// Who sends frames by a link: never more than it carries.
#[derive(Clone, Debug)]
pub struct Source {
    spacing: Spacing,
    /// Mean picoseconds from one frame to the next.
    mean_ps: f64,
    /// What a frame takes on the wire.
    least_ps: Time,
    /// When the next frame would depart, before the wire is asked.
    intended_ps: f64,
    wire_free_ps: Time,
    rng: Rng,
}

impl Source {
    /// A source of `rate_fps` frames a second of `bytes` bytes, at most what the link carries. The first departs at
    /// random within the first interval.
    pub fn new(link: Link, bytes: u32, rate_fps: f64, spacing: Spacing, seed: u64) -> Source {
        let mut rng = Rng::with_seed(seed);
        let least_ps = link.frame_ps(bytes);
        let mean_ps = (SECOND as f64 / rate_fps).max(least_ps as f64);
        let intended_ps = rng.f64() * mean_ps;
        Source { spacing, mean_ps, least_ps, intended_ps, wire_free_ps: 0, rng }
    }

    /// When the next frame has left the source whole, picoseconds. Times do not fall.
    pub fn next_ps(&mut self) -> Time {
        let begins_ps = self.wire_free_ps.max(self.intended_ps as Time);
        self.wire_free_ps = begins_ps + self.least_ps;
        self.intended_ps += match self.spacing {
            Spacing::Even => self.mean_ps,
            // The part of 1 that is left is never 0.
            Spacing::Poisson => -self.mean_ps * (1.0 - self.rng.f64()).ln(),
        };
        self.wire_free_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_link_carries_as_many_frames_as_the_standard_says() {
        let link = Link { rate_bps: 1_000_000_000 };
        assert_eq!(link.frame_ps(64), 672_000);
        assert_eq!((link.most_fps(64).floor(), link.most_fps(1518).floor()), (1_488_095.0, 81_274.0));
    }

    #[test]
    fn a_source_sends_at_its_rate_and_never_faster_than_the_link() {
        let link = Link { rate_bps: 1_000_000_000 };
        for (rate, spacing, expected) in [
            (500_000.0, Spacing::Even, 500_000.0),
            (500_000.0, Spacing::Poisson, 500_000.0),
            (9e9, Spacing::Even, 1_488_095.0),
        ] {
            let mut source = Source::new(link, 64, rate, spacing, 7);
            let times: Vec<Time> = (0..100_000).map(|_| source.next_ps()).collect();
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= link.frame_ps(64)), "{spacing:?}");
            let found = 1e5 * 1e12 / *times.last().expect("a frame") as f64;
            assert!((found / expected - 1.0).abs() < 0.01, "{spacing:?} {rate}: {found}");
        }
    }
}
