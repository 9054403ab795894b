//! What elements know outlives a hot swap, under the same name.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{text}: {:?}", f.diagnostics.messages())))
}

/// Runs the router that `text` describes until one of its elements stops it.
fn run(text: &str) -> Router {
    let options = Options { simulated_ns: Some(SIMULATED_START_NS), ..Options::default() };
    let router = Router::start(causeway_elements::library(), plan(text), options);
    let router = router.unwrap_or_else(|e| panic!("{text}: {e}"));
    router.resume();
    let event = router.wait(Some(Duration::from_secs(60)));
    assert!(matches!(event, Some(Event::StopRequested { .. })), "{text}");
    router
}

fn read(router: &Router, name: &str, handler: &str) -> String {
    router.read(name, handler, "").unwrap_or_else(|e| panic!("{name}.{handler}: {e}"))
}

/// UDP packets of three flows, and what comes back.
const FLOWS: &str = r#"FromIPSummaryDump(DATA "!data src sport dst dport proto\n1.0.0.1 1 2.0.0.2 5 U\n1.0.0.1 2 2.0.0.2 5 U\n1.0.0.1 3 2.0.0.2 5 U\n", STOP true)"#;
const TCP_FLOWS: &str = r#"FromIPSummaryDump(DATA "!data src sport dst dport proto tcp_flags\n1.0.0.1 1 2.0.0.2 5 T S\n", STOP true)"#;
const ECHO: &str = "ICMPPingSource(1.0.0.1, 2.0.0.2, LIMIT 1, INTERVAL 1ms, STOP true)";
const FRAME: &str =
    r"InfiniteSource(DATA \<02 00 00 00 00 01 02 00 00 00 00 09 08 00 45 00>, LIMIT 1, STOP true)";
const ARP_REPLY: &str = r"InfiniteSource(DATA \<02 00 00 00 00 01 02 00 00 00 00 09 08 06 00 01 08 00 06 04 00 02 02 00 00 00 00 09 01 00 00 09 02 00 00 00 00 01 01 00 00 01>, LIMIT 1, STOP true)";

/// A graph in which NAME is the element, a handler, and what that says when the element knows something.
fn cases() -> Vec<(String, &'static str, &'static str)> {
    let rewriter = |class: &str, source: &str| {
        format!(
            "NAME :: {class}, drop); {source} -> NAME; Idle -> [1]NAME; NAME[0] -> Discard; NAME[1] -> Discard;"
        )
    };
    let queue = |config: &str| {
        format!(
            "InfiniteSource(DATA abc, LIMIT 3, STOP true) -> NAME :: {config} -> Unqueue(ACTIVE false) -> Discard;"
        )
    };
    vec![
        (format!("NAME :: EtherSwitch; {FRAME} -> NAME; Idle -> [1]NAME; NAME[0] -> Discard; NAME[1] -> Discard;"), "table", "02-00-00-00-00-09 0"),
        ("RatedSource(RATE 1000, LIMIT 3000, STOP true) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 7) -> NAME :: IPRateMonitor(PACKETS, 1, 0) -> Discard;".to_owned(), "look", "1.0.0.1"),
        (rewriter("IPRewriter(pattern 9.0.0.9 1024-65535# - - 0 1", FLOWS), "size", "3"),
        (rewriter("UDPRewriter(pattern 9.0.0.9 1024-65535# - - 0 1", FLOWS), "size", "3"),
        (rewriter("TCPRewriter(pattern 9.0.0.9 1024-65535# - - 0 1", TCP_FLOWS), "size", "1"),
        (rewriter("IPAddrRewriter(pattern 9.0.0.9 - 0 1", FLOWS), "size", "1"),
        (rewriter("IPAddrPairRewriter(pattern 9.0.0.9 - 0 1", FLOWS), "size", "1"),
        (rewriter("ICMPPingRewriter(pattern 9.0.0.9 1024-65535# - - 0 1", ECHO), "size", "1"),
        (format!("NAME :: ARPTable; {ARP_REPLY} -> [1]q :: ARPQuerier(1.0.0.1, 2:0:0:0:0:1, TABLE NAME) -> Discard; Idle -> q;"), "table", "1.0.0.9 1 02-00-00-00-00-09"),
        (format!("{ARP_REPLY} -> [1]NAME :: ARPQuerier(1.0.0.1, 2:0:0:0:0:1) -> Discard; Idle -> NAME;"), "table", "1.0.0.9 1 02-00-00-00-00-09"),
        (queue("Queue(7)"), "length", "3"),
        (queue("SimpleQueue(7)"), "length", "3"),
        (queue("NotifierQueue(7)"), "length", "3"),
        (queue("QuickNoteQueue(7)"), "length", "3"),
        (queue("ThreadSafeQueue(7)"), "length", "3"),
        (queue("FrontDropQueue(7)"), "length", "3"),
        (queue("CPUQueue(2)"), "drops", "1"),
        (
            "InfiniteSource(DATA abc, LIMIT 3, STOP true) -> NAME :: MixedQueue(7) -> Unqueue(ACTIVE false) -> Discard; Idle -> [1]NAME;".to_owned(),
            "length",
            "3",
        ),
        (
            "InfiniteSource(LIMIT 90, STOP true) -> NAME :: RED(500, 600, 0.5, QUEUES q) -> q :: SimpleQueue(100) -> Unqueue(ACTIVE false) -> Discard;".to_owned(),
            "avg_queue_size",
            "74.049",
        ),
        (format!("{FLOWS} -> MarkIPHeader -> AggregateIP(ip dst) -> NAME :: AggregateCounter -> Discard;"), "nagg", "1"),
    ]
}

