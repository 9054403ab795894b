//! The views against etherparse: the same packets accepted, the same fields read, the same bytes built.

use causeway_packet::checksum;
use causeway_packet::wire::ipv6_ext::UpperLayer;
use causeway_packet::wire::{self, tcp::TcpOption, *};
use etherparse::{IpNumber, PacketBuilder, TcpOptionElement};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Random bytes behind a random choice of first bytes, so that versions and lengths are right often enough.
fn bytes(first: &'static [&'static [u8]], max: usize) -> impl Strategy<Value = Vec<u8>> {
    let tail = prop::collection::vec(prop_oneof![any::<u8>(), 0u8..12], 0..max);
    (prop::sample::select(first), tail).prop_map(|(first, tail)| [first, &tail].concat())
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 4000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn ipv4(data in bytes(&[&[], &[0x45], &[0x45, 0, 0, 32], &[0x48, 0, 0, 40], &[0x4f, 0, 0, 60]], 90)) {
        let theirs = etherparse::Ipv4Slice::from_slice(&data);
        let ours = Ipv4::new_checked(&data);
        // etherparse goes on to parse an AH and refuses what is wrong there; that is no matter of IPv4.
        prop_assume!(data.get(9) != Some(&protocol::AH));
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours.err(), theirs.err());
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            let header = theirs.header();
            prop_assert_eq!(ours.version(), header.version());
            prop_assert_eq!(ours.header_len(), header.slice().len());
            prop_assert_eq!(ours.tos(), header.dcp().value() << 2 | header.ecn().value());
            prop_assert_eq!(ours.total_len(), header.total_len());
            prop_assert_eq!(ours.identification(), header.identification());
            prop_assert_eq!(ours.dont_fragment(), header.dont_fragment());
            prop_assert_eq!(ours.more_fragments(), header.more_fragments());
            prop_assert_eq!(ours.fragment_offset(), usize::from(header.fragments_offset().byte_offset()));
            prop_assert_eq!(ours.is_fragment(), header.is_fragmenting_payload());
            prop_assert_eq!(ours.ttl(), header.ttl());
            prop_assert_eq!(ours.protocol(), header.protocol().0);
            prop_assert_eq!(ours.checksum(), header.header_checksum());
            prop_assert_eq!(ours.src(), header.source_addr());
            prop_assert_eq!(ours.dst(), header.destination_addr());
            prop_assert_eq!(ours.options_bytes(), header.options());
            prop_assert_eq!(ours.payload(), theirs.payload().payload);
            // etherparse has no place for the reserved flag, and so leaves it out of the sum.
            if ours.flags_fragment() & 0x8000 == 0 {
                let right = header.to_header().calc_header_checksum();
                prop_assert_eq!(ours.checksum_ok(), right == header.header_checksum());
                let mut copy = data.clone();
                let mut ours = Ipv4::new_checked(&mut copy).unwrap();
                ours.fill_checksum();
                prop_assert_eq!(ours.checksum(), right);
            }
        }
    }

    #[test]
    fn ipv6_with_extensions(
        first in prop::sample::select(vec![0u8, 6, 17, 43, 44, 51, 58, 59, 60]),
        chain in prop::collection::vec((prop::sample::select(vec![0u8, 17, 43, 44, 51, 58, 60]), 0u8..3), 1..7),
        payload_len in 0usize..120,
        fragment_word in prop_oneof![Just(0u16), Just(1), any::<u16>()],
    ) {
        // Headers of the kinds in `chain`, each naming the next; their bodies hold small lengths.
        let mut body = vec![];
        let mut kind = first;
        for (next, units) in chain {
            let len = match kind { 44 => 8, 51 => (usize::from(units) + 2) * 4, _ => (usize::from(units) + 1) * 8 };
            let mut header = vec![next; len];
            header[1] = units;
            if kind == 44 {
                header[2..4].copy_from_slice(&fragment_word.to_be_bytes());
            }
            body.extend(header);
            kind = next;
        }
        body.resize(payload_len.max(1), 0);
        let mut data = vec![0; 40];
        Ipv6Header {
            traffic_class: 3, flow_label: 0x12345, payload_len: body.len() as u16, next_header: first,
            hop_limit: 64, src: Ipv6Addr::LOCALHOST, dst: Ipv6Addr::UNSPECIFIED,
        }.emit(data.first_chunk_mut().unwrap());
        data.extend(&body);

        let ours = Ipv6::new_checked(&data).unwrap().upper_layer();
        let theirs = etherparse::Ipv6Slice::from_slice(&data);
        match (ours, theirs) {
            (Ok(UpperLayer::At { protocol, offset, first_fragment }), Ok(theirs)) => {
                prop_assert_eq!(IpNumber(protocol), theirs.payload().ip_number);
                prop_assert_eq!(&data[offset..], theirs.payload().payload);
                prop_assert_eq!(first_fragment, theirs.is_payload_fragmented());
            }
            // etherparse goes on into the middle of a later fragment, and takes a second fragment header.
            (Ok(UpperLayer::LaterFragment { .. }), _) => prop_assert!(fragment_word >= 8),
            (Ok(UpperLayer::Unsure { next_header: 0, .. }), Err(_)) => {}
            (Ok(UpperLayer::Unsure { next_header: 44, .. }), _) => {}
            (Err(Malformed::HeaderLength), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{ours:?} {theirs:?}"),
        }
    }

    #[test]
    fn ipv6_fixed_header(data in bytes(&[&[], &[0x60], &[0x6f, 0xff, 0xff, 0xff, 0, 8, 59]], 70)) {
        let ours = Ipv6::new_quoted(&data);
        let theirs = etherparse::Ipv6HeaderSlice::from_slice(&data);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.traffic_class(), theirs.traffic_class());
            prop_assert_eq!(ours.flow_label(), theirs.flow_label().value());
            prop_assert_eq!(ours.payload_len(), theirs.payload_length());
            prop_assert_eq!(ours.next_header(), theirs.next_header().0);
            prop_assert_eq!(ours.hop_limit(), theirs.hop_limit());
            prop_assert_eq!(ours.src(), theirs.source_addr());
            prop_assert_eq!(ours.dst(), theirs.destination_addr());
        }
    }

    #[test]
    fn udp(data in bytes(&[&[], &[0, 1, 0, 2, 0, 8], &[0, 1, 0, 2, 0, 20]], 40)) {
        // A length of 0 is a jumbogram to etherparse; over IPv4 and in short packets it is an error.
        prop_assume!(data.get(4..6) != Some(&[0, 0]));
        let ours = Udp::new_checked(&data);
        let theirs = etherparse::UdpSlice::from_slice(&data);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.src_port(), theirs.source_port());
            prop_assert_eq!(ours.dst_port(), theirs.destination_port());
            prop_assert_eq!(ours.length(), theirs.length());
            prop_assert_eq!(ours.checksum(), theirs.checksum());
            prop_assert_eq!(ours.payload(), theirs.payload());
        }
    }

    #[test]
    fn tcp(mut data in bytes(&[&[], &[0; 12]], 90), words in 0u8..16) {
        if let Some(offset) = data.get_mut(12) {
            *offset = words << 4;
        }
        let ours = Tcp::new_checked(&data);
        let theirs = etherparse::TcpSlice::from_slice(&data);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok());
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours.src_port(), theirs.source_port());
            prop_assert_eq!(ours.dst_port(), theirs.destination_port());
            prop_assert_eq!(ours.sequence(), theirs.sequence_number());
            prop_assert_eq!(ours.acknowledgement(), theirs.acknowledgment_number());
            prop_assert_eq!(ours.header_len(), usize::from(theirs.data_offset()) * 4);
            use wire::tcp::flag::*;
            let flags = [
                (FIN, theirs.fin()), (SYN, theirs.syn()), (RST, theirs.rst()), (PSH, theirs.psh()),
                (ACK, theirs.ack()), (URG, theirs.urg()), (ECE, theirs.ece()), (CWR, theirs.cwr()),
            ];
            for (flag, set) in flags {
                prop_assert_eq!(ours.flags() & flag != 0, set);
            }
            prop_assert_eq!(ours.window(), theirs.window_size());
            prop_assert_eq!(ours.checksum(), theirs.checksum());
            prop_assert_eq!(ours.urgent(), theirs.urgent_pointer());
            prop_assert_eq!(ours.options_bytes(), theirs.options());
            prop_assert_eq!(ours.payload(), theirs.payload());
        }
    }

    /// Known options in any order, among unknown ones, which etherparse stops at.
    #[test]
    fn tcp_options(elements in prop::collection::vec((0usize..7, any::<u32>(), any::<u32>()), 0..5)) {
        let mut options = vec![];
        let mut expected = vec![];
        for (kind, a, b) in elements {
            let (bytes, element) = tcp_option(kind, a, b);
            if options.len() + bytes.len() <= 40 {
                options.extend(bytes);
                expected.push(element);
            }
        }
        options.resize(options.len().next_multiple_of(4), 0);
        let theirs: Vec<_> = etherparse::TcpOptionsIterator::from_slice(&options).collect();
        let wanted: Vec<_> = expected.iter().cloned().map(Ok).collect();
        prop_assert_eq!(theirs, wanted, "the generator is wrong");

        let mut segment = vec![0; 20];
        segment[12] = (((20 + options.len()) / 4) << 4) as u8;
        segment.extend(&options);
        let tcp = Tcp::new_checked(&segment).unwrap();
        let ours: Vec<_> = tcp.options().map(|option| translate(option.unwrap())).collect();
        expected.retain(|element| *element != TcpOptionElement::Noop);
        prop_assert_eq!(ours, expected);
    }
}

