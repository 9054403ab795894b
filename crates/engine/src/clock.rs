//! The clock that elements see.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where simulated time starts unless told otherwise: 10⁹ seconds after the epoch.
pub const SIMULATED_START_NS: u64 = 1_000_000_000_000_000_000;

/// From a moment on time goes faster or slower than the machine's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp {
    /// The moment, by the machine's clock.
    from_ns: u64,
    /// What it was here.
    at_ns: u64,
    /// How many times as fast time goes since then.
    speed: f64,
}

impl Warp {
    /// The time here when the machine's clock says `true_ns`.
    fn read(&self, true_ns: u64) -> u64 {
        // To 2⁵³ ns, which are 104 days, each nanosecond counts.
        let passed_ns = true_ns.saturating_sub(self.from_ns) as f64 * self.speed;
        self.at_ns.saturating_add(passed_ns as u64)
    }
}

/// Live or simulated time, in nanoseconds since the epoch. It never goes back.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's steady clock, offset to the time of day at the start and read once a scheduling round.
    Live {
        /// Time of day when CLOCK_MONOTONIC was 0, as it was at the start.
        epoch_ns: u64,
        /// What CLOCK_MONOTONIC was at this round's reading.
        monotonic_ns: u64,
        /// The reading of this round.
        now_ns: u64,
        /// Whether the round's reading was taken.
        fresh: bool,
        /// How time goes, if not as the machine's.
        warp: Option<Warp>,
    },
    /// Simulated time: every reading advances it by one nanosecond.
    Simulated {
        /// The last reading.
        now_ns: u64,
    },
}

impl Clock {
    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "once, at the start")]
    pub fn live() -> Clock {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let monotonic_ns = monotonic_ns();
        let epoch_ns = now_ns.saturating_sub(monotonic_ns);
        Clock::Live { epoch_ns, monotonic_ns, now_ns, fresh: true, warp: None }
    }

    /// Simulated time that starts at `now_ns`.
    pub fn simulated(now_ns: u64) -> Clock {
        Clock::Simulated { now_ns }
    }

    /// The time now.
    #[inline]
    pub fn now_ns(&mut self) -> u64 {
        match self {
            Clock::Live { epoch_ns, monotonic_ns: reading_ns, now_ns, fresh, warp } => {
                if !*fresh {
                    *reading_ns = monotonic_ns();
                    let true_ns = *epoch_ns + *reading_ns;
                    // A warp that another worker began a little earlier may say less than was read here.
                    *now_ns = warp.map_or(true_ns, |warp| warp.read(true_ns)).max(*now_ns);
                    *fresh = true;
                }
                *now_ns
            }
            Clock::Simulated { now_ns } => {
                *now_ns = now_ns.saturating_add(1);
                *now_ns
            }
        }
    }

    /// Whether time is simulated.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Clock::Simulated { .. })
    }

    /// The last reading, without another.
    pub fn reading_ns(&self) -> u64 {
        match *self {
            Clock::Live { now_ns, .. } | Clock::Simulated { now_ns } => now_ns,
        }
    }

    /// The time now on CLOCK_MONOTONIC, which all processes share; simulated time has none.
    #[inline]
    pub fn monotonic_ns(&mut self) -> Option<u64> {
        self.now_ns();
        match *self {
            Clock::Live { monotonic_ns, .. } => Some(monotonic_ns),
            Clock::Simulated { .. } => None,
        }
    }

    /// How time would go from now on, `speed` times as fast as the machine's; simulated time goes by itself.
    pub fn warp(&mut self, speed: f64) -> Option<Warp> {
        self.touch();
        let at_ns = self.now_ns();
        match *self {
            Clock::Live { epoch_ns, monotonic_ns, .. } => {
                Some(Warp { from_ns: epoch_ns + monotonic_ns, at_ns, speed })
            }
            Clock::Simulated { .. } => None,
        }
    }

    /// Lets time go so from now on.
    pub fn set_warp(&mut self, new: Warp) {
        if let Clock::Live { warp, .. } = self {
            *warp = Some(new);
        }
    }

    /// How many of the machine's nanoseconds pass while `ns` do here, at least.
    pub fn true_ns(&self, ns: u64) -> u64 {
        match self {
            Clock::Live { warp: Some(warp), .. } => (ns as f64 / warp.speed).ceil() as u64,
            _ => ns,
        }
    }

    /// Says that time may have passed: the next reading is a new one.
    #[inline]
    pub fn touch(&mut self) {
        if let Clock::Live { fresh, .. } = self {
            *fresh = false;
        }
    }

    /// Lets so many nanoseconds of simulated time pass; a live clock goes by itself.
    pub fn pass(&mut self, ns: u64) {
        if let Clock::Simulated { now_ns } = self {
            *now_ns = now_ns.saturating_add(ns);
        }
    }

    /// Lets simulated time jump to `when_ns`; says whether this clock can.
    pub fn jump(&mut self, when_ns: u64) -> bool {
        match self {
            Clock::Live { .. } => false,
            Clock::Simulated { now_ns } => {
                *now_ns = when_ns.max(*now_ns);
                true
            }
        }
    }
}

/// CLOCK_MONOTONIC, in nanoseconds.
#[inline]
#[expect(clippy::disallowed_methods, reason = "the worker's own clock, which it reads once a round")]
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warped_time_goes_on_from_where_it_was_at_its_own_speed() {
        let warp = Warp { from_ns: 1_000, at_ns: 5_000, speed: 2.5 };
        assert_eq!([900, 1_000, 1_004].map(|true_ns| warp.read(true_ns)), [5_000, 5_000, 5_010]);
        let mut clock = Clock::live();
        let before_ns = clock.now_ns();
        let fast = clock.warp(1e6).expect("live");
        clock.set_warp(fast);
        assert_eq!((clock.true_ns(3_000_000), clock.true_ns(1)), (3, 1));
        let slow = clock.warp(0.5).expect("live");
        clock.set_warp(slow);
        clock.touch();
        assert!(clock.now_ns() >= slow.at_ns && slow.at_ns >= before_ns, "never back");
        assert_eq!(clock.true_ns(3), 6);
        let monotonic_ns = clock.monotonic_ns().expect("live");
        assert!(monotonic_ns <= super::monotonic_ns(), "the machine's own goes as it goes");
        assert_eq!(Clock::simulated(7).warp(2.0), None);
    }
}
