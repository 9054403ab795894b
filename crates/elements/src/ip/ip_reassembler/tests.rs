use super::*;
use crate::ip::corpus;
use causeway_engine::harness::{Harness, Output, Ports, packet};
use proptest::prelude::*;

const SECOND_NS: u64 = 1_000_000_000;

/// Bytes `from..to` of a payload that counts up, as a fragment of packet `id`, behind 14 bytes of link-layer header.
fn fragment(id: u16, from: usize, to: usize, more: bool) -> Packet {
    let payload: Vec<u8> = (from..to).map(|i| i as u8).collect();
    let word = (from / 8) as u16 | if more { 0x2000 } else { 0 };
    let mut bytes = corpus::datagram(&[], &payload, 9, word);
    bytes[4..6].copy_from_slice(&id.to_be_bytes());
    let mut ip = Ipv4::new_checked(&mut bytes[..]).unwrap();
    ip.fill_checksum();
    let mut p = packet(&[&[from as u8; 14][..], &bytes].concat());
    p.set_mac_header(0);
    p.set_network_headers(14, 20);
    p.set_timestamp_ns(SECOND_NS);
    p
}

/// Whether the packet is whole and right, with the link-layer header of the first fragment.
fn assert_whole(p: &Packet, len: usize) {
    let ip = Ipv4::new_checked(p.network_header().unwrap()).unwrap();
    assert!(ip.checksum_ok() && !ip.is_fragment());
    assert_eq!((ip.total_len() as usize, p.len(), p.transport_offset()), (20 + len, 34 + len, Some(34)));
    assert_eq!((&p.data()[..14], p.mac_distance()), (&[0; 14][..], Some(0)));
    assert!(ip.payload().iter().enumerate().all(|(i, &b)| b == i as u8), "{:?}", ip.payload());
}

fn harness(config: &str) -> Harness {
    Harness::new(&SPEC, config, 1, 2).unwrap()
}

#[test]
fn packets_become_whole_in_any_order() {
    let pieces = [(0, 16, true), (16, 32, true), (32, 37, false)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut h = harness("MAX_MTU_ANNO 20");
        for (n, i) in order.into_iter().enumerate() {
            assert_eq!(h.held(), usize::from(n > 0));
            let (from, to, more) = pieces[i];
            h.push(0, fragment(7, from, to, more));
        }
        let out = h.take(0);
        assert_whole(&out[0], 37);
        assert_eq!((out.len(), u16::from_ne_bytes(out[0].anno_bytes(20))), (1, 36), "{order:?}");
        // Two fragments are in the packet that leaves, whichever it began with.
        assert_eq!(h.held(), 0);
        assert_eq!(h.drops().iter().map(|d| d.1).sum::<u64>(), 2, "{order:?}");
        h.assert_balanced();
    }
}

#[test]
fn others_pass_and_bad_ones_do_not() {
    let mut h = harness("");
    h.push(0, fragment(1, 0, 40, false));
    assert_eq!(h.take(0).len(), 1);
    h.push(0, packet(b"unmarked"));
    h.push(0, fragment(2, 0, 13, true));
    let mut cut = fragment(2, 0, 16, true);
    cut.truncate(40);
    h.push(0, cut);
    h.push(0, fragment(3, 0xfff8 - 8, 0xfff8 + 100, false));
    h.push(0, fragment(3, 8, 8, true));
    assert_eq!(h.drops(), [("no-header", 1), ("bad-fragment", 4)]);
    h.push(0, fragment(4, 0, 8, false));
    h.push(0, fragment(5, 16, 24, false));
    h.push(0, fragment(5, 32, 40, true));
    h.push(0, fragment(6, 4_000, 4_008, true));
    assert_eq!(h.drops()[2..], [("beyond", 1), ("too-long", 1)]);
    let dump = h.read("dump").unwrap();
    assert_eq!(
        dump,
        "frags seen total:    7\ngood reassemblies:   0\nfailed reassemblies: 0\nbad fragments seen:  4\n\
         cached chunk data:\n (10.0.0.1, 0, 10.9.0.2, 0) 5 (16,24)\n"
    );
    h.assert_balanced();
}

#[test]
fn what_is_not_whole_in_time_is_given_up() {
    for connected in [true, false] {
        let second = if connected { Output::Pushed } else { Output::Open };
        let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pushed, second] };
        let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
        h.push(0, fragment(7, 8, 16, true));
        h.push(0, fragment(8, 0, 16, true));
        h.advance(29 * SECOND_NS);
        assert_eq!(h.held(), 2);
        h.advance(20 * SECOND_NS);
        assert_eq!(h.held(), 0);
        let out = h.take(1);
        assert_eq!(out.len(), if connected { 2 } else { 0 });
        assert_eq!(h.drops().contains(&("timeout", 2)), !connected);
        if connected {
            assert_eq!(out[0].data()[20..36], [0, 0, 0, 0, 0, 0, 0, 0, 8, 9, 10, 11, 12, 13, 14, 15]);
        }
        h.assert_balanced();
    }
    // By the time of the packets themselves as well: they may come out of a file.
    let mut h = harness("");
    h.push(0, fragment(7, 8, 16, true));
    let mut later = fragment(8, 8, 16, true);
    later.set_timestamp_ns(32 * SECOND_NS);
    h.push(0, later);
    assert_eq!((h.take(1).len(), h.held()), (1, 1));
}

