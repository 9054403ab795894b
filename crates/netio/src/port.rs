//! What a port is: a receiving and a transmitting half for each queue.
//!
//! The halves are separate values because a graph receives in one element and transmits in another, perhaps on
//! another worker, and the rings under them are separate too; nothing is locked between them. Each half belongs to
//! one thread at a time.
//!
//! To add a backend (DPDK, a vendor's library): implement [`Rx`] and [`Tx`] for a queue, fill [`Packet`]s from
//! the process-wide pool, and return a [`Port`]. If the hardware wants to know the packet memory first, register
//! [`causeway_packet::pool::region`]; a [`RingFrames`] for each ring moves ownership to the device and back, and its
//! claim takes back what the device still had when it is closed and done. Restore whatever was changed on the interface
//! when the last half is dropped.
//!
//! [`Packet`]: causeway_packet::Packet
//! [`RingFrames`]: causeway_packet::ledger::RingFrames

use causeway_packet::Batch;
use std::os::fd::BorrowedFd;

/// A counter of a port: a name in `snake_case` and its value since the port was opened.
///
/// A packet that the port lost is in exactly one counter that begins with [`RX_DROP`] or [`TX_DROP`]. Those that begin
/// with `device_` are the interface's own, whoever used it; a driver may count there again what a socket lost.
pub type Counter = (&'static str, u64);

/// How the names begin of the counters of received packets that did not reach the graph.
pub const RX_DROP: &str = "rx_drop_";
/// How the names begin of the counters of packets that were taken for transmission and not sent.
pub const TX_DROP: &str = "tx_drop_";

/// The receiving half of a queue. A reception strategy arms it, waits for [`Rx::fd`], disarms it, and receives.
pub trait Rx: Send {
    /// Lets the queue make [`Rx::fd`] readable when packets arrive. After arming, check [`Rx::pending`] once:
    /// packets that came before may not wake anybody.
    fn arm(&mut self) {}

    /// Lets the queue be silent until armed again.
    fn disarm(&mut self) {}

    /// Packets that wait; a lower bound above zero is enough where the queue does not know better.
    fn pending(&mut self) -> usize;

    /// Appends at most `max` packets, and no more than fit, to `batch`; returns how many. Never blocks.
    fn receive(&mut self, batch: &mut Batch, max: usize) -> usize;

    /// Descriptor that becomes readable when packets arrive; `None` where waiting is not possible.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Whether no packet will ever come again (the end of a capture file, the other end closed).
    fn is_finished(&self) -> bool {
        false
    }

    /// All that was received and every drop of this queue, by reason. May make system calls.
    fn counters(&self) -> Vec<Counter>;
}

/// The transmitting half of a queue.
pub trait Tx: Send {
    /// Takes packets from the front of `batch` as far as there is room and leaves the others there; returns how many
    /// it took. Packets may wait in a ring until [`Tx::flush`].
    fn transmit(&mut self, batch: &mut Batch) -> usize;

    /// Sends what waits and takes back the frames of what was sent. Call it once after the batches of one turn, and
    /// again while [`Tx::in_flight`] is not zero and there is nothing else to do.
    fn flush(&mut self);

    /// Packets taken and not yet known to be sent.
    fn in_flight(&self) -> usize {
        0
    }

    /// All that was transmitted and every drop of this queue, by reason. May make system calls.
    fn counters(&self) -> Vec<Counter>;
}

/// One queue of a port.
pub struct Queue {
    /// Receives.
    pub rx: Box<dyn Rx>,
    /// Transmits.
    pub tx: Box<dyn Tx>,
}

/// An open port.
pub struct Port {
    /// The interface, file or ring it stands for.
    pub name: String,
    /// Ethernet address; zero where there is none.
    pub mac: [u8; 6],
    /// Largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Interface index of the kernel; 0 where there is none.
    pub ifindex: u32,
    /// Which mode it got, and why not a better one: a line for people.
    pub mode: String,
    /// Whether it takes frames by a generic XDP program, which also sees what is put back at the interface's ingress.
    pub generic: bool,
    /// Its queues, each with both halves.
    pub queues: Vec<Queue>,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Port({}, {} queues, {})", self.name, self.queues.len(), self.mode)
    }
}
