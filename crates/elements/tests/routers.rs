//! Whole routers of library elements: tasks, notifiers and timers together, under simulated time.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

/// Starts the router that `text` describes on `workers`.
fn start_on(workers: usize, text: &str) -> Router {
    // Several workers have no common simulated clock.
    let simulated_ns = (workers == 1).then_some(SIMULATED_START_NS);
    let options = Options { workers, simulated_ns, ..Options::default() };
    let router = Router::start(causeway_elements::library(), plan(text), options);
    let router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    router
}

/// Runs the router that `text` describes on `workers` until one of its elements stops it.
fn run_on(workers: usize, text: &str) -> Router {
    let router = start_on(workers, text);
    let event = router.wait(Some(Duration::from_secs(60)));
    assert!(matches!(event, Some(Event::StopRequested { .. })), "{text}");
    router
}

fn run(text: &str) -> Router {
    run_on(1, text)
}

#[test]
fn every_example_is_a_router() {
    let library = causeway_elements::library();
    let mut wrong = Vec::new();
    for spec in library.iter() {
        match causeway_lang::compile(spec.name, spec.example.as_bytes(), &NoLibraries, &library, &[]) {
            Ok(compiled) => {
                let checked = Router::check(&library, &Plan::new(&compiled), &Options::default());
                wrong.extend(checked.err().map(|e| e.to_string()));
            }
            Err(failed) => wrong.push(format!("{}: {:?}", spec.name, failed.diagnostics.messages())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn read(router: &Router, handler: &str) -> String {
    let (element, name) = handler.split_once('.').unwrap();
    router.read(element, name, "").unwrap()
}

#[test]
fn a_source_waits_for_room_and_loses_nothing() {
    let text =
        "InfiniteSource(LIMIT 5000, STOP true) -> q :: Queue(10) -> Unqueue -> c :: Counter -> Discard;";
    let router = run(text);
    assert_eq!((read(&router, "q.drops"), read(&router, "q.highwater_length")), ("0".into(), "1".into()));
    assert_eq!(read(&router, "c.count"), "5000");
}

#[test]
fn a_queue_without_notifiers_overflows() {
    let text = "InfiniteSource(LIMIT 100, BURST 100) -> q :: SimpleQueue(10) -> Unqueue(LIMIT 10) -> Discard;
                TimedSource(1, LIMIT 1, STOP true) -> Discard;";
    let router = run(text);
    assert_eq!((read(&router, "q.drops"), read(&router, "q.highwater_length")), ("90".into(), "10".into()));
}

#[test]
fn time_jumps_from_packet_to_packet() {
    let text = "s :: RatedSource(RATE 2) -> c :: AverageCounter -> Discard;
                t :: TimedSource(5, LIMIT 1, STOP true) -> Discard;";
    let router = run(text);
    let count: u32 = read(&router, "c.count").parse().unwrap();
    // One at the start, then two a second; whether the last one or the stop comes first is a matter of nanoseconds.
    assert!((20..=21).contains(&count), "{count}");
    let rate: f64 = read(&router, "c.rate").parse().unwrap();
    assert!((rate - 2.0).abs() < 0.2, "{rate}");
}

#[test]
fn a_pulled_source_wakes_its_puller_when_there_is_a_packet() {
    let text =
        "s :: RatedSource(RATE 1000, LIMIT 500, STOP true) -> u :: Unqueue -> c :: Counter -> Discard;";
    let router = run(text);
    assert_eq!((read(&router, "c.count"), read(&router, "u.count")), ("500".into(), "500".into()));
}

#[test]
fn tickets_share_the_time() {
    let text = "ScheduleInfo(a 3);
                a :: InfiniteSource -> ca :: Counter -> Discard;
                b :: InfiniteSource(LIMIT 1000, STOP true) -> cb :: Counter -> Discard;";
    let router = run(text);
    assert_eq!((read(&router, "a.tickets"), read(&router, "cb.count")), ("3072".into(), "1000".into()));
    let a: u32 = read(&router, "ca.count").parse().unwrap();
    assert!(a >= 2_990, "{a}");
}

#[test]
fn schedulers_feed_one_puller_from_several_queues() {
    let text = "InfiniteSource(LIMIT 30) -> Queue -> p0 :: Paint(0) -> [0] r :: RoundRobinSched;
                InfiniteSource(LIMIT 30) -> Queue -> p1 :: Paint(1) -> [1] r;
                InfiniteSource(LIMIT 30) -> Queue -> [1] s :: PrioSched; r -> [0] s;
                s -> Unqueue(BURST 7) -> c :: Counter -> Discard;
                TimedSource(1, LIMIT 1, STOP true) -> Discard;";
    assert_eq!(read(&run(text), "c.count"), "90");
}

#[test]
fn an_end_calls_a_handler_of_another_element() {
    let text = "elementclass Pair { $last | a :: InfiniteSource(LIMIT 5, END_CALL b.active true) -> Discard;
                  b :: InfiniteSource(LIMIT 7, ACTIVE false, END_CALL $last) -> c :: Counter -> Discard }
                p :: Pair(d.active true); d :: TimedSource(1, ACTIVE false, LIMIT 1, STOP true) -> Discard;";
    let router = run(text);
    assert_eq!((read(&router, "p/c.count"), read(&router, "d.count")), ("7".into(), "1".into()));
}

#[test]
fn packets_cross_to_the_worker_that_is_named() {
    let text = "StaticThreadSched(u 1);
                s :: InfiniteSource(LIMIT 3000, BURST 32) -> Queue -> u :: Unqueue(BURST 32) -> c :: Counter
                  -> d :: Discard;
                RatedSource(RATE 20, LIMIT 5, STOP true) -> Discard;";
    let router = run_on(2, text);
    assert_eq!((read(&router, "s.home_thread"), read(&router, "u.home_thread")), ("0".into(), "1".into()));
    assert_eq!(read(&router, "c.count"), "3000");
}

#[test]
fn a_swap_keeps_queued_packets_and_goes_on_in_the_same_file() {
    let path = std::env::temp_dir().join(format!("causeway-routers-swap-{}.pcap", std::process::id()));
    let config = |limit: u32, queue: &str, rest: &str| {
        let dump = path.display();
        format!(
            "InfiniteSource(LIMIT {limit}) -> d :: ToDump({dump}) -> q :: {queue} -> Unqueue{rest} -> Discard;"
        )
    };
    let mut router = start_on(1, &config(5, "Queue", "(ACTIVE false)"));
    let start = std::time::Instant::now();
    while read(&router, "q.length") != "5" {
        assert!(start.elapsed() < Duration::from_secs(60), "five packets are never queued");
        std::thread::sleep(Duration::from_millis(1));
    }
    router.swap(plan(&config(3, "SimpleQueue", " -> Counter(COUNT_CALL 8 stop)"))).unwrap();
    assert!(matches!(router.wait(Some(Duration::from_secs(60))), Some(Event::StopRequested { .. })));
    drop(router);
    let router = run(&format!("FromDump({}, STOP true) -> c :: Counter -> Discard;", path.display()));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read(&router, "c.count"), "8");
}

#[test]
fn a_trace_is_written_and_read_again() {
    let path = std::env::temp_dir().join(format!("causeway-routers-{}.pcap", std::process::id()));
    let write = format!(
        "FastUDPSource(1000, 50, 60, 2:0:0:0:0:1, 10.0.0.1, 7, 2:0:0:0:0:2, 10.0.0.2, 9) -> Unqueue
           -> ToDump({0}) -> Discard;
         TimedSource(1, LIMIT 1, STOP true) -> Discard;",
        path.display()
    );
    drop(run(&write));
    let read_back = format!(
        "FromDump({}, STOP true, FORCE_IP true, TIMING true) -> a :: AverageCounter -> Discard;",
        path.display()
    );
    let router = run(&read_back);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read(&router, "a.count"), "50");
    let rate: f64 = read(&router, "a.rate").parse().unwrap();
    // Fifty packets in forty-nine intervals of a millisecond.
    assert!((rate - 1_020.4).abs() < 1.0, "{rate}");
}

#[test]
fn the_copies_of_a_replicated_graph_change_their_common_table_once() {
    let text = "Idle -> r :: RadixIPLookup(10.0.0.0/8 1) -> Discard; r[1] -> Discard;
                Idle -> c :: CachedIPLookup(10.0.0.0/8 1) -> Discard; c[1] -> Discard;
                Idle -> p :: PolicyIPLookup(10.0.0.0/8 1) -> Discard; p[1] -> Discard;";
    let options = Options { workers: 2, replicate: true, ..Options::default() };
    let router = Router::start(causeway_elements::library(), plan(text), options);
    let router = router.unwrap_or_else(|e| panic!("{e}"));
    for table in ["r", "c", "p"] {
        router.write(table, "add", "11.0.0.0/8 1").unwrap();
        assert!(router.write(table, "add", "11.0.0.0/8 1").is_err(), "{table} has the route");
        assert_eq!(router.read(table, "lookup", "11.0.0.1").unwrap(), "1", "{table}: an output, not a sum");
        router.write(table, "remove", "11.0.0.0/8").unwrap();
        assert_eq!(router.read(table, "table", "").unwrap(), "10.0.0.0/8\t\t-\t\t1\n");
    }
    router.write("p", "add_rule", "1 unreachable").unwrap();
    assert_eq!(router.read("p", "rules", "").unwrap(), "1 unreachable\n32766 table 254\n");
}