#[test]
fn many_that_are_over_are_given_up_a_few_at_a_time() {
    const MANY: u16 = 150;
    let begun = || {
        let mut h = harness("");
        (0..MANY).for_each(|id| h.push(0, fragment(id, 0, 16, true)));
        h
    };
    // By the timer, which looks 30 s after the first and then each 10 s.
    let mut h = begun();
    h.advance(35 * SECOND_NS);
    // All but those that came just when the timer was set.
    let held = h.held();
    assert!(held > 140);
    let left = [5 * SECOND_NS + SOON_NS / 2, SOON_NS, SOON_NS].map(|ns| {
        h.advance(ns);
        h.held()
    });
    assert_eq!((left, h.take(1).len()), ([held - 64, held - 128, 0], 150));
    // By the times of packets; one that is over does not become whole for all that it is still there.
    let mut h = begun();
    let mut last = fragment(MANY - 1, 16, 32, false);
    last.set_timestamp_ns(32 * SECOND_NS);
    h.push(0, last);
    assert_eq!((h.take(0).len(), h.take(1).len(), h.held()), (0, 65, 86));
    h.assert_balanced();
}

#[test]
fn fragments_of_another_protocol_belong_to_another_packet() {
    let mut h = harness("");
    h.push(0, fragment(7, 0, 16, true));
    let mut other = fragment(7, 16, 20, false);
    let mut ip = Ipv4::new_checked(other.network_header_mut().unwrap()).unwrap();
    ip.set_protocol(1);
    ip.fill_checksum();
    h.push(0, other);
    assert_eq!((h.take(0).len(), h.held()), (0, 2));
}

#[test]
fn memory_of_packets_that_are_whole_is_free_again() {
    let mut h = harness("HIMEM 1000");
    for id in 0..100 {
        h.push(0, fragment(id, 0, 160, true));
        h.push(0, fragment(id, 160, 320, false));
    }
    assert_eq!((h.take(0).len(), h.take(1).len(), h.held()), (100, 0, 0));
    // What is added counts as what was there first.
    for (from, to) in [(0, 160), (160, 800), (800, 1_120)] {
        h.push(0, fragment(200, from, to, true));
    }
    h.push(0, fragment(201, 0, 8, true));
    assert_eq!((h.take(1).len(), h.held()), (1, 1));
}

#[test]
fn when_memory_is_full_a_quarter_of_it_is_made_free() {
    let mut h = harness("HIMEM 1000");
    (0..7).for_each(|id| h.push(0, fragment(id, 0, 160, true)));
    // Five hold 1000 bytes and the sixth makes it too much: three are left, and the one that came.
    assert_eq!((h.take(1).len(), h.held()), (3, 4));
}

#[test]
fn memory_is_bounded() {
    let mut h = harness("HIMEM 1000");
    for id in 0..100 {
        h.push(0, fragment(id, 0, 160, true));
    }
    assert!(h.held() <= 6, "{}", h.held());
    let failed = h.take(1);
    let ids: Vec<u16> = failed.iter().map(|p| u16::from_be_bytes([p.data()[18], p.data()[19]])).collect();
    assert_eq!(ids, (0..ids.len() as u16).collect::<Vec<_>>(), "the oldest first");
    assert!(h.read("dump").unwrap().contains(&format!("failed reassemblies: {}\n", ids.len())));
    h.assert_balanced();
    let error = Harness::new(&SPEC, "MAX_MTU_ANNO DST_IP", 1, 1).err().unwrap();
    assert_eq!(error, ["MAX_MTU_ANNO: annotation has wrong size, expected 2 bytes"]);
}

proptest! {
    #[test]
    fn any_fragments_that_cover_a_packet_make_it(
        cuts in prop::collection::btree_set(1usize..60, 0..12),
        again in prop::collection::vec((0usize..60, 1usize..20), 0..12),
        seed: u64,
    ) {
        const LEN: usize = 483;
        let ends: Vec<usize> = cuts.into_iter().chain([61]).map(|b| (b * 8).min(LEN)).collect();
        let mut pieces: Vec<(usize, usize)> =
            ends.iter().scan(0, |from, &to| Some((std::mem::replace(from, to), to))).collect();
        pieces.extend(again.into_iter().map(|(from, n)| (from * 8, (from * 8 + n * 8).min(LEN))));
        fastrand::Rng::with_seed(seed).shuffle(&mut pieces);
        let mut h = harness("");
        for (from, to) in pieces {
            h.push(0, fragment(7, from, to, to < LEN));
        }
        let out = h.take(0);
        prop_assert!(!out.is_empty());
        out.iter().for_each(|p| assert_whole(p, LEN));
        h.assert_balanced();
    }
}
