//! The process at the other end.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, getpid, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The process that has connected a socket.
pub struct Peer {
    pub pid: Pid,
    uid: u32,
    process: OwnedFd,
}

impl Peer {
    /// The one at the other end of `socket`.
    ///
    /// # Errors
    /// It has ended.
    pub fn of(socket: &UnixStream) -> io::Result<Peer> {
        let credentials = socket_peercred(socket)?;
        let process = pidfd_open(credentials.pid, PidfdFlags::empty())?;
        Ok(Peer { pid: credentials.pid, uid: credentials.uid.as_raw(), process })
    }

    /// Whether it is this process's user, who can end it.
    pub fn is_same_user(&self) -> bool {
        self.uid == geteuid().as_raw()
    }

    /// Whether it belongs to the same service: systemd gives each a control group of its own.
    pub fn is_same_service(&self) -> bool {
        let group = |pid: Pid| fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).ok();
        group(self.pid) == group(getpid())
    }

    /// Whether it has ended, or does within `patience`.
    pub fn ends(&self, patience: Duration) -> bool {
        let time = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        // An interruption cuts the wait short, and whoever asks then asks again or goes on without it.
        poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&time)).is_ok_and(|ended| ended > 0)
    }

    /// Ends it by force.
    pub fn end(&self) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }
}