/// The option of kind number `kind` here, as bytes and as etherparse sees it.
fn tcp_option(kind: usize, a: u32, b: u32) -> (Vec<u8>, TcpOptionElement) {
    let pair = [a.to_be_bytes(), b.to_be_bytes()].concat();
    match kind {
        0 => (vec![1], TcpOptionElement::Noop),
        1 => ([&[2, 4][..], &pair[2..4]].concat(), TcpOptionElement::MaximumSegmentSize(a as u16)),
        2 => (vec![3, 3, pair[0]], TcpOptionElement::WindowScale(pair[0])),
        3 => (vec![4, 2], TcpOptionElement::SelectiveAcknowledgementPermitted),
        4 => ([&[8, 10], &pair[..]].concat(), TcpOptionElement::Timestamp(a, b)),
        5 => {
            let element = TcpOptionElement::SelectiveAcknowledgement((a, b), [None; 3]);
            ([&[5, 10], &pair[..]].concat(), element)
        }
        _ => {
            let element = TcpOptionElement::SelectiveAcknowledgement((a, b), [Some((a, b)), None, None]);
            ([&[5, 18], &pair[..], &pair].concat(), element)
        }
    }
}

fn translate(option: TcpOption<'_>) -> TcpOptionElement {
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let block = |block: &[u8; 8]| (word(&block[..4]), word(&block[4..]));
    match option {
        TcpOption::MaximumSegmentSize(size) => TcpOptionElement::MaximumSegmentSize(size),
        TcpOption::WindowScale(shift) => TcpOptionElement::WindowScale(shift),
        TcpOption::SackPermitted => TcpOptionElement::SelectiveAcknowledgementPermitted,
        TcpOption::Timestamps { value, echo } => TcpOptionElement::Timestamp(value, echo),
        TcpOption::Sack(blocks) => {
            let more = std::array::from_fn(|i| blocks.get(i + 1).map(block));
            TcpOptionElement::SelectiveAcknowledgement(block(&blocks[0]), more)
        }
        TcpOption::Unknown { .. } => unreachable!("the generator makes known options only"),
    }
}

