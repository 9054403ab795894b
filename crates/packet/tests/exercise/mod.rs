//! What must hold of every view on any bytes: called by the property tests and by the fuzz targets.
//!
//! Each function returns whether the view accepted the bytes, and panics where an invariant is broken.
#![allow(dead_code, reason = "each test and fuzz target uses some of these")]

use causeway_packet::checksum::{self, Sum};
use causeway_packet::wire::ipv6_ext::UpperLayer;
use causeway_packet::wire::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A value made of `bytes`, different for each `salt`.
fn value_from<V: Value>(bytes: &[u8], salt: usize) -> V {
    let byte = |i: usize| bytes.get((i * 7 + salt) % bytes.len().max(1)).copied().unwrap_or(0);
    let octets: [u8; 16] = std::array::from_fn(|i| byte(i).wrapping_mul(31).wrapping_add(salt as u8));
    V::load(&octets[..size_of::<V>()])
}

/// Every field reads back what was written, and writing it changes its range and nothing else.
macro_rules! fields {
    ($view:ident in $($module:ident)::+; $($range:ident $get:ident $set:ident,)*) => {{
        use causeway_packet::wire::$($module)::+ as field;
        $({
            let range = field::$range;
            let before = $view.as_bytes().to_vec();
            let original = $view.$get();
            let value = value_from(&before, range.start);
            $view.$set(value);
            assert_eq!($view.$get(), value);
            let mut expected = before.clone();
            value.store(&mut expected[range]);
            assert_eq!($view.as_bytes(), expected);
            $view.$set(original);
            assert_eq!($view.as_bytes(), before);
        })*
    }};
}

pub fn ethernet(data: &[u8]) -> bool {
    let Ok(view) = Ethernet::new_checked(data) else {
        assert!(data.len() < ethernet::HEADER_LEN);
        return false;
    };
    assert_eq!(view.payload(), &data[14..]);
    let (_, offset) = view.network_layer();
    assert!(matches!(offset, 14 | 18 | 22) && offset <= data.len());
    let mut copy = data.to_vec();
    let mut view = Ethernet::new_checked(&mut copy[..]).unwrap();
    fields!(view in ethernet::field; DST dst set_dst, SRC src set_src, ETHER_TYPE ether_type set_ether_type,);
    assert_eq!(view.payload_mut(), &data[14..]);
    let text = view.src().to_string();
    assert_eq!(text.parse(), Ok(view.src()));
    true
}

/// Parsing an address takes any text without a panic, and prints what it took.
pub fn mac_addr(text: &str) -> bool {
    text.parse::<MacAddr>().is_ok_and(|mac| mac.to_string().parse() == Ok(mac))
}

pub fn vlan(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    let Ok(mut view) = Vlan::new_checked(&mut copy[..]) else {
        assert!(data.len() < vlan::TAG_LEN);
        return false;
    };
    fields!(view in vlan::field; TCI tci set_tci, ETHER_TYPE ether_type set_ether_type,);
    let (priority, drop_eligible) = (view.priority(), view.drop_eligible());
    let vid = value_from::<u16>(data, 1);
    view.set_vid(vid);
    assert_eq!((view.vid(), view.priority(), view.drop_eligible()), (vid & 0xfff, priority, drop_eligible));
    assert_eq!(view.payload(), &data[4..]);
    true
}

pub fn arp(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    let Ok(mut view) = Arp::new_checked(&mut copy[..]) else { return false };
    fields!(view in arp::field;
        HARDWARE_TYPE hardware_type set_hardware_type, PROTOCOL_TYPE protocol_type set_protocol_type,
        HARDWARE_LEN hardware_len set_hardware_len, PROTOCOL_LEN protocol_len set_protocol_len,
        OPERATION operation set_operation, SENDER_MAC sender_mac set_sender_mac,
        SENDER_IP sender_ip set_sender_ip, TARGET_MAC target_mac set_target_mac,
        TARGET_IP target_ip set_target_ip,);
    let mut out = [0; arp::PACKET_LEN];
    let mac = value_from(data, 3);
    ArpPacket::reply(&view, mac).emit(&mut out);
    let reply = Arp::new_checked(&out[..]).unwrap();
    assert_eq!((reply.operation(), reply.sender_mac(), reply.sender_ip()), (2, mac, view.target_ip()));
    assert_eq!((reply.target_mac(), reply.target_ip()), (view.sender_mac(), view.sender_ip()));
    true
}

