//! Shapers, queues and schedulers together, under simulated time.

use causeway_engine::clock::SIMULATED_START_NS;
use causeway_engine::{Defaults, Event, Options, Plan, Router};
use causeway_lang::NoLibraries;
use std::time::Duration;

/// Runs `text` until it stops.
fn run(text: &str) -> Router {
    run_with(text, Defaults::Causeway)
}

/// As [`run`], with those defaults.
fn run_with(text: &str, defaults: Defaults) -> Router {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
    let options =
        Options { simulated_ns: Some(SIMULATED_START_NS), seed: Some(7), defaults, ..Options::default() };
    let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{text}: {e}"));
    router.resume();
    // Who does not sleep when there is nothing to do advances simulated time by nanoseconds, and never gets there.
    let patience = Some(Duration::from_secs(60));
    assert_eq!(router.wait(patience), Some(Event::StopRequested { worker: 0 }), "{text}");
    router
}

fn number(router: &Router, element: &str, handler: &str) -> f64 {
    router.read(element, handler, "").unwrap().parse().unwrap()
}

#[test]
fn pullers_sleep_until_a_shaper_has_packets_again() {
    for (shaper, packets) in [
        ("Shaper(100)", 500),
        ("BandwidthShaper(80kbps)", 500),
        ("Null -> Shaper(100) -> Null", 500),
        ("DelayShaper(1)", 4_000),
        ("Shaper(100) -> DelayShaper(1)", 500),
        ("BandwidthShaper(80kbps) -> Shaper(1000)", 500),
    ] {
        for (puller, rest) in [
            ("Unqueue", ""),
            ("Unqueue(BURST 32)", ""),
            ("[0] r :: RoundRobinSched -> Unqueue", "Idle -> [1] r;"),
            ("[0] d :: DRRSched -> Unqueue", "Idle -> [1] d;"),
        ] {
            let text = format!(
                "RatedSource(RATE 1000, LENGTH 100, LIMIT 100000) -> Queue(100000) -> {shaper} -> {puller}
                 -> c :: Counter -> Discard; {rest}
                 TimedSource(INTERVAL 2.5, LIMIT 1, STOP true) -> Discard;"
            );
            let count = number(&run(&text), "c", "count");
            assert!((count - f64::from(packets)).abs() <= 2.0, "{text}: {count}");
        }
    }
}

#[test]
fn a_shaper_with_two_outputs_lets_nobody_sleep_while_there_are_packets() {
    let router = run(
        "InfiniteSource(LIMIT 100) -> Queue -> s :: Shaper(1000); s[0] -> Unqueue -> slow :: Counter -> Discard;
         s[1] -> [0] r :: RoundRobinSched -> Unqueue -> rest :: Counter -> Discard; Idle -> [1] r;
         TimedSource(3ms, LIMIT 1, STOP true) -> Discard;",
    );
    // What the second output may give comes while the first one waits; the scheduler asks who says that there is something.
    let (slow, rest) = (number(&router, "slow", "count"), number(&router, "rest", "count"));
    assert!(slow >= 1.0 && rest >= 90.0, "{slow} and {rest}");
}

#[test]
fn what_is_pushed_out_while_it_is_pulled_goes_on_first_and_in_order() {
    // Copies have no paint. A scheduler pulls one packet after the other, all in one turn or each in its own.
    for (burst, order) in
        [(3, ["1 0", "2 0", "3 0", "1 1", "2 1", "3 1"]), (1, ["1 0", "1 1", "2 0", "2 1", "3 0", "3 1"])]
    {
        let file = std::env::temp_dir().join(format!("causeway-pulled-{burst}-{}", std::process::id()));
        let router = run(&format!(
            "FromIPSummaryDump(DATA \"!data sport proto\\n1 U\\n2 U\\n3 U\\n\") -> Queue -> t :: PullTee;
             t[1] -> d :: ToIPSummaryDump({}, FIELDS sport link, HEADER false);
             t[0] -> [0] r :: DRRSched(9000) -> u :: Unqueue(BURST {burst}, ACTIVE false) -> Paint(1) -> d; Idle -> [1] r;
             DriverManager(wait 0.1, write u.active true, wait 0.1, stop);",
            file.display()
        ));
        drop(router);
        let lines = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(lines.lines().collect::<Vec<_>>(), order, "{burst}");
    }
}

