//! Options, extension headers and error rules, case by case, with the bytes the RFCs give.

use causeway_packet::checksum::Sum;
use causeway_packet::wire::ipv4_options::{BadOption, Ipv4Option, OptionAt, Route, Timestamp};
use causeway_packet::wire::ipv6_ext::UpperLayer;
use causeway_packet::wire::ndisc::{NdOption, RouterAdvertisement, solicited_node};
use causeway_packet::wire::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 packet with `options`, padded to whole words, and no payload.
fn with_options(options: &[u8]) -> Vec<u8> {
    let header_len = 20 + options.len().next_multiple_of(4);
    let mut packet = vec![0; header_len];
    packet[0] = 0x40 | (header_len / 4) as u8;
    packet[3] = header_len as u8;
    packet[20..20 + options.len()].copy_from_slice(options);
    packet
}

fn options(bytes: &[u8]) -> Vec<Result<(usize, String), usize>> {
    let packet = with_options(bytes);
    let ip = Ipv4::new_checked(&packet).unwrap();
    let describe = |OptionAt { offset, option }| (offset, format!("{option:?}"));
    ip.options().map(|option| option.map(describe).map_err(|bad| bad.offset)).collect()
}

#[test]
fn ipv4_options_are_told_apart() {
    let packet =
        with_options(&[1, 7, 7, 8, 10, 0, 0, 1, 148, 4, 0, 0, 130, 3, 9, 68, 8, 5, 0x21, 0, 0, 0, 0]);
    let found: Vec<_> = Ipv4::new_checked(&packet)
        .unwrap()
        .options()
        .map(Result::unwrap)
        .map(|OptionAt { offset, option }| match option {
            Ipv4Option::RecordRoute(Route { pointer, slots }) => (offset, 7, pointer, slots.len()),
            Ipv4Option::RouterAlert(value) => (offset, 148, 0, value.into()),
            Ipv4Option::Unknown { kind, data } => (offset, kind, 0, data.len()),
            _ => panic!("{option:?}"),
        })
        .take(3)
        .collect();
    assert_eq!(found, [(21, 7, 8, 4), (28, 148, 0, 0), (32, 130, 0, 1)]);
}

#[test]
fn bad_ipv4_options_point_at_the_wrong_byte() {
    // Length below 2, beyond the header, none at all: the length byte.
    assert_eq!(options(&[1, 130, 1, 0]), [Err(22)]);
    assert_eq!(options(&[130, 5, 0, 0]), [Err(21)]);
    assert_eq!(options(&[1, 1, 1, 130]), [Err(24)]);
    // A route without a pointer; a pointer below 4, and at a slot with room for half an address.
    assert_eq!(options(&[7, 2, 0, 0]), [Err(21)]);
    assert_eq!(options(&[131, 7, 3, 0, 0, 0, 0, 0]), [Err(22)]);
    assert_eq!(options(&[137, 7, 6, 0, 0, 0, 0, 0]), [Err(22)]);
    // Timestamps: no overflow byte, an unknown format, a pointer into the fixed part.
    assert_eq!(options(&[68, 3, 5, 0]), [Err(21)]);
    assert_eq!(options(&[68, 8, 5, 2, 0, 0, 0, 0]), [Err(23)]);
    assert_eq!(options(&[68, 8, 4, 0, 0, 0, 0, 0]), [Err(22)]);
    // Room for the address and not for the time.
    assert_eq!(options(&[68, 8, 5, 1, 0, 0, 0, 0]), [Err(22)]);
    // A router alert of the wrong size.
    assert_eq!(options(&[148, 3, 0, 0]), [Err(21)]);
    // What follows the end of the list is not looked at.
    assert_eq!(options(&[0, 130, 99, 0]), []);
}

#[test]
fn source_routes_name_the_next_hop() {
    let packet = with_options(&[131, 11, 4, 10, 0, 0, 1, 10, 0, 0, 2]);
    let ip = Ipv4::new_checked(&packet).unwrap();
    let Some(Ok(OptionAt { option: Ipv4Option::LooseSourceRoute(route), .. })) = ip.options().next() else {
        panic!("no source route");
    };
    assert_eq!((route.next(), route.is_exhausted()), (Some(Ipv4Addr::new(10, 0, 0, 1)), false));
    let last = Route { pointer: 8, ..route };
    assert_eq!((last.next(), last.is_exhausted()), (Some(Ipv4Addr::new(10, 0, 0, 2)), false));
    let end = Route { pointer: 12, ..route };
    assert_eq!((end.next(), end.is_exhausted()), (None, true));
}

