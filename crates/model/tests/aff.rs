//! The router of AFF: what its figures look like, and why. Each shape has its ablation.

use causeway_engine::reception::Mechanism;
use causeway_model::figures::{Figure, Found};
use causeway_model::link::Link;
use causeway_model::machine::Machine;
use causeway_model::router::{Flow, Scenario};
use causeway_model::run::{Effort, Outcome, run};
use causeway_model::several::{Affinity, Several};
use causeway_model::software::linux::{Class, Drop, Role, Setup, Without};
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
    let [one, two] = MODES.map(|mode| point(&near, mode, false, 700e3));
    assert!((two.rate_fps() / one.rate_fps() - 1.0).abs() < 0.01, "{} {}", one.rate_fps(), two.rate_fps());
    assert!((two.busy[2] - one.busy[2]).abs() < 0.02, "{:?} {:?}", one.busy, two.busy);
}

/// Best in throughput: DE and NAPI with its whole budget, in mode II both by the paper, in mode I by the paper DE alone, with which
/// NAPI is level here.
#[test]
fn a_budget_of_two_costs_some_and_the_others_are_level() {
    let found = short();
    for mode in MODES {
        let [napi, two, de] = MECHANISMS.map(|name| found.last_kpps(&format!("{name}, {mode}")));
        assert!(two < 0.97 * napi && two < 0.97 * de, "{mode}: {napi} {two} {de}");
        assert!((de / napi - 1.0).abs() < 0.01, "{mode}: {napi} {de}");
    }
    // Where to begin a run costs nothing, its budget does not matter.
    let mut easy = machine();
    (easy.software.soft_interrupt.value, easy.software.poll.value) = (0, 0);
    easy.software.register_write.value = 0;
    let [napi, two] = [300, 2].map(|budget| {
        let (mut scenario, _) = scenario(NAPI, "mode II", false, 700e3);
        scenario.kernel.budget = budget;
        run(&easy, &scenario, 1, Effort::SHORT, None).expect("enough ports").rate_fps()
    });
    assert!(two > 0.99 * napi, "{napi} {two}");
}

#[test]
fn the_lock_takes_some_of_it() {
    let of_lock = last(short(), "mode I", waits);
    assert!(of_lock > 0.03, "{of_lock}");
    // Each that sends has one of its own, and all else is as it was.
    let without = |mode| {
        let (mut scenario, _) = scenario(NAPI, mode, false, 700e3);
        scenario.kernel.without = Without { lock: true, ..Without::default() };
        run(&machine(), &scenario, 1, Effort::SHORT, None).expect("enough ports")
    };
    let [one, two] = MODES.map(without);
    assert!(waits(&one) < 0.2 * of_lock, "{}", waits(&one));
    assert!(one.rate_fps() / 1e3 > 1.04 * short().last_kpps("napi 300, mode I"), "{}", one.rate_fps());
    // What mode II is ahead is not the lock's: it waits more there, and is ahead without one.
    assert!(last(short(), "mode II", waits) > of_lock);
    assert!(two.rate_fps() > 1.01 * one.rate_fps(), "{} {}", one.rate_fps(), two.rate_fps());
}

#[test]
fn de_has_least_delay_at_low_load_and_at_saturation_but_not_between() {
    let found = short();
    let delay = |outcome: &Outcome| outcome.delay_ns / 1e6;
    // By the load of a card.
    let at =
        |name: &str, mode: &str, load_fps: f64| delay(found.near(&format!("{name}, {mode}"), 2.0 * load_fps));
    for mode in MODES {
        let order = |load_fps: f64| MECHANISMS.map(|name| at(name, mode, load_fps));
        for load_fps in [20e3, 40e3] {
            let [napi, two, de] = order(load_fps);
            assert!(
                de < 0.99 * two && two < 1.005 * napi,
                "{mode} {load_fps}: a handler does at once what others do later"
            );
        }
        for load_fps in [60e3, 80e3, 100e3] {
            let [napi, two, _] = order(load_fps);
            assert!(two < napi, "{mode} {load_fps}: {napi} {two}");
        }
        // Which the paper has otherwise.
        for load_fps in [80e3, 100e3, 150e3, 200e3] {
            let [napi, two, de] = order(load_fps);
            assert!(de > two && de > napi, "{mode} {load_fps}: {napi} {two} {de}");
        }
        let [napi, two, de] = order(700e3);
        assert!(de < napi && napi < two, "{mode}, saturated: {napi} {two} {de}");
    }
    // Where deferred work is entered for nothing, it is not later.
    let mut soon = machine();
    (soon.software.soft_interrupt.value, soon.software.poll.value) = (0, 0);
    let [napi, de] = [NAPI, Mechanism::DisableEnable].map(|mechanism| {
        let (scenario, _) = scenario(mechanism, "mode I", false, 40e3);
        delay(&run(&soon, &scenario, 1, Effort::SHORT, None).expect("enough ports"))
    });
    assert!((de / napi - 1.0).abs() < 0.02, "{de} {napi}");
}

