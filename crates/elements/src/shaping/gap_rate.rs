//! A rate without bursts: who is behind it may go, and the count begins anew with each second of the clock.

const NS_PER_S: u64 = 1_000_000_000;
/// The gap between two events is kept in parts of a microsecond.
const PARTS: u64 = 1 << 12;
/// Parts in a second, which is also the highest rate.
const PARTS_PER_S: u64 = 1_000_000 * PARTS;

/// Events at a rate, evenly spaced.
#[derive(Clone, Debug)]
pub(super) struct GapRate {
    rate: u64,
    /// Parts between two events.
    gap: u64,
    /// Events of this second so far, less those that the seconds before have left undone.
    count: i64,
    /// This second, on the clock that elements see.
    second: Option<u64>,
}

impl GapRate {
    /// `rate` events a second.
    pub fn new(rate: u64) -> GapRate {
        let mut new = GapRate { rate: 0, gap: 0, count: 0, second: None };
        new.set_rate(rate, 0);
        new
    }

    /// Changes the rate at `now_ns`.
    pub fn set_rate(&mut self, rate: u64, now_ns: u64) {
        let rate = rate.min(PARTS_PER_S);
        self.gap = PARTS_PER_S.checked_div(rate).unwrap_or(PARTS_PER_S + 1);
        if rate != self.rate && rate > 0 && self.second.is_some() {
            self.count = self.needed(now_ns);
        }
        self.rate = rate;
    }

    /// Forgets what was, so that an event may come at once.
    pub fn reset(&mut self) {
        self.second = None;
    }

    /// Events that should have come by then in the second of `now_ns`.
    fn needed(&self, now_ns: u64) -> i64 {
        (now_ns % NS_PER_S / 1_000 * PARTS / self.gap) as i64
    }

    /// Whether an event may come at `now_ns`.
    pub fn open(&mut self, now_ns: u64) -> bool {
        let (second, needed) = (now_ns / NS_PER_S, self.needed(now_ns));
        match self.second {
            None => {
                // In the second half of a gap the event is that at its end.
                let over = now_ns % NS_PER_S / 1_000 * PARTS - needed as u64 * self.gap;
                self.count = needed + i64::from(over > self.gap / 2);
            }
            Some(before) if second > before && self.count > 0 => self.count -= self.rate as i64,
            Some(_) => {}
        }
        self.second = Some(self.second.map_or(second, |before| before.max(second)));
        needed >= self.count
    }

    /// `n` events have come.
    pub fn add(&mut self, n: u64) {
        self.count += n as i64;
    }

    /// When to ask again, once it was not open: then an event may come, or a second begins, whose events count.
    pub fn next_ns(&self) -> u64 {
        let second_ns = self.second.unwrap_or(0) * NS_PER_S;
        let parts = u64::try_from(self.count).unwrap_or(0).saturating_mul(self.gap);
        second_ns + parts.div_ceil(PARTS).saturating_mul(1_000).min(NS_PER_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 7 * NS_PER_S;

    /// Events in ten seconds, each counted as `n`, asked for when it says so.
    fn events(rate: u64, n: u64) -> u64 {
        let (mut gap, mut now_ns, mut events) = (GapRate::new(rate), START_NS, 0);
        while now_ns < START_NS + 10 * NS_PER_S {
            if gap.open(now_ns) {
                gap.add(n);
                events += 1;
            } else {
                assert!(gap.next_ns() > now_ns, "{rate}");
                now_ns = gap.next_ns();
            }
        }
        events
    }

    #[test]
    fn events_come_at_the_rate() {
        assert_eq!([1, 7, 100, 12_345].map(|rate| events(rate, 1)), [10, 70, 1_000, 123_450]);
        assert_eq!(events(0, 1), 1);
        // Each counts for more than a second's.
        assert_eq!(events(1_000, 2_500), 4);
    }

    #[test]
    fn when_it_says_is_when_it_opens() {
        let mut gap = GapRate::new(1_000);
        let mut now_ns = START_NS + 123_456_789;
        for _ in 0..5_000 {
            while gap.open(now_ns) {
                gap.add(1);
            }
            let next_ns = gap.next_ns();
            assert!(!gap.clone().open(next_ns - 1_000) && gap.open(next_ns), "{gap:?}");
            now_ns = next_ns;
        }
        gap.reset();
        assert!(gap.open(now_ns) || gap.open(now_ns + 500_000));
    }

    #[test]
    fn the_first_event_comes_at_the_nearer_end_of_its_gap() {
        assert!(GapRate::new(2).open(START_NS + 100_000_000));
        let mut late = GapRate::new(2);
        assert!(!late.open(START_NS + 400_000_000));
        assert_eq!(late.next_ns(), START_NS + 500_000_000);
    }

    #[test]
    fn seconds_without_events_save_nothing_up() {
        let mut gap = GapRate::new(1);
        assert!(gap.open(START_NS) && gap.open(START_NS + 2 * NS_PER_S));
        gap.add(1);
        assert!(!gap.open(START_NS + 2 * NS_PER_S));
    }
}