#[test]
fn record_route_fills_slot_after_slot() {
    let mut packet = with_options(&[1, 7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut ip = Ipv4::new_checked(&mut packet).unwrap();
    let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    assert_eq!(ip.record_route(21, a), Ok(true));
    assert_eq!(ip.record_route(21, b), Ok(true));
    assert_eq!(ip.options_bytes(), [1, 7, 11, 12, 10, 0, 0, 1, 10, 0, 0, 2]);
    assert_eq!(ip.record_route(21, a), Ok(false));
    assert_eq!(ip.options_bytes(), [1, 7, 11, 12, 10, 0, 0, 1, 10, 0, 0, 2]);
    assert_eq!(ip.record_route(20, a), Err(BadOption { offset: 20 }));
}

#[test]
fn timestamps_in_the_three_formats() {
    let (me, time) = (Ipv4Addr::new(10, 0, 0, 9), 0x0102_0304);
    let record = |options: &[u8], mine: bool| {
        let mut packet = with_options(options);
        let mut ip = Ipv4::new_checked(&mut packet).unwrap();
        let written = ip.record_timestamp(20, me, time, |_| mine);
        (written, ip.options_bytes().to_vec())
    };
    let full = |written: Result<bool, BadOption>, bytes: &[u8]| (written, bytes.to_vec());
    assert_eq!(record(&[68, 8, 5, 0, 0, 0, 0, 0], true), full(Ok(true), &[68, 8, 9, 0, 1, 2, 3, 4]));
    assert_eq!(
        record(&[68, 12, 5, 0x11, 0, 0, 0, 0, 0, 0, 0, 0], true),
        full(Ok(true), &[68, 12, 13, 0x11, 10, 0, 0, 9, 1, 2, 3, 4])
    );
    // Written by the sender: only behind an address of ours, which stays.
    let ask = [68, 12, 5, 3, 10, 0, 0, 7, 0, 0, 0, 0];
    assert_eq!(record(&ask, true), full(Ok(true), &[68, 12, 13, 3, 10, 0, 0, 7, 1, 2, 3, 4]));
    assert_eq!(record(&ask, false), full(Ok(false), &ask));
    // Full: the overflow is counted, up to 15.
    assert_eq!(record(&[68, 8, 9, 0xe0, 1, 1, 1, 1], true), full(Ok(true), &[68, 8, 9, 0xf0, 1, 1, 1, 1]));
    let overflown = [68, 8, 9, 0xf0, 1, 1, 1, 1];
    assert_eq!(record(&overflown, true), full(Err(BadOption { offset: 23 }), &overflown));
    let Some(Ok(OptionAt { option: Ipv4Option::Timestamp(Timestamp { overflow: 15, flag: 0, .. }), .. })) =
        Ipv4::new_checked(&with_options(&overflown)).unwrap().options().next()
    else {
        panic!("no timestamp");
    };
}

/// An IPv6 packet of `next_header` and `body`.
fn v6(next_header: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 40];
    let (src, dst) =
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1));
    Ipv6Header {
        traffic_class: 0,
        flow_label: 0,
        payload_len: body.len() as u16,
        next_header,
        hop_limit: 1,
        src,
        dst,
    }
    .emit(packet.first_chunk_mut().unwrap());
    packet.extend(body);
    packet
}

fn upper(next_header: u8, body: &[u8]) -> Result<UpperLayer, Malformed> {
    Ipv6::new_checked(v6(next_header, body)).unwrap().upper_layer()
}

