//! The ring of an edge between workers, and what wakes a worker that sleeps.

use crate::waiter::Waker;
use causeway_packet::{Alert, BATCH, Batch, Packet};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Packets that a crossing edge holds.
const RING: usize = 4_096;

/// Wakes a worker that has gone to sleep.
#[derive(Debug)]
pub(crate) struct Doorbell {
    asleep: Alert,
    waker: Arc<Waker>,
}

impl Doorbell {
    pub fn new(waker: Arc<Waker>) -> Self {
        Doorbell { asleep: Alert::default(), waker }
    }

    /// The worker is about to sleep. After this it must look once more for work before it does.
    pub fn going_to_sleep(&self) {
        self.asleep.ask();
    }

    /// The worker is awake again.
    pub fn awake(&self) {
        self.asleep.withdraw();
    }

    /// Something was sent to the worker.
    pub fn ring(&self) {
        if self.asleep.is_asked() {
            self.wake();
        }
    }

    /// Wakes the worker whatever it does.
    pub fn wake(&self) {
        self.waker.wake();
    }
}

/// What the ends of a ring know of each other.
struct Link {
    /// The sender found the ring full, and wants to be woken when it is not.
    wants_room: Alert,
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
    way: Way,
    /// That of the graph before. Whose worker does not have its next graph yet still sends by it, and that comes first.
    before: Option<Way>,
    /// Packets that were under way in earlier rings, which come first of all.
    early: VecDeque<Packet>,
}

/// A ring, as its receiver has it.
struct Way {
    ring: rtrb::Consumer<Packet>,
    link: Arc<Link>,
}

/// Both ends of a ring between the workers behind these doorbells.
pub(crate) fn ring(sender: Arc<Doorbell>, receiver: Arc<Doorbell>) -> (Sender, Receiver) {
    let (producer, consumer) = rtrb::RingBuffer::new(RING);
    let (wants_room, early) = (Alert::default(), AtomicUsize::new(0));
    let link = Arc::new(Link { wants_room, early, sender, receiver });
    let way = Way { ring: consumer, link: link.clone() };
    (Sender { ring: producer, link }, Receiver { way, before: None, early: VecDeque::new() })
}

impl Sender {
    /// Packets that the ring has room for now.
    pub fn slots(&self) -> usize {
        self.ring.slots().saturating_sub(self.link.early.load(Ordering::Relaxed))
    }

    /// As [`Sender::slots`]. If that is none, the sender's worker is woken when it has.
    pub fn room(&self) -> usize {
        match self.slots() {
            0 => {
                self.link.wants_room.ask();
                self.slots()
            }
            slots => slots,
        }
    }

    /// Moves packets from the front of `batch` into the ring; returns how many.
    pub fn send(&mut self, batch: &mut Batch) -> usize {
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

impl Way {
    /// Moves packets to `batch` until it has `most`. A sender that waits for room is woken.
    fn receive(&mut self, most: usize, batch: &mut Batch) {
        let had = batch.len();
        while batch.len() < most
            && let Ok(packet) = self.ring.pop()
        {
            // The loop's condition says that there is room.
            let _ = batch.push(packet);
        }
        if batch.len() > had {
            self.link.made_room();
        }
    }
}

impl Link {
    /// Packets have left, which is room for others.
    fn made_room(&self) {
        if self.wants_room.answer() {
            self.sender.ring();
        }
    }
}

impl Receiver {
    /// Moves packets to `batch` until it has `max`.
    pub fn receive(&mut self, max: usize, batch: &mut Batch) {
        let most = max.min(BATCH);
        if self.before.is_some() || !self.early.is_empty() {
            self.receive_earlier(most, batch);
        }
        if self.before.is_none() {
            self.way.receive(most, batch);
        }
    }

    /// The same, of what was sent before a hot swap.
    #[cold]
    fn receive_earlier(&mut self, most: usize, batch: &mut Batch) {
        // Whoever sends by the new ring has sent the last by the one before: that is asked first, or else packets which
        // come by that one meanwhile would be passed.
        let is_over = self.way.ring.slots() > 0;
        let had = batch.len();
        while batch.len() < most
            && let Some(packet) = self.early.pop_front()
        {
            // The loop's condition says that there is room.
            let _ = batch.push(packet);
        }
        if let Some(before) = &mut self.before {
            before.receive(most, batch);
            if is_over && batch.len() < most {
                self.before = None;
            }
        }
        self.count_early();
        if batch.len() > had {
            self.way.link.made_room();
        }
    }

    /// Goes on from a ring whose sender may still be at work.
    pub fn take_over(&mut self, old: &mut Receiver) {
        self.early.append(&mut old.early);
        if let Some(mut before) = old.before.take() {
            // That one's sender has gone with the graph that the swap before this one replaced.
            self.early.extend(std::iter::from_fn(|| before.ring.pop().ok()));
        }
        let (_, nothing) = rtrb::RingBuffer::new(0);
        let ring = std::mem::replace(&mut old.way.ring, nothing);
        self.before = Some(Way { ring, link: old.way.link.clone() });
        self.count_early();
    }

    fn count_early(&self) {
        self.way.link.early.store(self.earlier(), Ordering::Relaxed);
    }

    /// Packets from before a hot swap.
    fn earlier(&self) -> usize {
        self.early.len() + self.before.as_ref().map_or(0, |before| before.ring.slots())
    }

    pub fn held(&self) -> usize {
        self.way.ring.slots() + self.earlier()
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

    #[test]
    fn a_sender_whose_worker_has_its_next_graph_later_loses_nothing_and_is_first() {
        let wakers = [(); 2].map(|()| Waiter::new().unwrap().waker());
        let bells = wakers.clone().map(|waker| Arc::new(Doorbell::new(waker)));
        let fresh = || ring(bells[0].clone(), bells[1].clone());
        let send = |sender: &mut Sender, numbers: std::ops::Range<u8>| {
            let mut batch = Batch::new();
            batch.extend(numbers.map(|n| Packet::from_bytes(&[n]).unwrap()));
            sender.send(&mut batch);
        };
        let (mut sender, mut receiver) = fresh();
        send(&mut sender, 0..2);
        let mut seen = Vec::new();
        for round in 0..3u8 {
            let first = 10 * round;
            let (mut next_sender, mut next_receiver) = fresh();
            next_receiver.take_over(&mut receiver);
            send(&mut sender, first + 2..first + 4);
            let mut batch = Batch::new();
            next_receiver.receive(3, &mut batch);
            send(&mut sender, first + 4..first + 6);
            send(&mut next_sender, first + 6..first + 12);
            next_receiver.receive(5, &mut batch);
            seen.extend(batch.iter().map(|p| p.data()[0]));
            (sender, receiver) = (next_sender, next_receiver);
        }
        assert_eq!(receiver.held(), 17);
        let mut batch = Batch::new();
        receiver.receive(BATCH, &mut batch);
        seen.extend(batch.iter().map(|p| p.data()[0]));
        assert_eq!((seen, receiver.held()), ((0..32).collect(), 0));
    }
}