#[test]
fn what_an_element_knows_goes_to_that_of_its_name() {
    for (graph, handler, known) in cases() {
        let quiet = graph.replace("STOP true", "STOP true, ACTIVE false");
        let mut router = run(&graph.replace("NAME", "a"));
        let before = read(&router, "a", handler);
        assert!(before.contains(known), "{graph}: {before}");
        router.swap(plan(&quiet.replace("NAME", "a"))).unwrap_or_else(|e| panic!("{graph}: {e}"));
        let after = read(&router, "a", handler);
        assert!(after.contains(known), "{graph}: {after}");
        // One of another name begins anew.
        router.swap(plan(&quiet.replace("NAME", "b"))).unwrap_or_else(|e| panic!("{graph}: {e}"));
        let other = read(&router, "b", handler);
        assert!(!other.contains(known), "{graph}: {other}");
    }
}

#[test]
fn a_queue_that_a_swap_makes_smaller_keeps_the_packets_that_came_first() {
    for (class, drops, reason) in [("CPUQueue", "2", "full 2"), ("SimpleQueue", "1", "reset 1")] {
        let graph = |capacity: u32, active: bool| {
            format!(
                "{FLOWS} -> MarkIPHeader -> q :: {class}({capacity}) -> Unqueue(ACTIVE {active})
                 -> c :: IPClassifier(src port 1, src port 2, -);
                 c[0] -> first :: Counter -> Discard; c[1] -> second :: Counter -> Discard; c[2] -> third :: Counter -> Discard;
                 TimedSource(10ms, LIMIT 1, STOP true) -> Discard;"
            )
            .replace("STOP true) -> Mark", &format!("ACTIVE {}) -> Mark", !active))
        };
        let mut router = run(&graph(2, false));
        assert_eq!([read(&router, "q", "held"), read(&router, "q", "drops")], ["2", "1"], "{class}");
        router.swap(plan(&graph(1, true))).unwrap();
        assert_eq!([read(&router, "q", "held"), read(&router, "q", "drops")], ["1", drops], "{class}");
        let reasons = read(&router, "q", "drop_reasons");
        assert!(reasons.contains(reason), "{class}: {reasons}");
        router.resume();
        let event = router.wait(Some(Duration::from_secs(60)));
        assert!(matches!(event, Some(Event::StopRequested { .. })));
        assert_eq!(
            ["first", "second", "third"].map(|name| read(&router, name, "count")),
            ["1", "0", "0"],
            "{class}"
        );
    }
}

