//! Where frames are: none gets a second owner and none is lost, whatever happens to an interface or its rings.

use super::tests::{counter, receive};
use super::*;
use crate::completion::Completion;
use crate::port::{Rx, Tx};
use crate::testnet::{self, Raw, assert_all_free, hoard_all_but, udp_frame};
use causeway_packet::ledger::{Direction, census};
use causeway_packet::{BATCH, Batch, Packet, Receiver, pool};
use std::collections::HashSet;

const SMALL: u32 = 64;
/// What the rings for receiving have then.
const FILLED: u32 = 4 * SMALL;
const FRAME: u64 = 2_048;

fn small() -> Options {
    Options { ring: SMALL, live: false, ..Options::default() }
}

fn batch_of(n: usize) -> Batch {
    let mut batch = Batch::new();
    batch.extend((0..n).filter_map(|i| Packet::from_bytes(&udp_frame([2; 6], i as u8, 60))));
    assert_eq!(batch.len(), n);
    batch
}

/// Takes every free frame: no two packets may be over one.
fn assert_no_aliases() {
    let all = hoard_all_but(0);
    let frames: HashSet<*const u8> = all.iter().map(|p| p.data().as_ptr()).collect();
    assert_eq!(frames.len(), all.len(), "two packets over one frame");
}

#[test]
fn frames_of_a_port_without_carrier_come_back_once() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        for _ in 0..3 {
            let mut port = open("r1", &small(), &testnet::front()).expect("r1");
            testnet::ip("ip link set dev s0 down");
            // The kernel drops and completes such packets, and may never say that it has taken them from the ring.
            let tx = &mut port.queues[0].tx;
            for n in [40, 10] {
                assert_eq!(tx.offer(&mut batch_of(n)), n);
                tx.flush();
            }
            drop(port);
            testnet::up("s0");
            assert_all_free();
            assert_no_aliases();
        }
    });
}

#[test]
fn frames_of_a_port_that_is_down_come_back() {
    testnet::run(&[("s0", "r1")], || {
        let mut port = open("r1", &small(), &testnet::front()).expect("r1");
        testnet::ip("ip link set dev r1 down");
        assert_eq!(port.queues[0].tx.offer(&mut batch_of(30)), 30);
        port.queues[0].tx.flush();
        assert_eq!(port.queues[0].tx.in_flight(), 30, "they wait for the interface");
        drop(port);
        assert_all_free();
        assert_no_aliases();
    });
}

#[test]
fn frames_of_a_deleted_interface_come_back() {
    testnet::run(&[("g0", "r0"), ("s0", "r1")], || {
        let mut a = open("r0", &small(), &testnet::front()).expect("r0");
        let mut b = open("r1", &small(), &testnet::front()).expect("r1");
        let host = Raw::open("g0");
        (0..40).for_each(|i| host.send(&udp_frame(a.mac, i, 60)));
        let mut batch = receive(&mut a, 20);
        assert_eq!(b.queues[0].tx.offer(&mut batch), 20);
        // Some frames in each ring: received and not read, empty, to be sent.
        assert!(a.queues[0].rx.waiting() > 0);
        testnet::ip("ip link del r0");
        testnet::ip("ip link del r1");
        b.queues[0].tx.flush();
        assert_eq!(a.queues[0].tx.offer(&mut batch_of(5)), 5);
        a.queues[0].tx.flush();
        let mut rest = Batch::new();
        a.queues[0].rx.poll(&mut rest, BATCH);
        drop((a, b, rest));
        assert_all_free();
        assert_no_aliases();
    });
}

#[test]
fn an_interface_made_anew_can_be_opened_at_once() {
    testnet::run(&[("g0", "r0")], || {
        for _ in 0..3 {
            let old = open("r0", &small(), &testnet::front()).expect("r0");
            testnet::ip("ip link del r0");
            testnet::ip("ip link add r0 type veth peer name g0");
            ["r0", "g0"].iter().for_each(|end| testnet::up(end));
            let mut port = open("r0", &small(), &testnet::front()).expect("the new r0");
            Raw::open("g0").send(&udp_frame(port.mac, 1, 60));
            assert_eq!(receive(&mut port, 1).len(), 1);
            drop((old, port));
        }
        assert_all_free();
    });
}

