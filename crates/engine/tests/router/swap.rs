//! Replacing the graph.

use super::{plan, seen, start, until};
use causeway_engine::Router;

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
