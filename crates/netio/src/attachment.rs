//! What a port holds on its interface, until the last half is dropped or the device is gone.

use crate::Result;
use crate::device_counters::DeviceCounters;
use crate::front::{Claim, Reason};
use crate::interface::PromiscuousGuard;
use crate::offload::OffloadGuard;
use crate::port::{Event, Events};
use crate::statistics::Statistic;
use causeway_bpf::{TcxLink, XdpLink};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// What holds the program.
#[derive(Debug)]
pub enum Link {
    Xdp(#[allow(dead_code, reason = "held until it is dropped")] Arc<XdpLink>),
    Tcx(#[allow(dead_code, reason = "held until it is dropped")] TcxLink),
}

/// What ends with the device. Fields are dropped in order: first the program goes.
#[derive(Debug)]
pub struct Held {
    pub _link: Link,
    pub claim: Claim,
    pub _promiscuous: Option<PromiscuousGuard>,
}

#[derive(Debug)]
enum State {
    On(Held),
    /// The device is gone, or nobody receives: what the program had decided until then.
    Left(Vec<Statistic>),
}

/// What is held on the interface. First the program goes, then the rest is restored.
#[derive(Debug)]
pub struct Attachment {
    state: Mutex<State>,
    gone: AtomicBool,
    pub offloads: OffloadGuard,
    pub counters: DeviceCounters,
}

impl Attachment {
    pub fn new(held: Held, offloads: OffloadGuard, counters: DeviceCounters) -> Arc<Attachment> {
        let state = Mutex::new(State::On(held));
        Arc::new(Attachment { state, gone: AtomicBool::new(false), offloads, counters })
    }

    #[expect(clippy::disallowed_methods, reason = "when sockets come and go; `gone` is for workers")]
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames of queue `queue` that are taken go to `socket` from now on.
    pub fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<()> {
        match &*self.state() {
            State::On(held) => held.claim.set_socket(queue, socket),
            State::Left(_) => Ok(()),
        }
    }

    /// The kernel has the packets of a queue from now on.
    pub fn release_queue(&self, queue: u32) {
        if let State::On(held) = &*self.state() {
            held.claim.clear_socket(queue);
        }
    }

    /// What the program decided, by reason.
    pub fn verdicts(&self) -> Vec<Statistic> {
        match &*self.state() {
            State::On(held) => verdicts(&held.claim),
            State::Left(list) => list.clone(),
        }
    }

    /// Whether the device is gone. Its index may be another's.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// The device is gone: nothing is taken from it or sent to it any more, and a new port may be opened for what has its
    /// index then, were it the same device.
    pub fn leave(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.let_go();
    }

    /// The program goes, and what else is held on the device.
    pub fn let_go(&self) {
        let mut state = self.state();
        if let State::On(held) = &*state {
            *state = State::Left(verdicts(&held.claim));
        }
    }
}

fn verdicts(claim: &Claim) -> Vec<Statistic> {
    let place = claim.place();
    let reasons = Reason::ALL.into_iter().filter(|reason| reason.is_of(place));
    reasons.filter_map(|reason| Some((reason.name(place), claim.count(reason).ok()?))).collect()
}

/// The events of a port that lets go of a device that is gone, before anybody is told.
pub struct Followed {
    pub link: Box<dyn Events>,
    pub attachment: Weak<Attachment>,
}

impl Events for Followed {
    fn next(&mut self, timeout: Duration) -> Option<Event> {
        let event = self.link.next(timeout)?;
        if event == Event::Gone
            && let Some(attachment) = self.attachment.upgrade()
        {
            attachment.leave();
        }
        Some(event)
    }
}
