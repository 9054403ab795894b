//! Linux of the papers: the reception mechanisms of the live router over simulated rings, and around them what the kernel of
//! the time did with a packet.
//!
//! The mechanisms are [`causeway_engine::reception`] as the live router runs them, one packet at a time. What they ask a port
//! for costs processor time here, by class. Where a handler of an interrupt comes in the middle of a packet that is being
//! forwarded, that packet stays in the kernel's hands and goes on afterwards.

mod account;
mod click;
mod io;
mod lookup;
mod stack;

pub use account::{Class, Drop, PortCounts, Spent};
pub use click::Graph;
pub use lookup::{By, Lookup};
pub use stack::Stack;

use crate::event::{Queue, Time};
use crate::hardware::Hardware;
use crate::machine::Machine;
use crate::nic::Engine;
use crate::router::Event;
use crate::several::Affinity;
use crate::trace::Trace;
use causeway_engine::reception::{Mechanism, Reception};
use io::Io;
pub(crate) use io::Line;

/// What the kernel does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Forwards them; the few routes are found at once.
    Forward,
    /// Forwards them by routes that it has to find. Its driver is that of Linux 2.6.16, which looks at a card again until
    /// nothing is there.
    Route(Lookup),
    /// Forwards them to a fixed port without looking at them.
    Transfer,
    /// Counts what comes in (udpcount).
    Count,
    /// Counts it without looking at it.
    CountUntouched,
    /// Sends by all ports in turn what it makes itself (packetgen).
    Generate,
    /// Leaves them to Click, which polls from a thread.
    Click(Graph),
    /// Forwards them with several processors, each with a card of its own.
    Affinity(Affinity),
}

/// What a kernel is set to.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The mechanism of each port.
    pub mechanisms: Vec<Mechanism>,
    /// Packets of a NAPI run.
    pub budget: usize,
    /// Whether buffers are recycled.
    pub recycling: bool,
    /// What it does with packets.
    pub role: Role,
    /// What is switched off.
    pub without: Without,
}

/// Mechanisms that are switched off, to see which shapes are theirs. Nothing of it was in a paper's kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// The backlog: a handler of an interrupt forwards what it takes itself.
    pub backlog: bool,
    /// The lock of the card that sends: each that sends has one of its own.
    pub lock: bool,
    /// The second look of the driver of Linux 2.6.16 at a card that had packets.
    pub second_look: bool,
    /// Turns: Click begins with its first card again whenever one had packets.
    pub turns: bool,
}

/// Who works on what is deferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Deferred {
    /// A soft interrupt, which goes before all threads.
    #[default]
    AtOnce,
    /// A thread among others, until nothing is left (ksoftirqd): too many runs came one after the other.
    ByThread,
}

/// How often a mechanism is asked before it is believed to have nothing to do: once for each phase of a run, and once more.
const PHASES: usize = 5;

/// A kernel.
pub struct Linux {
    reception: Reception,
    mechanisms: Vec<Mechanism>,
    polls: Vec<u64>,
    /// What it knows of packets.
    pub stack: Stack,
    /// The handler of this port's interrupt is under way; whether it has begun.
    handler: Option<(usize, bool)>,
    idle: bool,
    deferred: Deferred,
    /// Runs of deferred work in a row that ended with something left, and how many there may be.
    runs: u64,
    runs_most: u64,
    /// The same since the start, as reception counts them.
    exhausted: u64,
    /// The piece of the threads' level is one of deferred work, or the last one was.
    deferring: bool,
}

/// What the kernel works on.
pub struct Around<'a> {
    /// The hardware.
    pub hardware: &'a mut Hardware,
    /// What is to happen.
    pub queue: &'a mut Queue<Event>,
    /// The packet that is followed.
    pub trace: &'a mut Trace,
}

impl Linux {
    /// A kernel that has just started; its ports have their buffers and can interrupt.
    pub fn new(machine: &Machine, setup: &Setup, around: &mut Around<'_>) -> Linux {
        let mut reception = Reception::new(setup.budget);
        setup.mechanisms.iter().for_each(|&mechanism| reception.add(mechanism));
        let ports = setup.mechanisms.len();
        let mut linux = Linux {
            reception,
            mechanisms: setup.mechanisms.clone(),
            polls: vec![0; ports],
            stack: Stack::new(machine, setup, ports),
            handler: None,
            idle: true,
            deferred: Deferred::AtOnce,
            runs: 0,
            runs_most: machine.software.runs.value,
            exhausted: 0,
            deferring: false,
        };
        for port in 0..ports {
            for _ in 0..around.hardware.nics[port].parameters().receive_ring {
                let buffer = around.hardware.buffers.take();
                around.hardware.nics[port].give(buffer);
            }
            around.hardware.ring(port, Engine::Receive, around.queue);
        }
        if matches!(setup.role, Role::Click(_)) {
            return linux;
        }
        linux.reception.start(&mut Io { stack: &mut linux.stack, around });
        linux.stack.set_masks(around);
        linux.stack.spent.take();
        linux
    }

