//! Options of rewriters, each with what it changes.

use super::*;

/// Seconds to the end of the first flow in the table `handler`, after packets with these flags and payloads: forward, and
/// back.
fn expires(options: &str, handler: &str, lines: &[&str]) -> String {
    let router = run(&format!(
        "rw :: IPRewriter(pattern 1.0.0.1 1024-65535# - - 0 1, drop{options}); \
         {} -> c :: IPClassifier(dst host 1.0.0.1, -); c[1] -> rw; c[0] -> [1] rw; rw[0] -> Discard; rw[1] -> Discard;",
        source("src sport dst dport proto tcp_flags payload", lines)
    ));
    let table = read(&router, "rw", handler);
    table.lines().next().and_then(|l| l.rsplit_once(" exp")).map_or(table.clone(), |(_, s)| s.to_owned())
}

const OUT: &str = "9.9.9.9 7 2.2.2.2 80";
const BACK: &str = "2.2.2.2 80 1.0.0.1 1024";

#[test]
fn tcp_connections_expire_as_far_as_they_are() {
    let syn = format!("{OUT} T S -");
    let data = [format!("{OUT} T PA \"x\""), format!("{BACK} T PA \"y\"")];
    let fin = [format!("{OUT} T FA -"), format!("{BACK} T FA -")];
    let reset = format!("{BACK} T R -");
    let options = ", TCP_TIMEOUT 1000, TCP_NODATA_TIMEOUT 100, TCP_DONE_TIMEOUT 10, TCP_GUARANTEE 3";
    for (lines, default, chosen) in [
        (vec![&syn], "300", "100"),
        (vec![&syn, &data[0]], "300", "100"),
        (vec![&syn, &data[0], &data[1]], "86400", "1000"),
        (vec![&syn, &data[0], &data[1], &fin[0]], "86400", "1000"),
        (vec![&syn, &data[0], &data[1], &fin[0], &fin[1]], "240", "10"),
        (vec![&syn, &reset], "240", "10"),
        (vec![&syn, &reset, &syn], "300", "100"),
    ] {
        let lines: Vec<&str> = lines.iter().map(|l| l.as_str()).collect();
        assert_eq!(expires("", "tcp_table", &lines), default, "{lines:?}");
        assert_eq!(expires(options, "tcp_table", &lines), chosen, "{lines:?}");
        assert_eq!(
            expires(", TIMEOUT 1000, TCP_GUARANTEE 0", "tcp_table", &lines) == "1000",
            default == "86400"
        );
    }
}

#[test]
fn udp_flows_that_stream_expire_later() {
    let (out, back) = (format!("{OUT} U - -"), format!("{BACK} U - -"));
    let options = ", UDP_TIMEOUT 50, UDP_STREAMING_TIMEOUT 500, UDP_GUARANTEE 2";
    for (lines, chosen) in
        [(vec![&out, &out, &out, &out], "50"), (vec![&out, &back], "50"), (vec![&out, &back, &out], "500")]
    {
        let lines: Vec<&str> = lines.iter().map(|l| l.as_str()).collect();
        assert_eq!(expires("", "udp_table", &lines), "300");
        assert_eq!(expires(options, "udp_table", &lines), chosen, "{lines:?}");
        assert_eq!(expires(", UDP_TIMEOUT 50", "udp_table", &lines), "50");
    }
}

#[test]
fn annotations_are_set_as_told() {
    for (options, paint, port) in
        [("", "0", "0"), (", REPLY_ANNO PAINT", "5", "0"), (", DST_ANNO false", "0", "1")]
    {
        let (out, routes) = (
            Target::new(&format!("anno-{}", options.len())),
            Target::new(&format!("routes-{}", options.len())),
        );
        let router = run(&format!(
            "rw :: UDPRewriter(pattern 1.0.0.1 1024-65535# 7.7.7.7 - 0 1, drop{options}); \
             {} -> c :: IPClassifier(dst host 1.0.0.1, -); c[1] -> Paint(5) -> rw; c[0] -> [1] rw; \
             rw[0] -> rt :: StaticIPLookup(7.7.7.7 0, 0/0 1); routes :: {} -> Discard; \
             rt[0] -> Paint(0) -> routes; rt[1] -> Paint(1) -> routes; rw[1] -> {} -> Discard;",
            source("src sport dst dport proto", &["9.9.9.9 7 2.2.2.2 80 U", "7.7.7.7 80 1.0.0.1 1024 U"]),
            routes.sink("link"),
            out.sink("link"),
        ));
        assert_eq!(out.lines(router), [paint], "{options}");
        assert_eq!(std::fs::read_to_string(routes.path()).unwrap().trim(), port, "{options}");
    }
}

