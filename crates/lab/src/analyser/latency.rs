//! Delay and its variation, in HDR histograms: every value to within a thousandth, and no allocation for any of them.

use hdrhistogram::Histogram;

/// The longest delay that is told apart: a minute. What is longer counts as that.
const LONGEST_NS: u64 = 60_000_000_000;
/// Decimal digits of a value that are kept.
const DIGITS: u8 = 3;
/// A delay above half of what a time in a frame can be is a negative one.
const HALF_NS: u64 = 1 << 47;

/// Delays of the frames of a trial.
#[derive(Debug)]
pub struct Latency {
    delay: Histogram<u64>,
    difference: Histogram<u64>,
    before_sent: u64,
}

impl Latency {
    /// Room for all delays.
    pub fn new() -> Latency {
        Latency { delay: histogram(), difference: histogram(), before_sent: 0 }
    }

    /// A frame that was sent and came at these times, both [wrapped](crate::frame::wrap_ns): its delay, unless it came before it was sent.
    #[inline]
    pub fn delay(&mut self, sent_ns: u64, at_ns: u64) -> Option<u64> {
        let delay_ns = crate::frame::wrap_ns(at_ns.wrapping_sub(sent_ns));
        if delay_ns >= HALF_NS {
            self.before_sent += 1;
            return None;
        }
        self.delay.saturating_record(delay_ns);
        Some(delay_ns)
    }

    /// The delays of two frames that were sent one after the other differ by so much.
    #[inline]
    pub fn difference(&mut self, ns: u64) {
        self.difference.saturating_record(ns);
    }

    /// Delay, its variation, and the number of frames that came before they were sent.
    pub fn finish(self) -> (Distribution, Distribution, u64) {
        (Distribution(self.delay), Distribution(self.difference), self.before_sent)
    }
}

impl Default for Latency {
    fn default() -> Latency {
        Latency::new()
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
        .expect("bounds and digits are in the range of the crate")
}

/// A distribution of times, each to within a thousandth of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(Histogram<u64>);

impl Distribution {
    /// Without values.
    pub fn empty() -> Distribution {
        Distribution(histogram())
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that `share` of all are not above, in nanoseconds; `None` without values.
    pub fn percentile_ns(&self, share: f64) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(share))
    }

    /// The smallest value in nanoseconds; `None` without values.
    pub fn min_ns(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.min())
    }

    /// The mean in nanoseconds; `None` without values.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean())
    }

    /// The largest value in nanoseconds; `None` without values.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.max())
    }

    /// Adds the values of another.
    pub fn add(&mut self, other: &Distribution) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }
}
