//! The compiler of expressions against direct evaluation, and the meaning of IP expressions.

use super::expr::model::View;
use super::expr::{Base, Expr, Test};
use super::program::{DROP, Goal, Link, Program, bases};
use super::{ip_expr, words};
use causeway_engine::{Addresses, Names};
use causeway_packet::Packet;
use causeway_packet::wire::{Ipv4Header, UdpHeader, protocol, udp};
use proptest::prelude::*;

/// An IPv4 packet of UDP with marked headers.
pub(crate) fn udp_packet(src: &str, dst: &str, src_port: u16, dst_port: u16) -> Packet {
    let mut bytes = [0; 60];
    let ip = Ipv4Header {
        tos: 0,
        total_len: 60,
        identification: 7,
        flags_fragment: 0,
        ttl: 64,
        protocol: protocol::UDP,
        src: src.parse().unwrap(),
        dst: dst.parse().unwrap(),
    };
    udp::encapsulate_v4(ip, UdpHeader { src_port, dst_port, length: 0 }, &mut bytes).unwrap();
    let mut packet = Packet::from_bytes(&bytes).unwrap();
    packet.set_network_header(0);
    packet.set_transport_header(20);
    packet
}

/// Header fields that the tables vary.
#[derive(Clone, Copy)]
struct Ip {
    src: [u8; 4],
    dst: [u8; 4],
    protocol: u8,
    flags_fragment: u16,
    transport: [u8; 16],
}

const TCP: Ip = Ip {
    src: [10, 0, 0, 1],
    dst: [192, 168, 1, 2],
    protocol: 6,
    flags_fragment: 0x4000,
    // Ports 1234 and 80, flags syn and ack.
    transport: [0x04, 0xd2, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x12, 0, 0],
};

fn bytes(ip: Ip) -> Vec<u8> {
    let mut out = [0; 20];
    Ipv4Header {
        tos: 0xb9,
        total_len: 36,
        identification: 0x1234,
        flags_fragment: ip.flags_fragment,
        ttl: 17,
        protocol: ip.protocol,
        src: ip.src.into(),
        dst: ip.dst.into(),
    }
    .emit(&mut out);
    [&out[..], &ip.transport].concat()
}

/// One name with addresses of its own, and one with those of a network.
fn names() -> Names {
    let mut names = Names::default();
    let own = Addresses { ip: Some([10, 0, 0, 1].into()), ether: Some(SOURCE), ..Addresses::default() };
    names.define("info", "own", Addresses { ip_net: Some(([10, 0, 0, 1].into(), 8)), ..own });
    names.define(
        "info",
        "lan",
        Addresses { ip_net: Some(([192, 168, 1, 0].into(), 24)), ..Addresses::default() },
    );
    names
}

const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 5];
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 6];

/// Two bytes and both Ethernet addresses.
fn ethernet() -> Link {
    let mut link = [0; 14];
    link[2..8].copy_from_slice(&DESTINATION);
    link[8..].copy_from_slice(&SOURCE);
    link
}

