//! The router of AFF: what its figures look like, and why. Each shape has its ablation.

use causeway_engine::reception::Mechanism;
use causeway_model::figures::{Figure, Found};
use causeway_model::link::Link;
use causeway_model::machine::Machine;
use causeway_model::router::{Flow, Scenario};
use causeway_model::run::{Effort, Outcome, run};
use causeway_model::several::{Affinity, Several};
use causeway_model::software::linux::{Class, Drop, Role, Setup};
use std::sync::OnceLock;

fn machine() -> Machine {
    Machine::aff().expect("the machine of the paper")
}

fn figure(name: &str) -> Found {
    Figure::find(name).expect("a figure").run(&machine(), 1, Effort::SHORT, None).expect("enough ports")
}

/// What the figures from AFF-5 to AFF-9 show of the same runs.
fn short() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| figure("AFF-5"))
}

const NAPI: Mechanism = Mechanism::Napi { quota: 64 };

/// One point, of a card so many frames a second.
fn point(machine: &Machine, mode: &str, mixed: bool, rate_fps: f64) -> Outcome {
    let (scenario, _) = scenario(NAPI, mode, mixed, rate_fps);
    run(machine, &scenario, 1, Effort::SHORT, None).expect("enough ports")
}

const MECHANISMS: [&str; 3] = ["napi 300", "napi 2", "de"];
const MODES: [&str; 2] = ["mode I", "mode II"];

fn each() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    MODES.into_iter().flat_map(|mode| MECHANISMS.map(|name| (name, mode, format!("{name}, {mode}"))))
}

/// The mean of the last points of a mode's curves.
fn last(found: &Found, mode: &str, of: fn(&Outcome) -> f64) -> f64 {
    let all = MECHANISMS.map(|name| of(found.curve(&format!("{name}, {mode}")).last().expect("a point")));
    all.iter().sum::<f64>() / 3.0
}

fn waits(outcome: &Outcome) -> f64 {
    outcome.classes[Class::Lock as usize]
}

#[test]
fn processors_that_receive_are_the_limit_and_mode_ii_is_a_little_ahead() {
    let found = short();
    for (name, mode, curve) in each() {
        let all = found.curve(&curve);
        let most = found.peak_kpps(&curve);
        assert!(found.last_kpps(&curve) > 0.95 * most, "{name} {mode} stays where it is saturated");
        let busy = &all.last().expect("a point").busy;
        assert!(busy[0] > 0.98 && busy[1] > 0.98 && busy[2] < 0.75, "{curve}: {busy:?}");
        // Both cards are alike in mode I.
        let flows = &all.last().expect("a point").flows_fps;
        assert!(mode == "mode II" || (flows[0] / flows[1] - 1.0).abs() < 0.05, "{curve}: {flows:?}");
        assert!(
            all.iter().all(|one| one.drops_fps[Drop::Queue as usize] < 0.02 * one.offered_fps),
            "{curve}"
        );
    }
    let ahead =
        |found: &Found| last(found, "mode II", Outcome::rate_fps) / last(found, "mode I", Outcome::rate_fps);
    assert!((1.01..1.08).contains(&ahead(found)), "{}", ahead(found));
    // More is left of the processor that sends, and of those that receive below saturation.
    let sends = |mode| last(found, mode, |outcome| outcome.busy[2]);
    assert!(sends("mode II") < sends("mode I") - 0.03, "{} {}", sends("mode II"), sends("mode I"));
    let receives = |mode| found.near(&format!("napi 300, {mode}"), 300e3).busy[0];
    assert!(receives("mode II") < receives("mode I") - 0.02);
    // Where a line of the other cache is as near as the neighbour's, modes are one.
    let mut near = machine();
    let several = near.several.as_mut().expect("there");
    several.transfer.value = several.near.value;
    let [one, two] = MODES.map(|mode| point(&near, mode, false, 700e3).rate_fps());
    assert!((two / one - 1.0).abs() < 0.01, "{one} {two}");
}

