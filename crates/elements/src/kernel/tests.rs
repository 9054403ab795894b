//! The lookups and the rewrite on tables made by hand.

use super::*;
use causeway_engine::Persistent;
use causeway_engine::harness::{Harness, Output, Ports};
use causeway_fib::{Adjacencies, Fib4, Fib6, Table};
use causeway_packet::Packet;
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;

/// Tables with ports `a` and `b`.
struct Tables {
    v4: Fib4,
    v6: Fib6,
    neighbors: Adjacencies<Neighbor>,
    forwarding: Arc<Forwarding>,
    serial: u32,
}

impl Tables {
    fn new() -> Tables {
        let (v4, v6, neighbors) = (Fib4::new(), Fib6::new(), Adjacencies::new());
        let forwarding = Arc::new(Forwarding::new(vec!["a".into(), "b".into()], &v4, &v6, &neighbors));
        forwarding.trust(true);
        Tables { v4, v6, neighbors, forwarding, serial: 0 }
    }

    fn neighbor(&mut self, port: u16, mac: u8) -> u32 {
        self.serial += 1;
        let hop = Neighbor { port, mtu_bytes: 100, addresses: [mac; 12], serial: self.serial };
        self.neighbors.acquire(hop).unwrap()
    }

    fn harness(&self, spec: &'static Spec, config: &str, outputs: usize) -> Harness {
        let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pushed; outputs] };
        let values = Persistent::default();
        values.lock().unwrap().insert(FORWARDING.to_owned(), self.forwarding.clone());
        Harness::with_values(spec, config, &ports, values).unwrap()
    }
}

/// A UDP packet behind an Ethernet header, its IPv4 header marked.
fn udp4(to: [u8; 4], port: u16, len: usize) -> Packet {
    let mut bytes = vec![0xee; 14 + len.max(28)];
    bytes[14..34]
        .copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 1, to[0], to[1], to[2], to[3]]);
    bytes[16..18].copy_from_slice(&(len as u16).to_be_bytes());
    bytes[36..38].copy_from_slice(&port.to_be_bytes());
    let mut p = Packet::from_bytes(&bytes).unwrap();
    p.set_network_header(14);
    p.set_transport_header(34);
    p
}

#[test]
fn packets_leave_by_their_routes_interface_and_all_else_goes_to_the_kernel() {
    let mut t = Tables::new();
    let (a, b, kernel) = (t.neighbor(0, 0xa), t.neighbor(1, 0xb), t.neighbor(KERNEL, 0));
    t.v4.insert("10.1.0.0/16".parse().unwrap(), a).unwrap();
    t.v4.insert("10.2.0.0/16".parse().unwrap(), b).unwrap();
    t.v4.insert("10.2.3.0/24".parse().unwrap(), kernel).unwrap();
    // The order of the outputs is that of the arguments, not of the tables' ports.
    let mut h = t.harness(&lookup::SPEC, "b, a", 3);
    h.push_all(
        0,
        [
            udp4([10, 1, 0, 9], 1, 28),
            udp4([10, 2, 0, 9], 1, 28),
            udp4([10, 2, 3, 9], 1, 28),
            udp4([11, 0, 0, 9], 1, 28),
            udp4([10, 1, 0, 9], 1, 101),
            udp4([10, 1, 0, 9], 1, 100),
        ],
    );
    assert_eq!((h.take(0).len(), h.take(1).len()), (1, 2));
    let left = h.take(2);
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|p| p.data()[..14] == [0xee; 14] && p.data()[22] == 9), "unchanged");
    assert_eq!(h.read("punts").unwrap(), "no-route 1\nkernel 1\ntoo-long 1\nout-of-date 0\nno-header 0\n");
    assert_eq!(h.read_with("lookup", "10.1.0.1").unwrap(), "a 0a:0a:0a:0a:0a:0a");
    assert_eq!(h.read_with("lookup", "10.2.3.4").unwrap(), "kernel");
    h.assert_balanced();
    t.forwarding.trust(false);
    h.push(0, udp4([10, 1, 0, 9], 1, 28));
    assert_eq!((h.take(1).len(), h.take(2).len()), (0, 1), "tables out of date");
}

#[test]
fn an_interface_that_is_not_named_is_the_kernels() {
    let mut t = Tables::new();
    let b = t.neighbor(1, 0xb);
    t.v4.insert("10.2.0.0/16".parse().unwrap(), b).unwrap();
    let mut h = t.harness(&lookup::SPEC, "a", 2);
    h.push(0, udp4([10, 2, 0, 9], 1, 28));
    assert_eq!((h.take(0).len(), h.take(1).len()), (0, 1));
}

