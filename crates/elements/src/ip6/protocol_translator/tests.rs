use super::super::check_ip6_header::tests::packet as six;
use super::*;
use crate::ip::corpus;
use causeway_engine::harness::{Harness, packet, verdict};
use causeway_packet::checksum::pseudo_header_v4;
use causeway_packet::wire::{Icmpv4, Icmpv6, Ipv4, Ipv4Header, Ipv6, Ipv6Header, Tcp, Udp};
use proptest::prelude::*;

const WELL_KNOWN: &str = "PREFIX 64:ff9b::/96";

fn to_six(config: &str, bytes: &[u8]) -> Result<Packet, &'static str> {
    verdict(&SPEC_46, config, packet(bytes))
}

fn to_four(config: &str, bytes: &[u8]) -> Result<Packet, &'static str> {
    verdict(&SPEC_64, config, packet(bytes))
}

/// An IPv4 packet from 1.2.3.4 to 5.6.7.8.
fn four(protocol: u8, flags_fragment: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    Ipv4Header {
        tos: 0xb8,
        total_len: 20 + payload.len() as u16,
        identification: 77,
        flags_fragment,
        ttl: 9,
        protocol,
        src: [1, 2, 3, 4].into(),
        dst: [5, 6, 7, 8].into(),
    }
    .emit(bytes.first_chunk_mut().unwrap());
    bytes.extend(payload);
    let _ = Ipv4::new_checked(&mut bytes[..]).map(|mut ip| ip.fill_checksum());
    bytes
}

/// A UDP datagram, with a checksum between these addresses.
fn udp(data: &[u8], sum: causeway_packet::checksum::Sum) -> Vec<u8> {
    let mut bytes = vec![0, 7, 0, 9, 0, 8 + data.len() as u8, 0, 0];
    bytes.extend(data);
    Udp::new_checked(&mut bytes[..]).unwrap().fill_checksum(sum);
    bytes
}

fn udp4(data: &[u8]) -> Vec<u8> {
    let sum = pseudo_header_v4([1, 2, 3, 4].into(), [5, 6, 7, 8].into(), 17, 8 + data.len() as u16);
    four(17, 0, &udp(data, sum))
}

#[test]
fn udp_goes_over_and_back() {
    for config in ["", WELL_KNOWN] {
        for data in [&b""[..], b"a", b"payload"] {
            let old = udp4(data);
            let out = to_six(config, &old).unwrap();
            let ip = Ipv6::new_checked(out.data()).unwrap();
            let src = if config.is_empty() { "::ffff:1.2.3.4" } else { "64:ff9b::102:304" };
            assert_eq!((ip.src(), ip.hop_limit(), ip.traffic_class()), (src.parse().unwrap(), 9, 0xb8));
            assert_eq!((out.dst_ip6(), out.transport_offset()), (ip.dst().octets(), Some(40)));
            let datagram = Udp::new_checked(ip.payload()).unwrap();
            assert!(datagram.checksum_ok(ip.pseudo_header(17, u32::from(datagram.length()))));
            let back = to_four(config, out.data()).unwrap();
            let ip = Ipv4::new_checked(back.data()).unwrap();
            assert!(ip.checksum_ok() && !ip.dont_fragment());
            assert_eq!((&back.data()[12..], back.dst_ip()), (&old[12..], [5, 6, 7, 8]));
        }
    }
}

#[test]
fn udp_without_checksum_gets_one_unless_it_is_a_fragment() {
    let mut bytes = udp4(b"abc");
    bytes[26..28].fill(0);
    let out = to_six("", &bytes).unwrap();
    let ip = Ipv6::new_checked(out.data()).unwrap();
    let datagram = Udp::new_checked(ip.payload()).unwrap();
    assert!(datagram.checksum() != 0 && datagram.checksum_ok(ip.pseudo_header(17, 11)));
    let fragment = four(17, 0x2000, &bytes[20..]);
    assert_eq!(to_six("", &fragment).err(), Some("fragment"));
}

/// The UDP checksum behind a header of that length.
fn sum_at(out: &Packet, header_len: usize) -> [u8; 2] {
    out.data()[header_len + 6..header_len + 8].try_into().unwrap()
}

#[test]
fn a_udp_checksum_never_becomes_none() {
    // With what is missing to it as data the sum is 0, for which all ones stand.
    let missing = sum_at(&to_six(WELL_KNOWN, &udp4(&[0, 0])).unwrap(), 40);
    assert_eq!(sum_at(&to_six(WELL_KNOWN, &udp4(&missing)).unwrap(), 40), [0xff; 2]);
    let without = |data: &[u8]| {
        let mut bytes = udp4(data);
        bytes[26..28].fill(0);
        sum_at(&to_six(WELL_KNOWN, &bytes).unwrap(), 40)
    };
    assert_eq!((without(&[0, 0]), without(&missing)), (missing, [0xff; 2]));
    let six = |data: &[u8]| to_six(WELL_KNOWN, &udp4(data)).unwrap();
    let missing = sum_at(&to_four(WELL_KNOWN, six(&[0, 0]).data()).unwrap(), 20);
    assert_eq!(sum_at(&to_four(WELL_KNOWN, six(&missing).data()).unwrap(), 20), [0xff; 2]);
}