pub fn ipv4(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    if let Ok(quoted) = Ipv4::new_quoted(data) {
        let end = data.len().min(quoted.total_len().into());
        assert_eq!(quoted.payload(), data.get(quoted.header_len()..end).unwrap_or_default());
    }
    let Ok(mut view) = Ipv4::new_checked(&mut copy[..]) else { return false };
    let (header_len, total_len) = (view.header_len(), usize::from(view.total_len()));
    assert_eq!(view.payload(), &data[header_len..total_len]);
    assert_eq!(view.payload_mut(), &data[header_len..total_len]);
    assert_eq!(view.options_bytes(), &data[20..header_len]);
    fields!(view in ipv4::field;
        VERSION_IHL version_ihl set_version_ihl, TOS tos set_tos, TOTAL_LEN total_len set_total_len,
        IDENTIFICATION identification set_identification,
        FLAGS_FRAGMENT flags_fragment set_flags_fragment, TTL ttl set_ttl, PROTOCOL protocol set_protocol,
        CHECKSUM checksum set_checksum, SRC src set_src, DST dst set_dst,);
    assert_eq!(view.checksum_ok(), checksum::verify(&data[..header_len]));

    view.fill_checksum();
    assert!(view.checksum_ok());
    view.decrement_ttl();
    assert!(view.checksum_ok());
    view.rewrite_src(value_from(data, 5));
    view.rewrite_dst(value_from(data, 6));
    view.rewrite_tos(value_from(data, 7));
    assert!(view.checksum_ok());

    ipv4_options(&mut view);
    // Whatever the length fields say now, no accessor panics.
    for ihl in 0..16 {
        view.set_version_ihl(0x40 | ihl);
        view.set_total_len(value_from(data, usize::from(ihl)));
        let _ = (view.payload().len(), view.payload_mut().len(), view.checksum_ok(), view.options().count());
    }
    true
}

fn ipv4_options(view: &mut Ipv4<&mut [u8]>) {
    let header_len = view.header_len();
    let mut end = 20;
    // Where options are, and one place where an option need not be.
    let mut offsets = vec![usize::from(value_from::<u8>(view.as_bytes(), 11)) % (header_len + 4)];
    for option in view.options() {
        let offset = match option {
            Ok(option) => option.offset,
            Err(error) => error.offset,
        };
        assert!(offset >= end && offset <= header_len);
        assert!(option.is_err() || offset + 2 <= header_len);
        end = offset + 2;
        offsets.push(offset);
    }
    assert!(offsets.len() <= 21);
    let address = Ipv4Addr::new(10, 1, 2, 3);
    for offset in offsets {
        let before = view.as_bytes().to_vec();
        let recorded = view.record_route(offset, address);
        assert_eq!(recorded == Ok(true), view.as_bytes() != before);
        let before = view.as_bytes().to_vec();
        let recorded = view.record_timestamp(offset, address, 0x0102_0304, |next| next.octets()[0] & 1 == 0);
        assert_eq!(recorded == Ok(true), view.as_bytes() != before);
        assert_eq!(view.as_bytes()[..20], before[..20]);
        assert_eq!(view.as_bytes()[header_len..], before[header_len..]);
    }
}

pub fn ipv6(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    if let Ok(quoted) = Ipv6::new_quoted(data) {
        let end = data.len().min(40 + usize::from(quoted.payload_len()));
        assert_eq!(quoted.payload(), &data[40..end]);
        let _ = quoted.upper_layer();
    }
    let Ok(mut view) = Ipv6::new_checked(&mut copy[..]) else { return false };
    let end = 40 + usize::from(view.payload_len());
    assert_eq!(view.payload(), &data[40..end]);
    assert_eq!(view.payload_mut(), &data[40..end]);
    fields!(view in ipv6::field;
        VERSION_CLASS_FLOW version_class_flow set_version_class_flow, PAYLOAD_LEN payload_len set_payload_len,
        NEXT_HEADER next_header set_next_header, HOP_LIMIT hop_limit set_hop_limit,
        SRC src set_src, DST dst set_dst,);

    let mut offset = 40;
    for extension in view.extensions().map_while(Result::ok) {
        assert_eq!(extension.offset, offset);
        assert!(extension.bytes.len() >= 8);
        assert_eq!(extension.bytes, &data[offset..offset + extension.bytes.len()]);
        offset += extension.bytes.len();
        for option in extension.options().map_while(Result::ok) {
            assert!(option.offset + 2 + option.data.len() <= offset);
            assert_eq!(data[option.offset], option.kind);
        }
        let _ = (extension.fragment(), extension.routing());
    }
    if let Ok(UpperLayer::At { offset: at, .. } | UpperLayer::Unsure { offset: at, .. }) = view.upper_layer()
    {
        assert_eq!(at, offset);
    }
    let (version, flow) = (view.version(), view.flow_label());
    let class = value_from(data, 9);
    view.set_traffic_class(class);
    assert_eq!((view.version(), view.traffic_class(), view.flow_label()), (version, class, flow));
    view.set_payload_len(u16::MAX);
    let _ = (view.payload().len(), view.payload_mut().len(), view.upper_layer());
    true
}

