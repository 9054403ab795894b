//! The longest burst that a device forwards without loss (RFC 2544 §26.4, RFC 9004).

use crate::search::{NS_PER_S, Outcome, Procedure, Request};

/// Searches the longest burst, several times. A burst that loses frames is sent once more, and counts as too long if it
/// loses frames again (loss verification, RFC 9004 §6.2).
#[derive(Debug)]
pub struct BackToBack {
    rate_fps: f64,
    longest: u64,
    repetitions: usize,
    width: f64,
    found: Vec<u64>,
    /// The longest burst that went through, and the shortest that did not; 0 goes through.
    lower: u64,
    upper: u64,
    /// The burst lost frames the first time.
    verifying: bool,
}

/// Lengths of bursts that went through, and what follows for the device's buffer (RFC 9004 §6.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLengths {
    /// Mean length in frames.
    pub mean: f64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// Standard deviation, of the repetitions as a sample.
    pub deviation: f64,
    /// The mean length as a time, in nanoseconds: what the buffer holds and what is forwarded meanwhile.
    pub implied_buffer_ns: f64,
    /// The same without what is forwarded meanwhile.
    pub corrected_buffer_ns: f64,
    /// Whether a burst as long as is sent at all went through: the buffer may be larger then.
    pub at_least: bool,
}

impl BackToBack {
    /// Sends bursts at `rate_fps` frames a second, the highest that the medium carries, of at most `longest_ns`: two
    /// seconds or more by RFC 2544, so many times: 50 by RFC 2544. A length is found when one that is longer by the part
    /// `width`, or by a frame, does not go through.
    pub fn new(rate_fps: f64, longest_ns: u64, repetitions: usize, width: f64) -> BackToBack {
        let longest = ((rate_fps * longest_ns as f64 / NS_PER_S) as u64).max(1);
        BackToBack {
            rate_fps,
            longest,
            repetitions,
            width,
            found: Vec::new(),
            lower: 0,
            upper: longest + 1,
            verifying: false,
        }
    }

    /// The longest burst first; then halves.
    fn length(&self) -> u64 {
        if self.upper > self.longest { self.longest } else { u64::midpoint(self.lower, self.upper) }
    }

    /// Of the repetitions that are done. `throughput_fps` is that of RFC 2544 for the same frames. `None` before the first.
    pub fn lengths(&self, throughput_fps: f64) -> Option<BurstLengths> {
        let (min, max) = (*self.found.iter().min()?, *self.found.iter().max()?);
        let n = self.found.len() as f64;
        let mean = self.found.iter().sum::<u64>() as f64 / n;
        let squares: f64 = self.found.iter().map(|&length| (length as f64 - mean).powi(2)).sum();
        let implied_buffer_ns = mean / self.rate_fps * NS_PER_S;
        Some(BurstLengths {
            mean,
            min,
            max,
            deviation: (squares / (n - 1.0).max(1.0)).sqrt(),
            implied_buffer_ns,
            corrected_buffer_ns: implied_buffer_ns * (1.0 - (throughput_fps / self.rate_fps).min(1.0)),
            at_least: max == self.longest,
        })
    }
}

impl Procedure for BackToBack {
    fn next(&mut self) -> Option<Request> {
        (self.found.len() < self.repetitions).then(|| Request::burst(self.length(), self.rate_fps))
    }

    fn record(&mut self, outcome: &Outcome) {
        let length = self.length();
        if outcome.analysis.total().lost == 0 {
            (self.lower, self.verifying) = (length, false);
        } else if self.verifying {
            (self.upper, self.verifying) = (length, false);
        } else {
            self.verifying = true;
        }
        let near = (self.lower as f64 * (1.0 + self.width)) as u64;
        if near.max(self.lower + 1) >= self.upper || self.lower == self.longest {
            self.found.push(self.lower);
            (self.lower, self.upper) = (0, self.longest + 1);
        }
    }

    fn remaining_ns(&self) -> u64 {
        let burst_ns = self.length() as f64 / self.rate_fps * NS_PER_S;
        // A search takes two bursts of the longest, then shorter and shorter ones.
        (burst_ns * 4.0 * (self.repetitions - self.found.len()) as f64) as u64
    }
}