#[test]
fn tcp_checksums_are_adjusted() {
    let mut segment = vec![0; 21];
    (segment[12], segment[20]) = (5 << 4, 99);
    let sum = pseudo_header_v4([1, 2, 3, 4].into(), [5, 6, 7, 8].into(), 6, 21);
    let check = sum.bytes(&segment).finish();
    segment[16..18].copy_from_slice(&check.to_be_bytes());
    let out = to_six(WELL_KNOWN, &four(6, 0, &segment)).unwrap();
    let ip = Ipv6::new_checked(out.data()).unwrap();
    assert!(Tcp::new_checked(ip.payload()).unwrap().checksum_ok(ip.pseudo_header(6, 21)));
    assert_eq!(&to_four(WELL_KNOWN, out.data()).unwrap().data()[20..], &segment[..]);
}

#[test]
fn fragments_keep_their_place() {
    for (word, offset, more) in [(0x2000, 0, true), (0x2005, 40, true), (0x0005, 40, false)] {
        let out = to_six("", &four(6, word, &[1; 24])).unwrap();
        let ip = Ipv6::new_checked(out.data()).unwrap();
        let header = ip.extensions().next().unwrap().unwrap();
        let fragment = header.fragment().unwrap();
        assert_eq!((fragment.offset, fragment.more, fragment.identification), (offset, more, 77));
        assert_eq!((ip.next_header(), header.next_header, ip.payload().len()), (44, 6, 32));
        // Only the first has a checksum, which follows the addresses where those of the prefix add up to something.
        let other = to_six("PREFIX 2001:db8:1::/96", &four(6, word, &[1; 24])).unwrap();
        assert_eq!(other.data()[48..] == [1; 24], offset != 0);
        let back = to_four("", out.data()).unwrap();
        let ip = Ipv4::new_checked(back.data()).unwrap();
        assert_eq!((ip.flags_fragment(), ip.identification(), ip.checksum_ok()), (word, 77, true));
        assert_eq!(&back.data()[32..], &out.data()[60..]);
    }
    assert_eq!(to_six("", &four(1, 0x2000, &[8; 24])).err(), Some("fragment"));
}

#[test]
fn echoes_go_over_and_back() {
    let mut echo = vec![8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7];
    Icmpv4::new_checked(&mut echo[..]).unwrap().fill_checksum();
    let out = to_six("", &four(1, 0, &echo)).unwrap();
    let ip = Ipv6::new_checked(out.data()).unwrap();
    let icmp = Icmpv6::new_checked(ip.payload()).unwrap();
    assert_eq!((ip.next_header(), icmp.message_type(), icmp.rest()), (58, 128, 0x0102_0304));
    assert!(icmp.checksum_ok(ip.pseudo_header(58, 11)));
    assert_eq!(&to_four("", out.data()).unwrap().data()[20..], &echo[..]);
}

#[test]
fn errors_are_translated_with_what_they_quote() {
    let quoted = udp4(b"payload");
    for (kind, code, rest, to) in [
        (3, 0, 0, Some((1, 0, 0))),
        (3, 2, 0, Some((4, 1, 6))),
        (3, 3, 0, Some((1, 4, 0))),
        (3, 4, 1400, Some((2, 0, 1420))),
        (3, 13, 0, Some((1, 1, 0))),
        (11, 0, 0, Some((3, 0, 0))),
        (12, 0, 8 << 24, Some((4, 0, 7))),
        (12, 0, 20 << 24, None),
        (5, 0, 0, None),
        (13, 0, 0, None),
    ] {
        let mut error: Vec<u8> = vec![kind, code, 0, 0];
        error.extend(u32::to_be_bytes(rest));
        error.extend(&quoted);
        Icmpv4::new_checked(&mut error[..]).unwrap().fill_checksum();
        let out = to_six("", &four(1, 0, &error));
        let Some(to) = to else {
            assert_eq!(out.err(), Some("icmp"), "{kind} {code}");
            continue;
        };
        let out = out.unwrap();
        let ip = Ipv6::new_checked(out.data()).unwrap();
        let icmp = Icmpv6::new_checked(ip.payload()).unwrap();
        assert_eq!((icmp.message_type(), icmp.code(), icmp.rest()), to, "{kind} {code}");
        assert!(icmp.checksum_ok(ip.pseudo_header(58, ip.payload().len() as u32)));
        let inner = Ipv6::new_checked(icmp.payload()).unwrap();
        let datagram = Udp::new_checked(inner.payload()).unwrap();
        assert!(datagram.checksum_ok(inner.pseudo_header(17, 15)));
        let back = to_four("", out.data()).unwrap();
        let ip = Ipv4::new_checked(back.data()).unwrap();
        assert!(Icmpv4::new_checked(ip.payload()).unwrap().checksum_ok());
        assert_eq!(&ip.payload()[8 + 12..], &quoted[12..], "{kind} {code}");
    }
}

