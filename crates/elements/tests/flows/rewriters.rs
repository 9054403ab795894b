//! Rewriters, mappers, and those that work with them.

use super::*;
use causeway_packet::wire::{Ipv4, tcp::Tcp, udp::Udp};

pub const NAT: &str = "rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop); Idle -> [1] rw;";

#[test]
fn ports_are_translated_there_and_back() {
    let (out, back) = (Target::new("out"), Target::new("back"));
    let lines = [
        "18.26.4.44 20 10.0.0.4 40 T",
        "18.26.4.44 21 10.0.0.4 40 U",
        "18.26.4.44 20 10.0.0.4 40 T",
        "10.0.0.4 40 1.0.0.1 1024 T",
        "10.0.0.4 40 1.0.0.1 1026 T",
        "18.26.4.44 22 10.0.0.4 40 I",
    ];
    let router = run(&format!(
        "rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop); \
         {} -> c :: IPClassifier(dst host 1.0.0.1, -); c[1] -> [0] rw; c[0] -> [1] rw; \
         rw[0] -> CheckIPHeader -> {} -> Discard; rw[1] -> CheckIPHeader -> {} -> Discard;",
        source("src sport dst dport proto", &lines),
        out.sink("src sport dst dport proto"),
        back.sink("src sport dst dport proto"),
    ));
    let table = "(18.26.4.44, 20, 10.0.0.4, 40) => (1.0.0.1, 1024, 10.0.0.4, 40) [*0 1] i0 exp300\n\
                 (10.0.0.4, 40, 1.0.0.1, 1024) => (10.0.0.4, 40, 18.26.4.44, 20) [0 *1] i0 exp300\n";
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&read(&router, "rw", "tcp_table")), sorted(table));
    assert_eq!(read(&router, "rw", "udp_table").lines().count(), 2);
    assert_eq!(read(&router, "rw", "patterns"), "1.0.0.1 1024-65535 - - [2]\n<drop>\n");
    assert_eq!(
        [read(&router, "rw", "table_size"), read(&router, "rw", "size"), read(&router, "rw", "capacity")],
        ["2", "2", "2147483647"]
    );
    assert_eq!(
        router.read("rw", "tcp_lookup", "18.26.4.44 20 10.0.0.4 40").unwrap(),
        "1.0.0.1 1024 10.0.0.4 40"
    );
    assert_eq!(router.read("rw", "tcp_lookup", "1.1.1.1 1 2.2.2.2 2").unwrap(), "");
    let drops = read(&router, "rw", "drop_reasons");
    assert!(drops.contains("unwanted 1\n") && drops.contains("other-protocol 1\n"), "{drops}");
    router.write("rw", "clear", "").unwrap();
    assert_eq!(read(&router, "rw", "size"), "0");
    assert_eq!(
        out.lines(router),
        ["1.0.0.1 1024 10.0.0.4 40 T", "1.0.0.1 1025 10.0.0.4 40 U", "1.0.0.1 1024 10.0.0.4 40 T"]
    );
    assert_eq!(std::fs::read_to_string(back.path()).unwrap(), "10.0.0.4 40 18.26.4.44 20 T\n");
}

#[test]
fn a_full_table_keeps_guarantees_and_evicts_what_ends_first() {
    let lines = ["1 20", "2 21", "2.5 22", "6 20", "7 23", "9.5 24", "9.6 25", "9.7 26"]
        .map(|l| l.replace(' ', " 18.26.4.44 ") + " 10.0.0.4 40 U");
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let out = Target::new("full");
    let router = run(&format!(
        "rw :: UDPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop, MAPPING_CAPACITY 2, GUARANTEE 2); Idle -> [1] rw; \
         {} -> rw; rw[0] -> {} -> Discard; rw[1] -> Discard;",
        source("timestamp src sport dst dport proto", &lines).replace("STOP true", "STOP true, TIMING true"),
        out.sink("sport"),
    ));
    assert_eq!([read(&router, "rw", "size"), read(&router, "rw", "mapping_failures")], ["2", "2"]);
    assert!(read(&router, "rw", "drop_reasons").contains("full 2\n"));
    assert_eq!(read(&router, "rw", "evicted"), "3");
    assert_eq!(out.lines(router), ["1024", "1025", "1024", "1027", "1028", "1029"]);
}

