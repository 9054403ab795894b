//! Edges between workers: a lock-free ring, an element that fills it and one that empties it.
//!
//! The run-time puts these where an edge of the graph crosses workers; no configuration names them. A worker that
//! sleeps is woken through its [`Doorbell`], which costs the sender one load while the worker is awake.

use crate::conf::Invalid;
use crate::cx::Cx;
use crate::element::Element;
use crate::error::Error;
use crate::spec::{Notifies, Spec};
use crate::task::Run;
use crate::waiter::Waker;
use causeway_packet::{BATCH, Batch, Packet, flow};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// Packets that a crossing edge holds.
const RING: usize = 4_096;

/// Wakes a worker that has gone to sleep.
#[derive(Debug)]
pub(crate) struct Doorbell {
    asleep: AtomicBool,
    waker: Arc<Waker>,
}

impl Doorbell {
    pub fn new(waker: Arc<Waker>) -> Self {
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
        self.waker.wake();
    }
}

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

/// What the ends of a ring know of each other.
struct Link {
    /// The sender found the ring full, and wants to be woken when it is not.
    wants_room: AtomicBool,
    /// Packets that the receiver has from before a hot swap. They take the room of as many, or else each swap would let
    /// the sender go on by another ring.
    early: AtomicUsize,
    sender: Arc<Doorbell>,
    receiver: Arc<Doorbell>,
}

/// The sending end of a ring.
pub(crate) struct Sender {
    ring: rtrb::Producer<Packet>,
    link: Arc<Link>,
}

/// The receiving end of a ring.
pub(crate) struct Receiver {
    ring: rtrb::Consumer<Packet>,
    /// Packets of the ring before a hot swap, which come first.
    early: VecDeque<Packet>,
    link: Arc<Link>,
}

/// Both ends of a ring between the workers behind these doorbells.
pub(crate) fn ring(sender: Arc<Doorbell>, receiver: Arc<Doorbell>) -> (Sender, Receiver) {
    let (producer, consumer) = rtrb::RingBuffer::new(RING);
    let (wants_room, early) = (AtomicBool::new(false), AtomicUsize::new(0));
    let link = Arc::new(Link { wants_room, early, sender, receiver });
    (Sender { ring: producer, link: link.clone() }, Receiver { ring: consumer, early: VecDeque::new(), link })
}

impl Sender {
    /// Packets that the ring has room for now.
    fn slots(&self) -> usize {
        self.ring.slots().saturating_sub(self.link.early.load(Ordering::Relaxed))
    }

    /// As [`Sender::slots`]. If that is none, the sender's worker is woken when it has.
    fn room(&self) -> usize {
        match self.slots() {
            0 => {
                self.link.wants_room.store(true, Ordering::Relaxed);
                // Either the receiver sees the wish, or the next look sees the room that it has made.
                fence(Ordering::SeqCst);
                self.slots()
            }
            slots => slots,
        }
    }

    /// Moves packets from the front of `batch` into the ring; returns how many.
    fn send(&mut self, batch: &mut Batch) -> usize {
        let mut sent = 0;
        batch.filter_map(|packet| match self.ring.push(packet) {
            Ok(()) => {
                sent += 1;
                None
            }
            Err(rtrb::PushError::Full(packet)) => Some(packet),
        });
        if sent > 0 {
            self.link.receiver.ring();
        }
        sent
    }
}

impl Receiver {
    /// Moves at most `max` packets from the ring to `batch`.
    fn receive(&mut self, max: usize, batch: &mut Batch) {
        let (before, early) = (batch.len(), self.early.len());
        while batch.len() < max.min(BATCH) {
            let Some(packet) = self.early.pop_front().or_else(|| self.ring.pop().ok()) else { break };
            // The loop's condition says that there is room.
            let _ = batch.push(packet);
        }
        if early > 0 {
            self.link.early.store(self.early.len(), Ordering::Relaxed);
        }
        if batch.len() > before {
            fence(Ordering::SeqCst);
            if self.link.wants_room.load(Ordering::Relaxed) {
                self.link.wants_room.store(false, Ordering::Relaxed);
                self.link.sender.ring();
            }
        }
    }
}

impl Receiver {
    /// Takes what is on the way in another ring, whose sender has stopped.
    fn take_over(&mut self, old: &mut Receiver) {
        self.early.append(&mut old.early);
        self.early.extend(std::iter::from_fn(|| old.ring.pop().ok()));
        self.link.early.store(self.early.len(), Ordering::Relaxed);
    }
}

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
        self.ring.ring.slots() + self.ring.early.len()
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<FromWorker>() {
            self.ring.take_over(&mut old.ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiter::Waiter;

    #[test]
    fn a_sender_that_found_no_room_is_woken_by_the_first_packet_that_leaves() {
        let wakers = [(); 2].map(|()| Waiter::new().unwrap().waker());
        let doorbells = wakers.clone().map(|waker| Arc::new(Doorbell::new(waker)));
        let (mut sender, mut receiver) = ring(doorbells[0].clone(), doorbells[1].clone());
        let mut batch = Batch::new();
        while sender.room() > 0 {
            batch.extend((0..BATCH).map(|_| Packet::from_bytes(&[1]).unwrap()));
            sender.send(&mut batch);
        }
        doorbells[0].going_to_sleep();
        assert!(!wakers[0].was_woken() && !wakers[1].was_woken(), "nobody sleeps whom it concerns");
        receiver.receive(1, &mut batch);
        assert!(wakers[0].was_woken());
        batch.clear();
        receiver.receive(1, &mut batch);
        assert!(!wakers[0].was_woken(), "once");
        doorbells[1].going_to_sleep();
        sender.send(&mut batch);
        assert!(wakers[1].was_woken());
    }

    #[test]
    fn what_is_left_of_the_ring_before_a_swap_takes_room_in_the_next() {
        let bell = Arc::new(Doorbell::new(Waiter::new().unwrap().waker()));
        let fresh = || ring(bell.clone(), bell.clone());
        let (mut sender, mut receiver) = fresh();
        let mut sent = 0u32;
        for _ in 0..4 {
            while sender.room() > 0 {
                let mut batch = Batch::new();
                let n = sender.room().min(BATCH) as u32;
                batch.extend((sent..sent + n).map(|n| Packet::from_bytes(&n.to_ne_bytes()).unwrap()));
                sent += sender.send(&mut batch) as u32;
            }
            let (next_sender, mut next_receiver) = fresh();
            next_receiver.take_over(&mut receiver);
            (sender, receiver) = (next_sender, next_receiver);
        }
        assert_eq!((sent as usize, sender.room()), (RING, 0), "swaps make no room");
        let mut batch = Batch::new();
        receiver.receive(10, &mut batch);
        let numbers: Vec<u32> =
            batch.iter().map(|p| u32::from_ne_bytes(p.data().try_into().unwrap())).collect();
        assert_eq!((numbers, sender.room()), ((0..10).collect(), 10));
    }
}