pub fn icmpv4(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    let Ok(mut view) = Icmpv4::new_checked(&mut copy[..]) else {
        assert!(data.len() < icmpv4::HEADER_LEN);
        return false;
    };
    fields!(view in icmpv4::field;
        TYPE message_type set_message_type, CODE code set_code, CHECKSUM checksum set_checksum,
        REST rest set_rest, IDENTIFIER identifier set_identifier, SEQUENCE sequence set_sequence,
        POINTER pointer set_pointer, MTU mtu set_mtu,);
    assert_eq!(view.payload(), &data[8..]);
    assert_eq!(view.payload_mut(), &data[8..]);
    view.fill_checksum();
    assert!(view.checksum_ok());
    view.set_message_type(icmpv4::kind::ECHO_REQUEST);
    view.fill_checksum();
    view.make_echo_reply();
    assert!(view.checksum_ok() && view.message_type() == icmpv4::kind::ECHO_REPLY);
    true
}

pub fn icmpv6(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    let Ok(mut view) = Icmpv6::new_checked(&mut copy[..]) else {
        assert!(data.len() < icmpv6::HEADER_LEN);
        return false;
    };
    fields!(view in icmpv6::field;
        TYPE message_type set_message_type, CODE code set_code, CHECKSUM checksum set_checksum,
        REST rest set_rest, IDENTIFIER identifier set_identifier, SEQUENCE sequence set_sequence,);
    assert_eq!(view.payload(), &data[8..]);
    assert_eq!(view.payload_mut(), &data[8..]);
    let pseudo_header = Sum::new().word(value_from(data, 2));
    view.fill_checksum(pseudo_header);
    assert!(view.checksum_ok(pseudo_header));
    true
}

/// The five messages of neighbour discovery, and the answer to a solicitation.
pub fn ndisc(data: &[u8]) -> bool {
    use ndisc::*;
    let mut accepted = false;
    macro_rules! message {
        ($name:ident in $field:ident; $($fields:tt)*) => {
            let mut copy = data.to_vec();
            if let Ok(mut view) = $name::new_checked(&mut copy[..]) {
                accepted = true;
                assert!(view.options().all(|option| option.is_ok()));
                fields!(view in ndisc::$field; TYPE message_type set_message_type, CODE code set_code, $($fields)*);
            }
        };
    }
    message!(RouterSolicitation in router_solicitation;);
    message!(RouterAdvertisement in router_advertisement;
        HOP_LIMIT hop_limit set_hop_limit, FLAGS flags set_flags, LIFETIME lifetime_s set_lifetime_s,
        REACHABLE reachable_ms set_reachable_ms, RETRANSMIT retransmit_ms set_retransmit_ms,);
    message!(NeighborSolicitation in neighbor_solicitation; TARGET target set_target,);
    message!(NeighborAdvertisement in neighbor_advertisement; FLAGS flags set_flags, TARGET target set_target,);
    message!(Redirect in redirect; TARGET target set_target, DESTINATION destination set_destination,);

    if let Ok(solicitation) = NeighborSolicitation::new_checked(data) {
        let (target, mac, flags) = (solicitation.target(), value_from(data, 4), SOLICITED | OVERRIDE);
        let dst = value_from::<Ipv6Addr>(data, 8);
        let mut out = [0xaa; NEIGHBOR_LEN];
        NeighborMessage::Advertisement { target, mac, flags }.emit(target, dst, &mut out);
        let pseudo_header = checksum::pseudo_header_v6(target, dst, protocol::ICMPV6, 32);
        assert!(Icmpv6::new_checked(&out[..]).unwrap().checksum_ok(pseudo_header));
        let answer = NeighborAdvertisement::new_checked(&out[..]).unwrap();
        assert_eq!((answer.target(), answer.flags()), (target, flags));
        assert!(answer.options().eq([Ok(NdOption::TargetLinkLayer(mac))]));
    }
    accepted
}

