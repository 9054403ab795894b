use super::*;
use crate::ip::corpus;
use causeway_engine::harness::Harness;
use causeway_packet::PacketType;
use causeway_packet::wire::{Icmpv4, Ipv4Header, protocol};
use proptest::prelude::*;

fn ip_packet(edit: impl FnOnce(&mut Ipv4Header), payload: &[u8]) -> Packet {
    let mut header = Ipv4Header {
        tos: 0,
        total_len: 20 + payload.len() as u16,
        identification: 1,
        flags_fragment: 0,
        ttl: 1,
        protocol: protocol::UDP,
        src: [10, 0, 0, 1].into(),
        dst: [10, 9, 0, 1].into(),
    };
    edit(&mut header);
    let mut bytes = [0; 20];
    header.emit(&mut bytes);
    let mut p = Packet::from_bytes(&[&bytes[..], payload].concat()).unwrap();
    p.set_network_header(0);
    p.set_dst_ip([10, 9, 9, 9]);
    p
}

fn harness(config: &str) -> Harness {
    Harness::new(&SPEC, config, 1, 1).unwrap()
}

#[test]
fn an_error_quotes_the_packet() {
    let mut h = harness("10.0.0.9, unreachable, needfrag, PMTU 1400");
    let p = ip_packet(|_| (), &[7; 1_000]);
    let original = p.data().to_vec();
    h.push(0, p);
    let out = h.take(0);
    let ip = Ipv4::new_checked(out[0].data()).unwrap();
    assert!(ip.checksum_ok());
    assert_eq!((ip.src(), ip.dst(), ip.total_len()), ([10, 0, 0, 9].into(), [10, 0, 0, 1].into(), 576));
    let icmp = Icmpv4::new_checked(ip.payload()).unwrap();
    assert!(icmp.checksum_ok());
    assert_eq!((icmp.message_type(), icmp.code(), icmp.mtu()), (3, 4, 1400));
    assert_eq!(icmp.payload(), &original[..548]);
    assert_eq!((out[0].dst_ip(), out[0].anno_u8(Anno::FIX_IP_SRC.offset)), ([10, 0, 0, 1], 1));
    h.assert_balanced();
}

#[test]
fn an_error_may_be_longer_than_is_usual() {
    let length = |config: &str| {
        let mut h = harness(config);
        h.push(0, ip_packet(|_| (), &[7; 1_400]));
        h.take(0)[0].len()
    };
    assert_eq!(length("10.0.0.9, unreachable"), 576);
    assert_eq!(length("10.0.0.9, unreachable, MTU 1400"), 1_400);
    assert_eq!(length("10.0.0.9, unreachable, MTU 60000"), 1_448, "all of the packet");
}

fn rest_of(config: &str, edit: impl FnOnce(&mut Packet)) -> u32 {
    let mut h = harness(config);
    let mut p = ip_packet(|_| (), b"12345678");
    edit(&mut p);
    h.push(0, p);
    let out = h.take(0);
    Icmpv4::new_checked(Ipv4::new_checked(out[0].data()).unwrap().payload()).unwrap().rest()
}

#[test]
fn annotations_fill_the_error() {
    assert_eq!(rest_of("10.0.0.9, redirect, host", |_| ()), 0x0a09_0909);
    let parameter = rest_of("10.0.0.9, 12", |p| p.set_anno_u8(Anno::ICMP_PARAMPROB.offset, 22));
    assert_eq!(parameter, 22 << 24);
    assert_eq!(rest_of("10.0.0.9, timeexceeded, transit, PMTU 5", |_| ()), 0);
}

#[test]
fn some_packets_are_not_reported() {
    let mut h = harness("10.0.0.9, timeexceeded, 0, 10.0.0.255 10.0.1.255");
    let hit = |h: &mut Harness, p: Packet| {
        h.push(0, p);
        h.take(0).len()
    };
    assert_eq!(hit(&mut h, ip_packet(|_| (), b"")), 1);
    assert_eq!(hit(&mut h, ip_packet(|i| i.flags_fragment = 0x2000, b"")), 1);
    assert_eq!(hit(&mut h, ip_packet(|i| i.protocol = 1, &[8, 0, 0, 0, 0, 0, 0, 0])), 1);
    let not: [fn(&mut Ipv4Header); 8] = [
        |i| i.flags_fragment = 1,
        |i| i.dst = [224, 0, 0, 5].into(),
        |i| i.dst = [255; 4].into(),
        |i| i.dst = [10, 0, 1, 255].into(),
        |i| i.src = [10, 0, 0, 255].into(),
        |i| i.src = [0; 4].into(),
        |i| i.src = [127, 0, 0, 1].into(),
        |i| i.protocol = 1,
    ];
    for (i, edit) in not.into_iter().enumerate() {
        assert_eq!(hit(&mut h, ip_packet(edit, &[3, 1, 0, 0, 0, 0, 0, 0])), 0, "{i}");
    }
    for packet_type in [PacketType::Broadcast, PacketType::Multicast] {
        let mut p = ip_packet(|_| (), b"");
        p.set_packet_type(packet_type);
        assert_eq!(hit(&mut h, p), 0);
    }
    assert_eq!(hit(&mut h, Packet::from_bytes(&[0x45; 40]).unwrap()), 0);
    assert_eq!(h.drops(), [("suppressed", 10), ("no-header", 1)]);
    h.assert_balanced();
}

