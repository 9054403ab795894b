//! A rate that follows the recent past.

/// How long counts are gathered before they move the average: a division for each millisecond, not for each
/// packet.
const EPOCH_NS: u64 = 1_000_000;
/// How long ago what the average remembers was: after this time the weight of a count has fallen to 1/e.
const MEMORY_NS: f64 = 1e9;

/// Exponentially weighted moving average of events a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    per_s: f64,
    gathered: u64,
    /// Start of the epoch; 0 = nothing was counted yet.
    since_ns: u64,
}

impl Rate {
    /// Counts `n` events at `now_ns`.
    #[inline]
    pub(super) fn add(&mut self, n: u64, now_ns: u64) {
        if self.since_ns == 0 {
            self.since_ns = now_ns;
        }
        if now_ns.saturating_sub(self.since_ns) >= EPOCH_NS {
            self.close(now_ns);
        }
        self.gathered += n;
    }

    /// The average at `now_ns`.
    pub(super) fn per_s(&mut self, now_ns: u64) -> f64 {
        if now_ns.saturating_sub(self.since_ns) >= EPOCH_NS {
            self.close(now_ns);
        }
        self.per_s
    }

    #[cold]
    fn close(&mut self, now_ns: u64) {
        let epoch_ns = (now_ns - self.since_ns) as f64;
        let recent_per_s = self.gathered as f64 * 1e9 / epoch_ns;
        self.per_s = recent_per_s + (self.per_s - recent_per_s) * (-epoch_ns / MEMORY_NS).exp();
        self.gathered = 0;
        self.since_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approaches_a_steady_rate_and_forgets_it() {
        let mut rate = Rate::default();
        let mut now_ns = 1;
        for _ in 0..10_000 {
            rate.add(5, now_ns);
            now_ns += 1_000_000;
        }
        assert!((rate.per_s(now_ns) - 5_000.0).abs() < 5.0, "{rate:?}");
        now_ns += 1_000_000_000;
        let later = rate.per_s(now_ns);
        assert!((later - 5_000.0 / std::f64::consts::E).abs() < 20.0, "{later}");
        assert!(rate.per_s(now_ns + 60_000_000_000) < 1e-6);
    }

    #[test]
    fn the_size_of_epochs_does_not_matter() {
        let mut fine = Rate::default();
        let mut coarse = Rate::default();
        for ms in 0..2_000u64 {
            fine.add(3, 1 + ms * 1_000_000);
            if ms % 500 == 0 {
                coarse.add(1_500, 1 + ms * 1_000_000);
            }
        }
        let (fine, coarse) = (fine.per_s(2_000_000_001), coarse.per_s(2_000_000_001));
        assert!((fine - coarse).abs() < 1e-6 * fine, "{fine} {coarse}");
    }
}
