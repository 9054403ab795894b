//! Workers without threads: what work costs, and what happens between two pieces of it.

use super::{library, log_of, plan};
use causeway_engine::Options;
use causeway_engine::simulation::{Simulation, Step, Visit, Work};

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