    /// The processor takes a port's interrupt; says for how long, until the handler has its own work.
    pub fn interrupt(&mut self, port: usize, around: &mut Around<'_>) -> Time {
        around.hardware.nics[port].acknowledge(around.queue.now_ps());
        self.handler = Some((port, false));
        self.stack.spent_on_interrupt();
        self.stack.spent.take()
    }

    /// Whether a handler is under way.
    pub fn in_handler(&self) -> bool {
        self.handler.is_some()
    }

    /// The next piece of the handler under way; `None`: it is over.
    pub fn handle(&mut self, around: &mut Around<'_>) -> Option<Time> {
        let (port, begun) = self.handler?;
        self.stack.finish_handled(around);
        self.handler = Some((port, true));
        let driven = matches!(self.mechanisms[port], Mechanism::Interrupt | Mechanism::Moderated { .. });
        if !begun {
            self.reception.interrupt(port);
            self.stack.drained = false;
            if driven {
                self.stack.clean(port, around);
            } else {
                // The handler masks the card and leaves it to the deferred run.
                self.stack.mask(port);
                self.stack.set_masks(around);
            }
        }
        for _ in 0..PHASES {
            if !driven || self.stack.drained {
                break;
            }
            let before = self.stack.spent.total();
            self.run(around);
            if self.stack.spent.total() > before {
                return Some(self.stack.spent.take());
            }
        }
        let last_ps = self.stack.spent.take();
        if last_ps > 0 {
            self.stack.drained = true;
            return Some(last_ps);
        }
        self.handler = None;
        None
    }

    /// The next piece of deferred work as a soft interrupt; `None`: there is none, or it is a thread's.
    pub fn soften(&mut self, around: &mut Around<'_>) -> Option<Time> {
        if self.stack.leaves_to_click() || self.deferred == Deferred::ByThread {
            return None;
        }
        self.defer(around)
    }

    fn defer(&mut self, around: &mut Around<'_>) -> Option<Time> {
        for _ in 0..PHASES {
            if let Some(duration_ps) = self.stack.begin_hand() {
                let entry_ps = if std::mem::take(&mut self.idle) { self.stack.spent_on_entry() } else { 0 };
                return Some(duration_ps + entry_ps);
            }
            self.run(around);
            if self.stack.hand_waits() {
                continue;
            }
            let spent_ps = self.stack.spent.take();
            if spent_ps > 0 {
                return Some(spent_ps);
            }
        }
        self.idle = true;
        (self.deferred, self.runs) = (Deferred::AtOnce, 0);
        None
    }

    /// The piece of deferred work is at its end: its packet goes on.
    pub fn end_soft(&mut self, around: &mut Around<'_>) {
        self.stack.finish(around);
    }

    /// The next piece of a thread; `None`: they all wait. The one that makes packets or runs Click and the one that works on
    /// what was deferred take turns, where there are both.
    pub fn think(&mut self, around: &mut Around<'_>) -> Option<Time> {
        let defers = self.deferred == Deferred::ByThread;
        if defers && !self.deferring {
            let piece = self.defer(around);
            self.deferring = piece.is_some();
            if self.deferring {
                return piece;
            }
        }
        self.deferring = false;
        let own =
            if self.stack.leaves_to_click() { self.stack.click(around) } else { self.stack.generate(around) };
        if own.is_some() || self.deferred == Deferred::AtOnce {
            return own;
        }
        let piece = self.defer(around);
        self.deferring = piece.is_some();
        piece
    }

    /// The thread's piece is at its end.
    pub fn end_thread(&mut self, around: &mut Around<'_>) {
        if self.deferring {
            self.stack.finish(around);
        } else if self.stack.leaves_to_click() {
            self.stack.clicked(around);
        } else {
            self.stack.generated(around);
        }
    }

    /// Runs that ended with something left are counted; after too many the rest is the thread's.
    fn count_runs(&mut self) {
        let exhausted = self.reception.budget_exhausted;
        self.runs += exhausted - std::mem::replace(&mut self.exhausted, exhausted);
        if self.runs >= self.runs_most && self.deferred == Deferred::AtOnce {
            self.deferred = Deferred::ByThread;
            self.stack.spent_on_switch();
        }
    }

    /// One packet's worth of reception.
    fn run(&mut self, around: &mut Around<'_>) {
        let now_ns = around.queue.now_ps() / crate::event::NANOSECOND;
        self.reception.run(&mut Io { stack: &mut self.stack, around }, now_ns, 1);
        // A packet may have been said to be forwarded that is not, because another was in hand.
        self.reception.set_backlog(self.stack.backlog_length());
        self.count_runs();
        for port in 0..self.mechanisms.len() {
            let polls = self.reception.counters(port).map_or(0, |counters| counters.polls);
            if std::mem::replace(&mut self.polls[port], polls) != polls {
                self.stack.end_turn(port, around);
            }
        }
        self.stack.set_masks(around);
    }
}