#[test]
fn who_rewrites_sources_leaves_the_annotation_and_who_answers_sets_it() {
    let router = run(&format!(
        "rw :: IPAddrRewriter(pattern 1.0.0.1 - 0 1, drop); \
         {} -> SetIPAddress(5.5.5.5) -> c :: IPClassifier(dst host 1.0.0.1, -); c[1] -> rw; c[0] -> [1] rw; \
         rw[0] -> there :: StaticIPLookup(5.5.5.5 0, 0/0 1); rw[1] -> back :: StaticIPLookup(9.9.9.9 0, 0/0 1); \
         there[0] -> t :: Counter -> Discard; there[1] -> Discard; back[0] -> b :: Counter -> Discard; back[1] -> Discard;",
        source("src sport dst dport proto", &["9.9.9.9 7 2.2.2.2 80 U", "2.2.2.2 80 1.0.0.1 7 U"]),
    ));
    assert_eq!([read(&router, "t", "count"), read(&router, "b", "count")], ["1", "1"]);
}

#[test]
fn the_other_classes_have_their_timeouts() {
    for (class, fields, lines, default, options, chosen) in [
        ("IPAddrRewriter", "src dst proto", "1.1.1.1 2.2.2.2 T", "7200", ", TIMEOUT 60, GUARANTEE 5", "60"),
        ("IPAddrPairRewriter", "src dst proto", "1.1.1.1 2.2.2.2 T", "7200", ", TIMEOUT 60", "60"),
        (
            "ICMPPingRewriter",
            "src dst proto icmp_type icmp_flowid",
            "1.1.1.1 2.2.2.2 I 8 3",
            "300",
            ", TIMEOUT 60",
            "60",
        ),
        (
            "TCPRewriter",
            "src sport dst dport proto",
            "1.1.1.1 1 2.2.2.2 2 T",
            "300",
            ", TCP_NODATA_TIMEOUT 60",
            "60",
        ),
        ("UDPRewriter", "src sport dst dport proto", "1.1.1.1 1 2.2.2.2 2 U", "300", ", TIMEOUT 60", "60"),
        (
            "UDPRewriter",
            "src sport dst dport proto",
            "1.1.1.1 1 2.2.2.2 2 T",
            "300",
            ", UDP_TIMEOUT 60, STREAMING_TIMEOUT 9",
            "60",
        ),
    ] {
        for (options, seconds) in [("", default), (options, chosen)] {
            let router = run(&format!(
                "rw :: {class}(keep 0 1{options}, REAP_INTERVAL 0); {} -> rw; rw[0] -> Discard; rw[1] -> Discard;",
                source(fields, &[lines])
            ));
            let table = read(&router, "rw", "table");
            assert!(
                table.lines().all(|l| l.ends_with(&format!(" exp{seconds}"))),
                "{class}{options}: {table}"
            );
            assert_eq!((table.lines().count(), read(&router, "rw", "mappings")), (2, table.clone()));
            assert_eq!(
                [read(&router, "rw", "nmappings"), read(&router, "rw", "patterns")],
                ["1", "<keep> [1]\n"]
            );
        }
    }
}

#[test]
fn names_of_patterns_and_mappers_are_those_of_the_compound() {
    let router = run(&format!(
        "elementclass Nat {{ IPRewriterPatterns(p 1.0.0.7 - - -); m :: RoundRobinIPMapper(p 0 0, - - 5.5.5.5 - 0 0); \
         input -> rw :: IPRewriter(m) -> output; other :: UDPRewriter(pattern p 0 0, MAPPING_CAPACITY rw); Idle -> other -> Discard; }} \
         {} -> nat :: Nat -> Discard;",
        source("src sport dst dport proto", &["1.1.1.1 1 2.2.2.2 2 U"])
    ));
    assert_eq!(
        [read(&router, "nat/rw", "patterns"), read(&router, "nat/other", "patterns")],
        ["<mapper> [1]\n", "1.0.0.7 - - -\n"]
    );
    assert!(read(&router, "nat/rw", "udp_table").contains("=> (1.0.0.7, 1, 2.2.2.2, 2)"));
    let error = start("IPRewriterPatterns(p 1.0.0.7 - - -, p 1.0.0.8 - - -);").err().unwrap();
    assert!(error.contains("pattern 'p' already defined"), "{error}");
}
