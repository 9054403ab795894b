//! When what has failed is tried again.

/// Nanoseconds until the first time.
const FIRST_NS: u64 = 1_000_000_000;
/// Nanoseconds between two times, at most.
const LONGEST_NS: u64 = 64 * FIRST_NS;

/// What has failed, for a reason that may pass: it is tried again after a pause that grows each time.
#[derive(Default)]
pub struct Again {
    /// When, in nanoseconds of CLOCK_MONOTONIC; none if nothing has failed.
    at_ns: Option<u64>,
    pause_ns: u64,
    why: String,
}

impl Again {
    /// It has failed now. Whether the reason is another than the last time, and to be told.
    pub fn failed(&mut self, now_ns: u64, why: &str) -> bool {
        self.pause_ns = (self.pause_ns * 2).clamp(FIRST_NS, LONGEST_NS);
        self.at_ns = Some(now_ns.saturating_add(self.pause_ns));
        let is_new = self.why != why;
        why.clone_into(&mut self.why);
        is_new
    }

    /// Whether it is time to try again.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.at_ns.is_some_and(|at_ns| now_ns >= at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_again_ever_more_rarely_and_told_once() {
        let mut again = Again::default();
        assert!(!again.is_due(u64::MAX), "nothing has failed");
        let mut now_ns = 5;
        for (n, seconds) in [1, 2, 4, 8, 16, 32, 64, 64, 64].into_iter().enumerate() {
            assert_eq!(again.failed(now_ns, "no memory"), n == 0);
            now_ns += seconds * FIRST_NS;
            assert_eq!([now_ns - 1, now_ns].map(|now_ns| again.is_due(now_ns)), [false, true]);
        }
        assert!(again.failed(u64::MAX, "too long"), "another reason");
        assert!(again.is_due(u64::MAX));
    }
}
