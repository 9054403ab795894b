//! Summary dumps: fields out of packets and into them.

use super::*;

#[test]
fn fields_are_printed_as_click_does() {
    let out = Target::new("fields");
    let lines = [
        r#"1.5 18.26.4.44 20 10.0.0.4 40 T 61 "hello" mss1400;ts1:2 SA 3 0 ce 1"#,
        "2.000001 18.26.4.44 20 10.0.0.4 40 T 100 - - FPX 3 0+ no 3",
    ];
    let fields = "timestamp ts_sec ts_usec ip_src ip_dst ip_tos ip_dscp ip_ecn ip_ttl ip_frag ip_fragoff ip_id ip_proto ip_hl ip_len \
                  sport dport tcp_seq tcp_ack tcp_off tcp_flags tcp_window tcp_urp tcp_opt tcp_ntopt tcp_sack udp_len icmp_type \
                  payload_len payload_md5 payload_md5_hex count link direction aggregate wire_len eth_src first_timestamp";
    let router = run(&format!(
        "{} -> {};",
        source(
            "timestamp src sport dst dport proto ip_len payload tcp_opt tcp_flags ip_ttl ip_fragoff ip_ecn count",
            &lines
        ),
        out.sink(fields)
    ));
    assert_eq!(
        out.lines(router),
        [
            "1.500000 1 500000 18.26.4.44 10.0.0.4 3 0 ce 3 . 0 0 T 20 61 20 40 0 0 36 SA 0 0 mss1400;ts1:2 mss1400 . - - 5 \
             DfeqQW7sQyxUX1zKqCrXsc 5d41402abc4b2a76b9719d911017c592 1 0 > 0 61 - 0.000000",
            "2.000001 2 1 18.26.4.44 10.0.0.4 0 0 no 3 F 0+ 0 T 20 100 20 40 0 0 20 FPE 0 0 . . . - - 60 \
             JkWPX5UdXCcUv_GcNfTFjb a302a771ee0e3127b8950f0a67d17e49 3 0 > 0 100 - 0.000000",
        ]
    );
}

#[test]
fn what_is_written_is_read_again_as_text_and_binary() {
    let lines = [
        "1.000001 1.0.0.1 20 2.0.0.2 40 T 7 8 SA mss9 60 .",
        "2.5 1.0.0.1 21 2.0.0.2 41 U - - - - 200 rr{1.0.0.1}+2",
        "3 1.0.0.1 - 2.0.0.2 - 47 - - - - 90 .",
    ];
    let fields =
        "timestamp ip_src sport ip_dst dport ip_proto tcp_seq tcp_ack tcp_flags tcp_opt ip_len ip_opt";
    let expected = Target::new("expected");
    let router = run(&format!("{} -> {};", source(fields, &lines), expected.sink(fields)));
    let expected = expected.lines(router);
    for binary in [false, true] {
        let (first, second) =
            (Target::new(&format!("first-{binary}")), Target::new(&format!("second-{binary}")));
        drop(run(&format!(
            "{} -> ToIPSummaryDump({}, FIELDS {fields}, BINARY {binary}, BANNER \"a \\\"test\\\"\", VERBOSE true);",
            source(fields, &lines),
            first.path()
        )));
        let head = std::fs::read(first.path()).unwrap();
        assert!(head.starts_with(b"!IPSummaryDump 1.3\n!creator \"a \\\"test\\\"\"\n!host "));
        let router = run(&format!(
            "FromIPSummaryDump({}, STOP true, CHECKSUM true) -> {};",
            first.path(),
            second.sink(fields)
        ));
        let came = second.lines(router);
        // In binary what a packet lacks is 0.
        if !binary {
            assert_eq!(came, expected);
        }
        assert_eq!((came.len(), &came[0]), (3, &expected[0]));
    }
}

