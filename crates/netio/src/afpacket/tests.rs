//! AF_PACKET over a veth pair.

use super::*;
use crate::testnet::{self, Raw, udp_frame};
use causeway_packet::PacketType;

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
