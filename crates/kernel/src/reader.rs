//! The thread that empties the event sockets: it copies and does nothing else, so that the kernel's buffer overruns only if
//! memory itself is short. It says at once when messages were lost.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::doubt::Herald;
use crate::socket::{DATAGRAM_LEN, Socket};
use crate::uapi::{AF_INET6, RTM_DELROUTE, RTM_NEWROUTE};
use crate::wire::Frames;

/// Octets that one batch is filled to at most.
const BATCH_LEN: usize = 256 * 1024;
/// Batches that may wait to be taken in: 256 MiB of messages.
const BATCHES: usize = 1024;
/// How long the thread sleeps at most: so old may its word be that nothing is left unread, and so long it waits for room
/// before a loss is told again.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What the reader hands over.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Datagrams of the routing socket.
    Events(Events),
    /// Messages were lost, for that many times now: what is known must be dumped anew.
    Lost(u64),
    /// The packet filter's rules changed.
    Filter,
}

/// Datagrams end to end.
#[derive(Debug)]
pub(crate) struct Events {
    pub bytes: Vec<u8>,
    /// All of them had been read by then.
    pub read: Instant,
    /// All that the kernel had sent before then is in this batch and those before it.
    pub complete_to: Instant,
}

/// The running thread.
pub(crate) struct Reader {
    pub batches: Receiver<Batch>,
    intake: Arc<Mutex<Intake>>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Starts reading; `filter` is none where the kernel has no packet filter.
    pub fn spawn(events: Socket, filter: Option<Socket>, herald: Arc<Herald>) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let wake = stop.try_clone()?;
        let (sender, batches) = sync_channel(BATCHES);
        let events = Arc::new(events);
        let intake = Arc::new(Mutex::new(Intake {
            events: events.clone(),
            buffer: vec![0; DATAGRAM_LEN],
            sender,
            herald,
            untold: None,
            complete_to: Instant::now(),
            routes6: None,
        }));
        let theirs = intake.clone();
        let thread = std::thread::Builder::new().name("netlink".into()).spawn(move || {
            let _end = End(&theirs);
            run(&theirs, &events, filter.as_ref(), &wake);
        })?;
        Ok(Reader { batches, intake, stop, thread: Some(thread) })
    }

    /// Whether the thread is there. One that has ended by itself has said that messages are lost.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// All that the kernel had sent before then is in the batches.
    pub fn complete_to(&self) -> Instant {
        lock(&self.intake).complete_to
    }

    /// Reads what is there now; whether nothing is left. A kernel that sends on and on is not waited for.
    pub fn empty(&self) -> bool {
        let mut intake = lock(&self.intake);
        (0..BATCHES).any(|_| intake.drain())
    }

    /// Whether all messages about IPv6 routes that were read had been read by then.
    pub fn routes6_before(&self, time: Instant) -> bool {
        lock(&self.intake).routes6.is_none_or(|last| last < time)
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

fn lock(intake: &Mutex<Intake>) -> MutexGuard<'_, Intake> {
    // It is whole after every step, so also after a panic of a callback.
    intake.lock().unwrap_or_else(PoisonError::into_inner)
}

/// However the thread ends, nothing is read from then on.
struct End<'a>(&'a Mutex<Intake>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        lock(self.0).lost();
    }
}

fn run(intake: &Mutex<Intake>, events: &Socket, filter: Option<&Socket>, stop: &OwnedFd) {
    let mut filtered = false;
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(events, PollFlags::IN)];
        fds.extend(filter.map(|socket| PollFd::new(socket, PollFlags::IN)));
        if poll(&mut fds, Some(&TURN)).is_err_and(|error| error != Errno::INTR)
            || !fds[0].revents().is_empty()
        {
            return;
        }
        let mut intake = lock(intake);
        intake.drain();
        if let Some(socket) = filter.filter(|_| fds.get(2).is_some_and(|fd| !fd.revents().is_empty())) {
            filtered |= intake.discard(socket);
        }
        filtered = filtered && !intake.offer(Batch::Filter);
    }
}

/// What comes in, for whoever reads: the thread, or the watcher when it needs to know that nothing is left.
struct Intake {
    events: Arc<Socket>,
    buffer: Vec<u8>,
    sender: SyncSender<Batch>,
    herald: Arc<Herald>,
    /// Losses that are not in the batches yet.
    untold: Option<u64>,
    complete_to: Instant,
    /// When a message about IPv6 routes was last read.
    routes6: Option<Instant>,
}

impl Intake {
    /// Reads one batch, and says whether nothing is left.
    fn drain(&mut self) -> bool {
        let mut bytes = Vec::new();
        let mut emptied = false;
        while bytes.len() < BATCH_LEN && !emptied {
            let before = Instant::now();
            match recv(&*self.events, &mut self.buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, len)) => match self.buffer.get(..len) {
                    Some(datagram) => bytes.extend_from_slice(datagram),
                    None => self.lost(),
                },
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.complete_to = before;
                    emptied = true;
                }
                // The kernel's buffer was full, or something else is wrong with it. The socket works on.
                Err(Errno::NOBUFS) => self.lost(),
                Err(_) => {
                    self.lost();
                    break;
                }
            }
        }
        if !bytes.is_empty() {
            let read = Instant::now();
            if Frames(&bytes).flatten().any(|frame| {
                matches!(frame.kind, RTM_NEWROUTE | RTM_DELROUTE) && frame.payload.first() == Some(&AF_INET6)
            }) {
                self.routes6 = Some(read);
            }
            if !self.offer(Batch::Events(Events { bytes, read, complete_to: self.complete_to })) {
                self.lost();
            }
        }
        // Said after the messages that came before it, and said again until there is room.
        if let Some(losses) = self.untold.take()
            && !self.offer(Batch::Lost(losses))
        {
            self.untold = Some(losses);
        }
        emptied
    }

    fn lost(&mut self) {
        self.untold = Some(self.herald.lost());
    }

    /// Whether there was room; a receiver that is gone needs nothing any more.
    fn offer(&mut self, batch: Batch) -> bool {
        !matches!(self.sender.try_send(batch), Err(TrySendError::Full(_)))
    }

    /// Empties another socket; whether anything was there.
    fn discard(&mut self, socket: impl AsFd) -> bool {
        let mut some = false;
        while match recv(&socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => true,
            Err(_) => false,
        } {
            some = true;
        }
        some
    }
}