#[test]
fn upper_layer_where_it_is_sure() {
    let at = |protocol, offset| Ok(UpperLayer::At { protocol, offset, first_fragment: false });
    assert_eq!(upper(17, &[]), at(17, 40));
    assert_eq!(upper(0, &[17, 0, 5, 2, 0, 0, 1, 0]), at(17, 48));
    assert_eq!(upper(50, &[1; 8]), at(protocol::ESP, 40));
    assert_eq!(upper(59, &[]), at(protocol::NO_NEXT_HEADER, 40));
    // Fragments: atomic, first, later.
    assert_eq!(upper(44, &[6, 0, 0, 0, 0, 0, 0, 1]), at(6, 48));
    let first = Ok(UpperLayer::At { protocol: 6, offset: 48, first_fragment: true });
    assert_eq!(upper(44, &[6, 0, 0, 1, 0, 0, 0, 1]), first);
    assert_eq!(upper(44, &[60, 0, 0, 8, 0, 0, 0, 1]), Ok(UpperLayer::LaterFragment { next_header: 60 }));
    // Not sure: hop-by-hop in second place, mobility, a ninth header.
    let unsure = |next_header, offset| Ok(UpperLayer::Unsure { next_header, offset });
    assert_eq!(upper(60, &[0, 0, 1, 4, 0, 0, 0, 0]), unsure(0, 48));
    assert_eq!(upper(135, &[59, 0, 0, 0, 0, 0, 0, 0]), unsure(135, 40));
    let header = [60, 0, 1, 4, 0, 0, 0, 0];
    let last = [17, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(upper(60, &[&header.repeat(7)[..], &last].concat()), at(17, 104));
    assert_eq!(upper(60, &[&header.repeat(8)[..], &last].concat()), unsure(60, 104));
    // Cut short.
    assert_eq!(upper(60, &[17]), Err(Malformed::HeaderLength));
    assert_eq!(upper(60, &[17, 1, 1, 4, 0, 0, 0, 0]), Err(Malformed::HeaderLength));
    assert_eq!(upper(51, &[17, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::HeaderLength));
}

#[test]
fn ipv6_extension_fields() {
    let packet = v6(0, &[43, 0, 5, 2, 0, 7, 0, 0, 44, 0, 4, 1, 0, 0, 0, 0, 17, 0, 0x12, 0x39, 1, 2, 3, 4]);
    let ip = Ipv6::new_checked(&packet).unwrap();
    let headers: Vec<_> = ip.extensions().map(Result::unwrap).collect();
    assert_eq!(headers.iter().map(|header| header.kind).collect::<Vec<_>>(), [0, 43, 44]);
    let options: Vec<_> = headers[0].options().map(Result::unwrap).collect();
    assert_eq!(options.len(), 1);
    assert_eq!((options[0].offset, options[0].kind, options[0].data), (42, 5, &[0, 7][..]));
    assert_eq!(headers[1].routing(), Some((4, 1)));
    let fragment = headers[2].fragment().unwrap();
    assert_eq!((fragment.offset, fragment.more, fragment.identification), (0x1238, true, 0x0102_0304));
    assert_eq!((headers[0].fragment(), headers[2].routing(), headers[1].options().count()), (None, None, 0));
}

#[test]
fn nd_options() {
    let mut message = vec![134, 0, 0, 0, 64, 0x80, 0x07, 0x08, 0, 0, 0, 1, 0, 0, 0, 2];
    message.extend([1, 1, 2, 0, 0, 0, 0, 1]);
    message.extend([5, 1, 0, 0, 0, 0, 0x05, 0xdc]);
    let mut prefix = [0; 32];
    prefix[..12].copy_from_slice(&[3, 4, 64, 0xc0, 0, 0, 0, 5, 0, 0, 0, 6]);
    prefix[16..20].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    message.extend(prefix);
    message.extend([25, 1, 9, 9, 9, 9, 9, 9]);
    let advertisement = RouterAdvertisement::new_checked(&message).unwrap();
    assert_eq!((advertisement.hop_limit(), advertisement.lifetime_s()), (64, 1800));
    assert_eq!((advertisement.reachable_ms(), advertisement.retransmit_ms()), (1, 2));
    let options: Vec<_> = advertisement.options().map(Result::unwrap).collect();
    assert_eq!(
        options,
        [
            NdOption::SourceLinkLayer(MacAddr([2, 0, 0, 0, 0, 1])),
            NdOption::Mtu(1500),
            NdOption::Prefix {
                prefix_len: 64,
                flags: 0xc0,
                valid_s: 5,
                preferred_s: 6,
                prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
            },
            NdOption::Unknown { kind: 25, data: &[9; 6] },
        ]
    );
    // An empty option (RFC 4861 §4.6), one beyond the end, a stray byte, another type, another code.
    for (at, value) in [(17, 0), (17, 9), (0, 133), (1, 1)] {
        let mut bad = message.clone();
        bad[at] = value;
        assert!(RouterAdvertisement::new_checked(&bad).is_err(), "{at} {value}");
    }
    message.push(1);
    assert_eq!(RouterAdvertisement::new_checked(&message).err(), Some(Malformed::Option));
}

#[test]
fn group_addresses() {
    let target = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0x12, 0x3456, 0x789a);
    let group = solicited_node(target);
    assert_eq!(group, "ff02::1:ff56:789a".parse::<Ipv6Addr>().unwrap());
    assert_eq!(MacAddr::from_ipv6_multicast(group), "33:33:ff:56:78:9a".parse().unwrap());
    let group = Ipv4Addr::new(239, 129, 2, 3);
    assert_eq!(MacAddr::from_ipv4_multicast(group), "01:00:5e:01:02:03".parse().unwrap());
}

#[test]
fn errors_only_where_rfc_1812_allows() {
    let packet = |src: [u8; 4], dst: [u8; 4], protocol: u8, fragment: u16, body: &[u8]| {
        let mut packet = vec![0; 20];
        Ipv4Header {
            tos: 0,
            total_len: 20 + body.len() as u16,
            identification: 0,
            flags_fragment: fragment,
            ttl: 1,
            protocol,
            src: src.into(),
            dst: dst.into(),
        }
        .emit(packet.first_chunk_mut().unwrap());
        packet.extend(body);
        Icmpv4Error::may_answer(&Ipv4::new_checked(packet).unwrap())
    };
    let (a, b) = ([10, 0, 0, 1], [10, 0, 1, 1]);
    assert!(packet(a, b, 17, 0, &[]));
    assert!(packet(a, b, 17, ipv4::MORE_FRAGMENTS, &[]));
    assert!(packet(a, b, 1, 0, &[8, 0, 0, 0, 0, 0, 0, 0]));
    assert!(!packet(a, b, 17, 1, &[]), "later fragment");
    assert!(!packet(a, b, 1, 0, &[3, 0, 0, 0, 0, 0, 0, 0]), "ICMP error");
    assert!(!packet(a, b, 1, 0, &[8, 0]), "stub of ICMP");
    assert!(!packet(a, [224, 0, 0, 1], 17, 0, &[]), "to a group");
    assert!(!packet(a, [255; 4], 17, 0, &[]), "to all");
    for src in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [240, 0, 0, 1], [255; 4]] {
        assert!(!packet(src, b, 17, 0, &[]), "from {src:?}");
    }
}

