//! Frames for chains under test: ordinary ones, and all that a chain treats otherwise.

use super::ends::Given;
use crate::ip::corpus;
use causeway_packet::PacketType;
use causeway_packet::wire::ipv4::Ipv4;
use proptest::prelude::*;
use proptest::sample::select;

/// The router's own addresses are 10.0.0.1 and 10.1.0.1, its networks 10.0/16 and 10.1/16.
const SOURCES: &[[u8; 4]] =
    &[[10, 0, 0, 2], [10, 0, 0, 3], [10, 1, 0, 2], [10, 0, 255, 255], [0; 4], [255; 4], [7, 7, 7, 7]];
const DESTINATIONS: &[[u8; 4]] = &[
    [10, 0, 0, 1],
    [10, 0, 0, 2],
    [10, 1, 0, 2],
    [10, 1, 0, 3],
    [99, 1, 2, 3],
    [8, 8, 8, 8],
    [224, 0, 0, 5],
    [255; 4],
    [0; 4],
];

/// `usual` for most frames where little is odd, else one of the `odd` ones.
fn seldom<T: Clone + std::fmt::Debug + 'static>(
    odd: f64,
    usual: impl Strategy<Value = T> + 'static,
    other: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    let (usual, other) = (usual.boxed(), other.boxed());
    prop::bool::weighted(odd)
        .prop_flat_map(move |odd| if odd { other.clone() } else { usual.clone() })
        .boxed()
}

/// A datagram with a right checksum.
fn datagram(odd: f64) -> impl Strategy<Value = Vec<u8>> {
    let options = seldom(odd, Just(Vec::new()), corpus::options());
    let payload = seldom(odd, 0usize..90, 0usize..700);
    let word = seldom(odd, select(vec![0u16, 0x4000]), prop_oneof![Just(0x2000), any::<u16>()]);
    let ttl = seldom(odd, Just(64u8), 0u8..3);
    let networks = select(vec![[10, 0], [10, 0], [10, 1], [10, 1], [224, 0]]);
    let hosts = (networks, any::<u8>(), 2u8..6);
    let hosts = hosts.prop_map(|([a, b], host, near)| ([10, 0, 0, near], [a, b, 0, host]));
    let addresses = seldom(2.0 * odd, hosts, (select(SOURCES), select(DESTINATIONS)));
    let icmp = prop::option::weighted(odd, select(vec![0u8, 3, 8, 11]));
    (options, payload, word, ttl, addresses, icmp).prop_map(|(options, len, word, ttl, (src, dst), icmp)| {
        let mut payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        if let (Some(kind), Some(first)) = (icmp, payload.first_mut()) {
            *first = kind;
        }
        let mut bytes = corpus::datagram(&options, &payload, ttl, word);
        bytes[9] = if icmp.is_some() { 1 } else { 17 };
        bytes[12..16].copy_from_slice(&src);
        bytes[16..20].copy_from_slice(&dst);
        Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
        bytes
    })
}

/// What lies in front of the datagram: mostly an Ethernet header.
fn link(odd: f64) -> impl Strategy<Value = Vec<u8>> {
    let ethernet = |ether_type: [u8; 2]| [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9][..], &ether_type].concat();
    let other = select(vec![[8, 6], [0x86, 0xdd], [0x81, 0], [8, 1], [9, 0]]);
    let other =
        prop_oneof![other.prop_map(ethernet), Just(Vec::new()), Just(vec![0x45; 4]), Just(vec![0; 10]),];
    seldom(odd, Just(ethernet([8, 0])), other)
}

/// A byte that is changed, or where the frame is cut.
type Spoil = Option<(prop::sample::Index, u8, bool)>;

fn spoil(odd: f64) -> impl Strategy<Value = Spoil> {
    prop::option::weighted(odd, (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()))
}

fn spoilt(mut bytes: Vec<u8>, spoil: Spoil) -> Vec<u8> {
    if let Some((at, value, cut)) = spoil
        && !bytes.is_empty()
    {
        // Most of what matters is in the first bytes.
        let at = at.index(bytes.len().min(54));
        bytes[at] = value;
        if cut {
            bytes.truncate(at);
        }
    }
    bytes
}

/// One frame, of which each part is odd with that probability.
fn given(odd: f64) -> impl Strategy<Value = Given> {
    let other = select(vec![PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost]);
    let types = seldom(odd, Just(PacketType::Host), other);
    let notes = (types, seldom(odd, Just(0), 0u8..4), prop::bool::weighted(odd / 2.0), select(vec![0u32, 5]));
    (link(odd), datagram(odd), 0usize..3, spoil(odd), notes).prop_map(|(link, ip, pad, spoil, notes)| {
        let bytes = spoilt([link, ip, vec![0; pad * 9]].concat(), spoil);
        let (packet_type, paint, fix_source, adjacency) = notes;
        Given { bytes, packet_type, paint, fix_source, adjacency }
    })
}

/// What comes in one batch: mostly ordinary frames, or mostly odd ones.
pub(super) fn round() -> impl Strategy<Value = Vec<Given>> {
    select(vec![0.001, 0.02, 0.15]).prop_flat_map(|odd| prop::collection::vec(given(odd), 0..40))
}