pub fn udp(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    if let Ok(quoted) = Udp::new_quoted(data) {
        let end = data.len().min(quoted.length().into());
        assert_eq!(quoted.payload(), data.get(8..end).unwrap_or_default());
        let _ = quoted.checksum_ok(Sum::new());
    }
    let Ok(mut view) = Udp::new_checked(&mut copy[..]) else { return false };
    let length = usize::from(view.length());
    assert_eq!(view.payload(), &data[8..length]);
    assert_eq!(view.payload_mut(), &data[8..length]);
    fields!(view in udp::field; SRC_PORT src_port set_src_port, DST_PORT dst_port set_dst_port,
        LENGTH length set_length, CHECKSUM checksum set_checksum,);
    let pseudo_header = Sum::new().word(value_from(data, 2));
    view.fill_checksum(pseudo_header);
    assert!(view.checksum() != 0 && view.checksum_ok(pseudo_header));
    let (old, new) = (view.dst_port(), value_from(data, 3));
    view.set_dst_port(new);
    view.update_checksum_u16(old, new);
    assert!(view.checksum() != 0 && view.checksum_ok(pseudo_header));
    view.set_length(u16::MAX);
    let _ = (view.payload().len(), view.payload_mut().len(), view.checksum_ok(pseudo_header));
    true
}

pub fn tcp(data: &[u8]) -> bool {
    let mut copy = data.to_vec();
    let Ok(mut view) = Tcp::new_checked(&mut copy[..]) else { return false };
    let header_len = view.header_len();
    assert_eq!(view.payload(), &data[header_len..]);
    assert_eq!(view.options_bytes(), &data[20..header_len]);
    assert_eq!(view.options_bytes_mut(), &data[20..header_len]);
    assert!(view.options().count() <= 20);
    fields!(view in tcp::field; SRC_PORT src_port set_src_port, DST_PORT dst_port set_dst_port,
        SEQUENCE sequence set_sequence, ACKNOWLEDGEMENT acknowledgement set_acknowledgement,
        DATA_OFFSET data_offset set_data_offset, FLAGS flags set_flags, WINDOW window set_window,
        CHECKSUM checksum set_checksum, URGENT urgent set_urgent,);
    let pseudo_header = Sum::new().word(value_from(data, 2));
    view.fill_checksum(pseudo_header);
    assert!(view.checksum_ok(pseudo_header));
    let (old, new) = (view.sequence(), value_from(data, 3));
    view.set_sequence(new);
    view.update_checksum_u32(old, new);
    assert!(view.checksum_ok(pseudo_header));
    view.set_data_offset(value_from(data, 1));
    let _ = (view.payload().len(), view.options().count());
    true
}

/// Errors about any packet are whole packets with right checksums, and no error answers an error.
pub fn icmp_error(data: &[u8]) -> bool {
    let mut out = [0; 1500];
    let mut answered = false;
    if let Ok(offending) = Ipv4::new_quoted(data) {
        let error = Icmpv4Error::fragmentation_needed(value_from(data, 1));
        let len = error.emit(Ipv4Addr::new(10, 0, 0, 1), data, &mut out).unwrap();
        let ip = Ipv4::new_checked(&out[..len]).unwrap();
        assert!(len <= 576 && ip.checksum_ok() && ip.dst() == offending.src());
        let icmp = Icmpv4::new_checked(ip.payload()).unwrap();
        assert!(icmp.checksum_ok() && icmp.is_error() && data.starts_with(icmp.payload()));
        assert!(!Icmpv4Error::may_answer(&ip));
        answered |= Icmpv4Error::may_answer(&offending);
        assert_eq!(error.emit(Ipv4Addr::LOCALHOST, data, &mut out[..len - 1]), Err(Malformed::Length));
    }
    if let Ok(offending) = Ipv6::new_quoted(data) {
        let error = Icmpv6Error::packet_too_big(value_from(data, 1));
        let src = Ipv6Addr::LOCALHOST;
        let len = error.emit(src, data, &mut out).unwrap();
        let ip = Ipv6::new_checked(&out[..len]).unwrap();
        assert!(len <= 1280 && ip.dst() == offending.src());
        let icmp = Icmpv6::new_checked(ip.payload()).unwrap();
        assert!(icmp.checksum_ok(ip.pseudo_header(protocol::ICMPV6, ip.payload().len() as u32)));
        assert!(icmp.is_error() && data.starts_with(icmp.payload()));
        assert!(!error.may_answer(&ip));
        answered |= error.may_answer(&offending);
        assert_eq!(error.emit(src, data, &mut out[..len - 1]), Err(Malformed::Length));
    }
    answered
}

/// The checksum of any bytes is that of its words added one by one.
pub fn checksum_of(data: &[u8]) {
    let naive = data.chunks(2).fold(0u64, |sum, pair| {
        sum + u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    });
    let fold = |sum: u64| (sum & 0xffff) + (sum >> 16);
    assert_eq!(u64::from(Sum::new().bytes(data).fold()), fold(fold(fold(naive))));
}
