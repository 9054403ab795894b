//! Replacing the graph.

use super::{library, plan, seen, start, until};
use causeway_engine::{Options, Router};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_swap_keeps_packets_and_state_and_a_bad_one_changes_nothing() {
    let mut router = start("s :: Source(4) -> q :: Store(10) -> Drain -> l :: Log;", 1);
    until("four passed", || router.read("s", "made", "").unwrap() == "4");
    assert!(router.swap(plan("f :: Failing;")).is_err());
    assert_eq!(router.read("s", "made", "").unwrap(), "4");
    router.swap(plan("s :: Source(9) -> q :: Store(10) -> Drain -> l :: Log;")).unwrap();
    until("the rest passed", || router.read("l", "log", "").unwrap().ends_with("l:5 l:6 l:7 l:8 l:9"));
}

#[test]
fn packets_held_at_a_swap_are_not_lost() {
    let mut router = start("s :: Source(4) -> q :: Store(10) -> [0] x :: Drain -> Log; p :: Pin;", 1);
    router.pause();
    for _ in 0..20 {
        router.swap(plan("s :: Source(2000) -> q :: Store(10) -> Drain -> l :: Log;")).unwrap();
    }
    router.resume();
    until("all passed", || router.read("l", "log", "").unwrap().ends_with(":2000"));
    let log = router.read("l", "log", "").unwrap();
    let numbers: Vec<u32> = log.split(' ').filter_map(|w| w.strip_prefix("l:")?.parse().ok()).collect();
    assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1), "none lost, none twice, in order");
}

#[test]
fn swaps_under_load_lose_nothing_on_the_way_between_workers() {
    for (pinned, packets, room) in
        [("a 0, q 0, d 1, l 1", 200_000, 2_000), ("a 0, q 1, d 1, l 1", 100_000, 2_000)]
    {
        let text =
            format!("Pin({pinned}); a :: Source({packets}) -> q :: Store({room}) -> d :: Drain -> l :: Log;");
        let mut router = start(&text, 2);
        for _ in 0..20 {
            router.swap(plan(&text)).unwrap();
        }
        until("none was lost", || seen(&router).last() == Some(&packets));
        assert!(seen(&router).windows(2).all(|w| w[1] == w[0] + 1), "{pinned}");
    }
}

#[test]
fn packets_on_the_way_move_with_the_elements_to_other_workers() {
    let [there, back] = ["a 0, q 0, d 1, l 1", "a 1, q 1, d 0, l 0"].map(|pinned| {
        format!("Pin({pinned}); a :: Source(50000) -> q :: Store(2000) -> d :: Drain -> l :: Log;")
    });
    let mut router = start(&there, 2);
    for _ in 0..10 {
        router.swap(plan(&back)).unwrap();
        router.swap(plan(&there)).unwrap();
    }
    until("none was lost", || seen(&router).last() == Some(&50_000));
    assert!(seen(&router).windows(2).all(|w| w[1] == w[0] + 1));
}

#[test]
fn swaps_lose_nothing_of_what_several_workers_send_to_one() {
    let text = "Pin(d 0); s :: Source(60000) -> d :: Tally;";
    let options = Options { workers: 3, replicate: true, ..Options::default() };
    let mut router = Router::start(library(), plan(text), options).unwrap();
    router.resume();
    for _ in 0..20 {
        router.swap(plan(text)).unwrap();
    }
    until("all came", || router.read("d", "tally", "").unwrap() == "180000");
}

/// At least so many packets pass in ten times the millisecond for which a worker may stand still.
const TEN_MS: u64 = 10 * 500;

#[test]
fn a_worker_takes_its_graph_and_waits_for_no_other() {
    let text = format!("Pin(p 0, s 1, t 1); p :: Patient({TEN_MS}); s :: Source(4000000000) -> t :: Tally;");
    let mut router = start(&text, 2);
    until("packets pass", || router.read("t", "tally", "").unwrap() != "0");
    for _ in 0..3 {
        // The other worker has its next graph, or still the one before: it passes packets on.
        router.swap(plan(&text)).unwrap();
        assert_eq!(router.read("p", "in_vain", "").unwrap(), "false");
    }
    // One that needs the other's elements waits for it.
    let crossed = text.replace("s 1, t 1", "s 0, t 0");
    router.swap(plan(&crossed)).unwrap();
    assert_eq!(router.read("p", "in_vain", "").unwrap(), "true");
    router.pause();
    assert_eq!(router.read("s", "made", "").unwrap(), router.read("t", "tally", "").unwrap(), "none is lost");
}

