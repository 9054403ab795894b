//! What the kernel's work is booked on: processor time by class, packets by the reason of their loss.

use crate::event::Time;

/// What processor time goes to, by the classes of LUT §4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Interrupts and registers.
    Interrupt,
    /// Deferred work and turns of cards.
    Scheduler,
    /// Taking packets from rings.
    Receive,
    /// Reading what a card wrote.
    Ethernet,
    /// Buffers.
    Memory,
    /// The network layer.
    Ip,
    /// Queues and rings on the way out.
    Transmit,
    /// Waiting for a lock that another processor has.
    Lock,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 8] = [
        Class::Interrupt,
        Class::Scheduler,
        Class::Receive,
        Class::Ethernet,
        Class::Memory,
        Class::Ip,
        Class::Transmit,
        Class::Lock,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Class::Interrupt => "interrupts",
            Class::Scheduler => "scheduler",
            Class::Receive => "reception",
            Class::Ethernet => "Ethernet",
            Class::Memory => "memory management",
            Class::Ip => "IP",
            Class::Transmit => "transmission",
            Class::Lock => "locks",
        }
    }
}

/// Why the kernel or a card drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The ring for reception has no buffers.
    Ring,
    /// The card's FIFO is full although it has.
    Fifo,
    /// The backlog is full.
    Backlog,
    /// The queue on the way out is full.
    Queue,
}

impl Drop {
    /// All of them.
    pub const ALL: [Drop; 4] = [Drop::Ring, Drop::Fifo, Drop::Backlog, Drop::Queue];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Drop::Ring => "reception ring",
            Drop::Fifo => "card's FIFO",
            Drop::Backlog => "backlog",
            Drop::Queue => "transmission queue",
        }
    }
}

/// What the kernel did with a card (LUT §3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Times that its ring for reception was looked at.
    pub polls: u64,
    /// Times that something was found on its ring for transmission that had been sent.
    pub cleanings: u64,
}

/// Processor time that was spent and not yet taken.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    now_ps: Time,
    /// All that was ever spent, by class.
    pub by_class_ps: [Time; Class::ALL.len()],
}

impl Spent {
    pub(crate) fn add(&mut self, class: Class, duration_ps: Time) {
        self.now_ps += duration_ps;
        self.by_class_ps[class as usize] += duration_ps;
    }

    /// What was spent since it was last taken.
    pub fn total(&self) -> Time {
        self.now_ps
    }

    /// So much is spent and yet to be taken.
    pub(super) fn put_back(&mut self, duration_ps: Time) {
        self.now_ps = duration_ps;
    }

    /// Takes it.
    pub fn take(&mut self) -> Time {
        std::mem::take(&mut self.now_ps)
    }
}
