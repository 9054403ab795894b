//! The thread that empties the event sockets: it copies and does nothing else, so that the kernel's buffer overruns only if
//! memory itself is short.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::socket::{DATAGRAM_LEN, Socket};

/// Octets that one batch is filled to at most.
const BATCH_LEN: usize = 256 * 1024;
/// Batches that may wait to be taken in: 256 MiB of messages.
const BATCHES: usize = 1024;
/// How long to wait for room before an overrun is told again.
const RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What the reader hands over.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Datagrams of the routing socket, end to end.
    Events(Vec<u8>),
    /// Messages were lost: what is known must be dumped anew.
    Overrun,
    /// The packet filter's rules changed.
    Netfilter,
}

/// The running thread.
pub(crate) struct Reader {
    pub batches: Receiver<Batch>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Starts reading; `netfilter` is none where the kernel has no packet filter.
    pub fn spawn(events: Socket, netfilter: Option<Socket>) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let wake = stop.try_clone()?;
        let (sender, batches) = sync_channel(BATCHES);
        let thread = std::thread::Builder::new()
            .name("netlink".into())
            .spawn(move || run(&events, netfilter.as_ref(), &wake, &sender))?;
        Ok(Reader { batches, stop, thread: Some(thread) })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Writing to an eventfd that is not full cannot fail; if it did, the thread would only outlive us.
        if rustix::io::write(&self.stop, &1u64.to_ne_bytes()).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn run(events: &Socket, netfilter: Option<&Socket>, stop: &OwnedFd, sender: &SyncSender<Batch>) {
    let mut buffer = vec![0; DATAGRAM_LEN];
    let mut overrun = false;
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(events, PollFlags::IN)];
        fds.extend(netfilter.map(|socket| PollFd::new(socket, PollFlags::IN)));
        let timeout = overrun.then_some(&RETRY);
        if poll(&mut fds, timeout).is_err_and(|error| error != Errno::INTR) || !fds[0].revents().is_empty() {
            return;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[1] {
            let (batch, lost) = drain(events, &mut buffer);
            overrun |= lost;
            overrun |= !batch.is_empty() && !offer(sender, Batch::Events(batch));
        }
        // Said after the messages that came before it, and said again until there is room.
        overrun = overrun && !offer(sender, Batch::Overrun);
        if let (Some(socket), Some(true)) = (netfilter, ready.get(2)) {
            drain(socket, &mut buffer);
            offer(sender, Batch::Netfilter);
        }
    }
}

/// Whether there was room; a receiver that is gone needs nothing any more.
fn offer(sender: &SyncSender<Batch>, batch: Batch) -> bool {
    !matches!(sender.try_send(batch), Err(TrySendError::Full(_)))
}

/// Reads what is there, up to one batch; the flag says that messages were lost.
fn drain(socket: impl AsFd, buffer: &mut [u8]) -> (Vec<u8>, bool) {
    let mut batch = Vec::new();
    let mut lost = false;
    while batch.len() < BATCH_LEN {
        match recv(&socket, &mut *buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((_, len)) => match buffer.get(..len) {
                Some(datagram) => batch.extend_from_slice(datagram),
                None => lost = true,
            },
            Err(Errno::INTR) => {}
            // The kernel's buffer was full. The socket works on.
            Err(Errno::NOBUFS) => lost = true,
            Err(_) => break,
        }
    }
    (batch, lost)
}
