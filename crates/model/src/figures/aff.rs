//! The figures of AFF: which processor has which card, with three mechanisms of reception, by Linux 2.6.35.

use super::drawn::{AVAILABILITY, DELAY, DIFFERENCE, RATE, available, drawn, of_each, paired};
use super::osr::{GIGABIT, NAPI, flow, kpps, scenario};
use super::{Along, Curve, Drawn, Figure, Found, Number, Told};
use crate::machine::Machine;
use crate::router::Scenario;
use crate::run::Outcome;
use crate::several::Affinity;
use crate::software::linux::{Role, Setup};
use causeway_engine::reception::{DEFAULT_BUDGET, Mechanism};

/// The processors of both cards that receive and of the one that sends: those of a chip are 0 and 1, and 2 and 3.
const MODES: [(&str, [usize; 3]); 2] = [("mode I", [0, 1, 2]), ("mode II", [0, 2, 1])];
/// Mechanisms with their budgets.
const MECHANISMS: [(&str, Mechanism, usize); 3] = [
    ("napi 300", NAPI, DEFAULT_BUDGET),
    ("napi 2", NAPI, 2),
    ("de", Mechanism::DisableEnable, DEFAULT_BUDGET),
];
/// What is offered to a card, thousands of frames a second.
const SHORT_KPPS: [f64; 13] =
    [20.0, 40.0, 50.0, 60.0, 80.0, 100.0, 150.0, 200.0, 250.0, 300.0, 400.0, 550.0, 700.0];
const MIXED_KPPS: [f64; 10] = [20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 130.0, 140.0, 150.0, 160.0];
/// The highest of both, of both cards.
const MOST_SHORT: f64 = 1_400e3;
const MOST_MIXED: f64 = 320e3;

fn curves(loads: &[f64], mixed: bool) -> Vec<Curve> {
    let of = |(mode, processors): (&str, [usize; 3]), (name, mechanism, budget): (&str, Mechanism, usize)| {
        let at = |&load: &f64| {
            let flows = vec![flow(0, 2, load * 1e3), flow(1, 2, load * 1e3)];
            let all = scenario(vec![GIGABIT; 3], flows, mechanism);
            let role = Role::Affinity(Affinity { processors, mixed });
            (2e3 * load, Scenario { kernel: Setup { budget, role, ..all.kernel }, ..all })
        };
        let points = loads.iter().map(at).collect();
        Curve { name: format!("{name}, {mode}"), along: Along::Load, flows: Vec::new(), points }
    };
    MODES.into_iter().flat_map(|mode| MECHANISMS.map(|mechanism| of(mode, mechanism))).collect()
}

fn short() -> Vec<Curve> {
    curves(&SHORT_KPPS, false)
}

fn mixed() -> Vec<Curve> {
    curves(&MIXED_KPPS, true)
}

/// The mean over the three mechanisms in a mode, at each load.
fn means(found: &Found, mode: &str, of: impl Fn(&Outcome) -> f64) -> Vec<(f64, f64)> {
    let all = MECHANISMS.map(|(name, ..)| of_each(found, &format!("{name}, {mode}"), &of));
    let mean = |n: usize| all.iter().map(|curve| curve[n].1).sum::<f64>() / all.len() as f64;
    all[0].iter().enumerate().map(|(n, (load, _))| (*load, mean(n))).collect()
}

/// The mean over the three mechanisms in a mode.
fn mean(found: &Found, mode: &str, load_fps: f64, of: fn(&Outcome) -> f64) -> f64 {
    let all = MECHANISMS.map(|(name, ..)| of(found.near(&format!("{name}, {mode}"), load_fps)));
    all.iter().sum::<f64>() / all.len() as f64
}

fn rate_kpps(outcome: &Outcome) -> f64 {
    outcome.rate_fps() / 1e3
}

fn delay_ms(outcome: &Outcome) -> f64 {
    outcome.delay_ns / 1e6
}

fn delay_us(outcome: &Outcome) -> f64 {
    outcome.delay_ns / 1e3
}

/// What the processor of the card that sends has left, in percent.
fn sends_left(outcome: &Outcome) -> f64 {
    available(outcome, 2)
}

