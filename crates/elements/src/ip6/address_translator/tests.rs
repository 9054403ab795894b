use super::*;
use crate::ip::corpus;
use causeway_engine::harness::{Harness, packet};
use causeway_packet::wire::{Icmpv6, Ipv6Header, Udp, UdpHeader, udp};
use proptest::prelude::*;

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn header(src: &str, dst: &str, next_header: u8, payload_len: u16) -> Ipv6Header {
    let (src, dst) = (address(src), address(dst));
    Ipv6Header { traffic_class: 0, flow_label: 0, payload_len, next_header, hop_limit: 9, src, dst }
}

/// A UDP packet from one end to another, with its checksum.
fn datagram(src: (&str, u16), dst: (&str, u16)) -> Packet {
    let mut bytes = vec![7; 52];
    let ports = UdpHeader { src_port: src.1, dst_port: dst.1, length: 0 };
    udp::encapsulate_v6(header(src.0, dst.0, 17, 0), ports, &mut bytes).unwrap();
    packet(&bytes)
}

fn echo(kind: u8, src: &str, dst: &str, identifier: u16) -> Packet {
    let mut bytes = vec![0; 52];
    header(src, dst, 58, 12).emit(bytes.first_chunk_mut().unwrap());
    let mut icmp = Icmpv6::new_checked(&mut bytes[40..]).unwrap();
    icmp.set_message_type(kind);
    icmp.set_identifier(identifier);
    icmp.fill_checksum(causeway_packet::checksum::pseudo_header_v6(address(src), address(dst), 58, 12));
    packet(&bytes)
}

/// Source and destination of a packet whose checksum is right.
fn ends(p: &Packet) -> [(String, u16); 2] {
    let ip = Ipv6::new_checked(p.data()).unwrap();
    let length = ip.payload().len() as u32;
    let ports = match ip.next_header() {
        17 => {
            let udp = Udp::new_checked(ip.payload()).unwrap();
            assert!(udp.checksum_ok(ip.pseudo_header(17, length)));
            [udp.src_port(), udp.dst_port()]
        }
        _ => {
            let icmp = Icmpv6::new_checked(ip.payload()).unwrap();
            assert!(icmp.checksum_ok(ip.pseudo_header(58, length)));
            [icmp.identifier(); 2]
        }
    };
    assert_eq!(p.dst_ip6(), ip.dst().octets());
    [(ip.src().to_string(), ports[0]), (ip.dst().to_string(), ports[1])]
}

fn harness(config: &str) -> Harness {
    Harness::new(&SPEC, config, 2, 2).unwrap()
}

fn sent(h: &mut Harness, port: usize, p: Packet) -> Option<[(String, u16); 2]> {
    h.push(port, p);
    h.take(port).pop().map(|p| ends(&p))
}

fn end(address: &str, port: u16) -> (String, u16) {
    (address.to_owned(), port)
}

#[test]
fn static_mappings_hold_both_ways() {
    let mut h = harness("2, 0, ::2 9::2, ::3 9::3, 0");
    let out = sent(&mut h, 0, datagram(("::3", 5), ("a::1", 7)));
    assert_eq!(out, Some([end("9::3", 5), end("a::1", 7)]));
    let back = sent(&mut h, 1, datagram(("a::1", 7), ("9::3", 5)));
    assert_eq!(back, Some([end("a::1", 7), end("::3", 5)]));
    let ping = sent(&mut h, 0, echo(128, "::2", "a::1", 77));
    assert_eq!(ping, Some([end("9::2", 77), end("a::1", 77)]));
    assert_eq!(sent(&mut h, 0, datagram(("::4", 5), ("a::1", 7))), None);
    assert_eq!(h.drops(), [("no-mapping", 1)]);
}

#[test]
fn static_mappings_of_ports_change_these() {
    let mut h = harness("1, 1, ::2 80 9::2 8080, 0");
    assert_eq!(sent(&mut h, 0, datagram(("::2", 80), ("a::1", 7))).unwrap()[0], end("9::2", 8080));
    assert_eq!(sent(&mut h, 1, datagram(("a::1", 7), ("9::2", 8080))).unwrap()[1], end("::2", 80));
    assert_eq!(sent(&mut h, 0, datagram(("::2", 81), ("a::1", 7))), None);
}