#[test]
fn fragments_from_before_a_swap_are_of_packets_that_become_whole_after_it() {
    // Three fragments, of which the reassembler gets the first and third, or the second.
    let graph = |to: &str, not_to: &str| {
        format!(
            "InfiniteSource(LENGTH 800, LIMIT 1, STOP true) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7) -> IPFragmenter(300) -> t :: RoundRobinSwitch;
             t[{to}] -> a :: IPReassembler -> CheckIPHeader -> c :: Counter -> Discard; t[{not_to}] -> Discard;"
        )
    };
    let mut router = run(&graph("0", "1"));
    assert_eq!(read(&router, "c", "count"), "0");
    router.swap(plan(&graph("1", "0"))).unwrap();
    router.resume();
    let event = router.wait(Some(Duration::from_secs(60)));
    assert!(matches!(event, Some(Event::StopRequested { .. })));
    assert_eq!([read(&router, "c", "count"), read(&router, "c", "byte_count")], ["1", "828"]);
}

#[test]
fn what_a_drr_scheduler_holds_and_owes_outlives_a_swap() {
    // The first input's packet of 1000 bytes is at its head, and waits for more rounds, when the second one's has left.
    let graph = |limits: &str, limit: &str| {
        format!(
            "InfiniteSource(LENGTH 1000, {limits}) -> Queue -> [0] a :: DRRSched(300) -> u :: Unqueue(ACTIVE false{limit})
             -> s :: CheckLength(500) -> short :: Counter -> Discard; s[1] -> long :: Counter -> Discard;
             InfiniteSource(LENGTH 100, {limits}) -> Queue -> [1] a;
             Script(wait 50ms, write u.active true); TimedSource(0.1, LIMIT 1, STOP true) -> Discard;"
        )
    };
    let mut router = run(&graph("LIMIT 1", ", LIMIT 1"));
    let counts = |router: &Router| ["short", "long"].map(|name| read(router, name, "count"));
    assert_eq!(counts(&router), ["1", "0"]);
    router.swap(plan(&graph("ACTIVE false", ""))).unwrap();
    router.resume();
    let event = router.wait(Some(Duration::from_secs(60)));
    assert!(matches!(event, Some(Event::StopRequested { .. })));
    assert_eq!(counts(&router), ["1", "1"]);
}

#[test]
fn a_switch_with_fewer_ports_forgets_who_was_at_the_others() {
    let graph = |ports: usize, source: &str, port: usize| {
        let rest: String = (0..ports)
            .map(|n| {
                let idle = if n == port { String::new() } else { format!("Idle -> [{n}] s;") };
                format!("{idle} s[{n}] -> c{n} :: Counter -> Discard;")
            })
            .collect();
        format!("s :: EtherSwitch; {source} -> [{port}] s; {rest}")
    };
    let to_it =
        r"InfiniteSource(DATA \<02 00 00 00 00 09 02 00 00 00 00 01 08 00 45 00>, LIMIT 1, STOP true)";
    for (ports, table, counts) in [(3, "02-00-00-00-00-09 2\n", [0, 0, 1]), (2, "", [0, 1, 0])] {
        let mut router = run(&graph(3, FRAME, 2));
        router.swap(plan(&graph(ports, to_it, 0))).unwrap();
        assert_eq!(read(&router, "s", "table"), table);
        let count = |router: &Router, n: usize| match n < ports {
            true => read(router, &format!("c{n}"), "count").parse().unwrap(),
            false => 0u64,
        };
        let before = [0, 1, 2].map(|n| count(&router, n));
        router.resume();
        let event = router.wait(Some(Duration::from_secs(60)));
        assert!(matches!(event, Some(Event::StopRequested { .. })));
        assert_eq!([0, 1, 2].map(|n| count(&router, n) - before[n]), counts);
    }
}

#[test]
fn a_script_and_a_driver_manager_begin_anew() {
    let graph = |value: u32| {
        format!(
            "s :: Script(TYPE PASSIVE, set x $(add $x {value})); DriverManager(wait 1s, write s.run, write s.run, stop);"
        )
    };
    let x = |router: &Router| router.read("s", "get", "x").unwrap();
    let mut router = run(&graph(1));
    let before = x(&router);
    router.swap(plan(&graph(1))).unwrap();
    router.resume();
    let event = router.wait(Some(Duration::from_secs(60)));
    assert!(matches!(event, Some(Event::StopRequested { .. })));
    assert_eq!(x(&router), before, "it was not carried on");
}