#[test]
fn the_lock_takes_some_of_it() {
    let of_lock = last(short(), "mode I", waits);
    assert!(of_lock > 0.03, "{of_lock}");
    let mut free = machine();
    let several = free.several.as_mut().expect("there");
    (several.lock.value, several.transfer.value, several.near.value) = (0, 0, 0);
    (free.software.register_write.value, free.software.clean.value, free.memory.latency.value) = (0, 0, 0);
    let without = point(&free, "mode I", false, 700e3);
    assert!(waits(&without) < 0.2 * of_lock, "{}", waits(&without));
    assert!(without.rate_fps() > last(short(), "mode I", Outcome::rate_fps));
}

#[test]
fn de_has_least_delay_at_high_load_and_mode_ii_less_than_mode_i() {
    let found = short();
    let delay = |outcome: &Outcome| outcome.delay_ns / 1e6;
    let [one, two] = MODES.map(|mode| last(found, mode, delay));
    assert!((2.0..2.8).contains(&two) && two < 0.99 * one, "{one} {two}");
    // A short rise around 100 kpps in all, where cards begin to wait for more frames, and a fall.
    for (_, _, curve) in each() {
        let at = |load: f64| delay(found.near(&curve, load));
        assert!(at(40e3) < 0.1 && at(300e3) < 0.1 && at(700e3) > 20.0 * at(300e3), "{curve}");
    }
    // A handler does at once what deferred work does later.
    let low = |name: &str| delay(found.near(&format!("{name}, mode I"), 80e3));
    assert!(low("de") < low("napi 2") && low("napi 2") <= 1.01 * low("napi 300"), "{}", low("de"));
    // Where deferred work is entered for nothing, it is not later.
    let mut soon = machine();
    (soon.software.soft_interrupt.value, soon.software.poll.value) = (0, 0);
    let [napi, de] = [NAPI, Mechanism::DisableEnable].map(|mechanism| {
        let (scenario, _) = scenario(mechanism, "mode I", false, 40e3);
        delay(&run(&soon, &scenario, 1, Effort::SHORT, None).expect("enough ports"))
    });
    assert!((de / napi - 1.0).abs() < 0.02, "{de} {napi}");
    let mut small = machine();
    (small.card.receive_ring.value, small.card.receive_fifo.value) = (20, 2_048);
    let quick = delay(&point(&small, "mode II", false, 700e3));
    assert!(quick < 0.5, "what waits on rings and cards is the delay: {quick}");
}

#[test]
fn interrupts_rise_dip_rise_and_end_where_deferred_work_does_not() {
    let rates = |found: &Found, curve: &str, port: usize| {
        found.curve(curve).iter().map(|one| one.interrupts[port]).collect::<Vec<_>>()
    };
    let found = short();
    let loads: Vec<f64> = found.curves[0].0.points.iter().map(|(load, _)| load / 2e3).collect();
    let at = |all: &[f64], load: f64| all[loads.iter().position(|one| *one == load).expect("a load")];
    for (name, _, curve) in each() {
        for port in [0, 1] {
            let all = rates(found, &curve, port);
            // Each frame has an interrupt of its own while few come.
            assert!((at(&all, 20.0) / 20e3 - 1.0).abs() < 0.02 && at(&all, 40.0) > 34e3, "{curve}: {all:?}");
            let dip = at(&all, 60.0).min(at(&all, 50.0));
            assert!(dip < 0.85 * at(&all, 40.0) && at(&all, 80.0) > 1.1 * dip, "{curve} {port}: {all:?}");
            let end = all[all.len() - 1];
            assert!(if name == "de" { end > 500.0 } else { end < 10.0 }, "{curve}: {all:?}");
        }
    }
    // A run of two packets never ends sooner than one of three hundred.
    let ends = |name: &str| {
        let all = rates(found, &format!("{name}, mode I"), 0);
        loads[all.iter().position(|one| *one < 100.0).expect("they end")]
    };
    assert!(ends("napi 2") <= ends("napi 300"), "{} {}", ends("napi 2"), ends("napi 300"));
    // Without the driver's second step there is no dip.
    let mut flat = machine();
    flat.several.as_mut().expect("there").many.value = 1_000_000;
    let [below, above] = [40e3, 60e3].map(|rate| point(&flat, "mode I", false, rate).interrupts[0]);
    assert!(above > 0.8 * below, "{below} {above}");
}