fn parse(text: &str) -> Expr {
    ip_expr::parse(text, &names().scope(""), &mut Vec::new()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// What direct evaluation says, after the compiled program has said the same.
fn holds(expr: &Expr, packet: &[u8]) -> bool {
    let link = ethernet();
    let view: View<'_> = [Some(packet), Some(packet), packet.get(20..), Some(&link)];
    let program = Program::new(&[(expr.clone(), Goal::Output(0))]);
    let answer = program.run(packet, &bases(Some(0), Some(20)), || Some(link));
    assert_eq!(answer, if expr.holds(&view) { 0 } else { DROP }, "{program}");
    answer == 0
}

#[test]
fn tests_mean_what_they_say() {
    let fragment = Ip { flags_fragment: 0x2001, ..TCP };
    let icmp = Ip { protocol: 1, ..TCP };
    for (text, ip, expected) in [
        ("-", TCP, true),
        ("not any", TCP, false),
        ("tcp", TCP, true),
        ("udp or icmp", TCP, false),
        ("ip proto 6", TCP, true),
        ("ip proto != tcp", TCP, false),
        ("src 10.0.0.1", TCP, true),
        ("dst host 10.0.0.1", TCP, false),
        ("host 192.168.1.2", TCP, true),
        ("10.0.0.1 and 192.168.1.2", TCP, true),
        ("src and dst net 10/8", TCP, false),
        ("src or dst net 10/8", TCP, true),
        ("src net 10.0 mask 255.0.0.0", TCP, true),
        ("dst net 192.168.0.2/255.255.0.255", TCP, true),
        ("src host 1.1.1.1 or 10.0.0.1", TCP, true),
        ("src != 10.0.0.1", TCP, false),
        ("dst port 80", TCP, true),
        ("src port 80 or 1234", TCP, true),
        ("tcp port www", TCP, true),
        ("udp port 80", TCP, false),
        ("port != 80", TCP, false),
        ("src port != 80", TCP, true),
        ("port != 80", icmp, false),
        ("not port 80", icmp, true),
        ("dst port 80", fragment, false),
        ("dst port >= 79 and src port < 1235", TCP, true),
        ("dst port > 80 || dst tcp port <= 79", TCP, false),
        ("ip frag", TCP, false),
        ("ip frag tcp", fragment, true),
        ("ip unfrag", TCP, true),
        ("ip vers 4 ip hl 5 ip id 0x1234 ip tos 185 ip dscp 46 ip ttl 17", TCP, true),
        ("ip ttl < 17", TCP, false),
        ("ip ect", TCP, true),
        ("ip ce", TCP, false),
        ("tcp opt syn and tcp opt ack", TCP, true),
        ("tcp opt syn not tcp opt ack", TCP, false),
        ("tcp opt 18", TCP, true),
        ("tcp opt 3", TCP, false),
        ("tcp and syn", TCP, true),
        ("not ack", TCP, false),
        ("tcp dst port 80 syn", TCP, true),
        ("tcp urg or tcp psh", TCP, false),
        ("tcp win 0", TCP, true),
        ("tcpudp port 80", TCP, true),
        ("tcpudp", icmp, false),
        ("dst port dns", TCP, false),
        ("dst tcp or udp port 81", TCP, true),
        ("tcp opt fin", TCP, false),
        ("icmp type 4", icmp, true),
        ("icmp type sourcequench", TCP, false),
        ("icmp type != echo", icmp, true),
        ("icmp type != echo", TCP, false),
        ("ip[9:1] & 0xf0 = 0", TCP, true),
        ("ip[9] = 6", TCP, true),
        ("ip[2:2] == 0x24", TCP, true),
        ("ip[6:2] & 0x2000 != 0", TCP, false),
        ("transp[2:2] = 80", TCP, true),
        ("transp[2:2] = 80", fragment, false),
        ("udp[2:2] = 80", TCP, false),
        ("tcp[13] & 2 = 2", TCP, true),
        ("tcp ? dst port 81 : any", TCP, false),
        ("udp ? dst port 81 : src 10.0.0.1", TCP, true),
        ("!(udp || dst port 81) && !icmp", TCP, true),
        ("src 10.0.0.1 tcp port 80", TCP, true),
        ("tcp src port 1234", TCP, true),
        ("true and not false", TCP, true),
        ("ip len > 35 and ip len < 37", TCP, true),
        ("src & 255.0.0.0 = 10.0.0.0", TCP, true),
        ("src 10.0.0.1 & 8.0.0.0 = 8.0.0.0", TCP, true),
        ("src 2:0:0:0:0:5", TCP, true),
        ("ether src 2:0:0:0:0:6", TCP, false),
        ("src ether 2:0:0:0:0:5", TCP, true),
        ("dst host 2:0:0:0:0:6", TCP, true),
        ("ether host own", TCP, true),
        ("ether dst own or src host own", TCP, true),
        ("src own", TCP, true),
        ("src net own", TCP, true),
        ("dst net lan", TCP, true),
        ("dst lan and not src lan", TCP, true),
        ("ip src 10.0.0.1", TCP, true),
    ] {
        assert_eq!(holds(&parse(text), &bytes(ip)), expected, "{text}");
    }
}

#[test]
fn nonsense_is_refused() {
    let deep = "(".repeat(5_000);
    for text in [
        "",
        "(",
        "tcp)",
        "port",
        "src",
        "and",
        "tcp or",
        "! ",
        "foo",
        "ip ttl 256",
        "ip vers 16",
        "port 65536",
        "port nonsense",
        "host 1.2.3",
        "net 1.2.3.4/33",
        "ip[",
        "ip[1",
        "ip[1:5] = 0",
        "ip[1]",
        "ip[1] = 256",
        "tcp ? udp",
        "tcp ? udp :",
        "transp",
        "host < 1.2.3.4",
        "= 5",
        "80",
        "ip",
        "tcp 80",
        "tcp opt != syn",
        "tcp opt & 2 != 0",
        "src tcp src udp",
        "tcp udp",
        "host type 5",
        "ip proto echo",
        "port ambiguous",
        "echo",
        "ip[2:4] = 0",
        "ether tcp",
        &deep,
    ] {
        let parsed = ip_expr::parse(text, &names().scope(""), &mut Vec::new());
        assert!(parsed.is_err(), "{text}: {parsed:?}");
    }
}

#[test]
fn short_packets_pass_no_comparison_but_fail_what_is_negated_as_a_whole() {
    let udp = bytes(Ip { protocol: 17, ..TCP });
    for (text, short, long) in [
        ("dst port != 80", false, false),
        ("dst port != 81", false, true),
        ("not dst port 81", true, true),
        ("dst port < 81", false, true),
        ("dst port >= 80", false, true),
        ("dst port > 80", false, false),
        ("not dst port > 80", true, true),
        ("dst port >= 0", true, true),
        ("udp[4:2] != 0", false, false),
        ("udp[4:2] != 1", false, true),
        ("udp[2] & 2 != 2", false, true),
    ] {
        assert_eq!((holds(&parse(text), &udp[..22]), holds(&parse(text), &udp)), (short, long), "{text}");
    }
}

#[test]
fn odd_comparisons_are_told() {
    let mut warnings = Vec::new();
    for text in ["dst port >= 0", "ip ttl > 255", "src tcp", "src & 0 = 1.2.3.4"] {
        ip_expr::parse(text, &names().scope(""), &mut warnings).unwrap();
    }
    assert_eq!(
        warnings,
        [
            "relation '>= 0' is always true (range 0-65535)",
            "relation '> 255' is always false (range 0-255)",
            "'src proto': 'src' or 'dst' ignored",
            "zero mask ignored",
        ]
    );
}

/// Steps of the program for `patterns`, each for an output of its own.
fn steps(patterns: &[&str]) -> usize {
    let rules: Vec<_> = patterns.iter().enumerate().map(|(i, p)| (parse(p), Goal::Output(i))).collect();
    Program::new(&rules).to_string().lines().count() - 2
}

#[test]
fn what_is_known_is_not_asked_again() {
    assert_eq!(steps(&["dst port 7777", "dst port 8888", "icmp", "-"]), 6);
    assert_eq!(steps(&["dst port >= 1024"]), 4);
    assert_eq!(steps(&["tcp port 80 or 81", "tcp", "not tcp"]), 4);
    assert_eq!(steps(&["tcp or udp", "port 80"]), 2);
    assert_eq!(steps(&["ip frag", "not ip frag"]), 1);
}

/// Tests of few words and bits, so that they imply and exclude each other.
fn any_test(bases: &'static [Base], words: u16) -> impl Strategy<Value = Expr> {
    let base = prop::sample::select(bases);
    let mask = prop_oneof![Just(0x0300_0000), Just(0x0100_0002), Just(0x0001_0000), Just(0x0000_0003u32)];
    (base, 0..words, mask, any::<u32>(), any::<bool>()).prop_map(|(base, word, mask, value, short)| {
        Expr::Test(Test { base, offset: word * 4, mask, value: value & mask, short })
    })
}

fn any_expr(bases: &'static [Base], words: u16) -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![8 => any_test(bases, words), 1 => any::<bool>().prop_map(Expr::Const)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(Expr::not),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Expr::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Expr::Or),
            [inner.clone(), inner.clone(), inner].prop_map(|parts| Expr::If(Box::new(parts))),
        ]
    })
    .boxed()
}

