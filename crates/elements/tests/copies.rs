//! Graphs with a copy on each of several workers: what has copies, what has none, and what goes between.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::{Duration, Instant};

const WORKERS: usize = 3;

fn start(text: &str) -> Router {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options = Options { workers: WORKERS, replicate: true, ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    router
}

fn read(router: &Router, handler: &str) -> String {
    let (element, name) = handler.split_once('.').unwrap();
    router.read(element, name, "").unwrap_or_else(|e| panic!("{handler}: {e}"))
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Packets that an element of each worker has counted.
fn by_worker(router: &Router, element: &str) -> Vec<u64> {
    let mut counts = vec![0; WORKERS];
    for (line, n) in router.counters().filter(|(line, _)| line.element == element && line.name == "count") {
        counts[line.worker] += n;
    }
    counts
}

/// UDP packets of as many flows as there are ports from 1 on.
fn flows(n: u16) -> String {
    let packet = |port: u16| {
        let sum: u32 = [0x4500, 0x1c, 0x4011, 0x0a00, 0x0001, 0x0a00, 0x0102].iter().sum();
        let sum = !(sum % 0xffff) & 0xffff;
        format!("\\<4500 001c 0000 0000 4011 {sum:04x} 0a00 0001 0a00 0102 {port:04x} 0035 0008 0000>")
    };
    let source =
        |port| format!("InfiniteSource(DATA {}, LIMIT 100, BURST 7, STOP false) -> in;", packet(port));
    (1..=n).map(source).collect::<Vec<_>>().join("\n")
}

#[test]
fn sources_have_no_copies_and_their_flows_are_spread() {
    let text = format!(
        "in :: MarkIPHeader(0) -> c :: Counter -> q :: Queue(10000) -> u :: Unqueue -> out :: Counter -> Discard;\n{}",
        flows(60)
    );
    let router = start(&text);
    until("all have come", || read(&router, "out.count") == "6000");
    let counts = by_worker(&router, "c");
    assert!(counts.iter().all(|n| n % 100 == 0 && *n > 0), "whole flows, to each worker some: {counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), 6_000, "limits are not multiplied");
    let passed: u64 = router.edges().unwrap().iter().filter(|e| e.to.0 == "in").map(|e| e.packets).sum();
    assert_eq!(passed, 6_000);
}

#[test]
fn what_has_a_place_or_is_pulled_by_what_has_is_there_once() {
    let text = format!(
        "in :: MarkIPHeader(0) -> q :: Queue(10000) -> c :: Counter -> u :: Unqueue(LIMIT 6000) -> Discard;
         StaticThreadSched(u 2);\n{}",
        flows(60)
    );
    let router = start(&text);
    until("all have come", || read(&router, "c.count") == "6000");
    assert_eq!(by_worker(&router, "c"), [0, 0, 6_000]);
    assert_eq!(read(&router, "q.capacity"), "10000");
    assert_eq!(read(&router, "u.home_thread"), "2");
}

#[test]
fn a_counter_that_calls_counts_the_packets_of_all() {
    let text = format!(
        "in :: MarkIPHeader(0) -> c :: Counter(COUNT_CALL 5000 s.switch 1) -> s :: Switch -> Discard; s[1] -> d :: Counter -> Discard;\n{}",
        flows(60)
    );
    let router = start(&text);
    until("all have come", || read(&router, "c.count") == "6000");
    let counts = by_worker(&router, "c");
    assert_eq!(counts.iter().filter(|n| **n > 0).count(), 1, "{counts:?}");
}

#[test]
fn all_copies_hear_the_answers_to_arp() {
    // The answer of 10.0.1.2 to 10.0.0.1, which comes by one worker alone.
    let answer =
        "\\<000000000001 020000000002 0806 0001 0800 06 04 0002 020000000002 0a000102 000000000001 0a000001>";
    let text = format!(
        "in :: MarkIPHeader(0) -> GetIPAddress(16) -> a :: ARPQuerier(10.0.0.1, 0:0:0:0:0:1) -> c :: Classifier(12/0800, -)
         -> out :: Counter -> Discard; c[1] -> Discard;
         r :: TimedSource(0.01, DATA {answer}) -> [1] a;\n{}",
        flows(60)
    );
    let router = start(&text);
    // Until an answer has come a neighbour has room for few packets, and they are gone.
    until("each worker knows", || {
        let known = |table: String| {
            table.lines().filter(|l| l.starts_with("10.0.1.2") && l.contains("02-00-00-00-00-02")).count()
        };
        known(read(&router, "a.table")) == WORKERS
    });
}

#[test]
fn counts_are_those_of_all_copies_and_a_rate_is_shared_by_them() {
    const RATE: f64 = 4_000.0;
    let text = format!(
        "in :: MarkIPHeader(0) -> t :: Tee; t[0] -> d :: Discard;
         t[1] -> e :: ICMPError(1.0.0.1, timeexceeded, RATE {RATE}) -> errors :: Counter -> Discard;\n{}",
        flows(60)
    );
    let began = Instant::now();
    let router = start(&text);
    until("all have come", || read(&router, "d.count") == "6000");
    let errors: f64 = read(&router, "errors.count").parse().unwrap();
    // At first there is a twentieth of a second's, which are whole for each copy.
    let most = RATE / 20.0 + WORKERS as f64 + RATE * began.elapsed().as_secs_f64();
    assert!(errors >= RATE / 20.0 && errors <= most, "{errors} of {most}");
}
