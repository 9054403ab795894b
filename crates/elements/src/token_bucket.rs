//! A token bucket: what may pass now, and when the next may, in whole numbers.

use causeway_engine::Conf;

/// Parts of a token in a bucket that is filled each nanosecond; then a fill rate in tokens a second is one in parts a
/// nanosecond.
const PARTS: u64 = 1_000_000_000;
/// Nanoseconds and parts a second of a bucket in Click's measure, which is filled each millisecond.
const TICK_NS: u64 = 1_000_000;
const TICKS_PER_S: u64 = 1_000_000_000 / TICK_NS;
/// Parts that a bucket in Click's measure holds, whatever its depth.
const FULL: u64 = u32::MAX as u64;

/// Tokens that accrue at a rate up to a depth.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    /// Parts of a token.
    token: u64,
    /// Parts that come each tick.
    rate: u64,
    tick_ns: u64,
    /// Most parts held.
    depth: u64,
    /// Parts held at tick number `at`.
    fill: u64,
    at: u64,
}

impl TokenBucket {
    /// A bucket that holds at most `depth` tokens, is filled with `rate_per_s` tokens a second, and has `fill`
    /// tokens when it is first looked at.
    pub(crate) fn new(rate_per_s: u64, depth: u64, fill: u64) -> Self {
        let depth = depth.saturating_mul(PARTS);
        let fill = fill.saturating_mul(PARTS).min(depth);
        TokenBucket { token: PARTS, rate: rate_per_s, tick_ns: 1, depth, fill, at: u64::MAX }
    }

    /// A bucket for errors of a protocol, of which the copies of an element on all workers together make `rate_per_s` at most, and
    /// never more than a twentieth of that at once; none where that is 0.
    pub(crate) fn of_errors(rate_per_s: u32, conf: &Conf<'_>) -> Option<Self> {
        let (copy, copies) = conf.replica();
        let (copy, copies) = (copy as u32, copies as u32);
        // What cannot be divided the first copies have.
        let rate = rate_per_s / copies + u32::from(copy < rate_per_s % copies);
        let depth = u64::from(rate.div_ceil(20));
        (rate_per_s > 0).then(|| TokenBucket::new(rate.into(), depth, depth))
    }

    /// The same in Click's measure, in which configurations written for it count: full when it is first looked at and
    /// filled each millisecond, with parts of a token such that the bucket holds 2^32 - 1 of them.
    pub(crate) fn in_ticks(rate_per_s: u32, depth: u32) -> Self {
        let fill = if rate_per_s > 0 { FULL } else { 0 };
        let mut bucket = TokenBucket { token: 1, rate: 0, tick_ns: TICK_NS, depth: FULL, fill, at: u64::MAX };
        bucket.set_rate_in_ticks(rate_per_s, depth);
        bucket
    }

    /// Changes rate and depth of a bucket in Click's measure; it stays as full as it is, in proportion.
    pub(crate) fn set_rate_in_ticks(&mut self, rate_per_s: u32, depth: u32) {
        // What comes in one tick must find room.
        let least = u64::from(rate_per_s).div_ceil(TICKS_PER_S).max(1);
        self.token = FULL / u64::from(depth).max(least);
        self.rate = (u64::from(rate_per_s) * self.token / TICKS_PER_S).max(u64::from(rate_per_s > 0));
    }

    /// Tokens a second, of a bucket that is not in Click's measure.
    pub(crate) fn rate_per_s(&self) -> u64 {
        self.rate
    }

    /// Changes rate and depth; the tokens held stay, as far as they fit.
    pub(crate) fn set_rate(&mut self, rate_per_s: u64, depth: u64) {
        self.rate = rate_per_s;
        self.depth = depth.saturating_mul(PARTS);
        self.fill = self.fill.min(self.depth);
    }

    /// Whole tokens held at `now_ns`.
    pub(crate) fn tokens(&mut self, now_ns: u64) -> u64 {
        let now = now_ns / self.tick_ns;
        // Time before the first look fills nothing.
        let elapsed = now.saturating_sub(self.at);
        self.at = now;
        let fill = self.fill as u128 + elapsed as u128 * self.rate as u128;
        self.fill = fill.min(self.depth as u128) as u64;
        self.fill / self.token
    }

