//! Pinning a thread to a processor.

use rustix::thread::CpuSet;
use std::io;

/// Pins the calling thread to `processor`.
pub(crate) fn pin(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such processor"));
    }
    set.set(processor);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The processors that a thread of this process can be pinned to.
pub fn usable_processors() -> Vec<usize> {
    // A thread of its own, so that the caller's stays free.
    let tried = || (0..CpuSet::MAX_CPU).filter(|&processor| pin(processor).is_ok()).collect();
    std::thread::spawn(tried).join().unwrap_or_default()
}
