//! Edges between workers: a lock-free ring ([`ring`]), an element that fills it and one that empties it.
//!
//! The run-time puts these where an edge of the graph crosses workers; no configuration names them. A worker that
//! sleeps is woken through its [`Doorbell`], which costs the sender one load while the worker is awake.

mod ring;

pub(crate) use ring::{Doorbell, Receiver, Sender, ring};

use crate::conf::Invalid;
use crate::cx::Cx;
use crate::element::Element;
use crate::error::Error;
use crate::spec::{Notifies, Spec};
use crate::task::Run;
use causeway_packet::{BATCH, Batch, flow};

/// Class of the sending end.
pub(crate) static TO_WORKER: Spec = Spec {
    name: "ToWorker",
    ports: "1/0",
    processing: "h/h",
    drops: Lost::DOCS,
    notifies: Notifies { packets: false, room: true },
    build: |_| Err(Invalid),
    ..Spec::DEFAULT
};

/// Class of the sending end of an edge to copies on several workers; those on its own one get theirs by the output.
pub(crate) static TO_WORKERS: Spec = Spec { name: "ToWorkers", ports: "1/1", processing: "h/h", ..TO_WORKER };

/// Class of the sending end of an edge that is pulled.
pub(crate) static PULL_TO_WORKER: Spec = Spec {
    name: "PullToWorker",
    ports: "1/0",
    processing: "l/l",
    drops: &[],
    notifies: Notifies { packets: false, room: false },
    ..TO_WORKER
};

/// Class of the receiving end.
pub(crate) static FROM_WORKER: Spec =
    Spec { name: "FromWorker", ports: "0/1", processing: "h/h", ..PULL_TO_WORKER };

crate::drop_reasons! {
    enum Lost for TO_WORKER {
        RingFull = "ring-full", "the other worker did not keep up";
    }
}
crate::shares_drop_reasons!(TO_WORKERS, Lost);

/// Sends what is pushed to it. Sources that ask hear when the ring is full, and when it is not any more.
pub(crate) struct ToWorker(pub Sender);

impl Element for ToWorker {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.0.send(batch);
        cx.count_drops(Lost::RingFull, batch.len() as u64);
        batch.clear();
        if self.0.slots() < BATCH {
            cx.notify_room(false);
            cx.wake();
        }
    }

    /// Scheduled while there is hardly any room.
    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if self.0.room() < BATCH {
            return Run::Idle;
        }
        cx.notify_room(true);
        Run::Sleep
    }
}

/// Which of several copies a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FanOut {
    /// One of them: the same for all packets of a flow.
    Spread,
    /// All of them.
    Copy,
}

/// Sends what is pushed to it to copies of an element on several workers.
pub(crate) struct ToWorkers {
    /// For each copy the ring to it; none to the one on the same worker.
    ways: Vec<Option<Sender>>,
    how: FanOut,
    /// What is under way to each.
    batches: Vec<Batch>,
}

impl ToWorkers {
    pub fn new(ways: Vec<Option<Sender>>, how: FanOut) -> ToWorkers {
        let batches = ways.iter().map(|_| Batch::new()).collect();
        ToWorkers { ways, how, batches }
    }

    /// Distributes `batch`. Packets of which no copy could be made are left out.
    fn distribute(&mut self, batch: &mut Batch) {
        match self.how {
            FanOut::Spread => batch.filter_map(|packet| {
                let way = (u64::from(flow::number(&packet)) * self.batches.len() as u64) >> 32;
                // None has more packets than came.
                let _ = self.batches[way as usize].push(packet);
                None
            }),
            FanOut::Copy => {
                let Some((last, others)) = self.batches.split_last_mut() else { return };
                for packet in batch.iter() {
                    others.iter_mut().for_each(|to| to.extend(packet.copy()));
                }
                last.append(batch);
            }
        }
    }
}

impl Element for ToWorkers {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.distribute(batch);
        let mut crowded = false;
        for (way, packets) in self.ways.iter_mut().zip(&mut self.batches) {
            let Some(sender) = way else {
                batch.append(packets);
                continue;
            };
            if !packets.is_empty() {
                sender.send(packets);
                cx.count_drops(Lost::RingFull, packets.len() as u64);
                packets.clear();
            }
            crowded |= sender.slots() < BATCH;
        }
        if crowded {
            cx.notify_room(false);
            cx.wake();
        }
    }

    /// Scheduled while there is hardly any room on a way.
    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if self.ways.iter_mut().flatten().any(|sender| sender.room() < BATCH) {
            return Run::Idle;
        }
        cx.notify_room(true);
        Run::Sleep
    }
}

/// Sends what it pulls, as far as the ring has room.
pub(crate) struct PullToWorker(pub Sender);

impl Element for PullToWorker {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let room = self.0.room().min(BATCH);
        if room == 0 {
            return Run::Idle;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, room, &mut batch);
        let sent = self.0.send(&mut batch);
        cx.return_batch(batch);
        match sent {
            0 if cx.packets_upstream(0) => Run::Idle,
            0 => Run::Sleep,
            _ => Run::Worked,
        }
    }
}

/// Receives from a ring: pushes what came, or gives it when it is pulled.
pub(crate) struct FromWorker {
    pub ring: Receiver,
    /// Whether the output is pulled, so that there is no task.
    pub pulled: bool,
    /// What a hot swap knows the edge by.
    pub key: String,
}

impl Element for FromWorker {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        if !self.pulled {
            cx.wake();
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !cx.room_downstream(0) {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        self.ring.receive(BATCH, &mut batch);
        let run = if batch.is_empty() { Run::Idle } else { Run::Worked };
        cx.emit_batch(0, batch);
        run
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        self.ring.receive(max, batch);
    }

    fn held(&self) -> usize {
        self.ring.held()
    }

    fn swap_key(&self) -> Option<String> {
        Some(self.key.clone())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<FromWorker>() {
            self.ring.take_over(&mut old.ring);
        }
    }
}