#[test]
fn addresses_are_given_to_the_first_hosts_that_send() {
    let mut h = harness("0, 1, 0, 0, 9::1, 9::2");
    for (host, given) in [("::1", Some("9::1")), ("::2", Some("9::2")), ("::1", Some("9::1")), ("::3", None)]
    {
        let out = sent(&mut h, 0, datagram((host, 5), ("a::1", 7)));
        assert_eq!(out.map(|ends| ends[0].clone()), given.map(|g| end(g, 5)), "{host}");
    }
    assert_eq!(sent(&mut h, 1, datagram(("a::1", 7), ("9::2", 5))).unwrap()[1], end("::2", 5));
    assert_eq!((h.drops(), h.read("mappings").unwrap()), (vec![("full", 1)], "2".to_owned()));
    let mut h = harness("0, 1, 0, 1, ::8");
    assert_eq!(sent(&mut h, 0, datagram(("::8", 5), ("a::1", 7))), None, "only inward packets make mappings");
    assert_eq!(sent(&mut h, 1, datagram(("a::1", 7), ("9::2", 5))).unwrap()[1], end("::8", 5));
    assert_eq!(sent(&mut h, 0, datagram(("::8", 5), ("a::1", 7))).unwrap()[0], end("9::2", 5));
}

#[test]
fn ports_are_given_to_flows() {
    let mut h = harness("0, 1, 1, 0, 9::9 1300 1301");
    let out = |h: &mut Harness, host: &str, port| sent(h, 0, datagram((host, port), ("a::1", 7)));
    assert_eq!(out(&mut h, "::1", 5).unwrap()[0], end("9::9", 1300));
    assert_eq!(out(&mut h, "::2", 5).unwrap()[0], end("9::9", 1301));
    assert_eq!(out(&mut h, "::1", 5).unwrap()[0], end("9::9", 1300));
    assert_eq!(out(&mut h, "::3", 5), None);
    assert_eq!(sent(&mut h, 1, datagram(("a::1", 7), ("9::9", 1301))).unwrap()[1], end("::2", 5));
    assert_eq!(sent(&mut h, 1, datagram(("a::2", 7), ("9::9", 1301))), None, "another remote end");
    assert_eq!(h.drops(), [("no-mapping", 1), ("full", 1)]);
    assert_eq!(h.read("mappings").unwrap(), "2");
    let mut h = harness("0, 1, 1, 0, 9::9 1300 1301");
    assert_eq!(sent(&mut h, 0, echo(128, "::1", "a::1", 77)).unwrap()[0], end("9::9", 1300));
    assert_eq!(sent(&mut h, 1, echo(129, "a::1", "9::9", 1300)).unwrap()[1], end("::1", 77));
}

#[test]
fn other_packets_and_arguments_are_refused() {
    let mut h = harness("1, 0, ::2 9::2, 0");
    let mut other = datagram(("::2", 5), ("a::1", 7));
    other.data_mut()[6] = 99;
    assert_eq!(sent(&mut h, 0, other), None);
    assert_eq!(sent(&mut h, 0, packet(b"no")), None);
    assert_eq!(h.drops(), [("no-packet", 2)]);
    let errors = |text: &str| Harness::new(&SPEC, text, 2, 2).err().unwrap();
    assert_eq!(errors("x"), ["argument 0 should be : integer"]);
    assert_eq!(errors("1, 0, ::2, 0"), ["argument 2 should be : <IP6Address> <IP6Address>"]);
    assert_eq!(errors("0, 1, 1, 0, ::9 9 8"), ["argument 4 should be : <IP6Address> <port> <port>"]);
    assert_eq!(errors("0, 0, 1"), ["too many arguments"]);
}

proptest! {
    #[test]
    fn any_bytes_are_translated_or_dropped(bytes in corpus::frame(0), six in any::<bool>(), port in 0usize..2) {
        let mut h = harness("0, 1, 0, 0, 9::1, 9::2");
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut().filter(|_| six) {
            *first = 0x60;
        }
        h.push(port, packet(&bytes));
        h.assert_balanced();
    }
}
