//! Memory ports: two ports in this process, joined like the ends of a cable.
//!
//! Each direction is a ring of packets with one producer and one consumer; frames move by pointer. A receiver that is
//! armed is woken by an eventfd(2). They serve tests, simulations and graphs joined in one process.

use crate::completion::{Completion, Completions};
use crate::port::{Capabilities, Port, Queue, Rx, Tx};
use crate::statistics::{Statistics, Tally};
use crate::{Error, ErrorKind, Result};
use causeway_packet::{Alert, Batch, Packet, Receiver};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// What wakes the receiver of one direction.
struct Bell {
    armed: Alert,
    event: OwnedFd,
}

impl Bell {
    fn new() -> Result<Arc<Bell>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| Error::system("make an eventfd", e.into()))?;
        Ok(Arc::new(Bell { armed: Alert::default(), event }))
    }

    /// Something was put into the ring, or never will be again.
    fn ring(&self) {
        if self.armed.answer() {
            // It can only fail when the count is at its limit, and then the receiver wakes anyway.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }
}

/// Receives from the other end.
struct MemoryRx {
    ring: rtrb::Consumer<Packet>,
    bell: Arc<Bell>,
    counts: Arc<Tally<1>>,
}

/// Transmits to the other end.
struct MemoryTx {
    ring: rtrb::Producer<Packet>,
    bell: Arc<Bell>,
    completions: Completions,
    counts: Arc<Tally<2>>,
}

/// The numbers of a transmitting half.
const SENT: usize = 0;
const FULL: usize = 1;

impl Receiver for MemoryRx {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let n = self.ring.slots().min(budget).min(batch.room());
        if let Ok(packets) = self.ring.read_chunk(n) {
            batch.extend(packets);
        }
        self.counts.add(0, n as u64);
        !self.ring.is_empty()
    }

    fn arm(&mut self) -> bool {
        self.bell.armed.ask();
        !self.ring.is_empty()
    }

    fn disarm(&mut self) {
        if !self.bell.armed.withdraw() {
            // It has rung since it was armed. Nobody minds if it has not been armed at all.
            let _ = rustix::io::read(&self.bell.event, &mut [0; 8]);
        }
    }

    fn waiting(&mut self) -> usize {
        self.ring.slots()
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.bell.event.as_fd()]
    }
}

impl Rx for MemoryRx {
    fn is_finished(&self) -> bool {
        self.ring.is_abandoned() && self.ring.is_empty()
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        self.counts.clone()
    }
}

impl Tx for MemoryTx {
    fn offer(&mut self, batch: &mut Batch) -> usize {
        let mut taken = Batch::new();
        let n = taken.append_up_to(batch, self.ring.slots());
        self.completions.sent(taken.iter());
        // What the sender knows of them does not go over a cable.
        taken.iter_mut().for_each(Packet::forget);
        if let Ok(slots) = self.ring.write_chunk_uninit(n) {
            slots.fill_from_iter(taken.drain());
        }
        if n > 0 {
            self.bell.ring();
        }
        self.counts.add(SENT, n as u64);
        self.counts.add(FULL, u64::from(!batch.is_empty()));
        n
    }

    fn flush(&mut self) {}

    fn completions(&mut self, sink: &mut dyn FnMut(Completion)) {
        self.completions.take(sink);
    }

    fn statistics(&self) -> Arc<dyn Statistics> {
        self.counts.clone()
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        // Who waits for more learns that none will come; that the ring is abandoned shows a moment later.
        self.bell.ring();
    }
}

/// Two joined ports, each with rings of `capacity` packets.
///
/// # Errors
/// No more descriptors.
pub fn pair(name: &str, capacity: usize) -> Result<(Port, Port)> {
    let ((there, far), (back, near)) = (direction(capacity)?, direction(capacity)?);
    let port = |end: &str, rx: MemoryRx, tx: MemoryTx| Port {
        name: format!("{name}.{end}"),
        mac: [0; 6],
        mtu: 1500,
        ifindex: 0,
        generic: false,
        mode: "memory ring".to_owned(),
        capabilities: Capabilities { zero_copy: true, ..Capabilities::default() },
        events: None,
        queues: vec![Queue { rx: Box::new(rx), tx: Box::new(tx) }],
    };
    Ok((port("0", near, there), port("1", far, back)))
}

fn direction(capacity: usize) -> Result<(MemoryTx, MemoryRx)> {
    let (tx, rx) = rtrb::RingBuffer::new(capacity.max(1));
    let bell = Bell::new()?;
    let completions = Completions::default();
    let counts = Tally::new(["tx_packets", "tx_ring_full"]);
    let tx = MemoryTx { ring: tx, bell: bell.clone(), completions, counts };
    Ok((tx, MemoryRx { ring: rx, bell, counts: Tally::new(["rx_packets"]) }))
}

/// Ends of cables whose other ends are open.
static LOOSE: Mutex<Vec<Port>> = Mutex::new(Vec::new());
/// Packets that each direction of such a cable holds.
const CABLE: usize = 4_096;

