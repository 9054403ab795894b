//! Frames of closed sockets: back to the pool, once the kernel cannot touch them any more.
//!
//! A socket's queue counts as taken, and a bind to it fails with `EBUSY`, from its bind until the kernel has let go
//! of the socket's buffers. That is some time after close(2), and only when
//!
//! * no program run that may still copy a frame into them is left (the kernel waits for a grace period when the
//!   socket is closed);
//! * every socket buffer made of its frames is freed, since each holds the socket, and the socket the buffers;
//! * with zero copy, the driver has given the queue's buffers up: that happens under the same lock as binding.
//!
//! So every closed socket leaves a [`Probe`] here, and a thread that lives as long as there are any tries to bind
//! them. What it finds free it closes at once. An interface that is gone was stopped before, which ends all access by
//! its driver, and its sockets were unbound. If another socket of ours gets the queue first, that says the same. If
//! one of another process does, the frames stay where they are as long as that one stays.

use super::socket::prepare;
use crate::Result;
use crate::interface::get_option;
use causeway_packet::ledger::Claim;
use causeway_packet::pool;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const SO_NETNS_COOKIE: i32 = 71;
/// Time between two rounds of binding: the first, and the longest after rounds without success.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of the memory that a probe registers: the least that the kernel takes.
const PROBE_BYTES: usize = 4_096;

/// A queue of an interface of some network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    netns: u64,
    ifindex: u32,
    queue: u32,
}

impl Place {
    /// Queue `queue` of the interface `ifindex` of the namespace that `socket` is in.
    pub fn new(socket: &OwnedFd, ifindex: u32, queue: u32) -> Place {
        // Kernels before 5.14 do not say; their namespaces are taken for one.
        let netns = get_option(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE, 0u64).unwrap_or(0);
        Place { netns, ifindex, queue }
    }
}

/// A socket that shows by its bind whether a queue is free. It is made with the socket whose end it will wait for,
/// because the process may be in another namespace by then, or have given up its privileges.
#[derive(Debug)]
pub struct Probe {
    fd: OwnedFd,
    flags: u16,
}

impl Probe {
    /// A probe for an interface whose driver has zero copy, or has not.
    pub fn new(driver_zero_copy: bool) -> Result<Probe> {
        // The rings stay empty: no byte of this memory is read or written.
        let (base, len) = pool::region();
        let (fd, _) = prepare(1, Some((base, len.min(PROBE_BYTES))))?;
        // Where this mode must fail the queue is not even taken for a moment. Where it would not fail, it would make
        // the driver work.
        let flags = if driver_zero_copy { libc::XDP_COPY } else { libc::XDP_ZEROCOPY };
        Ok(Probe { fd, flags })
    }

    /// Whether the queue is free. After `true` the probe is used up.
    fn is_free(&self, place: Place) -> bool {
        match bind(&self.fd, self.flags, place.ifindex, place.queue, 0) {
            Ok(()) => true,
            Err(e) => matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENODEV)),
        }
    }
}

/// bind(2) to a queue, sharing the memory of socket `shared` if the flags say so.
pub fn bind(fd: &OwnedFd, flags: u16, ifindex: u32, queue: u32, shared: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared,
    };
    let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the address is live and its size is given.
    let r = unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Belongs to an open socket. When it is dropped, which must be after the socket is closed, the wait begins.
#[derive(Debug)]
pub struct OnClose(Option<Closed>);

#[derive(Debug)]
struct Closed {
    place: Place,
    probe: Probe,
    claims: Vec<Claim>,
}

/// Sockets that were closed and whose frames are still with them.
static CLOSED: Mutex<Waiting> = Mutex::new(Waiting { sockets: Vec::new(), watched: false });

struct Waiting {
    sockets: Vec<Closed>,
    /// Whether a thread looks after them.
    watched: bool,
}

#[expect(
    clippy::disallowed_methods,
    reason = "when a socket is bound or closed, and by the thread that waits for those"
)]
fn waiting() -> MutexGuard<'static, Waiting> {
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OnClose {
    /// To take `claims` back when the socket at `place` is gone.
    pub fn new(place: Place, probe: Probe, claims: Vec<Claim>) -> OnClose {
        OnClose(Some(Closed { place, probe, claims }))
    }
}

impl Drop for OnClose {
    fn drop(&mut self) {
        let mut waiting = waiting();
        waiting.sockets.extend(self.0.take());
        if !waiting.watched {
            let thread = std::thread::Builder::new().name("afxdp-release".to_owned()).spawn(watch);
            // Without a thread the next socket that is closed or bound tries again.
            waiting.watched = thread.is_ok();
        }
    }
}

impl Closed {
    /// Gives the frames to the pool; the claims of a ring that is still open stay.
    fn collect(&mut self) {
        for claim in mem::take(&mut self.claims) {
            // SAFETY: the callers have just seen that the queue is free or another socket's; the page's beginning says
            // why the kernel has done with the frames of this one then.
            self.claims.extend(unsafe { claim.collect() }.err());
        }
    }
}

/// The queue at `place` has just been bound to a new socket: those that had it before are gone.
pub fn taken(place: Place) {
    let mut waiting = waiting();
    waiting.sockets.iter_mut().filter(|c| c.place == place).for_each(Closed::collect);
    waiting.sockets.retain(|c| !c.claims.is_empty());
}

/// Waits for all closed sockets, then ends.
#[expect(clippy::disallowed_methods, reason = "a thread of its own")]
fn watch() {
    let mut pause = FIRST_PAUSE;
    loop {
        std::thread::sleep(pause);
        let mut waiting = waiting();
        let before = waiting.sockets.len();
        waiting.sockets.retain_mut(|closed| {
            if closed.probe.is_free(closed.place) {
                closed.collect();
            }
            !closed.claims.is_empty()
        });
        if waiting.sockets.is_empty() {
            waiting.watched = false;
            return;
        }
        let progress = waiting.sockets.len() < before;
        pause = if progress { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
    }
}