const fn number(
    what: &'static str,
    unit: &'static str,
    paper: f64,
    told: Told,
    shown: (&'static str, f64),
    of: fn(&Found) -> f64,
) -> Number {
    Number { what, unit, paper, told, shown, of }
}

/// What the paper's text tells of all mechanisms is shown on their mean.
const RATE_I: &str = "mode I, mean of three/64 bytes/forwarding rate";
const MIXED_RATE_II: &str = "mode II, mean of three/imix/forwarding rate";
const MORE: &str = "mode II less mode I, mean of three/difference of rates";
const DELAY_II: &str = "mode II, mean of three/inside, 64 bytes: mean delay";
const MIXED_DELAY_II: &str = "mode II, mean of three/inside, imix: mean delay";
const SENDS_I: &str = "processor of port 2/inside mode I, mean of three, 64 bytes: availability";
const SENDS_II: &str = "processor of port 2/inside mode II, mean of three, 64 bytes: availability";
const LOAD: [&str; 2] = Along::Load.axis();

const RATES: &[Drawn] = &[
    drawn(RATE_I, RATE, LOAD, |found| means(found, "mode I", Outcome::rate_fps)),
    drawn("mode II, mean of three/64 bytes/forwarding rate", RATE, LOAD, |found| {
        means(found, "mode II", Outcome::rate_fps)
    }),
    drawn(MORE, DIFFERENCE, LOAD, |found| {
        paired(["mode II", "mode I"].map(|mode| means(found, mode, Outcome::rate_fps)), |two, one| two - one)
    }),
];
const DELAYS: &[Drawn] = &[
    drawn("mode I, mean of three/inside, 64 bytes: mean delay", DELAY, LOAD, |found| {
        means(found, "mode I", delay_us)
    }),
    drawn(DELAY_II, DELAY, LOAD, |found| means(found, "mode II", delay_us)),
];
const LEFT: &[Drawn] = &[
    drawn(
        "processor of port 0/inside mode I, mean of three, 64 bytes: availability",
        AVAILABILITY,
        LOAD,
        |found| means(found, "mode I", |outcome| available(outcome, 0)),
    ),
    drawn(
        "processor of port 1/inside mode I, mean of three, 64 bytes: availability",
        AVAILABILITY,
        LOAD,
        |found| means(found, "mode I", |outcome| available(outcome, 1)),
    ),
    drawn(SENDS_I, AVAILABILITY, LOAD, |found| means(found, "mode I", sends_left)),
    drawn(
        "processor of port 0/inside mode II, mean of three, 64 bytes: availability",
        AVAILABILITY,
        LOAD,
        |found| means(found, "mode II", |outcome| available(outcome, 0)),
    ),
    drawn(
        "processor of port 1/inside mode II, mean of three, 64 bytes: availability",
        AVAILABILITY,
        LOAD,
        |found| means(found, "mode II", |outcome| available(outcome, 1)),
    ),
    drawn(SENDS_II, AVAILABILITY, LOAD, |found| means(found, "mode II", sends_left)),
];
const MIXED: &[Drawn] = &[
    drawn(MIXED_RATE_II, RATE, LOAD, |found| means(found, "mode II", Outcome::rate_fps)),
    drawn(MIXED_DELAY_II, DELAY, LOAD, |found| means(found, "mode II", delay_us)),
];

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "AFF-5",
        about: "forwarding rate, three mechanisms, two modes of affinity, 64 bytes",
        paper: "saturation near 250 kpps a card; in mode II about 20 kpps more",
        missed: "The paper has it from less waiting for the lock in mode II. Here mode II waits for the lock a little more, since \
                 its line goes from chip to chip, and gains by the packets' own lines, which do not.",
        machine: Machine::aff,
        curves: short,
        drawn: RATES,
        numbers: &[
            kpps("mode I", 500.0, Told::Calibrated, (RATE_I, MOST_SHORT), |found| {
                mean(found, "mode I", MOST_SHORT, rate_kpps)
            }),
            kpps("mode II more", 20.0, Told::Text, (MORE, MOST_SHORT), |found| {
                mean(found, "mode II", MOST_SHORT, rate_kpps) - mean(found, "mode I", MOST_SHORT, rate_kpps)
            }),
        ],
    },
    Figure {
        name: "AFF-6",
        about: "delay, as AFF-5",
        paper: "at low load DE has least, then NAPI with a budget of 2; at saturation 2.3 to 2.7 ms in mode II, more in mode I",
        missed: "From 100 kpps a card on DE has more delay than NAPI here: what came while its handler ran waits until the card \
                 has collected enough for the next interrupt, while NAPI finds it when it looks once more.",
        machine: Machine::aff,
        curves: short,
        drawn: DELAYS,
        numbers: &[number(
            "mode II, saturation",
            "ms",
            2.5,
            Told::Calibrated,
            (DELAY_II, MOST_SHORT),
            |found| mean(found, "mode II", MOST_SHORT, delay_ms),
        )],
    },
    Figure {
        name: "AFF-7",
        about: "what processors have left, as AFF-5 (Figs. 7 and 8)",
        paper: "those of the cards that receive are far busier than that of the card that sends, which has 40 and 60 % left",
        missed: "The text gives these two to the modes the other way round than it argues; the argument is taken.",
        machine: Machine::aff,
        curves: short,
        drawn: LEFT,
        numbers: &[
            number("sends, mode I, left", "%", 40.0, Told::Calibrated, (SENDS_I, MOST_SHORT), |found| {
                mean(found, "mode I", MOST_SHORT, sends_left)
            }),
            number("sends, mode II, left", "%", 60.0, Told::Text, (SENDS_II, MOST_SHORT), |found| {
                mean(found, "mode II", MOST_SHORT, sends_left)
            }),
        ],
    },
    Figure {
        name: "AFF-9",
        about: "rates of interrupts, as AFF-5 (Figs. 9 and 10)",
        paper: "they rise to about 50 kpps offered, fall, and rise again; with NAPI they are near zero from about 200 kpps on, \
                with a budget of 2 sooner; with DE never quite",
        missed: "",
        machine: Machine::aff,
        curves: short,
        drawn: &[],
        numbers: &[],
    },
    Figure {
        name: "AFF-11",
        about: "64, 594 and 1518 bytes in the ratio 7:4:1: rate, delay and interrupts (Figs. 11 to 13)",
        paper: "saturation at 280 kpps in all, 3.7 ms",
        missed: "",
        machine: Machine::aff,
        curves: mixed,
        drawn: MIXED,
        numbers: &[
            kpps("mode II", 280.0, Told::Calibrated, (MIXED_RATE_II, MOST_MIXED), |found| {
                mean(found, "mode II", MOST_MIXED, rate_kpps)
            }),
            number("mode II, saturation", "ms", 3.7, Told::Text, (MIXED_DELAY_II, MOST_MIXED), |found| {
                mean(found, "mode II", MOST_MIXED, delay_ms)
            }),
        ],
    },
];
