//! Memory ports: two ports in this process, joined like the ends of a cable.
//!
//! Each direction is a single-producer, single-consumer ring of packets; frames move by pointer. They serve tests,
//! simulations and graphs joined in one process.

use crate::port::{Counter, Port, Queue, Rx, Tx};
use crate::{Error, ErrorKind, Result};
use causeway_packet::{Batch, Packet};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A counter on its own cache line, so that the two sides do not take it from each other.
#[derive(Default)]
#[repr(align(64))]
struct Index(AtomicUsize);

/// The ring. `tail - head` packets, from `head` on modulo the capacity, are initialised.
struct Ring {
    slots: Box<[UnsafeCell<MaybeUninit<Packet>>]>,
    /// Packets ever taken; only the consumer writes it.
    head: Index,
    /// Packets ever put; only the producer writes it.
    tail: Index,
    producer_gone: AtomicBool,
}

// SAFETY: a slot is written by the producer before `tail` is released past it, and read by the consumer before
// `head` is released past it; the two never touch a slot at once. Packets are `Send`.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

impl Ring {
    fn new(capacity: usize) -> Ring {
        let slots = (0..capacity.max(1).next_power_of_two()).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
        Ring {
            slots: slots.collect(),
            head: Index::default(),
            tail: Index::default(),
            producer_gone: AtomicBool::new(false),
        }
    }

    fn slot(&self, at: usize) -> *mut MaybeUninit<Packet> {
        self.slots[at & (self.slots.len() - 1)].get()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let (head, tail) = (*self.head.0.get_mut(), *self.tail.0.get_mut());
        for at in head..tail {
            // SAFETY: these slots are initialised and nobody else is left.
            unsafe { (*self.slot(at)).assume_init_drop() };
        }
    }
}

/// Receives from the other end.
struct MemoryRx {
    ring: Arc<Ring>,
    received: u64,
}

/// Transmits to the other end.
struct MemoryTx {
    ring: Arc<Ring>,
    sent: u64,
    full: u64,
}

impl Rx for MemoryRx {
    fn pending(&mut self) -> usize {
        self.ring.tail.0.load(Ordering::Acquire) - self.ring.head.0.load(Ordering::Relaxed)
    }

    fn receive(&mut self, batch: &mut Batch, max: usize) -> usize {
        let head = self.ring.head.0.load(Ordering::Relaxed);
        let n = self.pending().min(max).min(batch.room());
        for at in head..head + n {
            // SAFETY: the slot lies below `tail` and above `head`: initialised, ours, and read once.
            let packet = unsafe { (*self.ring.slot(at)).assume_init_read() };
            // There is room for `n`.
            let _ = batch.push(packet);
        }
        self.ring.head.0.store(head + n, Ordering::Release);
        self.received += n as u64;
        n
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_finished(&self) -> bool {
        let gone = self.ring.producer_gone.load(Ordering::Acquire);
        gone && self.ring.tail.0.load(Ordering::Acquire) == self.ring.head.0.load(Ordering::Relaxed)
    }

    fn counters(&self) -> Vec<Counter> {
        vec![("rx_packets", self.received)]
    }
}

impl Tx for MemoryTx {
    fn transmit(&mut self, batch: &mut Batch) -> usize {
        let tail = self.ring.tail.0.load(Ordering::Relaxed);
        let used = tail - self.ring.head.0.load(Ordering::Acquire);
        let mut taken = Batch::new();
        let n = taken.append_up_to(batch, self.ring.slots.len() - used);
        for (at, packet) in (tail..).zip(taken.drain()) {
            // SAFETY: the slot lies above `tail` and the consumer has left it: free and ours.
            unsafe { (*self.ring.slot(at)).write(packet) };
        }
        self.ring.tail.0.store(tail + n, Ordering::Release);
        self.sent += n as u64;
        self.full += u64::from(!batch.is_empty());
        n
    }

    fn flush(&mut self) {}

