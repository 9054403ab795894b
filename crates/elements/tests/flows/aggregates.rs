//! Aggregates of flows, and what listens to their ends.

use super::*;

const LINES: [&str; 13] = [
    "1 1.0.0.1 20 2.0.0.2 40 T S 1 0",
    "2 2.0.0.2 40 1.0.0.1 20 T SA 2 0",
    "3 1.0.0.1 21 2.0.0.2 40 U - 3 0",
    "4 1.0.0.1 22 2.0.0.2 40 U - 4 0+",
    "5 1.0.0.1 - 2.0.0.2 - U - 4 80",
    "6 1.0.0.1 - 2.0.0.2 - U - 5 80",
    "7 1.0.0.1 22 2.0.0.2 40 U - 6 0",
    "8 1.0.0.1 20 2.0.0.2 40 T F 7 0",
    "9 2.0.0.2 40 1.0.0.1 20 T FA 8 0",
    "10 1.0.0.1 20 2.0.0.2 40 T S 9 0",
    "50 1.0.0.1 22 2.0.0.2 40 U - 10 0",
    "150 1.0.0.1 22 2.0.0.2 40 U - 11 0",
    "2000 1.0.0.1 22 2.0.0.2 40 U - 12 0",
];

fn flows() -> String {
    source("timestamp src sport dst dport proto tcp_flags ip_id ip_fragoff", &LINES)
}

#[test]
fn flows_are_numbered_and_fragments_with_them() {
    let out = Target::new("flows");
    let xml = Target::new("flows-xml");
    let router = run(&format!(
        "{} -> af :: AggregateIPFlows(TRACEINFO {}) -> {};",
        flows(),
        xml.path(),
        out.sink("timestamp aggregate link ip_id")
    ));
    assert!(read(&router, "af", "drop_reasons").contains("lost-fragment 1\n"));
    router.write("af", "clear", "").unwrap();
    assert_eq!(read(&router, "af", "held"), "0");
    assert_eq!(
        out.lines(router),
        [
            "1.000000 1 0 1",
            "2.000000 1 1 2",
            "3.000000 2 0 3",
            "8.000000 1 0 7",
            "9.000000 1 1 8",
            "10.000000 4 0 9",
            "4.000000 3 0 4",
            "5.000000 3 0 4",
            "7.000000 3 0 6",
            "50.000000 3 0 10",
            "150.000000 5 0 11",
            "2000.000000 6 0 12",
        ]
    );
    let text = std::fs::read_to_string(xml.path()).unwrap();
    let first = "<flow aggregate='1' src='1.0.0.1' sport='20' dst='2.0.0.2' dport='40' begin='1.000000000' duration='8.000000000'>\n  \
                 <stream dir='0' packets='2' /><stream dir='1' packets='2' />\n</flow>\n";
    assert!(text.contains(first) && text.starts_with("<?xml") && text.ends_with("</trace>\n"), "{text}");
    assert_eq!(text.matches("<flow ").count(), 6);
}

#[test]
fn without_fragments_nothing_is_held() {
    let out = Target::new("unheld");
    let router = run(&format!(
        "{} -> af :: AggregateIPFlows(FRAGMENTS false) -> {}; af[1] -> c :: Counter -> Discard;",
        flows(),
        out.sink("aggregate")
    ));
    assert_eq!(read(&router, "c", "count"), "2");
    assert_eq!(out.lines(router).len(), 11);
}

