//! The sign of life of who follows the kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// The time at which the watcher last got on with its work.
///
/// It is touched at least every 100 ms while [`wait`](crate::Watcher::wait) runs, also inside long dumps and between stretches
/// of events, by the thread that does the work and by no other: when that thread hangs or ends, the pulse stops. Who applies
/// the changes on the same thread, and takes long over it, touches it meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// A pulse that has not been touched.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that work gets on.
    pub fn touch(&self) {
        self.0.store(monotonic_ns(), Ordering::Release);
    }

    /// When it was last touched: `CLOCK_MONOTONIC`, nanoseconds; 0 if never.
    pub fn last_ns(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
