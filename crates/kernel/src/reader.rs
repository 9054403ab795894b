//! The thread that empties the event socket: it copies and does nothing else, so that the kernel's buffer overruns only if
//! memory itself is short. It says at once when messages were lost.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::doubt::Herald;
use crate::socket::{DATAGRAM_LEN, Socket};
use crate::uapi::{AF_INET6, RTM_DELROUTE, RTM_NEWROUTE};
use crate::wire::{Frame, Frames};

/// Octets that one batch is filled to at most.
const BATCH_LEN: usize = 256 * 1024;
/// Octets of messages that may wait to be taken in.
const WAITING_LEN: usize = 256 << 20;
/// Batches that are read in a row when all that is there is wanted.
const ROW: usize = 256;
/// How long the thread sleeps at most: so old may its word be that nothing is left unread.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What the reader hands over.
#[derive(Debug)]
pub(crate) enum Batch {
    /// Datagrams of the routing socket.
    Events(Events),
    /// Messages were lost, for that many times now: what is known must be dumped anew.
    Lost(u64),
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
    shared: Arc<Shared>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    intake: Mutex<Intake>,
    arrived: Condvar,
}

impl Reader {
    /// Starts reading.
    pub fn spawn(events: Socket, herald: Arc<Herald>) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let wake = stop.try_clone()?;
        let events = Arc::new(events);
        let intake = Mutex::new(Intake {
            events: events.clone(),
            buffer: vec![0; DATAGRAM_LEN],
            waiting: VecDeque::new(),
            waiting_len: 0,
            herald,
            complete_to: Instant::now(),
            routes6: None,
            sealed: false,
        });
        let shared = Arc::new(Shared { intake, arrived: Condvar::new() });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("netlink".into()).spawn(move || {
            let _end = End(&theirs);
            run(&theirs, &events, &wake);
        })?;
        Ok(Reader { shared, stop, thread: Some(thread) })
    }

    /// Whether the thread is there. One that has ended by itself has said that messages are lost.
    pub fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// The next batch; if none comes within `timeout`, the time until which all that the kernel sent was handed over.
    pub fn next(&self, timeout: Duration) -> Result<Batch, Instant> {
        let wait = self
            .shared
            .arrived
            .wait_timeout_while(self.shared.lock(), timeout, |intake| intake.waiting.is_empty());
        let (mut intake, _) = wait.unwrap_or_else(PoisonError::into_inner);
        intake.take().ok_or(intake.complete_to)
    }

    /// Reads what is there now; whether nothing is left. What is read later comes in other batches. A kernel that sends on and
    /// on is not waited for.
    pub fn empty(&self) -> bool {
        let mut intake = self.shared.lock();
        let emptied = (0..ROW).any(|_| intake.drain());
        intake.sealed = true;
        emptied
    }

    /// Whether all messages about IPv6 routes that were read had been read by then.
    pub fn routes6_before(&self, time: Instant) -> bool {
        self.shared.lock().routes6.is_none_or(|last| last < time)
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Intake> {
        // It is whole after every step, so also after a panic of a callback.
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// However the thread ends, nothing is read from then on.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().lost();
        self.0.arrived.notify_all();
    }
}

fn run(shared: &Shared, events: &Socket, stop: &OwnedFd) {
    loop {
        let mut fds = [PollFd::new(stop, PollFlags::IN), PollFd::new(events, PollFlags::IN)];
        if poll(&mut fds, Some(&TURN)).is_err_and(|error| error != Errno::INTR)
            || !fds[0].revents().is_empty()
        {
            return;
        }
        let mut intake = shared.lock();
        intake.drain();
        if !intake.waiting.is_empty() {
            shared.arrived.notify_one();
        }
    }
}

/// What comes in, for whoever reads: the thread, or the watcher when it needs to know that nothing is left.
struct Intake {
    events: Arc<Socket>,
    buffer: Vec<u8>,
    waiting: VecDeque<Batch>,
    /// Octets of messages in the batches that wait.
    waiting_len: usize,
    herald: Arc<Herald>,
    complete_to: Instant,
    /// When a message about IPv6 routes was last read.
    routes6: Option<Instant>,
    /// The last batch that waits is not to be added to.
    sealed: bool,
}

impl Intake {
    /// Reads up to one batch, and says whether nothing is left.
    fn drain(&mut self) -> bool {
        let mut bytes = Vec::new();
        let (mut emptied, mut lost) = (false, false);
        while bytes.len() < BATCH_LEN && !emptied {
            let before = Instant::now();
            match recv(&*self.events, &mut self.buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, len)) => match self.buffer.get(..len) {
                    Some(datagram) => bytes.extend_from_slice(datagram),
                    None => lost = true,
                },
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.complete_to = before;
                    emptied = true;
                }
                // The kernel's buffer was full. The socket works on.
                Err(Errno::NOBUFS) => lost = true,
                // Whatever that is, messages do not come.
                Err(_) => {
                    lost = true;
                    break;
                }
            }
        }
        lost |= !bytes.is_empty() && !self.keep(bytes);
        // In the row of batches after the messages that came before it.
        if lost {
            self.lost();
        }
        emptied
    }

    /// Puts messages behind those that wait; whether there was room.
    fn keep(&mut self, bytes: Vec<u8>) -> bool {
        let (read, complete_to) = (Instant::now(), self.complete_to);
        let routes6 = |frame: Frame<'_>| {
            matches!(frame.kind, RTM_NEWROUTE | RTM_DELROUTE) && frame.payload.first() == Some(&AF_INET6)
        };
        if Frames(&bytes).flatten().any(routes6) {
            self.routes6 = Some(read);
        }
        if self.waiting_len + bytes.len() > WAITING_LEN {
            return false;
        }
        self.waiting_len += bytes.len();
        match self.waiting.back_mut() {
            // Messages that come one by one are taken in together.
            Some(Batch::Events(last)) if !self.sealed && last.bytes.len() < BATCH_LEN => {
                last.bytes.extend_from_slice(&bytes);
                (last.read, last.complete_to) = (read, complete_to);
            }
            _ => self.waiting.push_back(Batch::Events(Events { bytes, read, complete_to })),
        }
        self.sealed = false;
        true
    }

    fn lost(&mut self) {
        let losses = self.herald.lost();
        match self.waiting.back_mut() {
            Some(Batch::Lost(last)) => *last = losses,
            _ => self.waiting.push_back(Batch::Lost(losses)),
        }
    }

    fn take(&mut self) -> Option<Batch> {
        let batch = self.waiting.pop_front()?;
        if let Batch::Events(events) = &batch {
            self.waiting_len -= events.bytes.len();
        }
        Some(batch)
    }
}
