//! Capture: copies of the packets that pass some edges.

use super::{Bytes, Interest};
use crate::core::Core;
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

    /// A capture and a tap for its first edge, with copies of `most_bytes` bytes at most.
    pub(crate) fn new(most_bytes: usize) -> (Capture, Tap) {
        let (sender, copies) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let (watcher, interest) = Interest::new();
        let tap = Tap { edge: 0, most_bytes, sender, lost: lost.clone(), interest };
        (Capture { copies, lost, _watcher: watcher }, tap)
    }
}

/// Copies the packets of one edge.
#[derive(Clone)]
pub(crate) struct Tap {
    pub edge: usize,
    most_bytes: usize,
    sender: SyncSender<Captured>,
    lost: Arc<AtomicU64>,
    pub(super) interest: Interest,
}

impl Tap {
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

impl Core {
    /// Copies what leaves output `port` of `node` to whoever holds the other end of `tap`.
    pub fn tap_output(&mut self, node: usize, port: usize, tap: Tap) {
        if let Some(out) = self.nodes.get_mut(node).and_then(|n| n.outs.get_mut(port)) {
            out.taps.push(tap);
        }
        self.set_watched();
    }

    /// The same of what is pulled into input `port`.
    pub fn tap_input(&mut self, node: usize, port: usize, tap: Tap) {
        if let Some(input) = self.nodes.get_mut(node).and_then(|n| n.ins.get_mut(port)) {
            input.taps.push(tap);
        }
        self.set_watched();
    }

    /// Shows those who watch what input `port` of `node` has pulled.
    #[cold]
    pub fn watch_pulled(&mut self, node: usize, port: usize, batch: &mut Batch) {
        self.trace_pulled(node, port, batch);
        let now_ns = self.clock.now_ns();
        if let Some(input) = self.nodes[node].ins.get(port) {
            input.taps.iter().for_each(|tap| tap.copy(batch, now_ns));
        }
    }
}
