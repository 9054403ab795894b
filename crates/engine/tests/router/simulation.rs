//! Workers without threads: what work costs, and what happens between two pieces of it.

use super::{library, log_of, plan, start, until};
use causeway_engine::Options;
use causeway_engine::simulation::{Simulation, Step, Visit, Work};
use std::sync::{Arc, Mutex};

/// To take a packet from a device, and to push one to an element, nanoseconds.
const TAKE_NS: u64 = 120;
const PUSH_NS: u64 = 50;

fn costs(visit: &Visit<'_>) -> u64 {
    let packets = visit.packets as u64;
    assert!(packets <= 1, "packets go one by one: {visit:?}");
    match visit.work {
        Work::Receive | Work::Enqueue => packets * TAKE_NS,
        Work::Push => packets * PUSH_NS,
        _ => 0,
    }
}

fn simulation(text: &str, workers: usize) -> Simulation {
    let options = Options { workers, simulated_ns: Some(0), seed: Some(1), ..Options::default() };
    Simulation::new(&library(), &plan(text), &options, |_| costs).unwrap_or_else(|e| panic!("{e}"))
}

/// The counter `name` of device `d`.
fn counter(sim: &Simulation, name: &str) -> u64 {
    let mut found = sim.counters().filter(|(line, _)| line.element == "d" && line.name == name);
    found.next().unwrap_or_else(|| panic!("no counter {name}")).1
}

fn seen(sim: &mut Simulation) -> usize {
    sim.read("l", "log", "").unwrap().split_whitespace().count()
}

#[test]
fn what_runs_without_threads_does_what_runs_with_them() {
    let text = "s :: Source(40, STOP true) -> c :: Copy; c[0] -> Store -> Drain -> l :: Log; c[1] -> Log;";
    let mut sim = simulation(text, 1);
    sim.run(0, u64::MAX);
    assert_eq!(sim.read("l", "log", "").unwrap(), log_of(text));
}

#[test]
fn a_mechanism_is_interrupted_in_the_middle_of_its_quota() {
    let mut sim = simulation("d :: Device(100, MECHANISM napi) -> l :: Log;", 1);
    while seen(&mut sim) < 10 {
        assert!(matches!(sim.step(0), None | Some(Step::Worked)));
    }
    assert_eq!(sim.now_ns(0) / (TAKE_NS + PUSH_NS), 10, "ten packets took their time");
    let half = [counter(&sim, "rx.interrupts"), counter(&sim, "rx.polls"), counter(&sim, "rx.quota-hits")];
    assert_eq!(half, [1, 0, 0], "the turn of 64 is not over");
    assert_eq!(sim.held(), 0);
    // What comes meanwhile is part of the same turns.
    sim.write("d", "arrive", "28").unwrap();
    while seen(&mut sim) < 128 {
        assert!(matches!(sim.step(0), None | Some(Step::Worked)));
    }
    let whole = [counter(&sim, "rx.interrupts"), counter(&sim, "rx.polls"), counter(&sim, "rx.quota-hits")];
    assert_eq!(whole, [1, 2, 2], "two turns of 64");
}

#[test]
fn a_packet_between_two_pieces_of_work_is_held() {
    let mut sim = simulation("d :: Device(3, MECHANISM napi) -> Log -> l :: Log;", 1);
    let mut held = Vec::new();
    while seen(&mut sim) < 6 {
        sim.step(0);
        held.push(sim.held());
    }
    assert!(held.contains(&1) && held.iter().all(|&n| n <= 1), "{held:?}");
    assert_eq!(sim.held(), 0);
}

/// Packets forwarded in a millisecond, in which one comes every 100 ns.
fn forwarded_under_load(mechanism: &str) -> usize {
    let mut sim = simulation(&format!("d :: Device(0, MECHANISM {mechanism}) -> l :: Log;"), 1);
    let mut come = 0;
    while sim.now_ns(0) < 1_000_000 {
        let due = sim.now_ns(0) / 100;
        if due > come {
            sim.write("d", "arrive", &(due - come).to_string()).unwrap();
            sim.interrupt(0, 0);
            come = due;
        }
        if matches!(sim.step(0), Some(Step::Blocked)) {
            sim.idle(0, (come + 1) * 100);
        }
    }
    seen(&mut sim)
}

#[test]
fn interrupts_starve_forwarding_and_polling_does_not() {
    // OSR §3.3: what is taken from the ring dies at the full backlog, while forwarding waits for the interrupts to end.
    let (interrupts, napi) = (forwarded_under_load("interrupt"), forwarded_under_load("napi"));
    assert!(napi as u64 > 900_000 / (TAKE_NS + PUSH_NS), "{napi} with NAPI");
    assert!(interrupts * 20 < napi, "{interrupts} with interrupts, {napi} with NAPI");
}

