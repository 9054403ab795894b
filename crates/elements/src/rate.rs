//! A rate that follows the recent past, in whole numbers, as Click's `rate` handlers show it.

/// Nanoseconds of an epoch: what came in one moves the average once.
const EPOCH_NS: u64 = 1_000_000;
/// Epochs a second.
const EPOCHS_PER_S: u64 = 1_000_000_000 / EPOCH_NS;
/// Each epoch weighs 1/2^STABILITY, so that the average remembers sixteen epochs.
const STABILITY: u32 = 4;
/// So many epochs without events, and the average is zero.
const FORGOTTEN: u64 = 100;

/// Exponentially weighted moving average of events an epoch, with `BITS` bits behind the point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate<const BITS: u32> {
    /// Events an epoch, times 2^BITS.
    average: i64,
    /// Events of this epoch.
    gathered: i64,
    /// Number of this epoch; 0 = nothing was counted yet.
    epoch: u64,
}

impl<const BITS: u32> Rate<BITS> {
    /// Counts `n` events at `now_ns`.
    #[inline]
    pub(crate) fn add(&mut self, n: u64, now_ns: u64) {
        self.pass(now_ns);
        self.gathered = self.gathered.saturating_add(n as i64);
    }

    /// Counts `n` events that came evenly from `since_ns` until now, besides those that were counted meanwhile.
    pub(crate) fn add_since(&mut self, n: u64, since_ns: u64, now_ns: u64) {
        self.pass(now_ns);
        let epochs = (now_ns / EPOCH_NS).saturating_sub(since_ns / EPOCH_NS);
        if epochs == 0 {
            return self.add(n, now_ns);
        }
        // The average of a sum is the sum of the averages.
        let each = ((u128::from(n) << BITS) / u128::from(epochs)).min(i64::MAX as u128 / 2) as i64;
        let more = (0..epochs.min(FORGOTTEN)).fold(0, |average, _| moved(average, each));
        self.average = self.average.saturating_add(more);
    }

    /// Events a second as of `now_ns`, each counted `times`: a decimal number.
    pub(crate) fn per_s(&mut self, times: u64, now_ns: u64) -> String {
        Self::text(self.scaled(now_ns) * times)
    }

    /// Events an epoch, times 2^BITS, up to the epoch before that of `now_ns`.
    #[inline]
    pub(crate) fn scaled(&mut self, now_ns: u64) -> u64 {
        self.pass(now_ns);
        self.average.max(0) as u64
    }

    /// What [`Rate::scaled`] is at so many events a second.
    pub(crate) fn scale(per_s: u64) -> u64 {
        (per_s << BITS) / EPOCHS_PER_S
    }

    /// The text of what [`Rate::scaled`] said, as events a second.
    pub(crate) fn text(scaled: u64) -> String {
        decimal(scaled * EPOCHS_PER_S, BITS)
    }

    #[inline]
    fn pass(&mut self, now_ns: u64) {
        let epoch = now_ns / EPOCH_NS;
        if epoch != self.epoch {
            self.close(epoch);
        }
    }

    /// Ends the epochs before `epoch`, of which the first has the events and the others have none.
    #[cold]
    fn close(&mut self, epoch: u64) {
        let empty = epoch.saturating_sub(self.epoch + 1);
        let gathered = std::mem::take(&mut self.gathered);
        self.average = if empty >= FORGOTTEN {
            0
        } else {
            (0..empty).fold(moved(self.average, gathered << BITS), |average, _| moved(average, 0))
        };
        self.epoch = epoch;
    }
}

/// The average when it has been moved towards `to`, rounded to the nearest.
fn moved(average: i64, to: i64) -> i64 {
    average + ((to + (1 << (STABILITY - 1)) - average) >> STABILITY)
}

/// The number `value` / 2^`bits` in as few digits as tell it from its neighbours.
pub(crate) fn decimal(value: u64, bits: u32) -> String {
    let one = 1u64 << bits;
    let (whole, part) = (value >> bits, value & (one - 1));
    if part == 0 {
        return whole.to_string();
    }
    let (mut digits, mut power) = (1, 10);
    loop {
        let rounded = (2 * part * power + one) / (2 * one);
        if 2 * (rounded * one).abs_diff(part * power) < power {
            return format!("{whole}.{rounded:0digits$}");
        }
        (digits, power) = (digits + 1, power * 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 7_000_000_000;

    #[test]
    fn approaches_a_steady_rate_and_forgets_it() {
        let mut rate = Rate::<10>::default();
        for ms in 0..400 {
            rate.add(5, START_NS + ms * EPOCH_NS);
        }
        let at = |rate: &mut Rate<10>, ms: u64| -> f64 {
            rate.per_s(1, START_NS + ms * EPOCH_NS).parse().unwrap()
        };
        assert!((at(&mut rate, 400) - 5_000.0).abs() < 10.0, "{rate:?}");
        // Fifteen sixteenths are left each millisecond.
        let later = at(&mut rate, 416);
        assert!((later - 5_000.0 * 0.9375f64.powi(16)).abs() < 20.0, "{later}");
        assert_eq!(at(&mut rate, 600), 0.0);
    }

    #[test]
    fn what_comes_in_one_epoch_counts_for_that_epoch_alone() {
        let mut rate = Rate::<10>::default();
        rate.add(16, START_NS);
        assert_eq!(rate.per_s(1, START_NS), "0", "the epoch is not over");
        assert_eq!(rate.per_s(1, START_NS + EPOCH_NS), "1000");
        assert_eq!(rate.per_s(8, START_NS + EPOCH_NS), "8000");
        assert_eq!(rate.per_s(1, START_NS + 2 * EPOCH_NS), "937.5");
    }

    #[test]
    fn what_came_evenly_counts_as_if_it_had_been_counted_when_it_came() {
        let (mut once, mut each) = (Rate::<10>::default(), Rate::<10>::default());
        for ms in 0..1_000 {
            let now_ns = START_NS + ms * EPOCH_NS;
            // Some of what comes is counted at once in either.
            once.add(ms % 3, now_ns);
            each.add(ms % 3 + 40, now_ns);
            if ms % 100 == 99 {
                once.add_since(4_000, now_ns - 99 * EPOCH_NS, now_ns + EPOCH_NS);
                let [a, b] = [&mut once, &mut each].map(|rate| rate.scaled(now_ns + EPOCH_NS));
                assert!(a.abs_diff(b) < b / 50, "{a} {b}");
            }
        }
        let mut much = Rate::<10>::default();
        much.add_since(u64::MAX, 0, START_NS);
        much.add_since(u64::MAX, START_NS - EPOCH_NS, START_NS);
        assert!(much.scaled(START_NS) > 0, "nothing overflows");
    }

    #[test]
    fn numbers_have_the_digits_that_tell_them_apart() {
        assert_eq!(["0", "0.5", "3"].map(|t| t.to_owned()), [0, 1, 6].map(|v| decimal(v, 1)));
        assert_eq!(
            ["0.001", "0.002", "976.5625"].map(|t| t.to_owned()),
            [1, 2, 1_000_000].map(|v| decimal(v, 10))
        );
        for bits in [1, 4, 10, 16] {
            for value in 0..1u64 << bits {
                let back = decimal(value, bits).parse::<f64>().unwrap() * (1u64 << bits) as f64;
                assert_eq!(back.round(), value as f64, "{value} of {bits} bits");
            }
        }
    }
}
