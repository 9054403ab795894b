//! A token bucket: what may pass now, and when the next may, in whole numbers.

/// Parts of a token in the fill; then a fill rate in tokens a second is one in parts a nanosecond.
const PARTS: u64 = 1_000_000_000;

/// Tokens that accrue at a rate up to a depth.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate_per_s: u64,
    /// Most parts held.
    depth: u64,
    /// Parts held at `at_ns`.
    fill: u64,
    at_ns: u64,
}

impl TokenBucket {
    /// A bucket that holds at most `depth` tokens, is filled with `rate_per_s` tokens a second, and has `fill`
    /// tokens when it is first looked at.
    pub(crate) fn new(rate_per_s: u64, depth: u64, fill: u64) -> Self {
        let depth = depth.saturating_mul(PARTS);
        TokenBucket { rate_per_s, depth, fill: fill.saturating_mul(PARTS).min(depth), at_ns: u64::MAX }
    }

    /// Tokens a second.
    pub(crate) fn rate_per_s(&self) -> u64 {
        self.rate_per_s
    }

    /// Changes rate and depth; the tokens held stay, as far as they fit.
    pub(crate) fn set_rate(&mut self, rate_per_s: u64, depth: u64) {
        self.rate_per_s = rate_per_s;
        self.depth = depth.saturating_mul(PARTS);
        self.fill = self.fill.min(self.depth);
    }

    /// Whole tokens held at `now_ns`.
    pub(crate) fn tokens(&mut self, now_ns: u64) -> u64 {
        // Time before the first look fills nothing.
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        self.at_ns = now_ns;
        let fill = self.fill as u128 + elapsed_ns as u128 * self.rate_per_s as u128;
        self.fill = fill.min(self.depth as u128) as u64;
        self.fill / PARTS
    }

    /// Takes `n` tokens, which must be held.
    pub(crate) fn take(&mut self, n: u64) {
        self.fill = self.fill.saturating_sub(n.saturating_mul(PARTS));
    }

    /// When there will be a token, if nothing is taken; `None` if never.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let missing = PARTS.saturating_sub(self.fill);
        (self.rate_per_s > 0 && self.depth >= PARTS)
            .then(|| self.at_ns.saturating_add(missing.div_ceil(self.rate_per_s)))
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