/// Where a port is closed and opened again the new socket may have the queue before anybody saw it free.
#[test]
fn ports_reopened_at_once_lose_nothing() {
    testnet::run(&[("g0", "r0")], || {
        let mut last = None;
        for round in 0..6 {
            drop(last.take());
            let mut port = open("r0", &small(), &testnet::front()).expect("reopened");
            port.queues[0].tx.offer(&mut batch_of(round));
            last = Some(port);
        }
        let rings = census().rings;
        assert!(rings.len() >= 2, "{rings:?}");
        let held: u32 = rings.iter().map(|(_, n)| n).sum();
        assert_eq!(held + census().free, pool::config().frames);
        drop(last);
        assert_all_free();
        assert_no_aliases();
    });
}

#[test]
fn the_ledger_says_who_has_what() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = open("r0", &small(), &testnet::front()).expect("r0");
        Raw::open("g0").send(&udp_frame(port.mac, 1, 60));
        let got = receive(&mut port, 1);
        testnet::ip("ip link set dev r0 down");
        port.queues[0].tx.offer(&mut batch_of(7));
        let census = census();
        let of = |direction| census.rings.iter().find(|(name, _)| name.direction == direction).map(|r| r.1);
        // One frame is a packet, and the fill ring is topped up by chunks.
        assert_eq!(of(Direction::Receive), Some(FILLED - 1));
        assert_eq!(of(Direction::Transmit), Some(7));
        assert_eq!((census.packets, census.rings.len()), (1, 2));
        assert!(census.rings.iter().all(|(name, _)| name.queue == 0 && name.ifindex == port.ifindex));
        drop((got, port));
    });
}

/// A kernel that does not keep to anything: the test writes what it gives back, and it takes what it likes.
struct Kernel {
    received: ring::Producer<libc::xdp_desc>,
    completed: ring::Producer<u64>,
    to_send: ring::Consumer<libc::xdp_desc>,
}

impl Kernel {
    fn receive(&mut self, descriptors: impl IntoIterator<Item = (u64, u32)>) {
        let descriptors = descriptors.into_iter().map(|(addr, len)| libc::xdp_desc { addr, len, options: 0 });
        descriptors.for_each(|d| self.received.write(d));
        self.received.publish();
    }

    fn complete(&mut self, addresses: impl IntoIterator<Item = u64>) {
        addresses.into_iter().for_each(|address| self.completed.write(address));
        self.completed.publish();
    }
}

/// The halves of a queue of r0 in the hands of such a kernel.
fn halves() -> (AfXdpRx, AfXdpTx, Kernel) {
    let interface = Interface::open("r0").expect("r0");
    let rules = Rules { mac: Some(interface.mac), take: Take::All, partial_checksums: false };
    let claim = testnet::front().claim(interface.index, 1, u32::MAX, rules).expect("claimed");
    let (link, _) = attach(&interface, &claim, None, false).expect("attached");
    let offloads = OffloadGuard::turn_off(&interface, &[]).expect("nothing to do");
    let counters = DeviceCounters::new(&interface);
    let attachment = Attachment::new(
        Held { _link: crate::attachment::Link::Xdp(link), claim, _promiscuous: None },
        offloads,
        counters,
    );
    let wanted = socket::Wanted {
        interface: &interface,
        queue: 0,
        ring: SMALL,
        zero_copy: false,
        driver_zero_copy: false,
    };
    let (socket, Rings { fill, rx_frames, tx_frames, .. }) = socket::bind(&wanted).expect("bound");
    let blank = libc::xdp_desc { addr: 0, len: 0, options: 0 };
    let (received, rx) = ring::in_memory(SMALL as usize, blank);
    let (tx, to_send) = ring::in_memory(SMALL as usize, blank);
    let (completed, completion) = ring::in_memory(SMALL as usize, 0);
    let ends = || Ends { attachment: attachment.clone(), socket: socket.clone(), queue: 0 };
    let rx = AfXdpRx::new(ends(), rx, fill, rx_frames, None);
    let tx = AfXdpTx::new(ends(), tx, completion, tx_frames, None, Some(Clock::Tai));
    (rx, tx, Kernel { received, completed, to_send })
}

fn region_offset(packet: &Packet) -> u64 {
    (packet.data().as_ptr() as usize - pool::region().0 as usize) as u64
}

fn frame(packet: &Packet) -> u64 {
    region_offset(packet) / FRAME
}

#[test]
fn what_a_closed_half_still_had_is_counted() {
    testnet::run(&[("g0", "r0")], || {
        let (_rx, mut tx, mut kernel) = halves();
        assert_eq!(tx.offer(&mut batch_of(5)), 5);
        let sent: Vec<u64> = (0..2).map(|_| kernel.to_send.read().addr).collect();
        kernel.to_send.release();
        kernel.complete(sent);
        let statistics = tx.statistics();
        drop(tx);
        assert!(statistics.list().contains(&("tx_drop_closed", 3)), "{:?}", statistics.list());
    });
}