#[test]
fn flows_end_when_they_are_looked_for_and_not_before() {
    let at = |seconds: &str| format!("{seconds} 1.1.1.1 1 2.2.2.2 2 U");
    let lines = ["1", "5", "11", "29"].map(at);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let out = Target::new("reap");
    let router = run(&format!(
        "rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop, UDP_TIMEOUT 3, UDP_GUARANTEE 1, REAP_INTERVAL 10); \
         Idle -> [1] rw; {} -> rw; rw[0] -> {} -> Discard; rw[1] -> Discard;",
        source("timestamp src sport dst dport proto", &lines).replace("STOP true", "STOP true, TIMING true"),
        out.sink("sport"),
    ));
    // At 5 the flow is over, but nobody has looked for it.
    assert_eq!(out.lines(router), ["1024", "1024", "1025", "1026"]);
}

#[test]
fn addresses_are_translated_for_any_protocol_and_fragments() {
    let (out, back) = (Target::new("addr-out"), Target::new("addr-back"));
    let lines = [
        "10.0.0.2 1 2.0.0.2 21 T 0",
        "10.0.0.3 1 2.0.0.2 21 U 0",
        "10.0.0.3 1 2.0.0.2 21 U 80",
        "2.0.0.2 21 1.0.0.2 9000 T 0",
        "10.0.0.4 1 2.0.0.2 21 I 0",
        "10.0.0.5 1 2.0.0.2 21 I 0",
    ];
    let router = run(&format!(
        "rw :: IPAddrRewriter(pattern 1.0.0.1-1.0.0.3# - 0 1, drop); \
         {} -> c :: IPClassifier(dst net 1.0.0.0/8, -); c[1] -> [0] rw; c[0] -> [1] rw; \
         rw[0] -> CheckIPHeader -> {} -> Discard; rw[1] -> CheckIPHeader -> {} -> Discard;",
        source("src sport dst dport proto ip_fragoff", &lines),
        out.sink("src dst proto"),
        back.sink("src dst proto"),
    ));
    assert_eq!([read(&router, "rw", "mapping_failures"), read(&router, "rw", "table_size")], ["1", "3"]);
    let table = read(&router, "rw", "table");
    assert!(table.contains("10.0.0.3 => 1.0.0.2 [*0 1] i0 exp7200\n"), "{table}");
    assert_eq!(
        out.lines(router),
        ["1.0.0.1 2.0.0.2 T", "1.0.0.2 2.0.0.2 U", "1.0.0.2 2.0.0.2 U", "1.0.0.3 2.0.0.2 I"]
    );
    assert_eq!(std::fs::read_to_string(back.path()).unwrap(), "2.0.0.2 10.0.0.3 T\n");
}

#[test]
fn pairs_of_addresses_are_translated() {
    let out = Target::new("pair");
    let lines = ["10.0.0.2 1 2.0.0.2 21 U", "9.0.0.9 21 10.0.0.2 1 U", "10.0.0.3 1 2.0.0.2 21 T"];
    let router = run(&format!(
        "rw :: IPAddrPairRewriter(pattern - 9.0.0.9 0 1, keep 0 0, pass 1); Idle -> [1] rw; Idle -> [2] rw; \
         {} -> rw; t :: {} -> Discard; rw[0] -> CheckIPHeader -> t; rw[1] -> CheckIPHeader -> t;",
        source("src sport dst dport proto", &lines),
        out.sink("src sport dst dport proto"),
    ));
    assert_eq!(read(&router, "rw", "patterns"), "- 9.0.0.9 [2]\n<keep>\n<nochange>\n");
    assert!(
        read(&router, "rw", "table")
            .contains("(10.0.0.3, 2.0.0.2) => (10.0.0.3, 9.0.0.9) [*0 1] i0 exp7200\n")
    );
    assert_eq!(
        out.lines(router),
        ["10.0.0.2 1 9.0.0.9 21 U", "2.0.0.2 21 10.0.0.2 1 U", "10.0.0.3 1 9.0.0.9 21 T"]
    );
}

