//! Watching packets of running routers: captures and traces.

use causeway_engine::watch::capture::{Capture, Captured};
use causeway_engine::watch::trace::{Ending, Step, Trace, What};
use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|_| panic!("a good configuration")))
}

/// A router that waits for [`Router::resume`].
fn start(text: &str, options: Options) -> Router {
    let plan = causeway_elements::optimise(&plan(text)).plan;
    Router::start(causeway_elements::library(), plan, options).unwrap_or_else(|e| panic!("{e}"))
}

fn edge(router: &Router, text: &str) -> usize {
    router.edges().unwrap().iter().position(|e| e.is_named(text)).unwrap_or_else(|| panic!("no edge {text}"))
}

fn take(capture: &Capture, n: usize) -> Vec<Captured> {
    (0..n).map(|_| capture.copies.recv_timeout(PATIENCE).expect("a packet")).collect()
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What happens to packet 1 until it has ended so many times.
fn story(trace: &Trace, ends: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut left = ends;
    while left > 0 {
        let Step { packet, what, .. } = trace.steps.recv_timeout(PATIENCE).expect("a step");
        let line = match what {
            What::Passed { from, to, bytes, made } => {
                let made = if made { " made" } else { "" };
                format!("{}[{}] -> [{}]{}{made} {}", from.0, from.1, to.1, to.0, bytes.len)
            }
            What::Ended { element, class, how } => {
                left -= usize::from(how != Ending::Held);
                format!("{element} :: {class}: {how:?}")
            }
        };
        lines.push(format!("{packet} {line}"));
    }
    lines
}

/// An IPv4 packet with this time to live, from 10.0.0.1 to 10.0.1.2, as a configuration writes it.
fn packet(ttl: u8) -> String {
    let sum: u32 = [0x4500, 0x1c, u32::from(ttl) << 8 | 17, 0x0a00, 0x0001, 0x0a00, 0x0102].iter().sum();
    let sum = !(sum % 0xffff) & 0xffff;
    format!("\\<4500 001c 0000 0000 {ttl:02x}11 {sum:04x} 0a00 0001 0a00 0102 0009 0035 0008 0000>")
}

#[test]
fn captures_have_the_packets_of_pushed_and_pulled_edges() {
    let text = format!(
        "s :: InfiniteSource(DATA {}, LIMIT 7, BURST 3, STOP false) -> Strip(2) -> m :: MarkIPHeader(0) -> q :: Queue
         -> u :: Unqueue -> d :: Discard;",
        packet(9)
    );
    let router = start(&text, Options::default());
    let edges = ["s", "m -> q", "q -> u"].map(|e| edge(&router, e));
    let capture = router.capture(&edges, 4).unwrap();
    router.resume();
    let all = take(&capture, 21);
    for (e, is_ip, len, data) in
        [(0, false, 28, [0x45, 0, 0, 28]), (1, true, 26, [0, 28, 0, 0]), (2, true, 26, [0, 28, 0, 0])]
    {
        let of: Vec<&Captured> = all.iter().filter(|c| c.edge == e).collect();
        assert_eq!(of.len(), 7, "edge {e}");
        for c in of {
            assert_eq!(
                (c.bytes.is_ip, c.bytes.len, c.bytes.data.as_slice()),
                (is_ip, len, &data[..]),
                "edge {e}"
            );
            assert!(c.time_ns > 1_700_000_000_000_000_000);
        }
    }
    assert_eq!(capture.lost(), 0);
    // The last copy is there before its packet is behind the next edge.
    until("all have passed", || router.edges().unwrap().iter().map(|e| e.packets).eq([7; 5]));
}

#[test]
fn who_does_not_keep_up_loses_copies_and_no_packets() {
    let router =
        start("s :: InfiniteSource(LIMIT 20000, STOP false) -> c :: Counter -> Discard;", Options::default());
    let capture = router.capture(&[edge(&router, "s")], 64).unwrap();
    router.resume();
    until("all have passed", || router.read("c", "count", "").unwrap() == "20000");
    let copied = capture.copies.try_iter().count() as u64;
    assert!(capture.lost() > 0 && copied + capture.lost() == 20_000, "{copied} and {}", capture.lost());
}

#[test]
fn elements_do_the_work_of_others_again_when_nobody_watches() {
    let text = "s :: Idle -> c :: Classifier(12/0806, 12/0800, -);
        c[0] -> Discard; c[2] -> Discard;
        c[1] -> Paint(1) -> Strip(14) -> CheckIPHeader -> rt :: StaticIPLookup(0/0 0) -> DropBroadcasts -> DecIPTTL
        -> IPFragmenter(1500) -> Discard;";
    let router = start(text, Options::default());
    router.resume();
    let fused = router.elements().iter().find(|n| n.contains("@fused")).expect("a fused element").to_string();
    let active = |wanted: &str| {
        let is = || router.read(&fused, "active", "").unwrap();
        until(wanted, || is() == wanted);
    };
    active("true");
    let first = router.capture(&[edge(&router, "c[1]")], 64).unwrap();
    let second = router.capture(&[edge(&router, "rt")], 64).unwrap();
    active("false");
    drop(first);
    // Whatever it is asked, it runs a round.
    router.read("c", "config", "").unwrap();
    assert_eq!(router.read(&fused, "active", "").unwrap(), "false", "one is left");
    drop(second);
    active("true");
}

#[test]
fn a_capture_ends_with_its_graph() {
    let mut router = start("s :: Idle -> Discard;", Options::default());
    let capture = router.capture(&[0], 64).unwrap();
    let trace = router.trace(None, Arc::new(|_| true), 1).unwrap();
    router.resume();
    router.swap(plan("s :: Idle -> Discard;")).unwrap();
    assert!(
        capture
            .copies
            .recv_timeout(PATIENCE)
            .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
    assert!(
        trace
            .steps
            .recv_timeout(PATIENCE)
            .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Disconnected)
    );
}

#[test]
fn a_trace_tells_the_way_of_a_packet_and_why_it_ended() {
    let text = format!(
        "s :: InfiniteSource(DATA {}, LIMIT 9, BURST 4, STOP false) -> m :: MarkIPHeader(0)
         -> t :: DecIPTTL -> d :: Discard; t[1] -> e :: ICMPError(10.0.0.9, timeexceeded, transit) -> q :: Queue
         -> u :: Unqueue -> x :: Discard;",
        packet(1)
    );
    let mut router = start(&text, Options::default());
    let trace = router.trace(None, Arc::new(|_| true), 1).unwrap();
    router.resume();
    assert_eq!(
        story(&trace, 1),
        [
            "1 s[0] -> [0]m 28",
            "1 m[0] -> [0]t 28",
            "1 t[1] -> [0]e 28",
            "1 e[0] -> [0]q made 56",
            "1 q :: Queue: Held",
            "1 q[0] -> [0]u 56",
            "1 u[0] -> [0]x 56",
            "1 x :: Discard: Dropped(\"discarded\")",
        ]
    );
}

#[test]
fn all_copies_of_a_packet_are_followed_over_workers() {
    let text = format!(
        "s :: InfiniteSource(DATA {}, LIMIT 2000, BURST 100, STOP false) -> m :: MarkIPHeader(0) -> t :: Tee
         -> q :: Queue(1000000) -> u :: Unqueue -> a :: Discard; t[1] -> c :: CheckIPHeader -> b :: Discard;
         StaticThreadSched(s 0, u 1);",
        packet(64)
    );
    let mut router = start(&text, Options { workers: 2, ..Options::default() });
    let from = edge(&router, "m -> t");
    let wanted = |p: &causeway_packet::Packet| p.len() == 28;
    let trace = router.trace(Some(from), Arc::new(wanted), 3).unwrap();
    router.resume();
    let mut steps = Vec::new();
    until("three packets have ended twice", || {
        steps.extend(trace.steps.try_iter());
        let ends = |s: &&Step| matches!(&s.what, What::Ended { element, how: Ending::Dropped(_), .. } if element == "a" || element == "b");
        steps.iter().filter(ends).count() == 6
    });
    for packet in 1..=3 {
        let of = |element: &str| {
            let passed = |s: &&Step| {
                matches!(&s.what, What::Passed { to, .. } if to.0 == element) && s.packet == packet
            };
            steps.iter().filter(passed).count()
        };
        assert_eq!(["m", "t", "q", "u", "a", "c", "b"].map(of), [0, 1, 1, 1, 1, 1, 1], "packet {packet}");
    }
    assert!(steps.iter().all(|s| (1..=3).contains(&s.packet)));
    until("all have passed", || {
        let edges = router.edges().unwrap();
        edges.iter().filter(|e| e.to.0 == "a" || e.to.0 == "b").all(|e| e.packets == 2_000)
    });
    // A second trace does not take up packets of the first.
    let again = router.trace(None, Arc::new(|_| true), 1).unwrap();
    assert!(again.steps.recv_timeout(Duration::from_millis(50)).is_err());
}

#[test]
fn bytes_are_counted_on_each_edge_while_somebody_wants_them() {
    let text = format!(
        "s :: InfiniteSource(DATA {}, LIMIT 7, BURST 3, STOP false) -> Strip(2) -> q :: Queue -> u :: Unqueue -> Discard;",
        packet(9)
    );
    let mut router = start(&text, Options { workers: 2, ..Options::default() });
    let bytes = |router: &Router| router.edges().unwrap().iter().map(|e| e.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(&router), [None; 4]);
    router.meter(true).unwrap();
    router.resume();
    until("all have passed", || router.edges().unwrap().iter().all(|e| e.packets == 7));
    assert_eq!(bytes(&router), [196, 182, 182, 182].map(Some));
    router.meter(false).unwrap();
    assert_eq!(bytes(&router), [None; 4]);
}
