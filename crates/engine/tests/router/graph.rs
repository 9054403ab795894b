//! Delivery, queues, configurations that are wrong, handlers.

use super::{library, log_of, plan, start, until};
use causeway_engine::{Event, Options, Router};
use std::time::Duration;

#[test]
fn delivery_is_depth_first_and_outputs_are_in_order() {
    let text = "Source(2, STOP true) -> c :: Copy; c[0] -> a :: Log -> b :: Log; c[1] -> l :: Log;";
    assert_eq!(log_of(text), "a:1 b:1 l:1 a:2 b:2 l:2");
}

#[test]
fn a_loop_in_the_graph_ends_and_is_counted() {
    // Nor do handlers that are called on the way hide that it has no end.
    for text in ["Source(1) -> l :: Log -> l;", "Source(1) -> b :: Bounce -> b;"] {
        let router = start(text, 1);
        let loops = || router.counters().find(|(line, _)| line.name == "drop.loop").map_or(0, |(_, n)| n);
        until("the loop is cut", || loops() == 1);
        if let Ok(bounces) = router.read("b", "bounces", "") {
            assert_eq!(bounces, "65536", "each is called before the packet goes on");
        }
    }
}

#[test]
fn a_full_queue_holds_its_source_back_and_an_empty_one_its_drain() {
    let router = start("s :: Source(1000) -> q :: Store(5) -> d :: Drain -> l :: Log;", 1);
    until("all passed", || router.read("l", "log", "").unwrap().ends_with(":1000"));
    let runs = router.read("d", "runs", "").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(router.read("d", "runs", "").unwrap(), runs, "the drain sleeps while the queue is empty");
    assert!(router.read("q", "highwater", "").unwrap().parse::<u32>().unwrap() <= 5);
}

#[test]
fn all_configuration_errors_are_reported_with_their_places() {
    let text = "f1 :: Failing;\nSource(x) -> Log;\nf2 :: Failing;";
    let error = Router::start(library(), plan(text), Options::default()).err().unwrap().to_string();
    let expected = "test:1: While configuring 'f1 :: Failing':\n  it never works\n\
                    test:3: While configuring 'f2 :: Failing':\n  it never works\n\
                    test:2: While configuring 'Source@2 :: Source':\n  LIMIT: invalid number";
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&error), sorted(expected));
}

#[test]
fn handlers_answer_and_say_what_is_wrong() {
    let router = start("s :: Source(3) -> q :: Store -> d :: Drain -> Log;", 1);
    let failed = |e: &str, h: &str, a: &str| router.read(e, h, a).unwrap_err().to_string();
    assert_eq!(failed("x", "made", ""), "No element named 'x'");
    assert_eq!(failed("s", "mode", ""), "No handler named 's.mode'");
    assert_eq!(failed("s", "made", "1"), "read handler 's.made' does not take parameters");
    assert_eq!(router.write("s", "made", "1").unwrap_err().to_string(), "Handler 's.made' read-only");
    assert_eq!(router.read("s", "class", "").unwrap(), "Source");
    assert_eq!(router.read("s", "config", "").unwrap(), "3");
    assert_eq!(router.read("q", "ports", "").unwrap(), "1 input\npush\t-\ts [0]\n1 output\npull\t-\t[0] d\n");
}

#[test]
fn handlers_that_call_each_other_without_end_are_cut() {
    let router = start("c/b :: Bounce; d :: Bounce;", 1);
    router.write("c/b", "bounce", "d.bounce").unwrap();
    let calls: u64 = router.read("d", "bounces", "").unwrap().parse().unwrap();
    assert!((100..10_000).contains(&calls), "{calls}");
    router.write("d", "bounce", "stop").unwrap();
    assert_eq!(router.wait(Some(Duration::from_secs(20))), Some(Event::StopRequested { worker: 0 }));
}

#[test]
fn a_worker_takes_a_step_between_two_pieces_of_a_table() {
    let router = start("l :: Long(500)", 1);
    until("its task runs", || router.read("l", "table", "").unwrap().ends_with(' '));
    let runs: Vec<u64> =
        router.read("l", "table", "").unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert_eq!(runs.len(), 500);
    assert!(runs.windows(2).all(|pair| pair[0] < pair[1]), "{runs:?}");
    // One that is paused has no steps to take, and answers all the same.
    router.pause();
    assert_eq!(router.read("l", "table", "").unwrap().split_whitespace().count(), 500);
}

#[test]
fn what_takes_long_to_drop_is_dropped_by_whoever_wrote_to_the_handler() {
    let router = start("l :: Long(1)", 1);
    (0..2).for_each(|_| router.write("l", "clear", "").unwrap());
    let mine = std::thread::current().name().unwrap_or("-").to_owned();
    assert_eq!(router.read("l", "dropped_by", "").unwrap(), format!("{mine} {mine} "));
}
