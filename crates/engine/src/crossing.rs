//! Edges between workers: a lock-free ring, an element that fills it and one that empties it.
//!
//! The run-time puts these where an edge of the graph crosses workers; no configuration names them. A worker that
//! sleeps is woken through its [`Doorbell`], which costs the sender one load while the worker is awake.

use crate::conf::Invalid;
use crate::cx::Cx;
use crate::element::{Element, Run};
use crate::spec::{Spec, drops};
use causeway_packet::{BATCH, Batch, Packet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Packets that a crossing edge holds.
const RING: usize = 4_096;

/// Wakes a worker that has gone to sleep.
#[derive(Debug)]
pub(crate) struct Doorbell {
    asleep: AtomicBool,
    waker: mio::Waker,
}

impl Doorbell {
    pub fn new(waker: mio::Waker) -> Self {
        Doorbell { asleep: AtomicBool::new(false), waker }
    }

    /// The worker is about to sleep. After this it must look once more for work before it does.
    pub fn going_to_sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        // Either the sender sees `asleep`, or the worker's last look sees what was sent.
        fence(Ordering::SeqCst);
    }

    /// The worker is awake again.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Something was sent to the worker.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Wakes the worker whatever it does.
    pub fn wake(&self) {
        // It can only fail when the worker's poll is gone, and then there is nobody to wake.
        let _ = self.waker.wake();
    }
}

/// Class of the sending end.
pub(crate) static TO_WORKER: Spec = Spec {
    name: "ToWorker",
    ports: "1/0",
    processing: "h/h",
    drops: &[drops("ring-full", "the other worker did not keep up")],
    build: |_| Err(Invalid),
    ..Spec::DEFAULT
};

/// Class of the sending end of an edge that is pulled.
pub(crate) static PULL_TO_WORKER: Spec =
    Spec { name: "PullToWorker", ports: "1/0", processing: "l/l", drops: &[], ..TO_WORKER };

/// Class of the receiving end.
pub(crate) static FROM_WORKER: Spec =
    Spec { name: "FromWorker", ports: "0/1", processing: "h/h", drops: &[], ..TO_WORKER };

/// Both ends of a ring to the worker behind `doorbell`.
pub(crate) fn ring(
    doorbell: Arc<Doorbell>,
) -> (rtrb::Producer<Packet>, rtrb::Consumer<Packet>, Arc<Doorbell>) {
    let (producer, consumer) = rtrb::RingBuffer::new(RING);
    (producer, consumer, doorbell)
}

/// Sends what is pushed to it.
pub(crate) struct ToWorker {
    pub ring: rtrb::Producer<Packet>,
    pub doorbell: Arc<Doorbell>,
}

impl Element for ToWorker {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let sent = send(&mut self.ring, batch);
        if sent > 0 {
            self.doorbell.ring();
        }
        cx.count_drops(0, batch.len() as u64);
        batch.clear();
    }
}

/// Sends what it pulls, as far as the ring has room.
pub(crate) struct PullToWorker {
    pub ring: rtrb::Producer<Packet>,
    pub doorbell: Arc<Doorbell>,
}

impl Element for PullToWorker {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let room = self.ring.slots().min(BATCH);
        if room == 0 {
            return Run::Idle;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, room, &mut batch);
        let sent = send(&mut self.ring, &mut batch);
        cx.return_batch(batch);
        if sent == 0 {
            return if cx.packets_upstream(0) { Run::Idle } else { Run::Sleep };
        }
        self.doorbell.ring();
        Run::Worked
    }
}

/// Moves packets from the front of `batch` into the ring; returns how many.
fn send(ring: &mut rtrb::Producer<Packet>, batch: &mut Batch) -> usize {
    let mut sent = 0;
    batch.filter_map(|packet| match ring.push(packet) {
        Ok(()) => {
            sent += 1;
            None
        }
        Err(rtrb::PushError::Full(packet)) => Some(packet),
    });
    sent
}

/// Receives from a ring: pushes what came, or gives it when it is pulled.
pub(crate) struct FromWorker {
    pub ring: rtrb::Consumer<Packet>,
    /// Whether the output is pulled, so that there is no task.
    pub pulled: bool,
}

impl Element for FromWorker {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        if !self.pulled {
            cx.wake();
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let mut batch = cx.lend_batch();
        self.pull(0, BATCH, &mut batch, cx);
        let run = if batch.is_empty() { Run::Idle } else { Run::Worked };
        cx.emit_batch(0, batch);
        run
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        while batch.len() < max.min(BATCH) {
            let Ok(packet) = self.ring.pop() else { break };
            // The loop's condition says that there is room.
            let _ = batch.push(packet);
        }
    }

    fn held(&self) -> usize {
        self.ring.slots()
    }
}