#[test]
fn pings_are_translated() {
    let (out, back) = (Target::new("ping-out"), Target::new("ping-back"));
    let lines = [
        "10.0.0.2 2.0.0.2 I 8 5 1",
        "10.0.0.3 2.0.0.2 I 8 5 1",
        "2.0.0.2 1.0.0.1 I 0 2001 1",
        "2.0.0.2 1.0.0.1 I 0 2999 1",
        "10.0.0.2 2.0.0.2 I 8 5 2",
    ];
    let router = run(&format!(
        "pw :: ICMPPingRewriter(pattern 1.0.0.1 2000-3000# - - 0 1, drop); \
         {} -> c :: IPClassifier(icmp type echo, -); c[0] -> pw; c[1] -> [1] pw; \
         pw[0] -> CheckIPHeader -> {} -> Discard; pw[1] -> CheckIPHeader -> {} -> Discard;",
        source("src dst proto icmp_type icmp_flowid icmp_seq", &lines),
        out.sink("src dst icmp_type icmp_flowid icmp_seq"),
        back.sink("src dst icmp_type icmp_flowid icmp_seq"),
    ));
    assert!(read(&router, "pw", "drop_reasons").contains("unexpected 1\n"));
    assert!(
        read(&router, "pw", "table")
            .contains("(10.0.0.3, 2.0.0.2, 5) => (1.0.0.1, 2.0.0.2, 2001) [*0 1] i0 exp300\n")
    );
    assert_eq!(
        out.lines(router),
        ["1.0.0.1 2.0.0.2 8 2000 1", "1.0.0.1 2.0.0.2 8 2001 1", "1.0.0.1 2.0.0.2 8 2000 2"]
    );
    assert_eq!(std::fs::read_to_string(back.path()).unwrap(), "2.0.0.2 10.0.0.3 0 5 1\n");
}

#[test]
fn errors_come_to_who_sent_the_packet() {
    let out = Target::new("errors");
    let lines = ["10.0.0.2 7 2.0.0.2 53 U \"12345678\""];
    let router = run(&format!(
        "{NAT} errors :: ICMPRewriter(rw); {} -> rw; rw[1] -> Discard; \
         rw[0] -> ICMPError(3.3.3.3, unreachable, port) -> errors -> CheckIPHeader -> {} -> Discard;",
        source("src sport dst dport proto payload", &lines),
        out.sink("src dst icmp_type_name icmp_code_name payload_md5_hex"),
    ));
    let lines = out.lines(router);
    assert!(lines[0].starts_with("3.3.3.3 10.0.0.2 unreachable port "), "{lines:?}");
}

#[test]
fn ftp_data_connections_are_expected() {
    let (out, back) = (Target::new("ftp-out"), Target::new("ftp-back"));
    let lines = [
        "1.0.0.2 6587 2.0.0.2 21 T 1000 0 - S",
        "2.0.0.2 21 1.0.0.1 9000 T 500 1001 - SA",
        r#"1.0.0.2 6587 2.0.0.2 21 T 1001 501 "PORT 1,0,0,2,3,9\r\n" PA"#,
        r#"1.0.0.2 6587 2.0.0.2 21 T 1019 501 "NOOP\r\n" PA"#,
        r#"2.0.0.2 21 1.0.0.1 9000 T 501 1028 "200 OK\r\n" PA"#,
        "2.0.0.2 20 1.0.0.1 9001 T 77 0 - S",
    ];
    let router = run(&format!(
        "IPRewriterPatterns(a 1.0.0.1 9000-14000# - -); rw :: TCPRewriter(pattern a 0 1, drop); \
         {} -> c :: IPClassifier(dst host 1.0.0.1, -); c[1] -> FTPPortMapper(rw, rw, 0) -> rw; c[0] -> [1] rw; \
         rw[0] -> CheckIPHeader -> {} -> Discard; rw[1] -> CheckIPHeader -> {} -> Discard;",
        source("src sport dst dport proto tcp_seq tcp_ack payload tcp_flags", &lines),
        out.sink("sport tcp_seq tcp_ack payload ip_len"),
        back.sink("dst dport tcp_seq tcp_ack payload"),
    ));
    assert_eq!(router.read("rw", "lookup", "1.0.0.2 777 2.0.0.2 20").unwrap(), "1.0.0.1 9001 2.0.0.2 20");
    assert!(read(&router, "rw", "table").contains(" seq +2 [*0 1] i0 "), "{}", read(&router, "rw", "table"));
    assert_eq!(
        out.lines(router),
        [
            "9000 1000 0 \"\" 40",
            "9000 1001 501 \"PORT 1,0,0,1,35,41\\r\\n\" 60",
            "9000 1021 501 \"NOOP\\r\\n\" 46"
        ]
    );
    assert_eq!(
        std::fs::read_to_string(back.path()).unwrap(),
        "1.0.0.2 6587 500 1001 \"\"\n1.0.0.2 6587 501 1026 \"200 OK\\r\\n\"\n1.0.0.2 777 77 0 \"\"\n"
    );
}

