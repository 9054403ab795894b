//! The pulse of a worker: how anybody sees that it is not stuck.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// When a worker last ended a round of work.
///
/// A worker that has nothing to do wakes a few times a second for this alone, so a pulse that stands still for a second
/// means that the worker is stuck in an element, was stopped, is paused, or is being given another graph: it does
/// not forward. Under simulated time there is no pulse.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Line>);

/// On lines of its own: whoever watches takes no line that the worker writes for other reasons. Processors that
/// prefetch lines in pairs make it two.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    latest_ns: AtomicU64,
    empty_ns: AtomicU64,
}

impl Pulse {
    /// Nanoseconds of CLOCK_MONOTONIC at the end of the latest round; 0 before the first.
    pub fn latest_ns(&self) -> u64 {
        self.0.latest_ns.load(Ordering::Relaxed)
    }

    /// Nanoseconds of CLOCK_MONOTONIC; all that was in the rings of the worker's receivers by then has been forwarded. 0 before
    /// they were first found empty. Under load each of several may be found empty at another time after this.
    pub fn empty_ns(&self) -> u64 {
        self.0.empty_ns.load(Ordering::Acquire)
    }

    /// A round has ended.
    pub(crate) fn beat(&self, now_ns: u64) {
        self.0.latest_ns.store(now_ns, Ordering::Relaxed);
    }

    /// All that the worker receives from was found empty since this time.
    pub(crate) fn emptied(&self, since_ns: u64) {
        self.0.empty_ns.store(since_ns, Ordering::Release);
    }
}
