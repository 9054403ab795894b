//! The network namespace that a transmitter works in.
//!
//! The kernel looks up the interface that a live frame is redirected to in the namespace of the thread that makes the run.
//! In another one the index is nobody's, and the frames are lost, or somebody else's, and they go out there. A socket
//! has no such trouble: it stays in the namespace that it was made in.

use std::os::linux::fs::MetadataExt;
use std::thread::{self, ThreadId};

/// A namespace, and the thread that is known to be in it or not.
#[derive(Debug)]
pub struct Home {
    namespace: Option<(u64, u64)>,
    thread: ThreadId,
    is_here: bool,
}

/// Device and inode of the calling thread's namespace, which are no other's.
pub fn namespace() -> Option<(u64, u64)> {
    let file = std::fs::metadata("/proc/thread-self/ns/net").ok()?;
    Some((file.st_dev(), file.st_ino()))
}

impl Home {
    /// That of the calling thread.
    pub fn here() -> Home {
        Home { namespace: namespace(), thread: thread::current().id(), is_here: true }
    }

    /// Whether the calling thread is there. It is looked up once for a thread, which is not expected to move.
    #[inline]
    pub fn is_here(&mut self) -> bool {
        let thread = thread::current().id();
        if thread != self.thread {
            self.thread = thread;
            self.is_here = namespace() == self.namespace;
        }
        self.is_here
    }
}
