//! Pinning a thread to a processor.

use std::io;

/// Pins the calling thread to `processor`.
pub(crate) fn pin(processor: usize) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    if processor >= rustix::thread::CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such processor"));
    }
    set.set(processor);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}