#[test]
fn packets_between_interrupt_and_forwarding_outlive_a_swap() {
    let mut router = start("d :: Device(250) -> l :: Log;", 1);
    for _ in 0..20 {
        router.swap(plan("d :: Device(0) -> l :: Log;")).unwrap();
    }
    until("all passed", || seen(&router).len() == 250);
    assert_eq!(seen(&router), (1..=250).collect::<Vec<_>>());
    let counted = |name: &str| router.counters().find(|(line, _)| line.name == name).map(|(_, n)| n);
    assert_eq!((counted("rx.packets"), counted("drop.swap")), (Some(250), Some(0)), "counters go on");
}

#[test]
fn packets_without_a_place_in_the_new_graph_are_counted() {
    let mut router = start("Source(5) -> Store(10) -> Wait; Pin();", 1);
    until("five are held", || router.held().unwrap() == 5);
    router.swap(plan("Pin();")).unwrap();
    let lost: u64 = router.counters().filter(|(line, _)| line.name == "drop.swap").map(|(_, n)| n).sum();
    assert_eq!(lost, 5);
    router.swap(plan("Pin();")).unwrap();
    let lost: u64 = router.counters().filter(|(line, _)| line.name == "drop.swap").map(|(_, n)| n).sum();
    assert_eq!(lost, 5, "a worker's own counters go on, too");
}

#[test]
fn an_element_goes_on_counting_while_its_class_stays() {
    let mut router = start("s :: Source(3) -> c :: Copy; c[0] -> a :: Log; c[1] -> b :: Log; x :: Pin();", 1);
    let counted = |router: &Router| -> u64 {
        router
            .counters()
            .filter(|(line, _)| line.element == "c" && line.name == "out.0")
            .map(|(_, n)| n)
            .sum()
    };
    until("all passed", || counted(&router) == 3);
    router.swap(plan("c :: Copy; c[0] -> a :: Log; c[1] -> b :: Log; x :: Source(0) -> c;")).unwrap();
    assert_eq!(counted(&router), 3, "others may change");
    router.swap(plan("x :: Source(0) -> c :: Log -> a :: Log;")).unwrap();
    assert_eq!(counted(&router), 0, "another class by the same name begins anew");
}

#[test]
fn counts_are_kept_for_an_element_that_comes_back_if_that_is_asked_for() {
    let (with, without) =
        ("s :: Source(0) -> c :: Log; t :: Source(3) -> l :: Tally;", "s :: Source(0) -> c :: Log;");
    let mut router = start(with, 1);
    let counted = |router: &Router, element: &str| {
        router.counters().filter(|(line, _)| line.element == element).map(|(_, n)| n).collect::<Vec<_>>()
    };
    until("all passed", || router.read("l", "tally", "").unwrap() == "3");
    let (log, source) = (counted(&router, "c"), counted(&router, "t"));
    assert!(source.contains(&3), "{source:?}");
    router.keep_counts();
    router.swap(plan(without)).unwrap();
    router.swap(plan(&with.replace("Source(3)", "Source(0)"))).unwrap();
    assert_eq!((counted(&router, "c"), counted(&router, "t")), (log, source.clone()));
    router.swap(plan(without)).unwrap();
    router.swap(plan(&with.replace("Source(3)", "Source(0)"))).unwrap();
    assert_eq!(counted(&router, "t"), vec![0; source.len()], "asked for once, kept once");
}

/// Counts the errors that say of a worker that it does not answer.
struct Unanswered(AtomicUsize);

impl log::Log for Unanswered {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let one = record.args().to_string().contains("does not answer");
        self.0.fetch_add(usize::from(one), Ordering::Relaxed);
    }

    fn flush(&self) {}
}

#[test]
fn after_a_swap_all_have_answered_and_each_has_stood_still() {
    static UNANSWERED: Unanswered = Unanswered(AtomicUsize::new(0));
    log::set_logger(&UNANSWERED).expect("no other here");
    log::set_max_level(log::LevelFilter::Error);
    for (text, workers) in [("x :: Pin();", 1), ("Pin(a 0, l 1); a :: Source(9) -> l :: Log;", 2)] {
        let mut router = start(text, workers);
        assert!(router.stood_still().iter().all(Duration::is_zero), "no swap yet");
        router.swap(plan(text)).unwrap();
        assert_eq!(router.stood_still().len(), workers);
        assert!(router.stood_still().iter().all(|time| !time.is_zero()), "{:?}", router.stood_still());
    }
    assert_eq!(UNANSWERED.0.load(Ordering::Relaxed), 0);
}