#[test]
fn bad_packets_are_told() {
    let out = Target::new("bad");
    let text = |data: &str| format!("InfiniteSource(\\<{data}>, LIMIT 1) -> MarkIPHeader -> out;");
    let router = run(&format!(
        "out :: ToIPSummaryDump({}, FIELDS ip_src sport tcp_seq ip_len, HEADER false, BAD_PACKETS true) -> Counter(COUNT_CALL 5 stop) -> Discard; {}",
        out.path(),
        [
            "65000028 00000000 40060000 01000001 02000002 0007 0009 00000005 00000000 50000000 00000000",
            "43000028 00000000 40060000 01000001 02000002 0007 0009 00000005 00000000 50000000 00000000",
            "4500 0028 00000000 40060000 01000001 02000002 0007 0009 00000005",
            "4500 0028 00000000 40060000 01000001 02000002 0007 0009 00000005 00000000 40000000 00000000",
            "4500 0028 00000001 40060000 01000001 02000002 0007 0009 00000005 00000000 50000000 00000000",
        ]
        .map(text)
        .concat()
    ));
    assert_eq!(
        out.lines(router),
        [
            "!bad IP version 6",
            "- - - 40",
            "!bad IP header length 3",
            "- - - 40",
            "!bad truncated IP missing 12",
            "1.0.0.1 7 5 40",
            "!bad TCP header length 4",
            "1.0.0.1 7 - 40",
            "!bad fragmented TCP/UDP header",
            "1.0.0.1 - - 40",
        ]
    );
}

#[test]
fn packets_that_stand_for_several_are_split() {
    let lines = ["10 1 1.0.0.1 2.0.0.2 4 1000", "20 - 1.0.0.1 2.0.0.2 2 30"];
    let fields = "timestamp first_timestamp src dst count ip_len";
    let expected =
        ["1.000000 250", "4.000000 250", "7.000000 250", "10.000000 250", "20.000000 20", "20.000000 20"];
    let out = Target::new("split");
    let split = source(fields, &lines).replace("CHECKSUM true", "MULTIPACKET true");
    let router = run(&format!("{split} -> {};", out.sink("timestamp ip_len")));
    let lines_out = out.lines(router);
    assert_eq!(lines_out[..4], expected[..4]);
    assert_eq!(lines_out.len(), 6);
}

#[test]
fn what_is_wrong_is_said() {
    for (config, error) in [
        ("FromIPSummaryDump() -> Discard;", "FILENAME: required argument missing"),
        ("FromIPSummaryDump(a, DATA \"b\") -> Discard;", "FILENAME and DATA conflict"),
        ("FromIPSummaryDump(/no/such/file) -> Discard;", "/no/such/file: No such file"),
        ("Idle -> ToIPSummaryDump(-, FIELDS x y);", "unknown content type 'x'"),
        ("Idle -> ToIPSummaryDump(-, FIELDS payload, BINARY true);", "cannot use field payload with BINARY"),
        ("Idle -> ToIPSummaryDump(-, FIELDS \"\");", "unknown content type ''"),
    ] {
        let said = start(config).err().unwrap_or_default();
        assert!(said.contains(error), "{config}: {said}");
    }
}

#[test]
fn defaults_and_handlers() {
    let out = Target::new("defaults");
    let text = "!proto U\\n# a comment\\n!flowid 1.0.0.1 10 2.0.0.2 20 T\\n!aggregate 7\\n!data ip_id\\n5\\n\\n!proto I\\n6\\n";
    let router = run(&format!(
        "f :: FromIPSummaryDump(DATA \"{text}\", STOP true, PROTO 9) -> {};",
        out.sink("ip_src sport ip_dst dport ip_proto ip_id aggregate")
    ));
    let all = ["sampling_prob", "active", "encap", "filename"].map(|h| read(&router, "f", h));
    assert_eq!(all, ["1", "false", "IP", "<data>"]);
    assert_eq!(read(&router, "f", "filepos"), read(&router, "f", "filesize"));
    assert_eq!(out.lines(router), ["1.0.0.1 10 2.0.0.2 20 T 5 7", "1.0.0.1 - 2.0.0.2 - I 6 7"]);
}