#[test]
fn a_quoted_begin_keeps_the_length_it_had() {
    // Eight bytes of a datagram of 15.
    let mut error: Vec<u8> = vec![11, 0, 0, 0, 0, 0, 0, 0];
    error.extend(&udp4(b"payload")[..28]);
    Icmpv4::new_checked(&mut error[..]).unwrap().fill_checksum();
    let out = to_six("", &four(1, 0, &error)).unwrap();
    let inner = Ipv6::new_quoted(&out.data()[48..]).unwrap();
    assert_eq!((inner.payload_len(), out.len()), (15, 40 + 8 + 40 + 8));
}

#[test]
fn what_has_no_translation_is_told() {
    assert_eq!(to_six("", b"no").err(), Some("no-packet"));
    assert_eq!(to_four("", &six(9, b"")).err(), Some("address"));
    let mapped = |next_header: u8, payload: &[u8]| {
        let mut bytes = vec![0; 40];
        let address = "::ffff:1.2.3.4".parse().unwrap();
        Ipv6Header {
            traffic_class: 0,
            flow_label: 0,
            payload_len: payload.len() as u16,
            next_header,
            hop_limit: 9,
            src: address,
            dst: address,
        }
        .emit(bytes.first_chunk_mut().unwrap());
        bytes.extend(payload);
        bytes
    };
    // A routing header with a segment left, and an authentication header.
    assert_eq!(to_four("", &mapped(43, &[17, 0, 0, 1, 0, 0, 0, 0])).err(), Some("header"));
    assert_eq!(to_four("", &mapped(51, &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).err(), Some("header"));
    // Destination options are left out.
    let out = to_four("", &mapped(60, &[99, 0, 1, 4, 0, 0, 0, 0, 5])).unwrap();
    assert_eq!((out.data()[9], &out.data()[20..]), (99, &[5][..]));
    // Neighbour discovery ends at the translator.
    assert_eq!(to_four("", &mapped(58, &[135; 24])).err(), Some("icmp"));
    // What fits into the least MTU of IPv6 may be fragmented on its way (RFC 7915 §5.1).
    for (len, dont_fragment) in [(1_240, false), (1_241, true)] {
        let out = to_four("", &mapped(99, &vec![0; len])).unwrap();
        assert_eq!(Ipv4::new_checked(out.data()).unwrap().dont_fragment(), dont_fragment, "{len}");
    }
    // A fragment that is the whole packet becomes a packet.
    assert!(to_four("", &mapped(44, &[58, 0, 0, 0, 0, 0, 0, 77, 128, 0, 0, 0, 0, 1, 0, 1])).is_ok());
    // A source route that is not over.
    let mut routed = corpus::datagram(&[131, 7, 4, 9, 9, 9, 9], b"x", 9, 0);
    assert_eq!(to_six("", &routed).err(), Some("header"));
    routed[22] = 8;
    Ipv4::new_checked(&mut routed[..]).unwrap().fill_checksum();
    assert!(to_six("", &routed).is_ok());
    let mut h = Harness::new(&SPEC_46, "", 1, 2).unwrap();
    h.push(0, packet(b"no"));
    assert_eq!((h.take(1).len(), h.drops()), (1, vec![]));
    let errors = |text: &str| Harness::new(&SPEC_46, text, 1, 1).err().unwrap();
    assert_eq!(errors("PREFIX 64:ff9b::/64"), ["PREFIX: must be of 96 bits"]);
}

proptest! {
    #[test]
    fn any_bytes_are_translated_or_not(
        bytes in corpus::frame(0), kind in any::<u8>(), payload in prop::collection::vec(any::<u8>(), 0..90), word in any::<u16>(),
    ) {
        for (spec, bytes) in [(&SPEC_46, &bytes), (&SPEC_64, &bytes), (&SPEC_46, &four(kind, word, &payload))] {
            let mut h = Harness::new(spec, "", 1, 1).unwrap();
            h.push(0, packet(bytes));
            h.assert_balanced();
        }
        let once = [four(kind, 0, &payload), four(1, 0, &[&[3, 1, 0, 0, 0, 0, 0, 0][..], &four(kind, word, &payload)].concat())];
        for four in once {
            if let Ok(over) = to_six("", &four) {
                let total = Ipv6::new_checked(over.data()).map(|ip| 40 + ip.payload().len());
                prop_assert_eq!(total.ok(), Some(over.len()));
                if let Ok(back) = to_four("", over.data()) {
                    prop_assert_eq!(back.len(), four.len());
                    prop_assert!(Ipv4::new_checked(back.data()).unwrap().checksum_ok());
                }
            }
        }
    }
}
