//! The clock that elements see.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where simulated time starts unless told otherwise: 10⁹ seconds after the epoch.
pub const SIMULATED_START_NS: u64 = 1_000_000_000_000_000_000;

/// Live or simulated time, in nanoseconds since the epoch. It never goes back.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's steady clock, offset to the time of day at the start and read once a scheduling round.
    Live {
        /// Time of day when CLOCK_MONOTONIC was 0, as it was at the start.
        epoch_ns: u64,
        /// The reading of this round.
        now_ns: u64,
        /// Whether the round's reading was taken.
        fresh: bool,
    },
    /// Simulated time: every reading advances it by one nanosecond.
    Simulated {
        /// The last reading.
        now_ns: u64,
    },
}

impl Clock {
    /// The machine's clock.
    #[allow(clippy::disallowed_methods, reason = "once, at the start")]
    pub fn live() -> Clock {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        Clock::Live { epoch_ns: now_ns.saturating_sub(monotonic_ns()), now_ns, fresh: true }
    }

    /// Simulated time that starts at `now_ns`.
    pub fn simulated(now_ns: u64) -> Clock {
        Clock::Simulated { now_ns }
    }

    /// The time now.
    #[inline]
    pub fn now_ns(&mut self) -> u64 {
        match self {
            Clock::Live { epoch_ns, now_ns, fresh } => {
                if !*fresh {
                    *now_ns = *epoch_ns + monotonic_ns();
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

    /// The last reading, without another.
    pub fn reading_ns(&self) -> u64 {
        match *self {
            Clock::Live { now_ns, .. } | Clock::Simulated { now_ns } => now_ns,
        }
    }

    /// The time now on CLOCK_MONOTONIC, which all processes share; simulated time has none.
    #[inline]
    pub fn monotonic_ns(&mut self) -> Option<u64> {
        match *self {
            Clock::Live { epoch_ns, .. } => Some(self.now_ns().saturating_sub(epoch_ns)),
            Clock::Simulated { .. } => None,
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
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
