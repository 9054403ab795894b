//! AF_PACKET over a veth pair.

use super::*;
use crate::testnet::{self, Raw, udp_frame};
use causeway_packet::PacketType;
use std::fs::File;
use std::os::unix::fs::FileExt;

fn receive(port: &mut Port, want: usize) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..400 {
        let missing = want - batch.len();
        port.queues[0].rx.poll(&mut batch, missing);
        if batch.len() == want {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    batch
}

#[test]
fn frames_come_and_go() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = open("r0", true).expect("r0");
        let host = Raw::open("g0");
        let mut frames: Vec<Vec<u8>> = (0..100).map(|i| udp_frame(port.mac, i as u8, 60 + i * 14)).collect();
        // A tagged frame: the kernel takes the tag out, the port puts it back.
        frames[3].splice(12..12, [0x81, 0, 0, 42]);
        frames.iter().for_each(|f| host.send(f));
        let mut batch = receive(&mut port, frames.len());
        let got: Vec<&[u8]> = batch.iter().map(|p| p.data()).collect();
        assert_eq!(got, frames);
        assert!(batch.iter().all(|p| p.timestamp_ns() > 0 && p.packet_type() == PacketType::Host));
        assert_eq!(port.queues[0].tx.offer(&mut batch), frames.len());
        assert_eq!(host.receive(frames.len()).len(), frames.len());
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(port.queues[0].rx.waiting(), 0, "our own frames do not come back");
        assert!(port.queues[0].rx.statistics().list().contains(&("rx_drop_ring_full", 0)));
    });
}

#[test]
fn a_packet_that_cannot_be_sent_does_not_block() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = open("r0", false).expect("r0");
        let mut batch = Batch::new();
        batch.extend([1700, 60].into_iter().filter_map(|n| Packet::from_bytes(&udp_frame([2; 6], 1, n))));
        while port.queues[0].tx.offer(&mut batch) > 0 {}
        let counters = port.queues[0].tx.statistics().list();
        assert!(
            counters.contains(&("tx_drop_error", 1)) && counters.contains(&("tx_packets", 1)),
            "{counters:?}"
        );
    });
}

#[test]
fn few_packets_fit_however_long_they_wait() {
    testnet::run(&[("g0", "r0")], || {
        let mut port = open("r0", true).expect("r0");
        let host = Raw::open("g0");
        // Each is handed over in a block of its own, and there are many blocks.
        for i in 0..60 {
            host.send(&udp_frame(port.mac, i, 60));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(receive(&mut port, 60).len(), 60, "{:?}", port.queues[0].rx.statistics().list());
    });
}

/// A receiving half whose ring's first block has a packet of 60 bytes, and one of 100 of which 60 were kept.
fn with_a_cut_packet() -> PacketRx {
    const HEADER: usize = 64;
    const ENTRY: usize = 128;
    // SAFETY: makes a new descriptor, checked and owned below.
    let fd = unsafe { libc::memfd_create(c"ring".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: new and ours.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len((BLOCK_SIZE * BLOCKS) as u64).expect("a file in memory");
    let put =
        |at: usize, word: u32| file.write_all_at(&word.to_ne_bytes(), at as u64).expect("it is long enough");
    for (at, length) in [(HEADER, 60), (HEADER + ENTRY, 100)] {
        // Where the next is, what was kept, what came, and where that begins: a half word.
        [(0, ENTRY as u32), (12, 60), (16, length), (24, 64)]
            .iter()
            .for_each(|(field, word)| put(at + field, *word));
    }
    [(block::PACKETS, 2), (block::FIRST, HEADER as u32), (block::STATUS, TP_STATUS_USER)]
        .iter()
        .for_each(|(field, word)| put(*field, *word));
    let fd = OwnedFd::from(file);
    let ring = RxRing::map(&fd).expect("a ring");
    let device = DeviceCounters::new(&Interface::open("lo").expect("every host has one"));
    let shared = Arc::new(Shared { fd, _offloads: None, _promiscuous: None, device });
    let counts = Tally::new(rx::NAMES);
    PacketRx { shared, ring, block: 0, left: 0, next: 0, counts, lost: Arc::default() }
}

#[test]
fn a_packet_that_the_ring_had_no_room_for_is_too_long() {
    let mut half = with_a_cut_packet();
    let mut batch = Batch::new();
    assert!(!half.poll(&mut batch, 9));
    assert_eq!(batch.iter().map(Packet::len).collect::<Vec<_>>(), [60]);
    let list = half.counts.list();
    let expected = [("rx_packets", 1), ("rx_drop_pool_empty", 0), ("rx_drop_too_long", 1)];
    assert!(expected.iter().all(|one| list.contains(one)), "{list:?}");
}

#[test]
fn longer_frames_are_advised_where_they_have_room() {
    let mut interface = Interface::open("lo").expect("every host has one");
    let mut advised = |mtu: u32, headroom: fn(u32) -> u32, most_frame: u32| {
        interface.mtu = mtu;
        let error = interface.check_mtu(headroom, most_frame).expect_err("the pool's frames are shorter");
        let help = error.to_string();
        help.split_once("--frame-size ").and_then(|(_, rest)| rest.split_once('`')?.0.parse::<u32>().ok())
    };
    // The longest frames have less room in a block of the ring.
    let most = pool::MOST_FRAME;
    assert_eq!(
        [9_000, 32_490, 32_491, 32_618].map(|mtu| advised(mtu, headroom, most)),
        [Some(16_384), Some(most), None, None]
    );
    assert_eq!(advised(32_618, |_| 128, most), Some(most));
    // An interface may say that it has no limit.
    assert_eq!([i32::MAX as u32, u32::MAX].map(|mtu| advised(mtu, headroom, most)), [None; 2]);
    assert_eq!(advised(9_000, headroom, 4_096), None);
}
