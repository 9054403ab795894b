use super::*;
use causeway_engine::harness::{Harness, packet};
use causeway_engine::ir::Outcome;
use causeway_packet::wire::ndisc::{NeighborSolicitation, ROUTER, SOLICITED};
use proptest::prelude::*;

const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const SECOND_NS: u64 = 1_000_000_000;

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn harness(outputs: usize) -> Harness {
    Harness::new(&SPEC, "2001:db8::1, 2:0:0:0:0:1", 2, outputs).unwrap()
}

fn to(dst: &str, data: &[u8]) -> Packet {
    let mut p = packet(data);
    p.set_dst_ip6(address(dst).octets());
    p
}

fn advertisement(target: &str, mac: MacAddr, flags: u8) -> Packet {
    let says = NeighborMessage::Advertisement { target: address(target), mac, flags };
    frame((mac, address(target)), (OWN, address("2001:db8::1")), &says).unwrap()
}

#[test]
fn a_packet_waits_until_its_neighbour_has_answered() {
    let mut h = harness(2);
    h.push(0, to("2001:db8::ab:cdef", b"one"));
    let query = h.take(1).pop().unwrap();
    assert_eq!(query.data()[..14], [0x33, 0x33, 0xff, 0xab, 0xcd, 0xef, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]);
    let (src, dst, body) = message(query.data()).unwrap();
    assert_eq!((src, dst), (address("2001:db8::1"), address("ff02::1:ffab:cdef")));
    let asks = NeighborSolicitation::new_checked(body).unwrap();
    assert_eq!(asks.target(), address("2001:db8::ab:cdef"));
    assert_eq!(asks.options().next(), Some(Ok(NdOption::SourceLinkLayer(OWN))));
    assert_eq!((h.take(0).len(), h.read("length").unwrap()), (0, "1".to_owned()));
    // The newest counts.
    h.push(0, to("2001:db8::ab:cdef", b"two"));
    h.push(1, advertisement("2001:db8::ab:cdef", PEER, SOLICITED | OVERRIDE));
    let out = h.take(0);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].data(), [&PEER.0[..], &OWN.0, &[0x86, 0xdd], b"two"].concat());
    h.push(0, to("2001:db8::ab:cdef", b"three"));
    assert_eq!((h.take(0).len(), h.take(1).len()), (1, 0));
    assert_eq!(h.drops(), [("full", 1), ("advertisement", 1)]);
    let table = h.read("table").unwrap();
    assert_eq!(table, "2001:db8::ab:cdef 1 02-00-00-00-00-09\n");
    assert_eq!(h.read("stats").unwrap(), "1 packets killed\n1 ND Solicitation Message sent\n");
}

#[test]
fn what_it_says_it_does_it_does_for_neighbours_that_need_not_be_asked() {
    let mut h = harness(2);
    for target in ["2001:db8::2", "2001:db8::3"] {
        h.push(0, to(target, b"first"));
    }
    h.push(1, advertisement("2001:db8::2", PEER, SOLICITED | OVERRIDE));
    h.take(0);
    let run = |h: &Harness, target: &str, now_ns: u64| {
        let (mut program, mut packet) = (h.lower().expect("a program"), to(target, b"packet"));
        match program.run(&mut packet, now_ns) {
            Outcome::Leave(0) => Some((packet.data().to_vec(), packet.mac_distance())),
            other => {
                assert_eq!((other, packet.data()), (Outcome::GiveUp, &b"packet"[..]));
                None
            }
        }
    };
    let said = run(&h, "2001:db8::2", 0).expect("it is known");
    h.push(0, to("2001:db8::2", b"packet"));
    let sent = h.take(0).pop().expect("sent");
    assert_eq!(said, (sent.data().to_vec(), sent.mac_distance()));
    let entries = |now_ns| {
        let tables = h.lower().expect("a program").into_tables();
        tables[0].entries(now_ns).expect("few").into_iter().map(|(address, _)| address).collect::<Vec<_>>()
    };
    assert_eq!(entries(0), [[0x2001_0db8_0000_0000, 2]]);
    assert_eq!((run(&h, "2001:db8::3", 0), run(&h, "ff02::1:2", 0), run(&h, "::", 0)), (None, None, None));
    // It is to be asked again, which the element does.
    let later_ns = u64::MAX;
    assert_eq!((run(&h, "2001:db8::2", later_ns), entries(later_ns)), (None, vec![]));
}