    fn counters(&self) -> Vec<Counter> {
        vec![("tx_packets", self.sent), ("tx_ring_full", self.full)]
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        self.ring.producer_gone.store(true, Ordering::Release);
    }
}

/// Two joined ports, each with rings of `capacity` packets (rounded up to a power of two).
pub fn pair(name: &str, capacity: usize) -> (Port, Port) {
    let (there, back) = (Arc::new(Ring::new(capacity)), Arc::new(Ring::new(capacity)));
    let port = |end: &str, rx: &Arc<Ring>, tx: &Arc<Ring>| Port {
        name: format!("{name}.{end}"),
        mac: [0; 6],
        mtu: 1500,
        ifindex: 0,
        generic: false,
        mode: "memory ring".to_owned(),
        queues: vec![Queue {
            rx: Box::new(MemoryRx { ring: rx.clone(), received: 0 }),
            tx: Box::new(MemoryTx { ring: tx.clone(), sent: 0, full: 0 }),
        }],
    };
    (port("0", &back, &there), port("1", &there, &back))
}

/// Ends of cables whose other ends are open.
static LOOSE: Mutex<Vec<Port>> = Mutex::new(Vec::new());
/// Packets that each direction of such a cable holds.
const CABLE: usize = 4_096;

/// Opens an end of a cable: `NAME.0` or `NAME.1`. The other end waits for who opens it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for another name.
pub fn open(name: &str) -> Result<Port> {
    let mut loose = LOOSE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(end) = loose.iter().position(|port| port.name == name) {
        return Ok(loose.swap_remove(end));
    }
    let (cable, end) = match name.rsplit_once('.') {
        Some((cable, "0")) => (cable, 0),
        Some((cable, "1")) => (cable, 1),
        _ => {
            let what = format!("{name}: an end of a memory cable has a name that ends in .0 or .1");
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
    };
    let mut ends = <[Port; 2]>::from(pair(cable, CABLE));
    ends.rotate_left(end);
    let [mine, other] = ends;
    // The other end of an older cable of that name leads nowhere any more.
    loose.retain(|port| port.name != other.name);
    loose.push(other);
    Ok(mine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(n: u32) -> Packet {
        Packet::from_bytes(&n.to_be_bytes()).expect("a frame")
    }

    fn number(p: &Packet) -> u32 {
        u32::from_be_bytes(p.data().try_into().expect("4 bytes"))
    }

    #[test]
    fn a_full_ring_leaves_the_rest() {
        let _pool = crate::testnet::pool_lock();
        let (mut a, mut b) = pair("m", 4);
        let mut batch = Batch::new();
        batch.extend((0..6).map(packet));
        assert_eq!(a.queues[0].tx.transmit(&mut batch), 4);
        assert_eq!(batch.iter().map(number).collect::<Vec<_>>(), [4, 5]);
        let mut got = Batch::new();
        assert_eq!(b.queues[0].rx.receive(&mut got, 3), 3);
        assert_eq!(a.queues[0].tx.transmit(&mut batch), 2);
        assert_eq!(b.queues[0].rx.receive(&mut got, 10), 3);
        assert_eq!(got.iter().map(number).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert!(!b.queues[0].rx.is_finished());
        drop(a);
        assert!(b.queues[0].rx.is_finished());
    }

    #[test]
    fn who_opens_both_ends_of_a_cable_has_a_pair() {
        let _pool = crate::testnet::pool_lock();
        let mut batch = Batch::new();
        batch.extend([packet(7)]);
        let (mut b, mut a) = (open("cable.1").expect("an end"), open("cable.0").expect("the other"));
        assert_eq!((&a.name[..], &b.name[..]), ("cable.0", "cable.1"));
        assert_eq!(a.queues[0].tx.transmit(&mut batch), 1);
        assert_eq!(b.queues[0].rx.receive(&mut batch, 9), 1);
        // A new cable of the name: the end that stays of the old one has nothing to do with it.
        drop(a);
        let mut a = open("cable.0").expect("anew");
        assert!(b.queues[0].rx.is_finished());
        a.queues[0].tx.transmit(&mut batch);
        let mut b = open("cable.1").expect("anew");
        assert_eq!(b.queues[0].rx.receive(&mut batch, 9), 1);
        assert!(open("cable").is_err() && open("cable.2").is_err());
    }

    #[test]
    fn two_threads_keep_order() {
        let _pool = crate::testnet::pool_lock();
        let (a, mut b) = pair("m", 64);
        const N: u32 = 20_000;
        let sender = std::thread::spawn(move || {
            let mut a = a;
            let (mut batch, mut next) = (Batch::new(), 0);
            while next < N || !batch.is_empty() {
                while next < N && batch.len() < 32 {
                    let Some(p) = Packet::from_bytes(&next.to_be_bytes()) else { break };
                    let _ = batch.push(p);
                    next += 1;
                }
                if a.queues[0].tx.transmit(&mut batch) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let (mut want, mut got) = (0, Batch::new());
        while !b.queues[0].rx.is_finished() {
            if b.queues[0].rx.receive(&mut got, 48) == 0 {
                std::thread::yield_now();
            }
            for p in got.drain() {
                assert_eq!(number(&p), want);
                want += 1;
            }
        }
        sender.join().expect("the sender");
        assert_eq!(want, N);
    }
}