#[test]
fn mappers_choose_in_turn_or_by_source() {
    let out = Target::new("mappers");
    let mut lines: Vec<String> =
        [1, 2, 3, 4, 2].iter().map(|p| format!("10.0.0.2 {p} 2.0.0.2 21 T")).collect();
    let sources =
        ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.9.0.6", "11.9.0.6", "12.9.0.6"];
    lines.extend(sources.map(|s| format!("{s} 7 2.0.0.2 21 U")));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let router = run(&format!(
        "m :: RoundRobinIPMapper(- - 5.0.0.1 - 0 1, - - 5.0.0.2 - 0 1, - - 5.0.0.3 80 0 1); \
         h :: SourceIPHashMapper(10 7, - - 5.0.0.1 - 0 1 1, - - 5.0.0.2 - 0 1 2, - - 5.0.0.3 80 0 1 5); \
         rw :: IPRewriter(m, h); {} -> c :: IPClassifier(tcp, -); c[0] -> rw; c[1] -> [1] rw; \
         rw[0] -> {} -> Discard; rw[1] -> Discard;",
        source("src sport dst dport proto", &lines),
        out.sink("dst dport"),
    ));
    assert_eq!(read(&router, "rw", "patterns"), "<mapper> [4]\n<mapper> [8]\n");
    let lines = out.lines(router);
    assert_eq!(lines[..5], ["5.0.0.1 21", "5.0.0.2 21", "5.0.0.3 80", "5.0.0.1 21", "5.0.0.2 21"]);
    // As Click's ring has them.
    assert_eq!(lines[5..], HASHED, "by source");
}

/// Where Click's ring of 10 points a server and seed 7 sends the sources above.
const HASHED: [&str; 8] = [
    "5.0.0.1 21",
    "5.0.0.1 21",
    "5.0.0.1 21",
    "5.0.0.1 21",
    "5.0.0.1 21",
    "5.0.0.1 21",
    "5.0.0.2 21",
    "5.0.0.3 80",
];

#[test]
fn bad_specifications_are_refused_in_clicks_words() {
    for (config, error) in [
        ("", "need 1 arguments, one per input port"),
        ("keep 0", "input spec 0: bad forward port"),
        ("keep 0 9", "input spec 0: output port out of range"),
        ("pass x", "input spec 0: syntax error, expected 'nochange [OUTPUT]'"),
        ("drop 1", "input spec 0: syntax error, expected 'drop'"),
        ("pattern 1.0.0.1 5 0 0", "input spec 0: bad destination address"),
        ("pattern nobody 0 0", "input spec 0: no such pattern 'nobody'"),
        ("nobody", "input spec 0: unknown specification"),
        ("d", "input spec 0: element is not an IPMapper"),
        ("keep 0 0, MAPPING_CAPACITY d", "bad MAPPING_CAPACITY"),
    ] {
        let text = format!("rw :: IPRewriter({config}); Idle -> rw -> d :: Discard;");
        let error_is = start(&text).err().expect("an error");
        assert!(error_is.contains(error), "{config}: {error_is}");
    }
    let mapper = "m :: RoundRobinIPMapper(- - 5.0.0.1 - 0 4, - - 5.0.0.1 - 0 0); rw :: IPRewriter(m); Idle -> rw -> Discard;";
    let error = start(mapper).err().unwrap();
    assert!(
        error.contains("input spec 0: output port out of range in m :: RoundRobinIPMapper pattern 0"),
        "{error}"
    );
    let error = start("Idle -> ICMPRewriter(d) -> d :: Discard;").err().unwrap();
    assert!(error.contains("d not an IP rewriter"), "{error}");
}

