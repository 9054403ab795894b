//! Capture: copies of the packets that pass some edges.

use super::{Bytes, Interest};
use causeway_packet::Batch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Copies that wait to be taken away. Beyond that packets are not copied, and counted as lost to the capture.
const WAITING: usize = 8_192;

/// A copy of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Which of the edges that were asked for it passed.
    pub edge: usize,
    /// When, on the workers' clock, nanoseconds since the epoch.
    pub time_ns: u64,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A capture; it ends when this is dropped.
pub struct Capture {
    /// The copies. The workers end it when the graph is replaced.
    pub copies: Receiver<Captured>,
    lost: Arc<AtomicU64>,
    _watcher: Arc<()>,
}

impl Capture {
    /// Packets that passed and were not copied, since nobody took copies away.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// A capture, what fills it from its first edge with copies of `most_bytes` bytes at most, and its workers' interest in
    /// it.
    pub(crate) fn new(most_bytes: usize) -> (Capture, Copier, Interest) {
        let (sender, copies) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let (watcher, interest) = Interest::new();
        let copier = Copier { edge: 0, most_bytes, sender, lost: lost.clone() };
        (Capture { copies, lost, _watcher: watcher }, copier, interest)
    }
}

/// Copies the packets of one edge.
#[derive(Clone)]
pub(crate) struct Copier {
    edge: usize,
    most_bytes: usize,
    sender: SyncSender<Captured>,
    lost: Arc<AtomicU64>,
}

impl Copier {
    /// For the edge of this number among those that were asked for.
    pub fn of(self, edge: usize) -> Copier {
        Copier { edge, ..self }
    }

    /// Copies the packets of `batch`.
    pub fn copy(&self, batch: &Batch, now_ns: u64) {
        for packet in batch.iter() {
            let (edge, bytes) = (self.edge, Bytes::of(packet, self.most_bytes));
            let time_ns = if packet.timestamp_ns() == 0 { now_ns } else { packet.timestamp_ns() };
            match self.sender.try_send(Captured { edge, time_ns, bytes }) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => drop(self.lost.fetch_add(1, Ordering::Relaxed)),
                // It is forgotten soon.
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }
}
