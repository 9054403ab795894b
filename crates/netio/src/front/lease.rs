//! The right to forward, as a deadline.

use crate::Result;
use causeway_bpf::{Map, MappedArray};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};

/// Until when frames in transit may be taken from the kernel: one word that the program in the kernel reads for every
/// such frame, and workers for every batch.
///
/// It is a deadline and not a switch, so that a router that is stopped, hung or confused loses the right by doing
/// nothing: whoever vouches for it must renew it again and again. Times are those of `CLOCK_MONOTONIC`; the program
/// sees the time of the last tick, so it lets the right go up to a tick late.
#[derive(Debug)]
pub struct Lease {
    word: MappedArray,
}

impl Lease {
    /// A lease that has run out.
    ///
    /// # Errors
    /// As [`Map::new`].
    pub fn new() -> Result<Lease> {
        Ok(Lease { word: MappedArray::new("lease", 8, 1)? })
    }

    /// Frames may be taken until `deadline_ns`.
    pub fn renew(&self, deadline_ns: u64) {
        // Release: who sees the deadline sees the tables as they were when it was set.
        self.deadline().store(deadline_ns, Ordering::Release);
    }

    /// Frames may not be taken from now on.
    pub fn revoke(&self) {
        self.deadline().store(0, Ordering::Release);
    }

    /// The word itself, nanoseconds; 0 when revoked.
    pub fn deadline(&self) -> &AtomicU64 {
        self.word.word(0)
    }

    /// The array that holds the word, for the program.
    pub(super) fn map(&self) -> &Map {
        self.word.map()
    }
}

/// The clock that deadlines are times of, nanoseconds.
#[expect(clippy::disallowed_methods, reason = "the control side, which grants the lease")]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is negative on this clock.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