/// Opens an end of a cable: `NAME.0` or `NAME.1`. The other end waits for who opens it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for another name.
#[expect(clippy::disallowed_methods, reason = "when a port is opened")]
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
    let mut ends = <[Port; 2]>::from(pair(cable, CABLE)?);
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
    use crate::completion::Clock;

    fn packet(n: u32) -> Packet {
        Packet::from_bytes(&n.to_be_bytes()).expect("a frame")
    }

    fn number(p: &Packet) -> u32 {
        u32::from_be_bytes(p.data().try_into().expect("4 bytes"))
    }

    #[test]
    fn a_full_ring_leaves_the_rest() {
        let _pool = crate::testnet::pool_lock();
        let (mut a, mut b) = pair("m", 4).expect("a pair");
        let mut batch = Batch::new();
        batch.extend((0..6).map(packet));
        assert_eq!(a.queues[0].tx.offer(&mut batch), 4);
        assert_eq!(batch.iter().map(number).collect::<Vec<_>>(), [4, 5]);
        let mut got = Batch::new();
        assert!(b.queues[0].rx.poll(&mut got, 3), "one is left");
        assert_eq!(a.queues[0].tx.offer(&mut batch), 2);
        assert!(!b.queues[0].rx.poll(&mut got, 10));
        assert_eq!(got.iter().map(number).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        assert!(!b.queues[0].rx.is_finished());
        drop(a);
        assert!(b.queues[0].rx.is_finished());
    }

    #[test]
    fn the_bell_rings_once_for_who_is_armed() {
        let _pool = crate::testnet::pool_lock();
        let (mut a, mut b) = pair("m", 8).expect("a pair");
        let (tx, rx) = (&mut a.queues[0].tx, &mut b.queues[0].rx);
        let rung = |rx: &dyn Rx| {
            let mut fds =
                [rustix::event::PollFd::from_borrowed_fd(rx.fds()[0], rustix::event::PollFlags::IN)];
            rustix::event::poll(&mut fds, Some(&Default::default())).expect("poll") == 1
        };
        let mut send = |n: usize| {
            let mut batch = Batch::new();
            batch.extend((0..n as u32).map(packet));
            tx.offer(&mut batch);
        };
        send(1);
        assert!(!rung(&**rx) && rx.arm(), "whoever arms is told of what came before");
        assert!(rx.arm(), "and again");
        send(2);
        assert!(rung(&**rx));
        rx.disarm();
        send(1);
        assert!(!rung(&**rx) && rx.waiting() == 4);
        assert!(!rx.poll(&mut Batch::new(), 9) && !rx.arm());
        drop(a);
        assert!(rung(&**rx) && rx.is_finished());
    }

    #[test]
    fn a_tagged_packet_is_told_of_once_it_is_sent() {
        let _pool = crate::testnet::pool_lock();
        let (mut a, _b) = pair("m", 2).expect("a pair");
        let mut batch = Batch::new();
        batch.extend((0..3).map(packet));
        (1..3).for_each(|n| batch[n].set_transmit_tag(76 + n as u64));
        a.queues[0].tx.offer(&mut batch);
        let mut told = Vec::new();
        a.queues[0].tx.completions(&mut |c| told.push(c));
        assert_eq!(told.iter().map(|c| c.tag).collect::<Vec<_>>(), [77], "what is left was not sent");
        assert!(matches!(told[0].sent, Some((ns, Clock::Realtime)) if ns > 0));
    }

    #[test]
    fn a_packet_crosses_without_its_history() {
        let _pool = crate::testnet::pool_lock();
        let (mut a, mut b) = pair("m", 2).expect("a pair");
        let mut batch = Batch::new();
        batch.extend([packet(7)]);
        batch[0].set_mac_header(0);
        batch[0].set_transmit_tag(76);
        batch[0].set_paint(3);
        batch[0].set_timestamp_ns(9);
        batch[0].set_trace(1);
        a.queues[0].tx.offer(&mut batch);
        b.queues[0].rx.poll(&mut batch, 1);
        let p = &batch[0];
        assert_eq!((number(p), p.mac_header(), p.transmit_tag()), (7, None, None));
        assert_eq!((p.paint(), p.timestamp_ns(), p.trace()), (0, 0, 0));
    }

    #[test]
    fn who_opens_both_ends_of_a_cable_has_a_pair() {
        let _pool = crate::testnet::pool_lock();
        let mut batch = Batch::new();
        batch.extend([packet(7)]);
        let (mut b, mut a) = (open("cable.1").expect("an end"), open("cable.0").expect("the other"));
        assert_eq!((&a.name[..], &b.name[..]), ("cable.0", "cable.1"));
        assert_eq!(a.queues[0].tx.offer(&mut batch), 1);
        b.queues[0].rx.poll(&mut batch, 9);
        assert_eq!(batch.len(), 1);
        // A new cable of the name: the end that stays of the old one has nothing to do with it.
        drop(a);
        let mut a = open("cable.0").expect("anew");
        assert!(b.queues[0].rx.is_finished());
        a.queues[0].tx.offer(&mut batch);
        let mut b = open("cable.1").expect("anew");
        b.queues[0].rx.poll(&mut batch, 9);
        assert_eq!(batch.len(), 1);
        assert!(open("cable").is_err() && open("cable.2").is_err());
    }

    #[test]
    fn two_threads_keep_order() {
        let _pool = crate::testnet::pool_lock();
        let (a, mut b) = pair("m", 64).expect("a pair");
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
                if a.queues[0].tx.offer(&mut batch) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let (mut want, mut got) = (0, Batch::new());
        while !b.queues[0].rx.is_finished() {
            if !b.queues[0].rx.poll(&mut got, 48) && got.is_empty() {
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
