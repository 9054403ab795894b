//! The combined elements against the chains of single ones that they stand for: byte for byte, output for output.

use super::*;
use crate::{annotations, basic, ethernet};
use causeway_engine::harness::Harness;
use causeway_packet::{Anno, Packet, PacketType};
use proptest::prelude::*;

/// What is compared of a packet.
#[derive(Debug, PartialEq)]
struct Seen {
    bytes: Vec<u8>,
    headers: (Option<usize>, Option<usize>),
    annotations: [u8; 20],
}

fn seen(packet: &Packet) -> Seen {
    Seen {
        bytes: packet.data().to_vec(),
        headers: (packet.network_offset(), packet.transport_offset()),
        annotations: packet.anno_bytes(Anno::DST_IP.offset),
    }
}

fn all_seen(packets: &[Packet]) -> Vec<Seen> {
    packets.iter().map(seen).collect()
}

fn element(specs: &[&'static Spec], name: &str, config: &str, outputs: usize) -> Harness {
    let spec = specs.iter().find(|s| s.name == name).unwrap();
    Harness::new(spec, config, 1, outputs).unwrap()
}

/// Sends one packet through a chain, and gives what came out of the end, and of output 1 of each element.
fn through(chain: &mut [Harness], packet: Packet) -> (Vec<Packet>, Vec<Vec<Seen>>) {
    let mut packets = vec![packet];
    let mut side = Vec::new();
    for element in chain {
        element.push_all(0, packets);
        packets = element.take(0);
        side.push(all_seen(&element.take(1)));
    }
    (packets, side)
}

fn input_chain(color: &str, sources: &str) -> Vec<Harness> {
    vec![
        element(annotations::SPECS, "Paint", color, 1),
        element(basic::SPECS, "Strip", "14", 1),
        element(SPECS, "CheckIPHeader", sources, 1),
        element(SPECS, "GetIPAddress", "16", 1),
    ]
}

fn output_chain(color: &str, address: &str, mtu: &str) -> Vec<Harness> {
    vec![
        element(ethernet::SPECS, "DropBroadcasts", "", 1),
        element(annotations::SPECS, "PaintTee", color, 2),
        element(SPECS, "IPGWOptions", address, 2),
        element(SPECS, "FixIPSrc", address, 1),
        element(SPECS, "DecIPTTL", "", 2),
        element(SPECS, "IPFragmenter", mtu, 2),
    ]
}

const TYPES: &[PacketType] =
    &[PacketType::Host, PacketType::Host, PacketType::Host, PacketType::Broadcast, PacketType::Multicast];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn combos_do_what_their_chains_do(
        bytes in corpus::frame(14), kind in prop::sample::select(TYPES), color in 1u8..3, fix in any::<bool>(), mtu in 68u32..1_200,
        own in any::<bool>(),
    ) {
        let sources = if own { "INTERFACES 10.0.0.1/32 9.0.0.1/8" } else { "BADSRC 10.0.0.1" };
        let fresh = || {
            let mut p = Packet::from_bytes(&bytes).unwrap();
            p.set_packet_type(kind);
            p.set_anno_u8(Anno::FIX_IP_SRC.offset, fix as u8);
            p
        };
        let (mut singles, _) = through(&mut input_chain("2", sources), fresh());
        let mut combo = element(SPECS, "IPInputCombo", &format!("2, {sources}"), 1);
        combo.push(0, fresh());
        combo.assert_balanced();
        let mut combined = combo.take(0);
        prop_assert_eq!(all_seen(&combined), all_seen(&singles));
        let (Some(single), Some(combined)) = (singles.pop(), combined.pop()) else { return Ok(()) };

        let (color, mtu) = (color.to_string(), mtu.to_string());
        let (out, side) = through(&mut output_chain(&color, "1.2.3.4", &mtu), single);
        let mut combo = element(SPECS, "IPOutputCombo", &format!("{color}, 1.2.3.4, {mtu}"), 5);
        let mut fragmenter = element(SPECS, "IPFragmenter", &mtu, 2);
        combo.push(0, combined);
        fragmenter.push_all(0, combo.take(4));
        let mut leaving = combo.take(0);
        leaving.extend(fragmenter.take(0));
        prop_assert_eq!(all_seen(&leaving), all_seen(&out));
        for (port, at) in [(1, 1), (2, 2), (3, 4)] {
            prop_assert_eq!(&all_seen(&combo.take(port)), &side[at], "output {}", port);
        }
        prop_assert_eq!(&all_seen(&fragmenter.take(1)), &side[5]);
    }
}