#[test]
fn errors_only_where_rfc_4443_allows() {
    let exceeded = Icmpv6Error::hop_limit_exceeded();
    let answers = |error: Icmpv6Error, next_header, body: &[u8]| {
        error.may_answer(&Ipv6::new_checked(v6(next_header, body)).unwrap())
    };
    assert!(answers(exceeded, 17, &[]));
    assert!(answers(exceeded, 58, &[128, 0, 0, 0, 0, 0, 0, 0]));
    assert!(!answers(exceeded, 58, &[3, 0, 0, 0, 0, 0, 0, 0]), "error");
    assert!(!answers(exceeded, 58, &[137, 0, 0, 0, 0, 0, 0, 0]), "redirect");
    assert!(
        !answers(exceeded, 60, &[58, 0, 1, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
        "error behind options"
    );
    assert!(!answers(exceeded, 44, &[58, 0, 0, 8, 0, 0, 0, 1]), "later fragment of ICMPv6");
    assert!(!answers(exceeded, 135, &[]), "not sure");
    assert!(answers(Icmpv6Error::parameter_problem(1, 40), 135, &[]));

    let from_to = |error: Icmpv6Error, src: &str, dst: &str| {
        let mut packet = v6(17, &[]);
        let mut ip = Ipv6::new_checked(&mut packet).unwrap();
        ip.set_src(src.parse().unwrap());
        ip.set_dst(dst.parse().unwrap());
        error.may_answer(&ip)
    };
    assert!(!from_to(exceeded, "::", "2001:db8::1"));
    assert!(!from_to(exceeded, "ff02::1", "2001:db8::1"));
    assert!(!from_to(exceeded, "2001:db8::2", "ff02::1"));
    assert!(from_to(Icmpv6Error::packet_too_big(1280), "2001:db8::2", "ff0e::1"));
    assert!(from_to(Icmpv6Error::parameter_problem(2, 42), "2001:db8::2", "ff0e::1"));
    assert!(!from_to(Icmpv6Error::parameter_problem(1, 42), "2001:db8::2", "ff0e::1"));
}

#[test]
fn error_fields_by_kind() {
    let offending = with_options(&[]);
    let mut out = [0; 64];
    let mut emit = |error: Icmpv4Error| {
        let len = error.emit(Ipv4Addr::new(10, 0, 0, 1), &offending, &mut out).unwrap();
        out[20..len].to_vec()
    };
    let bytes = emit(Icmpv4Error::fragmentation_needed(1400));
    let icmp = Icmpv4::new_checked(&bytes).unwrap();
    assert_eq!((icmp.message_type(), icmp.code(), icmp.mtu()), (3, 4, 1400));
    let bytes = emit(Icmpv4Error::parameter_problem(21));
    let icmp = Icmpv4::new_checked(&bytes).unwrap();
    assert_eq!((icmp.message_type(), icmp.code(), icmp.pointer()), (12, 0, 21));
    let bytes = emit(Icmpv4Error::redirect(Ipv4Addr::new(10, 0, 0, 7)));
    let icmp = Icmpv4::new_checked(&bytes).unwrap();
    assert_eq!((icmp.message_type(), icmp.code(), icmp.rest()), (5, 1, 0x0a00_0007));
    assert_eq!(emit(Icmpv4Error::ttl_exceeded())[..2], [11, 0]);
    assert_eq!(emit(Icmpv4Error::unreachable(icmpv4::unreachable::HOST))[..2], [3, 1]);
}

/// The one message whose checksum an incremental update gets wrong: nothing but zeros.
#[test]
fn echo_reply_of_zeros() {
    let mut message = [8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut icmp = Icmpv4::new_checked(&mut message[..]).unwrap();
    icmp.fill_checksum();
    icmp.make_echo_reply();
    assert_eq!((icmp.message_type(), icmp.checksum()), (0, 0xffff));
}

#[test]
fn udp_checksum_of_zero_is_sent_as_ones() {
    // Ports and length add up to ffff with this destination port, so the checksum comes out as 0.
    let mut datagram = [0, 1, 0xff, 0xf6, 0, 8, 0, 0];
    let mut udp = Udp::new_checked(&mut datagram[..]).unwrap();
    udp.fill_checksum(Sum::new());
    assert_eq!(udp.checksum(), 0xffff);
    assert!(udp.checksum_ok(Sum::new()));
    // There and back by updates: never 0, which would say that there is none.
    udp.set_dst_port(80);
    udp.update_checksum_u16(0xfff6, 80);
    assert!(udp.checksum_ok(Sum::new()) && udp.checksum() != 0xffff);
    udp.set_dst_port(0xfff6);
    udp.update_checksum_u16(80, 0xfff6);
    assert_eq!(udp.checksum(), 0xffff);
    // None stays none.
    udp.set_checksum(0);
    udp.update_checksum_u16(1, 2);
    udp.update_checksum_u32(1, 2);
    assert_eq!(udp.checksum(), 0);
    assert!(udp.checksum_ok(Sum::new()));
}

#[test]
fn bad_tcp_options_end_the_list() {
    let options = |options: [u8; 4]| {
        let mut segment = [0; 24];
        segment[12] = 6 << 4;
        segment[20..].copy_from_slice(&options);
        Tcp::new_checked(segment).unwrap().options().map(|option| option.is_ok()).collect::<Vec<_>>()
    };
    assert_eq!(options([1, 1, 4, 2]), [true]);
    assert_eq!(options([4, 2, 4, 2]), [true, true]);
    assert_eq!(options([4, 2, 0, 2]), [true]);
    assert_eq!(options([4, 2, 4, 1]), [true, false], "length below 2");
    assert_eq!(options([4, 2, 4, 0]), [true, false], "length below 2");
    assert_eq!(options([2, 5, 0, 0]), [false], "beyond the header");
    assert_eq!(options([1, 1, 1, 4]), [false], "no length");
}

#[test]
fn vlan_tag_bits() {
    let mut tag = [0xb0, 0x05, 0x08, 0x00];
    let mut vlan = Vlan::new_checked(&mut tag[..]).unwrap();
    assert_eq!((vlan.priority(), vlan.drop_eligible(), vlan.vid()), (5, true, 5));
    vlan.set_vid(0xffff);
    assert_eq!((vlan.priority(), vlan.drop_eligible(), vlan.vid()), (5, true, 0xfff));
}