/// After one rewriter and another all checksums are right.
#[test]
fn checksums_follow_through_all_rewriters() {
    let lines: Vec<String> = (0..200u32)
        .map(|i| {
            let proto = if i % 2 == 0 { 'T' } else { 'U' };
            format!(
                "10.{}.3.{} {} 9.{}.1.1 {} {proto} \"{i}\"",
                i % 7,
                i % 200,
                i * 321 % 65_535 + 1,
                i % 5,
                i + 1
            )
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let trace = Target::new("sums");
    let router = run(&format!(
        "a :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0); b :: IPAddrPairRewriter(pattern 1.0.0.2-1.0.9.9 3.3.3.3 0 0); \
         c :: IPAddrRewriter(pattern 1.0.0.0/16# - 0 0); {} -> a -> b -> c -> ToDump({}, ENCAP IP);",
        source("src sport dst dport proto payload", &lines),
        trace.path(),
    ));
    drop(router);
    let file = std::fs::read(trace.path()).unwrap();
    let (mut rest, mut n) = (&file[24..], 0);
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let ip = Ipv4::new_checked(&behind[..len]).unwrap();
        let segment = &behind[20..len];
        let pseudo = ip.pseudo_header(segment.len() as u16);
        let right = match ip.protocol() {
            6 => Tcp::new_checked(segment).unwrap().checksum_ok(pseudo),
            _ => Udp::new_checked(segment).unwrap().checksum_ok(pseudo),
        };
        assert!(ip.checksum_ok() && right, "packet {n}");
        (rest, n) = (&behind[len..], n + 1);
    }
    assert_eq!(n, 200);
}

/// A UDP packet from 10.0.0.1, this port, to port 2 of 10.0.0.2, with this word of flags and offset and no UDP checksum.
fn udp(port: u16, word: u16) -> String {
    format!(
        "InfiniteSource(DATA \\<4500001c 0007{word:04x} 40110000 0a000001 0a000002 {port:04x} 0002 0008 0000>, LIMIT 1)"
    )
}

#[test]
fn a_fragment_without_ports_is_no_packet_of_a_flow() {
    let router = run(&format!(
        "{} -> MarkIPHeader -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0) -> Discard;
         TimedSource(0.1, LIMIT 1, STOP true) -> Discard;",
        udp(1, 1)
    ));
    assert!(read(&router, "rw", "drop_reasons").contains("fragment 1\n"));
    assert_eq!(read(&router, "rw", "size"), "0");
}

#[test]
fn a_datagram_without_checksum_stays_without() {
    let router = run(&format!(
        "{} -> MarkIPHeader -> IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0) -> c :: Classifier(12/01000001 26/0000, -);
         c[0] -> none :: Counter -> Discard; c[1] -> Discard; TimedSource(0.1, LIMIT 1, STOP true) -> Discard;",
        udp(1, 0)
    ));
    assert_eq!(read(&router, "none", "count"), "1");
}

#[test]
fn a_mapper_goes_on_to_the_next_pattern_when_one_has_nothing_free() {
    let sources = [1, 2, 3, 4, 5].map(|port| format!("{} -> in;", udp(port, 0))).concat();
    let router = run(&format!(
        "m :: RoundRobinIPMapper(1.0.0.1 1024-1025 - - 0 0, 1.0.0.2 1024-1030 - - 0 0);
         in :: MarkIPHeader -> rw :: IPRewriter(m) -> Discard; {sources}
         TimedSource(0.1, LIMIT 1, STOP true) -> Discard;"
    ));
    assert_eq!([read(&router, "rw", "size"), read(&router, "rw", "mapping_failures")], ["5", "0"]);
}

#[test]
fn only_replies_get_the_annotation_of_the_packet_that_began_their_flow() {
    let router = run(&format!(
        "{} -> Paint(3) -> in :: MarkIPHeader -> IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 0, REPLY_ANNO PAINT)
         -> s :: PaintSwitch; {} -> Paint(1) -> in; s[0] -> Discard; s[1] -> second :: Counter -> Discard;
         s[2] -> Discard; s[3] -> first :: Counter -> Discard; TimedSource(0.1, LIMIT 1, STOP true) -> Discard;",
        udp(1, 0),
        udp(1, 0)
    ));
    assert_eq!([read(&router, "first", "count"), read(&router, "second", "count")], ["1", "1"]);
}