#[test]
fn a_drr_scheduler_is_asked_again_while_any_input_may_have_packets() {
    // A SimpleQueue tells nobody when it has some.
    let router = run(
        "Idle -> Queue -> [0] d :: DRRSched(1500) -> Unqueue -> c :: Counter -> Discard;
         TimedSource(1ms, LIMIT 3) -> SimpleQueue -> [1] d; TimedSource(3ms, LIMIT 1, STOP true) -> Discard;",
    );
    assert_eq!(number(&router, "c", "count"), 3.0);
    // Queues do, and wake who sleeps.
    let router = run(
        "TimedSource(INTERVAL 0.1, LIMIT 5) -> Queue -> [0] d :: DRRSched(1500) -> Unqueue -> c :: Counter -> Discard;
         TimedSource(INTERVAL 0.3, LIMIT 4) -> Queue -> [1] d; Idle -> [2] d;
         TimedSource(INTERVAL 3.5, LIMIT 1, STOP true) -> Discard;",
    );
    assert_eq!(number(&router, "c", "count"), 9.0);
}

#[test]
fn a_watcher_stops_the_router_when_an_element_has_nothing_more_to_do() {
    // It looks at 10 ms, and finds it at 20.
    let router = run(
        "s :: InfiniteSource -> Discard; QuitWatcher(s); Script(wait 12ms, write s.active false);
         TimedSource(15ms) -> before :: Counter -> Discard; TimedSource(30ms) -> after :: Counter -> Discard;",
    );
    assert_eq!([number(&router, "before", "count"), number(&router, "after", "count")], [1.0, 0.0]);
    let refused = |config: &str| {
        let text = format!("c :: Counter; Idle -> c -> Discard; QuitWatcher({config});");
        let library = causeway_elements::library();
        let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
        let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
        Router::start(library, plan, Options::default()).err().unwrap().to_string()
    };
    assert!(refused("c").contains("no 'c.scheduled' read handler"), "{}", refused("c"));
    assert!(refused("nobody").contains("no element named 'nobody'"), "{}", refused("nobody"));
}

#[test]
fn an_empty_queue_above_a_shaper_lets_its_puller_sleep() {
    let router = run(
        "TimedSource(INTERVAL 1, LIMIT 5) -> Queue -> Shaper(10) -> DelayShaper(0.1) -> Unqueue -> c :: Counter -> Discard;
         TimedSource(INTERVAL 3.5, LIMIT 1, STOP true) -> Discard;",
    );
    assert_eq!(number(&router, "c", "count"), 5.0);
}

#[test]
fn sources_of_clicks_configurations_count_as_there() {
    for (rate, packets) in [(1_000, 4_009), (10, 41), (200, 801)] {
        let text = format!(
            "RatedSource(RATE {rate}) -> c :: Counter -> Discard; TimedSource(INTERVAL 2, LIMIT 1, STOP true) -> Discard;"
        );
        assert_eq!(number(&run_with(&text, Defaults::Click), "c", "count"), f64::from(packets), "{rate}");
    }
}

#[test]
fn unqueues_keep_their_rates() {
    for (unqueue, packets) in [
        ("RatedUnqueue(50)", 239),
        ("BandwidthRatedUnqueue(40kbps, BURST_BYTES 0)", 250),
        ("LinkUnqueue(0.5, 80kbps)", 450),
        ("DelayUnqueue(0.5)", 4_500),
        ("TimedUnqueue(0.1, 2)", 100),
        ("Burster(0.1)", 400),
    ] {
        let text = format!(
            "RatedSource(RATE 1000, LENGTH 100, LIMIT 100000) -> Queue(100000) -> {unqueue} -> c :: Counter -> Discard;
             TimedSource(INTERVAL 2.5, LIMIT 1, STOP true) -> Discard;"
        );
        let count = number(&run(&text), "c", "count");
        assert!((count - f64::from(packets)).abs() <= 8.0, "{unqueue}: {count}");
    }
}

