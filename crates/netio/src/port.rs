//! What a port is: a receiving and a transmitting half for each queue.
//!
//! The halves are separate values because a graph receives in one element and transmits in another, perhaps on
//! another worker, and the rings under them are separate too; nothing is locked between them. Each half belongs to
//! one thread at a time. What they count anybody may read meanwhile, through their [`Statistics`].
//!
//! To add a backend (DPDK, a vendor's library): implement [`Rx`] and [`Tx`] for a queue, fill [`Packet`]s from
//! the process-wide pool, and return a [`Port`] from an [`Opener`](crate::opener::Opener). If the hardware wants to know
//! the packet memory first, register [`causeway_packet::pool::region`]; a [`RingFrames`] for each ring moves ownership to
//! the device and back, and its claim takes back what the device still had when it is closed and done. Restore whatever
//! was changed on the interface when the last half is dropped.
//!
//! [`RingFrames`]: causeway_packet::ledger::RingFrames

use crate::completion::{Clock, Completion};
use crate::statistics::Statistics;
use causeway_packet::{Batch, Packet, Receiver};
use std::sync::Arc;
use std::time::Duration;

/// The receiving half of a queue.
pub trait Rx: Receiver + Send {
    /// Whether no packet will ever come again (the end of a capture file, the other end closed).
    fn is_finished(&self) -> bool {
        false
    }

    /// All that was received and every drop of this queue, by reason; it outlives the half.
    fn statistics(&self) -> Arc<dyn Statistics>;
}

/// The transmitting half of a queue.
pub trait Tx: Send {
    /// Takes packets from the front of `batch` as far as there is room and leaves the others there; returns how many
    /// it took. Packets may wait in a ring until [`Tx::flush`].
    fn offer(&mut self, batch: &mut Batch) -> usize;

    /// Sends what waits and takes back the frames of what was sent. Call it once after the batches of one turn, and
    /// again while [`Tx::in_flight`] is not zero and there is nothing else to do.
    fn flush(&mut self);

    /// Packets taken and not yet known to be sent.
    fn in_flight(&self) -> usize {
        0
    }

    /// Tells of the packets with a [transmit tag](Packet::transmit_tag) that have been sent since the last call, as far
    /// as [`Tx::flush`] has found out. Who sends tagged packets calls it often: not all are kept for ever.
    fn completions(&mut self, sink: &mut dyn FnMut(Completion));

    /// All that was transmitted and every drop of this queue, by reason; it outlives the half.
    fn statistics(&self) -> Arc<dyn Statistics>;
}

/// One queue of a port.
pub struct Queue {
    /// Receives.
    pub rx: Box<dyn Rx>,
    /// Transmits.
    pub tx: Box<dyn Tx>,
}

/// What a port can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The clock of its completions; `None` where they have no time.
    pub tx_timestamps: Option<Clock>,
    /// The clock of received packets' timestamps; `None` where they have none.
    pub rx_timestamps: Option<Clock>,
    /// Bytes of the longest frame that it takes and gives, with the link-layer header.
    pub max_frame: u32,
    /// Bytes before a received frame, free for more headers.
    pub headroom: u32,
    /// Queues, each with both halves.
    pub queues: u32,
    /// Whether the device reads and writes the frames of the pool itself.
    pub zero_copy: bool,
}

impl Default for Capabilities {
    /// Those of a port of one queue in software that copies what fits a frame of the pool.
    fn default() -> Capabilities {
        let headroom = Packet::HEADROOM as u32;
        Capabilities {
            tx_timestamps: Some(Clock::Realtime),
            rx_timestamps: None,
            max_frame: causeway_packet::pool::config().frame_size - headroom,
            headroom,
            queues: 1,
            zero_copy: false,
        }
    }
}

/// What happened to the device of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It can transmit and receive.
    LinkUp,
    /// It cannot: it was set down, or has no carrier.
    LinkDown,
    /// Its largest packet has so many bytes now, without the link-layer header.
    MtuChanged(u32),
    /// It is called otherwise now, and goes on.
    Renamed,
    /// It was deleted or taken away. The port is of no use any more.
    Gone,
    /// There is a device of that name again, another one or the same: the port can be opened anew.
    Back,
    /// Another device that its packets come by was set down, and is set up again.
    WayUpRestored,
    /// That one is not there any more, or cannot be set up. The port is of no use any more.
    WayUpGone,
}

/// Tells what happens to the device of a port.
pub trait Events: Send {
    /// The next event; `None` if there was none within about that time. Whoever asks has a thread for it.
    fn next(&mut self, timeout: Duration) -> Option<Event>;
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
    /// What it can do.
    pub capabilities: Capabilities,
    /// What happens to its device, where that can be told.
    pub events: Option<Box<dyn Events>>,
    /// Its queues, each with both halves.
    pub queues: Vec<Queue>,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Port({}, {} queues, {})", self.name, self.queues.len(), self.mode)
    }
}
