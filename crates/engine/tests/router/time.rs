//! Simulated time.

use super::odd::READS_FOR;
use super::{library, log_of, plan, start, until};
use causeway_engine::{Event, Options, Router};
use std::time::Duration;

#[test]
fn simulated_time_jumps() {
    let options = Options { simulated_ns: Some(0), seed: Some(1), ..Options::default() };
    let router = Router::start(library(), plan("Source(3, STOP true) -> l :: Log;"), options).unwrap();
    router.resume();
    assert!(router.wait(Some(Duration::from_secs(20))).is_some());
}

#[test]
fn time_goes_on_when_the_graph_is_replaced() {
    let options = Options { simulated_ns: Some(1_000), ..Options::default() };
    let mut router = Router::start(library(), plan("s :: Source(0) -> Log;"), options).unwrap();
    let now = |router: &Router| router.read("s", "now", "").unwrap().parse::<u64>().unwrap();
    let before = (0..100).fold(0, |_, _| now(&router));
    assert!(before >= 1_100);
    router.swap(plan("s :: Source(0) -> Log;")).unwrap();
    assert!(now(&router) > before);
}

#[test]
fn a_timer_that_stops_the_router_is_the_last_to_run_until_it_goes_on() {
    let options = Options { simulated_ns: Some(0), ..Options::default() };
    let text = "a :: Alarm(500, 1) -> l :: Log; b :: Alarm(500, 2) -> l;";
    let router = Router::start(library(), plan(text), options).unwrap();
    for seen in ["l:1", "l:1 l:2"] {
        router.resume();
        let stopped = router.wait(Some(Duration::from_secs(20)));
        assert_eq!(stopped, Some(Event::StopRequested { worker: 0 }));
        assert_eq!(router.read("l", "log", "").unwrap(), seen);
    }
}

#[test]
fn busy_tasks_let_timers_and_devices_have_their_turn() {
    let at = |log: &str, what: &str| log.split(' ').position(|seen| seen == what);
    let device = "Device(1, MECHANISM polling) -> d :: Log;";
    let busy = format!("Source(300, STOP true) -> l :: Log; {device}");
    assert_eq!(at(&log_of(&busy), "d:1"), Some(129), "behind as many tasks as run in a step");
    assert_eq!(at(&log_of("Source(300) -> l :: Log; Alarm(0, 7) -> a :: Log;"), "a:7"), Some(129));
    let late = format!("Alarm(0, 7, TIMES 100) -> l :: Log; {device}");
    assert_eq!(at(&log_of(&late), "d:1"), Some(64), "behind as many timers as run in a step");

    // Half of the tasks are vain, those of an edge between workers, but never all of them in turn.
    let half =
        format!("Source(300, STOP true) -> l :: Log; x :: Source(0) -> y :: Log; Pin(x 1, y 0); {device}");
    let router = start(&half, 2);
    assert_eq!(router.wait(Some(Duration::from_secs(20))), Some(Event::StopRequested { worker: 0 }));
    assert_eq!(at(&router.read("l", "log", "").unwrap(), "d:1"), Some(64));

    // Where the router stopped, a step begins anew.
    let router = start(&format!("Source(50, STOP true) -> l :: Log; Source(1000) -> l; {device}"), 1);
    assert_eq!(router.wait(Some(Duration::from_secs(20))), Some(Event::StopRequested { worker: 0 }));
    router.resume();
    until("the device has its turn", || {
        at(&router.read("l", "log", "").unwrap(), "d:1") == Some(50 + 50 + 129)
    });
}

#[test]
fn who_stamps_sees_the_time_of_his_batch_and_others_that_of_the_round() {
    let router = start("Source(1) -> a :: Reader -> b :: Reader -> c :: Stamper -> d :: Reader;", 1);
    let time = |element: &str| router.read(element, "time", "").unwrap().parse::<u64>().unwrap();
    until("all have read", || time("d") > 0);
    assert_eq!(time("a"), time("b"));
    assert!(time("c") >= time("b") + 2 * READS_FOR.as_nanos() as u64);
    assert_eq!(time("d"), time("c"), "and what comes behind is no earlier");
}
