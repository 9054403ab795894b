//! Several workers, and one that has too much to do.

use super::{library, plan, seen, start, until};
use causeway_engine::{Options, Router};

#[test]
fn edges_between_workers_carry_every_packet_in_order() {
    for (pinned, shape) in [
        ("a 0, d 1, l 1", "pushed edge within, pulled edge across"),
        ("a 0, q 1, d 1, l 1", "pushed edge across"),
        ("a 1, q 0, d 1, l 0", "both ways"),
    ] {
        let text = format!("Pin({pinned}); a :: Source(3000) -> q :: Store(5000) -> d :: Drain -> l :: Log;");
        let router = start(&text, 2);
        until(shape, || router.read("l", "log", "").unwrap().ends_with(":3000"));
        let expected: Vec<String> = (1..=3_000).map(|n| format!("l:{n}")).collect();
        assert_eq!(router.read("l", "log", "").unwrap(), expected.join(" "), "{shape}");
    }
}

#[test]
fn a_full_edge_between_workers_holds_the_sender_back_and_wakes_it() {
    // Many times what a ring holds. A sender that nobody wakes would need a quarter of a second for each.
    for (pinned, packets, room) in
        [("a 0, q 0, d 1, l 1", 400_000, 2_000), ("a 0, q 1, d 1, l 1", 100_000, 2_000)]
    {
        let text =
            format!("Pin({pinned}); a :: Source({packets}) -> q :: Store({room}) -> d :: Drain -> l :: Log;");
        let router = start(&text, 2);
        until("most passed", || router.read("d", "runs", "").unwrap().parse::<u32>().unwrap() >= packets);
        until("none was lost", || seen(&router).last() == Some(&packets));
        assert!(seen(&router).windows(2).all(|w| w[1] == w[0] + 1), "{pinned}");
    }
}

#[test]
fn a_replicated_graph_runs_on_every_worker_and_its_handlers_say_what_is_summed() {
    let options = Options { workers: 3, replicate: true, ..Options::default() };
    let router = Router::start(library(), plan("s :: Source(7) -> Log;"), options).unwrap();
    router.resume();
    until("all made theirs", || router.read("s", "made", "").unwrap() == "21");
    assert_eq!(router.read("s", "limit", "").unwrap(), "7");
    let measures = router.measures().unwrap();
    let told =
        |name: &str| measures.iter().filter(|m| &*m.element == "s" && m.name == name).collect::<Vec<_>>();
    let [made] = told("made")[..] else { panic!("one value of three workers") };
    assert_eq!((made.value.as_str(), made.class), ("21", "Source"));
    assert!(told("limit").is_empty(), "it neither counts nor measures");
    assert!(
        told("now")[0].value.parse::<u64>().unwrap() <= router.read("s", "now", "").unwrap().parse().unwrap()
    );
}

#[test]
fn a_worker_in_livelock_obeys() {
    let router = start("d :: Device(4000000000) -> l :: Log;", 1);
    let dropped = || router.counters().find(|(l, _)| l.name == "rx.backlog-drops").map_or(0, |(_, n)| n);
    until("it drops", || dropped() > 100_000);
    let forwarded = seen(&router).len() as u64;
    assert!(forwarded * 50 < dropped(), "all work goes into drops: {forwarded} were forwarded");
}
