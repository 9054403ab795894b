//! Waits that end when the run is to end.

use super::Since;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a wait looks whether it is to end.
pub const LOOK: Duration = Duration::from_millis(20);

/// Waits for so long, or until the run is to end.
pub fn wait_for(time: Duration, interrupted: &AtomicBool) {
    let began = Instant::now();
    while began.elapsed() < time && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK.min(time.saturating_sub(began.elapsed())));
    }
}

/// Waits for a time of the trial, or until the run is to end.
pub fn wait_until(at_ns: u64, since: Since, interrupted: &AtomicBool) {
    while !interrupted.load(Ordering::Relaxed) {
        match at_ns.saturating_sub(since.ns()) {
            0 => return,
            left => std::thread::sleep(LOOK.min(Duration::from_nanos(left))),
        }
    }
}
