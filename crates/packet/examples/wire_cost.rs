//! What a view and a checksum cost, beside the simple way to do the same.
//!
//! `cargo run --release -p causeway-packet --example wire_cost`
//!
//! Each line is the best of 101 runs, in nanoseconds for one packet: what else runs on the machine only adds.
//! A ring of 8 packets is visited, so that they are in the cache, as they are right after reception.

use causeway_packet::checksum;
use causeway_packet::wire::{Ipv4, Ipv4Header, Ipv6, Ipv6Header};
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

const PACKETS: usize = 8;
const ROUNDS: usize = 1600;
const RUNS: usize = 101;

/// RFC 1071 to the letter: a 16-bit word at a time.
fn naive_checksum(data: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in data.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// Nanoseconds of `work` on one packet, at best.
fn time_ns(packets: &mut [Vec<u8>], mut work: impl FnMut(&mut [u8])) -> f64 {
    let mut run = || {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for packet in packets.iter_mut() {
                work(black_box(packet.as_mut_slice()));
            }
        }
        start.elapsed().as_nanos() as f64 / (ROUNDS * PACKETS) as f64
    };
    (0..RUNS).map(|_| run()).fold(f64::MAX, f64::min)
}

fn report(what: &str, ours_ns: f64, simple_ns: f64) {
    println!("{what:<44} {ours_ns:>9.2} {simple_ns:>9.2} {:>8.1}", simple_ns / ours_ns);
}

fn ipv4_packets(len: usize) -> Vec<Vec<u8>> {
    let header = |i: usize| Ipv4Header {
        tos: 0,
        total_len: len as u16,
        identification: i as u16,
        flags_fragment: 0,
        ttl: 255,
        protocol: 17,
        src: Ipv4Addr::new(10, 0, 0, i as u8),
        dst: Ipv4Addr::new(10, 1, i as u8, 1),
    };
    let packet = |i| {
        let mut packet: Vec<u8> = (0..len).map(|byte| (byte * 31 + i) as u8).collect();
        if let Some(out) = packet.first_chunk_mut() {
            header(i).emit(out);
        }
        packet
    };
    (0..PACKETS).map(packet).collect()
}

fn ipv6_packets() -> Vec<Vec<u8>> {
    let packet = |i: usize| {
        let (src, dst) = (Ipv6Addr::from(i as u128), Ipv6Addr::LOCALHOST);
        let mut packet = vec![0; 60];
        let header = Ipv6Header {
            traffic_class: 0,
            flow_label: 0,
            payload_len: 20,
            next_header: 17,
            hop_limit: 64,
            src,
            dst,
        };
        if let Some(out) = packet.first_chunk_mut() {
            header.emit(out);
        }
        packet
    };
    (0..PACKETS).map(packet).collect()
}

fn main() {
    println!("{:<44} {:>9} {:>9} {:>8}", "ns a packet, one core", "ours", "simple", "ratio");
    for len in [8, 20, 64, 256, 576, 1500, 9000] {
        let mut packets = ipv4_packets(len.max(20));
        let ours = time_ns(&mut packets, |packet| {
            black_box(checksum::checksum(&packet[..len]));
        });
        let simple = time_ns(&mut packets, |packet| {
            black_box(naive_checksum(&packet[..len]));
        });
        report(&format!("checksum of {len} bytes"), ours, simple);
    }

    let mut packets = ipv4_packets(60);
    let ours = time_ns(&mut packets, |packet| {
        let ip = Ipv4::new_checked(packet);
        black_box(ip.is_ok_and(|ip| ip.checksum_ok()));
    });
    let simple = time_ns(&mut packets, |packet| {
        let header_len = usize::from(packet[0] & 15) * 4;
        let total_len = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let ok = packet.len() >= 20
            && packet[0] >> 4 == 4
            && header_len >= 20
            && total_len >= header_len
            && total_len <= packet.len();
        black_box(ok && naive_checksum(&packet[..header_len]) == 0);
    });
    report("IPv4: check all, checksum included", ours, simple);

    let ours = time_ns(&mut packets, |packet| {
        if let Ok(mut ip) = Ipv4::new_checked(packet) {
            ip.set_ttl(64);
            ip.decrement_ttl();
        }
    });
    let simple = time_ns(&mut packets, |packet| {
        if Ipv4::new_checked(&packet[..]).is_ok() {
            packet[8] = 63;
            packet[10..12].fill(0);
            let sum = naive_checksum(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    });
    report("IPv4: decrement TTL, update (or recompute)", ours, simple);

    let mut packets = ipv6_packets();
    let ours = time_ns(&mut packets, |packet| {
        let upper_layer = Ipv6::new_checked(packet).and_then(|ip| ip.upper_layer());
        black_box(upper_layer.is_ok());
    });
    let simple = time_ns(&mut packets, |packet| {
        let payload_len = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        black_box(packet.len() >= 40 && packet[0] >> 4 == 6 && 40 + payload_len <= packet.len());
    });
    report("IPv6: check, find upper layer (or check)", ours, simple);
}