#[test]
fn workers_have_clocks_of_their_own() {
    let mut sim = simulation("d :: Device(5, MECHANISM napi) -> a :: Log -> l :: Log; Pin(l 1)", 2);
    sim.run(0, 10_000);
    assert_eq!((sim.now_ns(0), sim.now_ns(1)), (10_000, 0));
    assert_eq!((seen(&mut sim), sim.held()), (5, 5), "they wait between the workers");
    sim.run(1, 10_000);
    assert_eq!(sim.held(), 0);
    assert_eq!(&*sim.ports(0)[0], "d");
    assert!(sim.ports(1).is_empty());
    assert!(sim.counters().all(|(line, value)| !line.name.starts_with("drop.") || value == 0));
}

#[test]
fn each_piece_of_work_is_charged_once() {
    let text = "t :: Source(2) -> s :: Store -> u :: Drain -> l :: Log; a :: Alarm(5000, 7) -> l;
                d :: Device(2, MECHANISM interrupt) -> m :: Log; e :: Device(1, MECHANISM polling) -> m;";
    let charged = Arc::new(Mutex::new(Vec::new()));
    let options = Options { simulated_ns: Some(0), ..Options::default() };
    let log = |_| {
        let charged = charged.clone();
        move |visit: &Visit<'_>| {
            let line = format!("{} {:?} {}", visit.element, visit.work, visit.packets);
            charged.lock().unwrap().push((visit.class, line));
            1_000
        }
    };
    let mut sim = Simulation::new(&library(), &plan(text), &options, log).unwrap();
    // The alarm stops it once.
    (0..2).for_each(|_| sim.run(0, 100_000));
    let charged = std::mem::take(&mut *charged.lock().unwrap());
    let times = |line: &str| charged.iter().filter(|(_, charged)| charged == line).count();
    // A source says at its third run that it is done.
    assert_eq!([times("t Task 0"), times("s Push 1"), times("s Pull 1")], [3, 2, 2], "{charged:?}");
    assert_eq!([times("l Push 1"), times("a Timer 0"), times("m Push 1")], [3, 1, 3], "{charged:?}");
    assert_eq!([times("d Enqueue 1"), times("d Forward 1"), times("e Receive 1")], [2, 2, 1], "{charged:?}");
    let vain = |line: &str| ["u Task 0", "s Pull 0", "d Enqueue 0", "e Receive 0"].contains(&line);
    let all = charged.iter().filter(|(_, line)| !vain(line)).count();
    assert_eq!(all, 3 + 2 + 2 + 3 + 1 + 3 + 2 + 2 + 1, "{charged:?}");
    assert!(charged.iter().all(|(class, line)| line.starts_with("s ") == (*class == "Store")));
}

#[test]
fn tasks_run_between_two_turns_of_reception_and_not_within_one() {
    let text = "d :: Device(100, MECHANISM napi) -> s :: Store(200) -> Drain -> l :: Log;";
    let router = start(text, 1);
    let live = |handler: &str| router.read(if handler == "log" { "l" } else { "s" }, handler, "").unwrap();
    until("all are there", || live("log").split_whitespace().count() == 100);
    let mut sim = simulation(text, 1);
    sim.run(0, 1_000_000);
    assert_eq!(sim.read("l", "log", "").unwrap(), live("log"));
    assert_eq!(sim.read("s", "highwater", "").unwrap(), live("highwater"));
}

#[test]
fn what_came_is_forwarded_held_or_dropped_whenever_somebody_looks() {
    for mechanism in ["interrupt", "napi", "disable-enable", "polling"] {
        let text = format!("d :: Device(400, MECHANISM {mechanism}) -> l :: Log;");
        let mut sim = simulation(&text, 1);
        sim.run(0, 400 * (TAKE_NS + PUSH_NS) + 10_000);
        assert_eq!((seen(&mut sim) as u64, sim.held()), (400 - counter(&sim, "rx.backlog-drops"), 0));
        let mut sim = simulation(&text, 1);
        for _ in 0..3_000 {
            sim.step(0);
            let (came, dropped) = (counter(&sim, "rx.packets"), counter(&sim, "rx.backlog-drops"));
            assert_eq!(came, dropped + (seen(&mut sim) + sim.held()) as u64, "{mechanism}");
        }
        let dropped = if mechanism == "interrupt" { 100 } else { 0 };
        assert_eq!((seen(&mut sim), counter(&sim, "rx.backlog-drops")), (400 - dropped, dropped as u64));
    }
}

#[test]
fn a_worker_that_stopped_goes_on() {
    let mut sim = simulation("Source(1, STOP true) -> l :: Log; Source(5, STOP true) -> l;", 1);
    let mut run = || {
        sim.run(0, 1_000_000);
        (seen(&mut sim), sim.now_ns(0) == 1_000_000)
    };
    let (first, second, third) = (run(), run(), run());
    assert!(first.0 < 6 && !first.1, "{first:?}: stopped before the other source was done");
    assert_eq!((second, third), ((6, false), (6, true)));
}

#[test]
fn time_ends_without_going_back() {
    let mut sim = simulation("s :: Source(1) -> Log; Device(0, MECHANISM moderated) -> Log;", 1);
    sim.run(0, u64::MAX);
    assert!((0..3).all(|_| sim.step(0) != Some(Step::Stopped)));
    assert_eq!(sim.read("s", "now", "").unwrap(), u64::MAX.to_string());
}