/// Lists of expressions for each way in which programs are run.
fn any_exprs() -> impl Strategy<Value = Vec<Expr>> {
    const ALL: &[Base] = &[Base::Data, Base::Network, Base::Transport, Base::Link];
    prop_oneof![
        prop::collection::vec(any_expr(ALL, 2), 0..6),
        prop::collection::vec(any_expr(&ALL[..1], 2), 0..6),
        prop::collection::vec(any_expr(&ALL[..1], 15), 0..6),
        prop::collection::vec(any_expr(&ALL[1..3], 3), 0..6),
    ]
}

/// A packet of bytes with few bits, often cut short, with headers here and there.
fn any_packet() -> impl Strategy<Value = (Vec<u8>, Option<usize>, Option<usize>, Option<Link>)> {
    let data = prop_oneof![prop::collection::vec(0u8..4, 0..24), prop::collection::vec(0u8..4, 24..90)];
    let header = |weight, at| prop::option::weighted(weight, 0usize..at);
    (data, header(0.9, 12), header(0.8, 40), prop::option::weighted(0.8, prop::array::uniform14(0u8..4)))
}

proptest! {
    #[test]
    fn the_program_agrees_with_direct_evaluation(
        exprs in any_exprs(),
        packets in prop::collection::vec(any_packet(), 1..60),
    ) {
        let rules: Vec<_> = exprs.iter().enumerate().map(|(i, e)| (e.clone(), Goal::Output(i))).collect();
        let program = Program::new(&rules);
        for (data, network, transport, link) in packets {
            let from = |at: Option<usize>| at.map(|at| data.get(at..).unwrap_or_default());
            let view: View<'_> = [Some(&data), from(network), from(transport), link.as_ref().map(|l| &l[..])];
            let expected = exprs.iter().position(|e| e.holds(&view)).unwrap_or(DROP);
            let answer = program.run(&data, &bases(network, transport), || link);
            prop_assert_eq!(answer, expected, "{} on {:?} {:?} {:?}", program, data, network, transport);
        }
    }

    #[test]
    fn no_step_is_idle(exprs in any_exprs()) {
        let rules: Vec<_> = exprs.iter().enumerate().map(|(i, e)| (e.clone(), Goal::Output(i))).collect();
        let text = Program::new(&rules).to_string();
        for line in text.lines().filter(|l| l.contains("yes->")) {
            let branches = line.split_once("yes->").unwrap().1;
            let (yes, no) = branches.split_once("  no->").unwrap();
            prop_assert_ne!(yes, no, "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9 .:/()!?&|=<>-]{0,60}") {
        let _ = ip_expr::parse(&text, &Names::default().scope(""), &mut Vec::new());
        let _ = super::pattern::parse(&text);
    }

    #[test]
    fn any_words_are_read_or_refused(
        picks in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..14),
        packet in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let text = picks.join(" ");
        prop_assert!(words::tokens(&text).iter().all(|w| !w.is_empty()));
        if let Ok(expr) = ip_expr::parse(&text, &Names::default().scope(""), &mut Vec::new()) {
            holds(&expr, &packet);
        }
    }
}

const WORDS: &[&str] = &[
    "ip",
    "tcp",
    "udp",
    "icmp",
    "transp",
    "src",
    "dst",
    "host",
    "net",
    "port",
    "proto",
    "type",
    "opt",
    "ttl",
    "frag",
    "and",
    "or",
    "not",
    "(",
    ")",
    "?",
    ":",
    "[",
    "]",
    "=",
    "!=",
    "<",
    ">=",
    "&",
    "0",
    "1",
    "80",
    "syn",
    "1.2.3.4",
    "10.0.0.0/8",
    "mask",
    "www",
    "echo",
    "any",
    "-",
    "hl",
];