#[test]
fn delay_rises_for_a_while_about_100_kpps_and_at_saturation_by_what_waits() {
    let found = short();
    let delay = |outcome: &Outcome| outcome.delay_ns / 1e6;
    let [one, two] = MODES.map(|mode| last(found, mode, delay));
    assert!((2.0..2.8).contains(&two) && two < 0.99 * one, "{one} {two}");
    for (name, mode, curve) in each() {
        let at = |load_fps: f64| delay(found.near(&curve, 2.0 * load_fps));
        assert!(at(20e3) < 0.1 && at(150e3) < 0.1 && at(700e3) > 20.0 * at(150e3), "{name} {mode}");
        // A card's; where DE's goes on to 150 kpps.
        let (rise, fall) = if name == "de" { (150e3, 200e3) } else { (80e3, 100e3) };
        assert!(
            at(rise) > 1.02 * at(60e3) && at(fall) < at(rise),
            "{curve}: {} {} {}",
            at(60e3),
            at(rise),
            at(fall)
        );
    }
    // Where cards collect nothing, there is nothing for which delay would rise.
    let mut single = machine();
    let several = single.several.as_mut().expect("there");
    (several.few_frames.value, several.many_frames.value) = (1, 1);
    let [below, above] = [60e3, 80e3].map(|rate_fps| delay(&point(&single, "mode I", false, rate_fps)));
    assert!(above < 1.01 * below, "{below} {above}");
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
            assert!(dip < 0.75 * at(&all, 40.0) && at(&all, 80.0) > 1.1 * dip, "{curve} {port}: {all:?}");
            let end = all[all.len() - 1];
            assert!(if name == "de" { end > 500.0 } else { end < 10.0 }, "{curve}: {all:?}");
        }
    }
    // A run of two packets never ends sooner than one of three hundred.
    let ends = |name: &str| {
        let all = rates(found, &format!("{name}, mode I"), 0);
        loads[all.iter().position(|one| *one < 100.0).expect("they end")]
    };
    assert!(ends("napi 2") < ends("napi 300"), "{} {}", ends("napi 2"), ends("napi 300"));
    // Without the quota, too, NAPI comes to the end of what its ring has, and then the card interrupts again.
    let (scenario, _) = scenario(Mechanism::Napi { quota: 4_096 }, "mode I", false, 700e3);
    let whole = run(&machine(), &scenario, 1, Effort::SHORT, None).expect("enough ports");
    assert!(whole.interrupts[..2].iter().all(|one| *one > 500.0), "{:?}", whole.interrupts);
    // Where cards collect nothing there is no dip, and without the driver's second step no second rise.
    let mut single = machine();
    let several = single.several.as_mut().expect("there");
    (several.few_frames.value, several.many_frames.value) = (1, 1);
    let mut flat = machine();
    flat.several.as_mut().expect("there").many.value = 1_000_000;
    let of = |machine: &Machine| {
        [40e3, 60e3, 80e3].map(|rate_fps| point(machine, "mode I", false, rate_fps).interrupts[0])
    };
    let [below, above, further] = of(&single);
    assert!(below < above && above < further, "{below} {above} {further}");
    let [_, above, further] = of(&flat);
    assert!(further < above, "{above} {further}");
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
    // With a short queue they wait less.
    let mut short = machine();
    short.software.queue.value = 50;
    let delay_ns = point(&short, "mode I", true, 160e3).delay_ns;
    assert!(delay_ns < 1.5e6, "{delay_ns}");
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
        without: Without::default(),
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
            assert!(router.locks[0].taken > 1_000);
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
