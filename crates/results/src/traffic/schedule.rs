//! When frames leave: exact times, from a rate and a seed.

use super::random;
use serde::{Deserialize, Serialize};

/// Binary places of a nanosecond that times are summed in, so that a rate's error over a day is under a frame.
const FRACTION: u32 = 32;
const NS_PER_S: f64 = 1e9;
/// The lowest rate that has departures, in frames a second: less than one a day.
const SLOWEST_FPS: f64 = 1e-5;

/// How departures are spread over time. The mean rate is always the one that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Equal distances.
    #[default]
    Constant,
    /// Frames back to back, then a pause.
    Bursts {
        /// Frames of a burst.
        frames: u32,
        /// Time from one frame of a burst to the next, in nanoseconds; 0: as fast as the port takes them.
        #[serde(default)]
        gap_ns: u32,
    },
    /// Exponential distances: a Poisson process.
    Poisson,
    /// Equal distances for a time, then none for a time.
    OnOff {
        /// Nanoseconds of sending.
        on_ns: u64,
        /// Nanoseconds of silence.
        off_ns: u64,
    },
}

impl Schedule {
    pub(super) fn check(self) -> Result<(), String> {
        match self {
            Schedule::Bursts { frames: 0, .. } => Err("a burst has at least one frame".to_owned()),
            Schedule::OnOff { on_ns: 0, .. } => Err("the time of sending is at least 1 ns".to_owned()),
            _ => Ok(()),
        }
    }

    /// The departures at a mean of `rate_fps` frames a second. None at a rate that is not above zero.
    ///
    /// Bursts that are longer than the time between them run together: the rate that is asked for is kept then, the gap
    /// is not.
    pub fn departures(self, rate_fps: f64, seed: u64) -> Departures {
        let interval_ns = if rate_fps >= SLOWEST_FPS { NS_PER_S / rate_fps } else { f64::INFINITY };
        // While it sends, an on-off source is faster by as much as it is silent.
        let interval_ns = match self {
            Schedule::OnOff { on_ns, off_ns } if on_ns > 0 => {
                interval_ns * on_ns as f64 / (on_ns as f64 + off_ns as f64)
            }
            _ => interval_ns,
        };
        let interval = interval_ns.is_finite().then(|| fixed(interval_ns));
        Departures { schedule: self, interval, seed, n: 0, sum: 0 }
    }
}

fn fixed(ns: f64) -> u128 {
    // Not below, so that no frame leaves before its time.
    (ns * (1u64 << FRACTION) as f64).ceil() as u128
}

/// Times of departure in nanoseconds from the start, never falling, without end.
#[derive(Clone, Debug)]
pub struct Departures {
    schedule: Schedule,
    /// In nanoseconds with [`FRACTION`] binary places; `None`: nothing is ever sent.
    interval: Option<u128>,
    seed: u64,
    n: u64,
    /// Sum of the random distances so far, as `interval`.
    sum: u128,
}

impl Departures {
    /// How many frames still leave before `duration_ns` from the start.
    pub fn count_before(mut self, duration_ns: u64) -> u64 {
        match (self.schedule, self.interval) {
            (Schedule::Constant, Some(interval)) if interval > 0 => {
                // The first n with n * interval >> FRACTION not below the duration, less those that have left.
                ((u128::from(duration_ns) << FRACTION).div_ceil(interval) as u64).saturating_sub(self.n)
            }
            _ => std::iter::from_fn(|| self.next().filter(|&at| at < duration_ns)).count() as u64,
        }
    }
}

impl Iterator for Departures {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let interval = self.interval?;
        let n = u128::from(self.n);
        let at = match self.schedule {
            Schedule::Constant => n * interval,
            Schedule::Bursts { frames, gap_ns } => {
                let frames = u128::from(frames.max(1));
                let gap = (u128::from(gap_ns) << FRACTION).min(interval);
                n / frames * frames * interval + n % frames * gap
            }
            Schedule::Poisson => {
                let at = self.sum;
                // In (0, 1]: the logarithm of zero is nothing to wait for.
                let uniform = ((random::nth(self.seed, self.n) >> 11) + 1) as f64 / (1u64 << 53) as f64;
                self.sum += (interval as f64 * -uniform.ln()).round() as u128;
                at
            }
            Schedule::OnOff { on_ns, off_ns } => {
                let (sending, on) = (n * interval, (u128::from(on_ns) << FRACTION).max(1));
                sending + sending / on * (u128::from(off_ns) << FRACTION)
            }
        };
        self.n += 1;
        u64::try_from(at >> FRACTION).ok()
    }
}
