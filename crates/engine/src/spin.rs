//! How long a worker that has nothing to do looks for work before it sleeps.
//!
//! To be woken takes the kernel some microseconds, and sleeping and waking costs both sides processor time. So it pays to
//! look on for about as long, if packets come that soon; and only then. Whether they do is learnt: a sleep that was
//! shorter than the longest spin would have been better spent spinning, and a longer one shows that spinning before it was in
//! vain.

/// How long to look for work before sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinTime {
    /// As long as it has paid lately, at most this many nanoseconds.
    Adaptive(u64),
    /// Always this many nanoseconds.
    Fixed(u64),
}

impl Default for SpinTime {
    fn default() -> Self {
        SpinTime::Adaptive(50_000)
    }
}

/// One worker's spinning.
#[derive(Clone, Debug)]
pub struct Spin {
    time: SpinTime,
    /// Nanoseconds that are spun now.
    now_ns: u64,
    /// When the worker ran out of work, if it has none.
    since_ns: Option<u64>,
}

impl Spin {
    /// That of a worker that has not slept yet.
    pub fn new(time: SpinTime) -> Spin {
        let now_ns = match time {
            SpinTime::Adaptive(_) => 0,
            SpinTime::Fixed(time_ns) => time_ns,
        };
        Spin { time, now_ns, since_ns: None }
    }

    /// How long it spins now, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// There was work.
    #[inline]
    pub fn worked(&mut self) {
        self.since_ns = None;
    }

    /// There is no work at `now_ns`; whether to look again rather than sleep.
    pub fn goes_on(&mut self, now_ns: u64) -> bool {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        now_ns < since_ns + self.now_ns
    }

    /// The worker slept.
    pub fn slept(&mut self, from_ns: u64, to_ns: u64) {
        self.since_ns = None;
        if let SpinTime::Adaptive(longest_ns) = self.time {
            self.now_ns = match to_ns.saturating_sub(from_ns) <= longest_ns {
                true => (self.now_ns * 2).clamp(longest_ns / 8, longest_ns),
                false => self.now_ns / 2,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_spins_while_that_pays() {
        let mut spin = Spin::new(SpinTime::Adaptive(80));
        assert!(!spin.goes_on(1_000), "nothing is known yet");
        for length in [10, 20, 40, 80, 80] {
            spin.slept(1_000, 1_080);
            assert!(spin.goes_on(2_000) && spin.goes_on(2_000 + length - 1) && !spin.goes_on(2_000 + length));
        }
        for length in [40, 20] {
            spin.slept(1_000, 1_081);
            assert!(spin.goes_on(2_000) && spin.goes_on(2_000 + length - 1) && !spin.goes_on(2_000 + length));
        }
        (0..8).for_each(|_| spin.slept(0, 1_000));
        assert!(!spin.goes_on(2_000), "whoever sleeps long does not spin");
    }

    #[test]
    fn it_spins_from_the_end_of_work() {
        let mut spin = Spin::new(SpinTime::Fixed(10));
        assert!(spin.goes_on(100) && spin.goes_on(109) && !spin.goes_on(110));
        spin.worked();
        assert!(spin.goes_on(110) && !spin.goes_on(120));
        spin.slept(120, 1_000_000);
        assert!(spin.goes_on(1_000_000) && !spin.goes_on(1_000_010));
    }
}