    /// Takes `n` tokens, or all if there are fewer.
    pub(crate) fn take(&mut self, n: u64) {
        self.fill = self.fill.saturating_sub(n.saturating_mul(self.token));
    }

    /// When there will be a token, if nothing is taken; `None` if never.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.when_ns(1)
    }

    /// When there will be `n` tokens, if nothing is taken; `None` if never.
    pub(crate) fn when_ns(&self, n: u64) -> Option<u64> {
        let wanted = n.saturating_mul(self.token);
        let missing = wanted.saturating_sub(self.fill);
        (self.rate > 0 && self.depth >= wanted)
            .then(|| self.at.saturating_add(missing.div_ceil(self.rate)).saturating_mul(self.tick_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fills_up_to_its_depth() {
        let mut bucket = TokenBucket::new(1_000, 5, 1);
        assert_eq!(bucket.tokens(7_000_000_000), 1);
        assert_eq!(bucket.tokens(7_000_000_000), 1);
        assert_eq!(bucket.tokens(7_002_500_000), 3);
        assert_eq!(bucket.tokens(9_000_000_000), 5);
        bucket.take(5);
        assert_eq!((bucket.tokens(9_000_999_999), bucket.next_ns()), (0, Some(9_001_000_000)));
        assert_eq!(bucket.tokens(9_001_000_000), 1);
    }

    #[test]
    fn an_empty_rate_or_depth_never_gives() {
        let mut bucket = TokenBucket::new(0, 5, 0);
        assert_eq!((bucket.tokens(1), bucket.next_ns()), (0, None));
        bucket.set_rate(5, 0);
        assert_eq!((bucket.tokens(u64::MAX - 1), bucket.next_ns()), (0, None));
    }

    #[test]
    fn in_clicks_measure_a_bucket_starts_full_and_rounds_down() {
        // Two a second, fifty at most: in ten seconds all of the first fifty and nineteen whole ones.
        let mut bucket = TokenBucket::in_ticks(2, 50);
        let mut taken = 0;
        for ms in 0..10_000 {
            let n = bucket.tokens(7_000_000_000 + ms * TICK_NS + 999_999);
            bucket.take(n);
            taken += n;
        }
        assert_eq!(taken, 69);
        assert_eq!(bucket.when_ns(1).unwrap() % TICK_NS, 0);
        assert_eq!(
            (TokenBucket::in_ticks(0, 5).tokens(9), TokenBucket::in_ticks(0, 5).when_ns(1)),
            (0, None)
        );
        let mut fast = TokenBucket::in_ticks(u32::MAX, 0);
        // What comes in a tick finds room.
        assert!(fast.tokens(9) >= FULL.div_ceil(TICKS_PER_S) && fast.when_ns(u64::MAX).is_none());
        fast.set_rate_in_ticks(1_000, 1);
        fast.take(1);
        assert_eq!((fast.tokens(TICK_NS - 1), fast.tokens(TICK_NS)), (0, 1));
    }

    proptest! {
        /// Taking every token as it comes takes rate × time, to within one token.
        #[test]
        fn what_passes_is_the_rate(
            rate in 1u64..2_000_000_000,
            steps in proptest::collection::vec(1u64..5_000_000, 1..100),
        ) {
            let mut bucket = TokenBucket::new(rate, u64::MAX, 0);
            let (mut now_ns, mut taken) = (1_000, bucket.tokens(1_000));
            for step_ns in steps {
                now_ns += step_ns;
                let n = bucket.tokens(now_ns);
                bucket.take(n);
                taken += n;
            }
            let exact = (now_ns - 1_000) as u128 * rate as u128 / 1_000_000_000;
            prop_assert_eq!(taken as u128, exact);
        }

        /// At `next_ns` there is a token, and a nanosecond before there was none.
        #[test]
        fn waiting_is_exact(rate in 1u64..2_000_000_000, waited_ns in 0u64..1_000_000) {
            let mut bucket = TokenBucket::new(rate, 10, 0);
            bucket.tokens(5);
            let held = bucket.tokens(5 + waited_ns);
            bucket.take(held);
            let next_ns = bucket.next_ns().unwrap();
            prop_assert!(bucket.clone().tokens(next_ns) >= 1);
            prop_assert!(next_ns <= 5 + waited_ns || bucket.tokens(next_ns - 1) == 0);
        }
    }
}
