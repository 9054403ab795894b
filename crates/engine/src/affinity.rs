//! Pinning a thread to a processor.

use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Pins the calling thread to `processor`.
pub(crate) fn pin(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such processor"));
    }
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets the calling thread run where the process may: a worker may have started it, and be pinned.
pub fn unpin() {
    // Who may not be moved stays where it is.
    let _ = sched_getaffinity(Some(getpid())).and_then(|set| sched_setaffinity(None, &set));
}

/// The processors that a thread of this process can be pinned to.
#[expect(clippy::disallowed_methods, reason = "once, for who starts a router")]
pub fn usable_processors() -> Vec<usize> {
    // A thread of its own, so that the caller's stays free.
    let tried = || (0..CpuSet::MAX_CPU).filter(|&processor| pin(processor).is_ok()).collect();
    std::thread::spawn(tried).join().unwrap_or_default()
}