#[test]
fn solicitations_leave_by_the_only_output_and_not_too_often() {
    let mut h = harness(1);
    for _ in 0..3 {
        h.push(0, to("2001:db8::2", b"x"));
    }
    assert_eq!(h.take(0).len(), 1);
    h.advance(SECOND_NS);
    h.push(0, to("2001:db8::2", b"x"));
    assert_eq!((h.take(0).len(), h.read("queries").unwrap()), (1, "2".to_owned()));
}

#[test]
fn groups_need_no_discovery_and_no_destination_is_none() {
    let mut h = harness(2);
    h.push(0, to("ff02::1:2", b"x"));
    assert_eq!(h.take(0)[0].data()[..6], [0x33, 0x33, 0, 1, 0, 2]);
    h.push(0, packet(b"x"));
    assert_eq!(h.drops(), [("no-destination", 1)]);
}

#[test]
fn only_what_was_asked_for_is_believed_and_only_an_override_changes_it() {
    let mut h = harness(2);
    h.push(1, advertisement("2001:db8::2", PEER, SOLICITED | OVERRIDE));
    assert_eq!((h.read("count").unwrap(), h.drops()), ("0".into(), vec![("not-an-advertisement", 1)]));
    h.push(0, to("2001:db8::2", b"x"));
    h.take(1);
    h.push(1, advertisement("2001:db8::2", PEER, ROUTER | SOLICITED));
    assert_eq!(h.take(0)[0].data()[..6], PEER.0, "nothing was known");
    let other = MacAddr([2, 0, 0, 0, 0, 7]);
    for (flags, mac) in [(SOLICITED, PEER), (SOLICITED | OVERRIDE, other)] {
        h.push(1, advertisement("2001:db8::2", other, flags));
        h.push(0, to("2001:db8::2", b"x"));
        assert_eq!(h.take(0)[0].data()[..6], mac.0, "{flags:#x}");
    }
    // Over a router, with a wrong checksum, from a group, another message.
    let good = advertisement("2001:db8::2", PEER, SOLICITED | OVERRIDE);
    for (at, value) in [(21, 64), (56, 1), (54, 135)] {
        let mut bytes = good.data().to_vec();
        bytes[at] = value;
        h.push(1, Packet::from_bytes(&bytes).unwrap());
    }
    h.push(1, advertisement("2001:db8::2", MacAddr::BROADCAST, OVERRIDE));
    h.push(0, to("2001:db8::2", b"x"));
    assert_eq!(h.take(0)[0].data()[..6], other.0);
}

#[test]
fn neighbours_are_asked_again_and_forgotten() {
    let mut h = harness(2);
    h.push(0, to("2001:db8::2", b"x"));
    h.push(1, advertisement("2001:db8::2", PEER, SOLICITED));
    h.take(0);
    h.take(1);
    h.advance(61 * SECOND_NS);
    h.push(0, to("2001:db8::2", b"x"));
    assert_eq!((h.take(0).len(), h.take(1).len()), (1, 1), "it is used, and asked again");
    h.advance(60 * SECOND_NS);
    assert_eq!(h.read("count").unwrap(), "0");
    h.push(0, to("2001:db8::2", b"x"));
    assert_eq!((h.take(0).len(), h.take(1).len()), (0, 1));
    h.write("clear", "").unwrap();
    assert_eq!((h.read("length").unwrap(), h.drops().contains(&("deleted", 1))), ("0".into(), true));
}

proptest! {
    #[test]
    fn any_bytes_are_learnt_or_dropped(bytes in prop::collection::vec(any::<u8>(), 0..100), n in 0usize..90) {
        let mut h = harness(2);
        h.push(0, to("2001:db8::2", b"x"));
        let mut all = advertisement("2001:db8::2", PEER, OVERRIDE).data()[..n.min(86)].to_vec();
        all.extend(bytes);
        h.push(1, Packet::from_bytes(&all).unwrap());
        let (out, queries) = (h.take(0).len() + h.take(1).len(), 1);
        prop_assert!(out >= queries);
    }
}