#[test]
fn frames_of_three_lengths_are_bound_by_the_card_that_sends() {
    let found = figure("AFF-11");
    for (_, _, curve) in each() {
        let last = found.curve(&curve).last().expect("a point");
        assert!(
            last.rate_fps() < 0.92 * last.offered_fps && last.busy.iter().all(|part| *part < 0.9),
            "{curve}"
        );
        assert!(last.drops_fps[Drop::Queue as usize] > 20e3, "{curve}: and the queue before it is full");
        assert!((3.0..4.5).contains(&(last.delay_ns / 1e6)), "{curve}: {}", last.delay_ns);
    }
    let mut sooner = machine();
    sooner.bus.values_mut().for_each(|bus| bus.read_latency.value = 300_000);
    let rate_fps = point(&sooner, "mode I", true, 160e3).rate_fps();
    assert!(rate_fps > 312e3, "{rate_fps}");
}

fn scenario(mechanism: Mechanism, mode: &str, mixed: bool, rate_fps: f64) -> (Scenario, Affinity) {
    let processors = if mode == "mode I" { [0, 1, 2] } else { [0, 2, 1] };
    let affinity = Affinity { processors, mixed };
    let flows = [0, 1].map(|from| Flow { from, to: vec![2], rate_fps });
    let kernel = Setup {
        mechanisms: vec![mechanism; 3],
        budget: 300,
        recycling: false,
        role: Role::Affinity(affinity),
    };
    let links = vec![Link { rate_bps: 1_000_000_000 }; 3];
    (Scenario { links, flows: flows.into(), bytes: 64, moderated: false, kernel }, affinity)
}

#[test]
fn every_packet_ends_in_one_counted_place() {
    for mechanism in [NAPI, Mechanism::DisableEnable] {
        for (mixed, rate_fps) in [(false, 700e3), (false, 100e3), (true, 160e3)] {
            let (scenario, affinity) = scenario(mechanism, "mode II", mixed, rate_fps);
            let mut router = Several::new(&machine(), &scenario, affinity, None).expect("ports");
            for stop in (1..40u64).map(|n| n * 377_777_777) {
                router.run(stop);
                let arrived: u64 = router.arrived.iter().sum();
                let ended = router.left.iter().sum::<u64>() + router.drops.iter().sum::<u64>();
                assert_eq!(arrived, ended + router.held(), "{mechanism} {mixed} {rate_fps} at {stop}");
            }
            let buffers = &router.hardware().buffers;
            assert!(buffers.made < 3 * 200 + 1_400, "buffers are given back: {}", buffers.made);
            assert!(router.lock.taken > 1_000);
        }
    }
}

#[test]
fn a_packet_is_followed_and_the_same_seed_gives_the_same() {
    let (scenario, _) = scenario(Mechanism::DisableEnable, "mode II", false, 60e3);
    let found = || run(&machine(), &scenario, 1, Effort::SHORT, Some(40)).expect("enough ports");
    let (first, second) = (found(), found());
    let way = first.trace.join("\n");
    for step in ["has come in", "is in memory", "is taken", "ring for transmission", "has left"] {
        assert!(way.contains(step), "{step}: {way}");
    }
    assert_eq!((first.windows_fps, first.delay_ns), (second.windows_fps, second.delay_ns));
}

#[test]
fn a_machine_without_the_processors_is_refused() {
    let figure = Figure::find("AFF-5").expect("a figure");
    let refused =
        |machine: &Machine| figure.run(machine, 1, Effort::SHORT, None).err().expect("refused").to_string();
    assert!(refused(&Machine::osr().expect("right")).contains("[several]"));
    let mut two = machine();
    two.several.as_mut().expect("there").processors.value = 2;
    assert!(refused(&two).contains("2 processors"));
}