proptest! {
    /// Packets that etherparse builds: all our checksums agree, and ours are the same bytes.
    #[test]
    fn udp_packets(
        src: u32, dst: u32, src6: u128, dst6: u128, src_port: u16, dst_port: u16, ttl: u8,
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let (src, dst) = (Ipv4Addr::from(src), Ipv4Addr::from(dst));
        let mut theirs = vec![];
        let builder = PacketBuilder::ipv4(src.octets(), dst.octets(), ttl).udp(src_port, dst_port);
        builder.write(&mut theirs, &payload).unwrap();
        let ip = Ipv4::new_checked(&theirs).unwrap();
        let udp = Udp::new_checked(ip.payload()).unwrap();
        prop_assert!(ip.checksum_ok() && udp.checksum_ok(ip.pseudo_header(udp.length())));
        let mut ours = [&[0xaa; 28], &payload[..]].concat();
        let ip = Ipv4Header {
            tos: 0, total_len: 0, identification: 0, flags_fragment: ip.flags_fragment(), ttl, protocol: 0, src, dst,
        };
        let udp = UdpHeader { src_port, dst_port, length: 0 };
        udp::encapsulate_v4(ip, udp, &mut ours).unwrap();
        prop_assert_eq!(&ours, &theirs);

        let (src, dst) = (Ipv6Addr::from(src6), Ipv6Addr::from(dst6));
        let mut theirs = vec![];
        let builder = PacketBuilder::ipv6(src.octets(), dst.octets(), ttl).udp(src_port, dst_port);
        builder.write(&mut theirs, &payload).unwrap();
        let mut ours = [&[0xaa; 48], &payload[..]].concat();
        let ip = Ipv6Header {
            traffic_class: 0, flow_label: 0, payload_len: 0, next_header: 0, hop_limit: ttl, src, dst,
        };
        udp::encapsulate_v6(ip, udp, &mut ours).unwrap();
        prop_assert_eq!(&ours, &theirs);
    }

    #[test]
    fn tcp_and_icmp_packets(
        src6: u128, dst6: u128, src: u32, dst: u32, id: u16, sequence: u16,
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let (src, dst) = (Ipv4Addr::from(src), Ipv4Addr::from(dst));
        let (mut tcp4, mut ping4, mut ping6) = (vec![], vec![], vec![]);
        let builder = PacketBuilder::ipv4(src.octets(), dst.octets(), 9).tcp(id, sequence, 7, 1024);
        builder.write(&mut tcp4, &payload).unwrap();
        let ip = Ipv4::new_checked(&tcp4).unwrap();
        let length = ip.payload().len() as u16;
        prop_assert!(Tcp::new_checked(ip.payload()).unwrap().checksum_ok(ip.pseudo_header(length)));

        let builder = PacketBuilder::ipv4(src.octets(), dst.octets(), 9).icmpv4_echo_request(id, sequence);
        builder.write(&mut ping4, &payload).unwrap();
        let ip = Ipv4::new_checked(&ping4).unwrap();
        let icmp = Icmpv4::new_checked(ip.payload()).unwrap();
        prop_assert!(icmp.checksum_ok() && icmp.message_type() == icmpv4::kind::ECHO_REQUEST);
        prop_assert_eq!((icmp.identifier(), icmp.sequence(), icmp.payload()), (id, sequence, &payload[..]));

        let (src, dst) = (Ipv6Addr::from(src6), Ipv6Addr::from(dst6));
        let builder = PacketBuilder::ipv6(src.octets(), dst.octets(), 9).icmpv6_echo_request(id, sequence);
        builder.write(&mut ping6, &payload).unwrap();
        let ip = Ipv6::new_checked(&ping6).unwrap();
        let icmp = Icmpv6::new_checked(ip.payload()).unwrap();
        let pseudo_header = checksum::pseudo_header_v6(src, dst, protocol::ICMPV6, ip.payload().len() as u32);
        prop_assert!(icmp.checksum_ok(pseudo_header));
        prop_assert_eq!((icmp.identifier(), icmp.sequence(), icmp.payload()), (id, sequence, &payload[..]));
    }

    #[test]
    fn ethernet_vlan_arp(src: [u8; 6], dst: [u8; 6], vid in 0u16..4096, a: u32, b: u32) {
        let mut tagged = vec![];
        let builder = PacketBuilder::ethernet2(src, dst)
            .double_vlan(vid.try_into().unwrap(), 7.try_into().unwrap())
            .ipv4([1, 2, 3, 4], [5, 6, 7, 8], 64)
            .udp(1, 2);
        builder.write(&mut tagged, b"x").unwrap();
        let frame = Ethernet::new_checked(&tagged).unwrap();
        prop_assert_eq!((frame.src(), frame.dst()), (MacAddr(src), MacAddr(dst)));
        let outer = Vlan::new_checked(frame.payload()).unwrap();
        prop_assert_eq!((outer.vid(), outer.ether_type()), (vid, ethernet::ether_type::VLAN));
        let inner = Vlan::new_checked(outer.payload()).unwrap();
        prop_assert_eq!((inner.vid(), inner.ether_type()), (7, ethernet::ether_type::IPV4));
        prop_assert_eq!(frame.network_layer(), (ethernet::ether_type::IPV4, 22));
        prop_assert!(Ipv4::new_checked(inner.payload()).is_ok());

        let request = ArpPacket::request(MacAddr(src), a.into(), b.into());
        let mut ours = [0; 42];
        let (ether, arp) = ours.split_first_chunk_mut().unwrap();
        EthernetHeader { dst: MacAddr::BROADCAST, src: MacAddr(src), ether_type: ethernet::ether_type::ARP }
            .emit(ether);
        request.emit(arp.first_chunk_mut().unwrap());
        let theirs = etherparse::ArpPacket::new(
            etherparse::ArpHardwareId::ETHERNET, etherparse::EtherType::IPV4,
            etherparse::ArpOperation::REQUEST, &src, &a.to_be_bytes(), &[0; 6], &b.to_be_bytes(),
        ).unwrap();
        let mut expected = vec![];
        PacketBuilder::ethernet2(src, [0xff; 6]).arp(theirs).write(&mut expected).unwrap();
        prop_assert_eq!(&ours[..], &expected[..]);
    }
}
