//! IPv4 packets for tests: good ones, ones with all kinds of options, and spoilt ones.

use causeway_packet::Packet;
use causeway_packet::wire::ipv4::Ipv4;
use proptest::prelude::*;

/// A datagram with `options`, padded to whole words, from 10.0.0.1 to 10.9.0.2, with a right checksum.
pub(crate) fn datagram(options: &[u8], payload: &[u8], ttl: u8, word: u16) -> Vec<u8> {
    let header_len = 20 + options.len().next_multiple_of(4);
    let mut bytes =
        vec![0x40 | (header_len / 4) as u8, 0, 0, 0, 7, 7, 0, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 9, 0, 2];
    bytes.extend(options);
    bytes.resize(header_len, 0);
    bytes.extend(payload);
    let total_len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
    bytes[6..8].copy_from_slice(&word.to_be_bytes());
    Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
    bytes
}

/// A packet of `bytes` whose network header is marked `at` bytes in, and its transport header behind that.
pub(crate) fn marked(bytes: &[u8], at: usize) -> Packet {
    let mut packet = Packet::from_bytes(bytes).unwrap();
    packet.set_network_header(at);
    packet.set_transport_header(at + bytes.get(at).map_or(0, |first| (first & 15) as usize * 4));
    packet
}

/// One option, usually well-formed.
fn option() -> impl Strategy<Value = Vec<u8>> {
    let body = |kind: u8, fixed: Vec<u8>, slots: usize| {
        let len = 2 + fixed.len() + slots * 4;
        [vec![kind, len as u8], fixed, vec![9; slots * 4]].concat()
    };
    let route = (prop::sample::select(vec![7u8, 131, 137]), 0usize..4, 0u8..4);
    let stamp = (0usize..4, 0u8..4, prop::sample::select(vec![0u8, 0xf0, 1, 0xf1, 3, 2]));
    prop_oneof![
        route.prop_map(move |(kind, slots, at)| body(kind, vec![4 + at * 4], slots)),
        stamp.prop_map(move |(slots, at, flag)| body(68, vec![5 + at * 4, flag], slots)),
        Just(vec![1]),
        Just(vec![148, 4, 0, 0]),
        (any::<u8>(), 0usize..2).prop_map(move |(kind, words)| body(kind, Vec::new(), words)),
        prop::collection::vec(any::<u8>(), 1..6),
    ]
}

/// The options of one header, 40 bytes at most.
pub(crate) fn options() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(option(), 0..4).prop_map(|list| {
        let mut options = list.concat();
        options.truncate(40);
        options
    })
}

/// Most of the time a datagram, behind `link_len` bytes of link-level header, with or without padding; at times
/// with a byte spoilt or cut short; at times any bytes.
pub(crate) fn frame(link_len: usize) -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![Just(0u16), Just(0x4000), Just(0x2000), 0u16..0x2000, any::<u16>()];
    let ttls = prop::sample::select(vec![0u8, 1, 2, 64, 255]);
    let payload = prop_oneof![0usize..100, 0usize..1_000];
    let spoil = prop_oneof![4 => Just(None), 1 => (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()).prop_map(Some)];
    let good = (options(), payload, ttls, words, 0usize..3, spoil).prop_map(
        move |(options, len, ttl, word, pad, spoil)| {
            let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let mut bytes =
                [vec![0xee; link_len], datagram(&options, &payload, ttl, word), vec![0; pad * 9]].concat();
            if let Some((at, value, cut)) = spoil {
                // Most of what matters is in the first bytes.
                let at = at.index(bytes.len().min(link_len + 64));
                bytes[at] = value;
                if cut {
                    bytes.truncate(at);
                }
            }
            bytes
        },
    );
    prop_oneof![9 => good, 1 => prop::collection::vec(any::<u8>(), 0..90)]
}