#[test]
fn a_flow_keeps_its_way_and_an_unresolved_way_is_the_kernels() {
    let mut t = Tables::new();
    let (a, b, unresolved) = (t.neighbor(0, 0xa), t.neighbor(1, 0xb), t.neighbor(KERNEL, 0));
    let group = t.neighbors.group(&[(a, 1), (b, 1), (unresolved, 1)]).unwrap();
    t.v4.insert("0.0.0.0/0".parse().unwrap(), group).unwrap();
    let mut h = t.harness(&lookup::SPEC, "a, b", 3);
    let mut rewrite = t.harness(&neighbor_rewrite::SPEC, "a", 2);
    let mut used = HashSet::new();
    for port in 0..60 {
        let outputs: Vec<usize> = (0..2)
            .filter_map(|_| {
                h.push(0, udp4([10, 0, 0, 2], port, 28));
                let at = (0..3).find_map(|output| Some((output, h.take(output).pop()?)));
                let (output, packet) = at?;
                if output == 0 {
                    rewrite.push(0, packet);
                    assert_eq!(
                        rewrite.take(0)[0].data()[..13],
                        [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0xee]
                    );
                }
                Some(output)
            })
            .collect();
        assert_eq!(outputs[0], outputs[1]);
        used.insert(outputs[0]);
    }
    assert_eq!(used.len(), 3, "flows spread over all ways");
}

#[test]
fn ipv6_destinations_are_looked_up_in_their_own_table() {
    let mut t = Tables::new();
    let a = t.neighbor(0, 0xa);
    t.v6.insert("2001:db8::/32".parse().unwrap(), a).unwrap();
    let mut h = t.harness(&lookup::SPEC6, "a, b", 3);
    let packet = |second: u8| {
        let mut bytes = vec![0; 14 + 40];
        bytes[14] = 0x60;
        bytes[38..42].copy_from_slice(&[0x20, 1, 0x0d, second]);
        let mut p = Packet::from_bytes(&bytes).unwrap();
        p.set_network_header(14);
        p
    };
    h.push_all(0, [packet(0xb8), packet(0xb9)]);
    assert_eq!((h.take(0).len(), h.take(1).len(), h.take(2).len()), (1, 0, 1));
}

#[test]
fn a_neighbor_that_is_gone_is_not_written() {
    let mut t = Tables::new();
    let (a, b) = (t.neighbor(0, 0xa), t.neighbor(1, 0xb));
    t.v4.insert("10.0.0.0/8".parse().unwrap(), a).unwrap();
    let mut lookup = t.harness(&lookup::SPEC, "a, b", 3);
    lookup.push_all(0, (0..3).map(|_| udp4([10, 0, 0, 2], 1, 28)));
    let mut packets = lookup.take(0);
    let mut h = t.harness(&neighbor_rewrite::SPEC, "a", 2);
    h.push(0, packets.pop().unwrap());
    assert_eq!(h.take(0).len(), 1);
    t.neighbors
        .set_next_hop(a, Neighbor { port: 1, mtu_bytes: 100, addresses: [7; 12], serial: 99 })
        .unwrap();
    h.push(0, packets.pop().unwrap());
    t.neighbors.release(a).unwrap();
    h.push(0, packets.pop().unwrap());
    let gone = h.take(1);
    assert!(gone.len() == 2 && gone.iter().all(|p| p.data()[..12] == [0xee; 12]), "{gone:?}");
    let _ = b;
}

#[test]
fn without_tables_everything_is_the_kernels() {
    let mut h = Harness::new(&lookup::SPEC, "a", 1, 2).unwrap();
    assert!(h.warnings()[0].contains("causeway up"), "{:?}", h.warnings());
    h.push(0, udp4([10, 2, 0, 9], 1, 28));
    assert_eq!((h.take(0).len(), h.take(1).len()), (0, 1));
}

#[test]
fn bad_configurations_are_named() {
    let t = Tables::new();
    let values = Persistent::default();
    values.lock().unwrap().insert(FORWARDING.to_owned(), t.forwarding.clone());
    let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pushed; 2] };
    let errors =
        |config: &str| Harness::with_values(&lookup::SPEC, config, &ports, values.clone()).err().unwrap();
    assert!(errors("c")[0].contains("followed for a, b, not for 'c'"));
    assert!(errors("a, b")[0].contains("2 interfaces need 3 outputs"));
}

proptest! {
    #[test]
    fn any_bytes_leave_by_some_output(bytes in prop::collection::vec(any::<u8>(), 0..80), at in 0usize..60) {
        let mut t = Tables::new();
        let (a, b) = (t.neighbor(0, 0xa), t.neighbor(1, 0xb));
        // The way carries any length here, so what is left to the kernel has no header.
        t.v4.insert("0.0.0.0/0".parse().unwrap(), a).unwrap();
        t.v6.insert("::/0".parse().unwrap(), a).unwrap();
        for spec in [&lookup::SPEC, &lookup::SPEC6] {
            let mut h = t.harness(spec, "a, b", 3);
            let mut packet = Packet::from_bytes(&bytes).unwrap();
            packet.set_network_header(at);
            packet.set_transport_header(at + 20);
            h.push(0, packet);
            let header = if spec.name == "KernelIPLookup" { 20 } else { 40 };
            prop_assert_eq!(h.take(2).len(), usize::from(bytes.len() < at + header));
            h.assert_balanced();
        }
        // Of a group, what has no flow that can be told is left too; nothing is lost.
        let group = t.neighbors.group(&[(a, 1), (b, 1)]).unwrap();
        t.v4.replace("0.0.0.0/0".parse().unwrap(), group).unwrap();
        let mut h = t.harness(&lookup::SPEC, "a, b", 3);
        let mut packet = Packet::from_bytes(&bytes).unwrap();
        packet.set_network_header(at);
        h.push(0, packet);
        prop_assert_eq!((0..3).map(|output| h.take(output).len()).sum::<usize>(), 1);
        h.assert_balanced();
    }
}