#[test]
fn frames_sent_from_entries_that_the_ring_still_shows_come_back_once() {
    testnet::run(&[("g0", "r0")], || {
        let (rx, mut tx, mut kernel) = halves();
        assert_eq!(tx.offer(&mut batch_of(5)), 5);
        // Some kernels say that they took packets from the ring only when they take the next ones.
        assert_eq!(kernel.to_send.waiting(), 5);
        let sent: Vec<u64> = (0..3).map(|_| kernel.to_send.read().addr).collect();
        kernel.complete(sent);
        tx.flush();
        assert_eq!(tx.in_flight(), 2);
        drop((rx, tx));
        assert_all_free();
        assert_no_aliases();
    });
}

#[test]
fn completions_out_of_the_blue_free_nothing() {
    testnet::run(&[("g0", "r0")], || {
        let (rx, mut tx, mut kernel) = halves();
        let mine = Packet::from_bytes(b"not to be touched").expect("a frame");
        let batch = &mut batch_of(3);
        let sent: Vec<u64> = batch.iter().map(region_offset).collect();
        assert_eq!(tx.offer(batch), 3);
        // Two that are right, one of them three times; a packet's, a free one's, and nonsense.
        let free = region_offset(&Packet::new().expect("a frame"));
        kernel.complete([sent[0], sent[1], sent[0], sent[0], region_offset(&mine), free, u64::MAX]);
        tx.flush();
        assert_eq!(tx.in_flight(), 1);
        assert_eq!(counter(&tx.statistics().list(), "tx_bad_completion"), 5);
        assert_no_aliases();
        assert_eq!(mine.data(), b"not to be touched");
        drop((rx, tx));
    });
}

#[test]
fn tagged_packets_are_told_of_when_their_frames_come_back() {
    testnet::run(&[("g0", "r0")], || {
        let (rx, mut tx, mut kernel) = halves();
        let mut batch = batch_of(4);
        (1..4).for_each(|n| batch[n].set_transmit_tag(10 + n as u64));
        assert_eq!(tx.offer(&mut batch), 4);
        let sent: Vec<libc::xdp_desc> = (0..4).map(|_| kernel.to_send.read()).collect();
        assert_eq!(sent.iter().map(|desc| desc.options).collect::<Vec<_>>(), [0, 2, 2, 2]);
        // What a kernel does: it finds the request and writes the answer in its place.
        let at = |address: u64| (pool::region().0 as usize + address as usize - 24) as *mut u64;
        // SAFETY: the frames are in the hands of the kernel that this test is.
        let request = unsafe { at(sent[1].addr).read() };
        assert_eq!(request, 1);
        for (n, ns) in [(1, 5_001), (3, 5_003)] {
            // SAFETY: as above.
            unsafe { at(sent[n].addr).add(1).write(ns) };
        }
        let mut told = Vec::new();
        kernel.complete([sent[3].addr, sent[0].addr, sent[2].addr]);
        tx.flush();
        tx.completions(&mut |c| told.push(c));
        let tai = |ns| Some((ns, Clock::Tai));
        assert_eq!(told, [Completion { tag: 13, sent: tai(5_003) }, Completion { tag: 12, sent: None }]);
        told.clear();
        kernel.complete([sent[1].addr]);
        tx.flush();
        tx.completions(&mut |c| told.push(c));
        assert_eq!(told, [Completion { tag: 11, sent: tai(5_001) }]);
        drop((rx, tx));
    });
}

#[test]
fn descriptors_out_of_the_blue_are_no_packets() {
    testnet::run(&[("g0", "r0")], || {
        let (mut rx, tx, mut kernel) = halves();
        let mine = Packet::from_bytes(b"not to be touched").expect("a frame");
        // What nobody can get is in the fill ring.
        let free: HashSet<u64> = hoard_all_but(0).iter().map(frame).collect();
        let filled = (0..u64::from(pool::config().frames)).find(|f| !free.contains(f) && *f != frame(&mine));
        let at = filled.expect("a frame of the fill ring") * FRAME + 256;
        let free = free.iter().next().expect("a free frame") * FRAME;
        // Longer than the frame; right; the same again; a packet's; nonsense; a free one's.
        let mine_at = region_offset(&mine);
        kernel.receive([(at, 2_000), (at, 60), (at, 60), (mine_at, 8), (u64::MAX, u32::MAX), (free, 60)]);
        let mut batch = Batch::new();
        rx.poll(&mut batch, BATCH);
        assert_eq!(batch.len(), 1);
        assert_eq!((region_offset(&batch[0]), batch[0].len()), (at, 60));
        assert_eq!(counter(&rx.statistics().list(), "rx_drop_bad_descriptor"), 5);
        assert_no_aliases();
        drop((rx, tx, batch, mine));
    });
}