#[test]
fn handlers_are_served_apart_from_what_is_under_way() {
    let mut sim =
        simulation("d :: Device(1, MECHANISM napi) -> s :: Store -> Drain -> l :: Log; b :: Bounce;", 1);
    while sim.held() == 0 {
        sim.step(0);
    }
    assert_eq!(sim.read("s", "held", "").unwrap(), "0", "the packet is on its way to it");
    sim.write("b", "bounce", "stop").unwrap();
    assert_eq!((sim.read("b", "bounces", "").unwrap().as_str(), sim.held()), ("1", 1));
    assert_eq!(sim.read("s", "highwater", "").unwrap(), "0", "nor did the handlers deliver it");
    // It is delivered before the router stops.
    assert_eq!((sim.step(0), sim.read("s", "held", "").unwrap().as_str()), (None, "1"));
    assert_eq!(sim.step(0), Some(Step::Stopped));
}

#[test]
fn time_stands_where_it_was_led() {
    let mut sim = simulation("Alarm(5000, 1) -> l :: Log;", 1);
    sim.run(0, 1_000);
    sim.idle(0, 500);
    assert_eq!((sim.now_ns(0), seen(&mut sim)), (1_000, 0));
    sim.run(0, 10_000);
    assert_eq!(seen(&mut sim), 1);
    assert!((5_000..5_100).contains(&sim.now_ns(0)), "where the router was asked to stop");
}

#[test]
fn what_is_written_is_written_to_all_copies() {
    let options = Options { workers: 2, replicate: true, ..Options::default() };
    let text = "d :: Device(0, MECHANISM napi) -> Log;";
    let mut sim = Simulation::new(&library(), &plan(text), &options, |_| costs).unwrap();
    let start_ns = causeway_engine::clock::SIMULATED_START_NS;
    assert!([0, 1].iter().all(|&worker| (start_ns..start_ns + 1_000).contains(&sim.now_ns(worker))));
    sim.write("d", "arrive", "3").unwrap();
    [0, 1].iter().for_each(|&worker| sim.run(worker, start_ns + 100_000));
    let received = sim.counters().filter(|(line, _)| line.name == "rx.packets").map(|(_, value)| value);
    assert_eq!(received.collect::<Vec<_>>(), [3, 3]);
}

/// What was charged, a line each, while a worker ran until 100 us, with packets in batches.
fn charged_in_batches(text: &str) -> (Vec<String>, Simulation) {
    let charged = Arc::new(Mutex::new(Vec::new()));
    let options = Options { simulated_ns: Some(0), ..Options::default() };
    let log = |_| {
        let charged = charged.clone();
        move |visit: &Visit<'_>| {
            if visit.packets > 0 {
                let line = format!("{} {:?} {}", visit.element, visit.work, visit.packets);
                charged.lock().unwrap().push(line);
            }
            visit.packets as u64
        }
    };
    let mut sim = Simulation::in_batches(&library(), &plan(text), &options, log).unwrap();
    sim.run(0, 100_000);
    (std::mem::take(&mut *charged.lock().unwrap()), sim)
}

#[test]
fn batches_stay_together_as_they_do_live() {
    let text = "d :: Device(100, MECHANISM napi) -> a :: Log -> s :: Store(200) -> Drain -> l :: Log;";
    let (charged, mut sim) = charged_in_batches(text);
    assert_eq!(charged[..3], ["d Receive 64", "a Push 64", "s Push 64"]);
    assert!(charged.iter().any(|line| line == "a Push 36"), "what the second turn found: {charged:?}");
    let router = start(text, 1);
    until("all are there", || router.read("l", "log", "").unwrap().matches("l:").count() == 100);
    assert_eq!(sim.read("l", "log", "").unwrap(), router.read("l", "log", "").unwrap());
    assert_eq!(sim.held(), 0);
}

#[test]
fn a_batch_goes_all_its_way_before_another_device_is_asked() {
    let text = "d :: Device(10, MECHANISM napi) -> m :: Log; e :: Device(5, MECHANISM polling) -> m;";
    let (charged, _) = charged_in_batches(text);
    assert_eq!(charged, ["d Receive 10", "m Push 10", "e Receive 5", "m Push 5"]);
    let text = "d :: Device(3, MECHANISM interrupt) -> m :: Log; e :: Device(2, MECHANISM polling) -> m;";
    let (charged, mut sim) = charged_in_batches(text);
    let one = ["d Forward 1", "m Push 1"];
    assert_eq!((&charged[0][..], &charged[1..3]), ("d Enqueue 3", &one.map(str::to_owned)[..]));
    assert_eq!(charged.iter().filter(|line| *line == "d Forward 1").count(), 3);
    let log = sim.read("m", "log", "").unwrap();
    let order: Vec<&str> = log.split(' ').collect();
    let at = |number: &str| order.iter().position(|one| *one == number);
    assert!(order.len() == 5 && at("m:1") < at("m:3"), "{log}");
}
