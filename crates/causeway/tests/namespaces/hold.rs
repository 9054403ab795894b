//! Holds one thread of a router, as if it hung, while the others run.

use crate::net::Router;
use nix::sys::ptrace::{Options, detach, interrupt, seize};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// A thread that does not run as long as this value is there.
pub struct Hold(Pid);

impl Hold {
    /// Holds the thread of this name.
    pub fn thread(router: &Router, name: &str) -> Hold {
        let tid = tid(router, name);
        seize(tid, Options::empty()).expect("a thread to trace");
        interrupt(tid).expect("a thread to stop");
        // It stops at once, or when a system call returns.
        waitpid(tid, Some(WaitPidFlag::__WALL)).expect("a thread that has stopped");
        Hold(tid)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The process may have been killed meanwhile.
        let _ = detach(self.0, None);
    }
}

/// The thread of this name, of which the kernel keeps 15 octets.
fn tid(router: &Router, name: &str) -> Pid {
    let tasks = format!("/proc/{}/task", router.child.id());
    let tasks = std::fs::read_dir(tasks).expect("a process").map(|entry| entry.expect("a task").path());
    let is_it = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    let task = tasks.into_iter().find(is_it).unwrap_or_else(|| panic!("no thread {name}"));
    let number = task.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse().ok());
    Pid::from_raw(number.expect("a number"))
}
