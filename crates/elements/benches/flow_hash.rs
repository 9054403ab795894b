//! Nanoseconds that the hash of a flow takes: `cargo bench -p causeway-elements --bench flow_hash`.
//!
//! UDP packets of many flows, one after another, their headers in the caches.

use causeway_elements::kernel::{FlowHash, FlowPolicy};
use std::hint::black_box;
use std::time::Instant;

const FLOWS: usize = 1024;
/// Measurements, of which the fastest counts.
const REPEATS: usize = 2_000;

fn packet(flow: usize, header: &[u8], source: usize) -> Vec<u8> {
    let mut packet = [header, &[0, 9, 0, 53, 0, 8, 0, 0]].concat();
    packet[source..source + 2].copy_from_slice(&(flow as u16).to_be_bytes());
    packet
}

fn measure(packets: &[Vec<u8>], hash: impl Fn(&[u8]) -> Option<u32>) -> f64 {
    let round = || {
        let start = Instant::now();
        for packet in packets {
            black_box(hash(black_box(packet)));
        }
        start.elapsed().as_nanos() as f64 / packets.len() as f64
    };
    (0..REPEATS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let v4 = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2];
    let mut v6 = [0; 40];
    v6[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 8, 17, 64]);
    let v4: Vec<_> = (0..FLOWS).map(|flow| packet(flow, &v4, 14)).collect();
    let v6: Vec<_> = (0..FLOWS).map(|flow| packet(flow, &v6, 20)).collect();
    for (number, name) in ["L3", "L4", "inner", "custom"].into_iter().enumerate() {
        let Some(policy) = FlowPolicy::new(number as u8, 0x37) else { continue };
        for (key, seed) in [("no seed", 0), ("seed", 1)] {
            let hash = FlowHash::new(policy, seed);
            let (v4, v6) = (measure(&v4, |p| hash.v4(p)), measure(&v6, |p| hash.v6(p)));
            println!("{name:8} {key:8} IPv4 {v4:5.1} ns, IPv6 {v6:5.1} ns");
        }
    }
}