#[test]
fn errors_belong_to_the_flow_that_they_are_about() {
    let out = Target::new("icmp-flows");
    let router = run(&format!(
        "{} -> t :: Tee; af :: AggregateIPFlows(ICMP true, UDP_TIMEOUT 2000000000) -> {}; t[0] -> af; \
         t[1] -> ICMPError(3.3.3.3, unreachable, port) -> af;",
        source("timestamp src sport dst dport proto payload", &[r#"1 1.0.0.1 9 2.0.0.2 53 U "12345678""#]),
        out.sink("ip_proto aggregate link"),
    ));
    assert_eq!(out.lines(router), ["U 1 0", "I 1 2"]);
}

#[test]
fn the_last_packet_of_a_flow_tells_of_all() {
    let out = Target::new("last");
    let router = run(&format!(
        "{} -> af :: AggregateIPFlows(FRAGMENTS false) -> al :: AggregateLast(NOTIFIER af, STOP_AFTER_CLEAR true) -> {};",
        flows(),
        out.sink("aggregate count first_timestamp timestamp")
    ));
    router.write("af", "clear", "").unwrap();
    router.write("al", "clear", "").unwrap();
    wait(&router);
    let mut lines = out.lines(router);
    lines.sort();
    assert_eq!(
        lines,
        [
            "1 4 1.000000 9.000000",
            "2 1 3.000000 3.000000",
            "3 3 4.000000 50.000000",
            "4 1 10.000000 10.000000",
            "5 1 150.000000 150.000000",
            "6 1 2000.000000 2000.000000"
        ]
    );
    let error = start("Idle -> a :: AggregateFirst(NOTIFIER d) -> d :: Discard;").err().unwrap();
    assert!(error.contains("d is not an AggregateNotifier"), "{error}");
}

#[test]
fn fragments_that_were_held_count_before_their_flow_ends() {
    let out = Target::new("last-fragment");
    let lines = ["1 1.0.0.1 5 2.0.0.2 6 U 0+", "2 1.0.0.1 - 2.0.0.2 - U 80", "9000 3.0.0.1 5 2.0.0.2 6 U 0"];
    let router = run(&format!(
        "{} -> af :: AggregateIPFlows -> al :: AggregateLast(NOTIFIER af) -> {};",
        source("timestamp src sport dst dport proto ip_fragoff", &lines),
        out.sink("aggregate count first_timestamp timestamp"),
    ));
    assert_eq!(out.lines(router), ["1 2 1.000000 2.000000"]);
}

#[test]
fn a_full_table_ends_the_flow_that_would_end_next() {
    let out = Target::new("evict");
    let lines: Vec<String> =
        [1, 2, 3, 1].iter().enumerate().map(|(i, p)| format!("{} 1.0.0.1 {p} 2.0.0.2 9 U", i + 1)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let router = run(&format!(
        "{} -> af :: AggregateIPFlows(CAPACITY 2) -> af1 :: AggregateFirst(NOTIFIER af) -> {};",
        source("timestamp src sport dst dport proto", &lines),
        out.sink("aggregate sport"),
    ));
    assert_eq!(read(&router, "af", "evicted"), "2");
    assert_eq!(out.lines(router), ["1 1", "2 2", "3 3", "4 1"]);
}

#[test]
fn streams_are_merged_and_filtered_by_time() {
    let out = Target::new("merged");
    let stream = |paint: u8, times: &[u8]| {
        let lines: Vec<String> = times.iter().map(|t| format!("{t} 1.0.0.1 {paint}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        source("timestamp src paint", &lines).replace("STOP true", "STOP false")
    };
    let router = run(&format!(
        "s :: TimeSortedSched(STOP true); {} -> [0] s; {} -> [1] s; \
         s -> Unqueue -> TimeFilter(START_AFTER 1, INTERVAL 4) -> tr :: TimeRange -> SetTimestampDelta -> AdjustTimestamp(5) -> {};",
        stream(1, &[1, 3, 5]),
        stream(2, &[2, 3, 4, 9]),
        out.sink("timestamp paint")
    ));
    assert_eq!(
        [read(&router, "tr", "range"), read(&router, "s", "well_ordered")],
        ["2.000000 5.000000", "true"]
    );
    assert_eq!(out.lines(router), ["0.000000 2", "6.000000 1", "6.000000 2", "7.000000 2", "8.000000 1"]);
}