#[test]
fn a_queue_that_ran_dry_recovers_without_a_packet() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = open("r0", &small(), &testnet::front()).expect("r0");
        let host = Raw::open("g0");
        let hoard = hoard_all_but(0);
        // All frames of the rings become packets, and stay packets.
        let mut held = Vec::new();
        let mac = port.mac;
        while census().rings.iter().any(|(_, n)| *n > 0) {
            host.send(&udp_frame(mac, 1, 60));
            held.push(receive(&mut port, 1));
        }
        let rx = &mut port.queues[0].rx;
        host.send(&udp_frame(mac, 2, 60));
        let mut none = Batch::new();
        rx.poll(&mut none, 1);
        assert!(none.is_empty());
        assert!(counter(&rx.statistics().list(), "rx_drop_no_frame") > 0, "{:?}", rx.statistics().list());
        assert!(rx.waiting() > 0, "nobody may sleep on a queue that nothing can wake");
        // A single frame is enough to hear again.
        drop(held.pop());
        assert_eq!(rx.waiting(), 0);
        host.send(&udp_frame(mac, 3, 60));
        assert_eq!(receive(&mut port, 1)[0].data(), &udp_frame(mac, 3, 60)[..]);
        drop((hoard, held));
        assert_eq!(port.queues[0].rx.waiting(), 0);
        assert_eq!(census().rings.iter().map(|(_, n)| n).sum::<u32>(), FILLED, "the fill ring is full again");
    });
}

#[test]
fn a_queue_without_frames_is_left_to_the_kernel() {
    testnet::run(&[], || {
        let queues = "numrxqueues 2 numtxqueues 2";
        testnet::ip(&format!("ip link add r0 {queues} type veth peer name g0 {queues}"));
        ["r0", "g0"].iter().for_each(|end| testnet::up(end));
        let mut peer = open("g0", &small(), &testnet::front()).expect("g0");
        // Enough for the first queue and not for the second.
        let hoard = hoard_all_but(FILLED as usize + 10);
        let mut port = open("r0", &small(), &testnet::front()).expect("r0");
        assert!(port.mode.contains("queues [1] are left to the kernel"), "{}", port.mode);
        drop(hoard);
        let kernel = Raw::open("r0");
        for (queue, taken) in [(0, 1), (1, 0)] {
            let mut batch = Batch::new();
            batch.extend(Packet::from_bytes(&udp_frame(port.mac, queue as u8, 60)));
            assert_eq!(peer.queues[queue].tx.offer(&mut batch), 1);
            peer.queues[queue].tx.flush();
            port.queues[queue].rx.poll(&mut batch, 10);
            assert_eq!(batch.len(), taken, "queue {queue}");
            assert_eq!(port.queues[queue].rx.waiting(), 0, "queue {queue}");
        }
        assert_eq!(kernel.receive(1), vec![udp_frame(port.mac, 1, 60)]);
    });
}

#[test]
fn every_packet_leaves_or_is_counted() {
    testnet::run(&[("s0", "r1")], || {
        let mut port = open("r1", &small(), &testnet::front()).expect("r1");
        let sink = Raw::open("s0");
        let tx = &mut port.queues[0].tx;
        let frame = udp_frame([2; 6], 1, 60);
        let mut batch = Batch::new();
        // No room before the data for what the device is told of a packet: it is made.
        let mut tight = Packet::with_headroom(0).expect("a frame");
        tight.put(60).expect("room").copy_from_slice(&frame);
        // No room at all.
        let mut full = Packet::with_headroom(0).expect("a frame");
        let room = full.tailroom();
        full.put(room).expect("room");
        let empty = Packet::new().expect("a frame");
        let runt = Packet::from_bytes(&[0; 13]).expect("a frame");
        batch.extend([tight, full, empty, runt, Packet::from_bytes(&frame).expect("a frame")]);
        assert_eq!(tx.offer(&mut batch), 5);
        while tx.in_flight() > 0 {
            tx.flush();
        }
        assert_eq!(sink.receive(2), [frame.clone(), frame]);
        let counters = tx.statistics().list();
        assert_eq!(counter(&counters, "tx_packets"), 2);
        assert_eq!(counter(&counters, "tx_drop_too_short"), 2);
        assert_eq!(counter(&counters, "tx_drop_no_headroom"), 1);
        assert_eq!(counter(&counters, "tx_invalid_descriptor"), 0);
    });
}