/// What comes of a packet with `options`: the error's options and what it quotes, or why there is none.
fn error_about(config: &str, options: &[u8], pointer: u8) -> Result<(Vec<u8>, Vec<u8>), &'static str> {
    let mut h = harness(config);
    let mut p = corpus::marked(&corpus::datagram(options, &[7; 100], 1, 0), 0);
    p.set_anno_u8(Anno::ICMP_PARAMPROB.offset, pointer);
    h.push(0, p);
    let Some(out) = h.take(0).pop() else { return Err(h.drops()[0].0) };
    let ip = Ipv4::new_checked(out.data()).unwrap();
    let icmp = Icmpv4::new_checked(ip.payload()).unwrap();
    assert!(ip.checksum_ok() && icmp.checksum_ok());
    assert_eq!(out.transport_offset(), Some(ip.header_len()));
    assert_eq!((ip.dst(), out.dst_ip()), ([10, 0, 0, 1].into(), [10, 0, 0, 1]));
    Ok((ip.options_bytes().to_vec(), icmp.payload().to_vec()))
}

#[test]
fn a_source_routed_packet_s_error_goes_back_its_way() {
    let options = [1, 131, 11, 12, 1, 1, 1, 1, 2, 2, 2, 2];
    let back = [131, 11, 4, 2, 2, 2, 2, 1, 1, 1, 1, 0];
    for config in ["10.0.0.9, timeexceeded", "10.0.0.9, 12", "10.0.0.9, 3, MTU 1500"] {
        let (route, quoted) = error_about(config, &options, 0).unwrap();
        assert_eq!(route, back, "{config}");
        assert_eq!(quoted, corpus::datagram(&options, &[7; 100], 1, 0), "{config}");
    }
    assert_eq!(error_about("10.0.0.9, 3, MTU 96", &options, 0).unwrap().1.len(), 96 - 32 - 8);
    assert_eq!(error_about("10.0.0.9, 12", &options, 21).unwrap().0, [], "the route is the problem");
    assert_eq!(error_about("10.0.0.9, 12, 1", &options, 21).unwrap().0, back, "an option is missing");
    assert_eq!(error_about("10.0.0.9, 11", &[131, 11, 5, 1, 1, 1, 1, 2, 2, 2, 2, 0], 0).unwrap().0, []);
    assert_eq!(error_about("10.0.0.9, redirect", &options, 0), Err("suppressed"));
}

#[test]
fn redirects_stay_in_the_network_they_are_for() {
    // From 10.0.0.1, by way of 10.9.9.9.
    let redirect = |src: &str| {
        let mut h = harness(&format!("{src}, redirect, host"));
        h.push(0, ip_packet(|_| (), b"12345678"));
        (h.take(0).len(), h.drops())
    };
    assert_eq!(redirect("10.0.0.9"), (1, vec![]));
    assert_eq!(redirect("10.0.0.9/8"), (1, vec![]));
    assert_eq!(redirect("10.0.0.9/16"), (0, vec![("off-link", 1)]), "the gateway is elsewhere");
    assert_eq!(redirect("10.9.0.9/16"), (0, vec![("off-link", 1)]), "the host is elsewhere");
    let mut h = harness("10.9.0.9/16, unreachable");
    h.push(0, ip_packet(|_| (), b""));
    assert_eq!(h.take(0).len(), 1, "other errors go anywhere");
}

#[test]
fn errors_are_limited_in_number() {
    let made = |h: &mut Harness, packets: usize| {
        h.push_all(0, (0..packets).map(|_| ip_packet(|_| (), b"")));
        h.take(0).len()
    };
    let mut h = harness("10.0.0.9, unreachable, RATE 100");
    assert_eq!(made(&mut h, 40), 5);
    h.advance(20_000_000);
    assert_eq!((made(&mut h, 40), h.drops()), (2, vec![("rate-limited", 73)]));
    h.assert_balanced();
    assert_eq!(made(&mut harness("10.0.0.9, unreachable"), 200), 50, "1000 a second");
    assert_eq!(made(&mut harness("10.0.0.9, unreachable, RATE 0"), 200), 200);
}

#[test]
fn headers_are_those_of_click() {
    let mut h = harness("10.0.0.9, unreachable, host");
    h.push_all(0, (0..2).map(|_| ip_packet(|i| i.tos = 0xb8, b"")));
    let out = h.take(0);
    for (p, id) in out.iter().zip(1..) {
        let ip = Ipv4::new_checked(p.data()).unwrap();
        assert_eq!((ip.tos(), ip.identification(), ip.flags_fragment(), ip.ttl()), (0, id, 0, 200));
        assert!(p.timestamp_ns() > 0);
    }
}

#[test]
fn arguments_are_checked() {
    let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
    assert_eq!(errors("1.0.0.1"), ["TYPE: required argument missing"]);
    assert_eq!(errors("1.0.0.1, echo"), ["TYPE: invalid number"]);
    assert_eq!(errors("1.0.0.1, redirect, port"), ["argument 2 takes ICMP code (integer between 0 and 255)"]);
    assert_eq!(errors("1.0.0.1, 3, 1, 1.2.3"), ["BADADDRS: parse error"]);
    assert_eq!(errors("1.0.0.1, 3, MTU 40"), ["MTU: must be at least 96"]);
    assert_eq!(errors("x, 3"), ["SRC: parse error"]);
}

proptest! {
    #[test]
    fn any_bytes_are_reported_or_dropped(
        mut bytes in prop::collection::vec(any::<u8>(), 0..90), first in 0x44u8..0x51, at in 0usize..8,
    ) {
        if let Some(b) = bytes.get_mut(at) {
            *b = first;
        }
        for config in ["10.0.0.9, redirect, host", "1.0.0.1, 3, MTU 96", "1.0.0.1, 12, MTU 9000"] {
            let mut h = harness(config);
            let mut p = Packet::from_bytes(&bytes).unwrap();
            p.set_network_header(at);
            h.push(0, p);
            for out in h.take(0) {
                prop_assert!(Ipv4::new_checked(out.data()).unwrap().checksum_ok());
            }
        }
    }
}
