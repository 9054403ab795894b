//! Nanoseconds a packet that elements take by themselves: `cargo bench -p causeway-elements`.
//!
//! Batches of 256 packets go through one element on the bench of `causeway_engine::harness`; what the same path
//! costs with a Null in the element's place is taken off. The packets stay in the caches.

use causeway_engine::harness::Harness;
use causeway_packet::wire::{Ipv4Header, UdpHeader, protocol, udp};
use causeway_packet::{BATCH, Packet};
use std::time::Instant;

/// Batches in one measurement: short enough to run between two interruptions.
const ROUNDS: usize = 64;
/// Measurements, of which the fastest counts.
const REPEATS: usize = 2_000;

const TTL: u8 = 64;

#[derive(Clone, Copy)]
struct Case {
    class: &'static str,
    config: &'static str,
    ports: (usize, usize),
    handlers: &'static [(&'static str, &'static str)],
    /// Bytes that the element puts in front, to be taken off again; negative if it takes some off.
    pushes: isize,
    /// The packets, in turn: IP destination's last byte and UDP destination port.
    packets: &'static [(u8, u16)],
}

const NULL: Case =
    Case { class: "Null", config: "", ports: (1, 1), handlers: &[], pushes: 0, packets: &[(1, 53)] };

const CASES: &[Case] = &[
    Case {
        class: "Classifier",
        config: "12/0806 20/0001, 12/0806 20/0002, 12/0800, -",
        ports: (1, 4),
        ..NULL
    },
    Case { class: "IPClassifier", config: "udp dst port 53, -", ports: (1, 2), ..NULL },
    Case {
        class: "IPClassifier",
        config: "udp dst port 53, -",
        ports: (1, 2),
        packets: &[(1, 53), (2, 80), (3, 80), (4, 53), (5, 53)],
        ..NULL
    },
    Case {
        class: "IPFilter",
        config: "deny src net 192.168.0.0/16, deny tcp port 22 or 23, allow tcp opt ack, \
                 deny icmp type redirect, allow udp port 53, drop all",
        ..NULL
    },
    Case {
        class: "ARPQuerier",
        config: "10.0.0.9/24, 2:0:0:0:0:9",
        ports: (2, 1),
        handlers: &[("insert", "10.0.0.1 2:0:0:0:0:1")],
        pushes: 14,
        ..NULL
    },
    Case {
        class: "ARPQuerier",
        config: "10.0.0.9/24, 2:0:0:0:0:9",
        ports: (2, 1),
        handlers: &[
            ("insert", "10.0.0.1 2:0:0:0:0:1"),
            ("insert", "10.0.0.2 2:0:0:0:0:2"),
            ("insert", "10.0.0.3 2:0:0:0:0:3"),
        ],
        pushes: 14,
        packets: &[(1, 53), (2, 80), (3, 80), (3, 53), (1, 53)],
    },
    Case { class: "EtherEncap", config: "0x0800, 2:0:0:0:0:9, 2:0:0:0:0:1", pushes: 14, ..NULL },
    Case { class: "UDPIPEncap", config: "1.0.0.1, 7, 1.0.0.2, 53, false", pushes: 28, ..NULL },
    Case { class: "DropBroadcasts", ..NULL },
    Case { class: "MarkIPHeader", config: "14", ..NULL },
    Case { class: "FixIPSrc", config: "10.0.0.9", ..NULL },
    Case { class: "SetIPChecksum", ..NULL },
    Case { class: "CheckIPHeader", config: "14", ..NULL },
    Case { class: "DecIPTTL", ..NULL },
    Case { class: "IPGWOptions", config: "10.0.0.9", ..NULL },
    Case { class: "IPFragmenter", config: "1500", ..NULL },
    Case { class: "IPInputCombo", config: "1", pushes: -14, ..NULL },
    Case { class: "IPOutputCombo", config: "1, 10.0.0.9, 1500", ports: (1, 5), ..NULL },
    Case { class: "IPEncap", config: "ipip, 1.0.0.1, 1.0.0.2", pushes: 20, ..NULL },
];

/// A frame with UDP in IPv4, its headers marked.
fn packet((host, dst_port): (u8, u16)) -> Option<Packet> {
    let mut bytes = [0; 60];
    let ip = Ipv4Header {
        tos: 0,
        total_len: 0,
        identification: 1,
        flags_fragment: 0,
        ttl: TTL,
        protocol: protocol::UDP,
        src: [10, 0, 1, 1].into(),
        dst: [10, 0, 0, host].into(),
    };
    bytes[12..14].copy_from_slice(&[8, 0]);
    udp::encapsulate_v4(ip, UdpHeader { src_port: 9, dst_port, length: 0 }, &mut bytes[14..]).ok()?;
    let mut p = Packet::from_bytes(&bytes)?;
    p.set_network_header(14);
    p.set_transport_header(34);
    p.set_dst_ip([10, 0, 0, host]);
    Some(p)
}

/// Makes a packet that has been through the element what it was before: its length, paint and TTL. Its checksum
/// may become wrong, which the elements that change the TTL do not look at.
fn restore(p: &mut Packet, pushes: isize) -> Option<()> {
    match usize::try_from(pushes) {
        Ok(n) => p.pull(n).ok()?,
        Err(_) => drop(p.push(pushes.unsigned_abs()).ok()?),
    }
    p.set_paint(0);
    *p.data_mut().get_mut(22)? = TTL;
    Some(())
}

/// Nanoseconds a packet, with what the bench itself takes.
fn measure(case: &Case) -> Option<f64> {
    let library = causeway_elements::library();
    let mut h = Harness::new(library.get(case.class)?, case.config, case.ports.0, case.ports.1).ok()?;
    for (handler, value) in case.handlers {
        h.write(handler, value).ok()?;
    }
    let mut packets: Vec<Packet> =
        case.packets.iter().cycle().take(BATCH).copied().filter_map(packet).collect();
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            h.push_all(0, packets.drain(..));
            for port in 0..case.ports.1 {
                packets.extend(h.take(port));
            }
            for p in &mut packets {
                restore(p, case.pushes)?;
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (ROUNDS * BATCH) as f64);
    }
    (packets.len() == BATCH).then_some(best)
}

fn main() {
    for case in CASES {
        // The same traffic, ports and trimming around an element that does nothing.
        let idle = measure(&Case { packets: case.packets, ..NULL });
        match measure(case).zip(idle) {
            Some((ns, null)) => println!("{:16} {:6.2} ns/packet  ({})", case.class, ns - null, case.config),
            None => println!("{:16} failed  ({})", case.class, case.config),
        }
    }
}