#[test]
fn schedulers_share_a_link() {
    for (scheduler, first, second) in [
        ("DRRSched(500)", 4_000.0, 1_000.0),
        ("StrideSched(3, 1)", 3_000.0, 1_000.0),
        ("PrioSched", 100.0, 0.0),
    ] {
        // The packets of the first are short, those of the second four times as long.
        let text = format!(
            "RatedSource(RATE 20000, LENGTH 100) -> Queue -> [0] s :: {scheduler};
             RatedSource(RATE 20000, LENGTH 400) -> Queue -> [1] s;
             s -> RatedUnqueue(1000) -> p :: CheckLength(100) -> a :: Counter -> Discard; p[1] -> b :: Counter -> Discard;
             TimedSource(INTERVAL 2.5, LIMIT 1, STOP true) -> Discard;"
        );
        let router = run(&text);
        let (a, b) = (number(&router, "a", "count"), number(&router, "b", "count"));
        assert!((a * second - b * first).abs() <= 0.02 * (a + b) * (first + second), "{scheduler}: {a} {b}");
        assert!(a + b > 4_900.0, "{scheduler}: {a} {b}");
    }
}

#[test]
fn early_drops_keep_queues_short() {
    let with = |aqm: &str, behind: &str| {
        let router = run(&format!(
            "RatedSource(RATE 1000, LENGTH 100) -> SetTimestamp(FIRST true) -> {aqm} q :: Queue(2000) -> {behind} RatedUnqueue(900) -> Discard;
             TimedSource(INTERVAL 5, LIMIT 1, STOP true) -> Discard;"
        ));
        let drops = if aqm.is_empty() && behind.is_empty() { 0.0 } else { number(&router, "aqm", "drops") };
        (number(&router, "q", "length"), drops, router)
    };
    let (without, ..) = with("", "");
    assert!(without > 900.0, "{without}");
    let (length, drops, router) = with("aqm :: RED(5, 50, 0.1, STABILITY 6) ->", "");
    assert!(length < 100.0 && drops > 800.0, "{length} {drops}");
    assert_eq!(router.read("aqm", "queues", "").unwrap(), "q\n");
    let average = number(&router, "aqm", "avg_queue_size");
    assert!(average > 5.0 && average < 100.0, "{average}");
    assert!(
        router.write("aqm", "min_thresh", "60").is_err() && router.write("aqm", "max_thresh", "60").is_ok()
    );
    assert_eq!(router.read("aqm", "config", "").unwrap(), "5, 60, 0.1, STABILITY 6");
    assert!(router.read("aqm", "stats", "").unwrap().ends_with(" drops\n"));
    let (length, drops, _) = with("", "aqm :: RED(5, 50, 0.1) ->");
    assert!(length < 100.0 && drops > 800.0, "{length} {drops}");
    let (length, drops, router) = with("", "aqm :: CoDel(5ms, 100ms) ->");
    assert!(length < 700.0 && drops > 100.0, "{length} {drops}");
    assert_eq!(router.read("aqm", "codel_target", "").unwrap(), "5ms");
    router.write("aqm", "codel_interval", "50ms").unwrap();
    assert_eq!(router.read("aqm", "config", "").unwrap(), "5ms, 50ms");
}

#[test]
fn who_drops_all_that_an_endless_source_has_lets_others_work() {
    for dropper in
        ["RED(0, 1, 1, QUEUES q, STABILITY 0)", "SetTimestamp(FIRST true) -> CoDel(0, 0, QUEUES q)"]
    {
        run(&format!(
            "InfiniteSource -> {dropper} -> Unqueue -> Discard; InfiniteSource(LIMIT 9) -> q :: Queue -> Idle;
             TimedSource(INTERVAL 1us, LIMIT 1, STOP true) -> Discard;"
        ));
    }
}

#[test]
fn late_packets_are_dropped_at_the_times_of_the_control_law() {
    // Twice what leaves comes: after 10 ms all have waited too long, and 200 ms later one is dropped, the next after 100 ms,
    // 100 / sqrt(2), 100 / sqrt(3) and so on.
    let router = run(
        "RatedSource(RATE 2000, LIMIT 100000) -> SetTimestamp(FIRST true) -> q :: Queue(100000) -> c :: CoDel(5ms, 100ms)
         -> RatedUnqueue(1000) -> Discard; TimedSource(INTERVAL 0.5, LIMIT 1, STOP true) -> Discard;",
    );
    let law = (1..).scan(210.0, |at_ms: &mut f64, n: u32| {
        let due_ms = *at_ms;
        *at_ms += 100.0 / f64::from(n).sqrt();
        Some(due_ms)
    });
    let expected = law.take_while(|at_ms| *at_ms < 1_000.0).count() as f64;
    let drops = number(&router, "c", "drops");
    assert!((drops - expected).abs() <= 1.0, "{drops} beside {expected}");
}
