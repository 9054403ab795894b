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

/// The same at saturation, as a mean over the mechanisms.
fn left(found: &Found, mode: &str) -> f64 {
    mean(found, mode, MOST_SHORT, sends_left)
}

/// How many interrupts more the card that sends has in mode II, at each load.
fn more_at_each(found: &Found, mechanism: &str) -> Vec<(f64, f64)> {
    let sends = |mode: &str| of_each(found, &format!("{mechanism}, {mode}"), |outcome| outcome.interrupts[2]);
    paired([sends("mode II"), sends("mode I")], |two, one| two - one)
}

/// The same at saturation.
fn more(found: &Found, mechanism: &str) -> f64 {
    more_at_each(found, mechanism).last().map_or(0.0, |(_, more)| *more)
}

/// Interrupts of the first card with NAPI of this budget in mode I, with what is offered to a card, thousands a second.
fn of_napi(found: &Found, budget: usize) -> Vec<(f64, f64)> {
    let all = of_each(found, &format!("napi {budget}, mode I"), |outcome| outcome.interrupts[0]);
    all.into_iter().map(|(load_fps, rate)| (load_fps / 2e3, rate)).collect()
}

/// The load behind which interrupts fall first.
fn first_peak_kpps(found: &Found, budget: usize) -> f64 {
    let all = of_napi(found, budget);
    all.windows(2).find(|pair| pair[1].1 < pair[0].1).map_or(0.0, |pair| pair[0].0)
}

/// The load from which on there are next to none.
fn ends_kpps(found: &Found, budget: usize) -> f64 {
    of_napi(found, budget).into_iter().find(|(_, rate)| *rate < 1e3).map_or(f64::INFINITY, |(load, _)| load)
}

/// Such a load by NAPI's budget.
fn by_budget(found: &Found, kpps: fn(&Found, usize) -> f64) -> Vec<(f64, f64)> {
    [2, DEFAULT_BUDGET].map(|budget| (budget as f64, kpps(found, budget) * 1e3)).into()
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
const SENDS: &str = "processor of port 2/inside mean of modes and of three, 64 bytes: availability";
/// Loads at which NAPI's interrupts peak and end are shown by budget: by the paper they end sooner with one of 2.
const PEAK: &str = "napi, mode I, first peak/load of a card";
const ENDS: &str = "napi, mode I, next to none from/load of a card";
const BUDGET: f64 = DEFAULT_BUDGET as f64;
const MORE_NAPI: &str = "port 2, napi, mode II less mode I/difference of interrupts";
const MORE_DE: &str = "port 2, de, mode II less mode I/difference of interrupts";
const LOAD: [&str; 2] = Along::Load.axis();
const LOAD_OF_CARD: [&str; 2] = ["load at which interrupts change", "frames/s"];
const BUDGETS: [&str; 2] = ["budget", "packets"];
const DIFFERENCE_OF_INTERRUPTS: [&str; 2] = ["difference of interrupts", "1/s"];

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
    drawn(SENDS, AVAILABILITY, LOAD, |found| {
        paired(["mode I", "mode II"].map(|mode| means(found, mode, sends_left)), |one, two| (one + two) / 2.0)
    }),
];
const INTERRUPTS: &[Drawn] = &[
    drawn(PEAK, LOAD_OF_CARD, BUDGETS, |found| by_budget(found, first_peak_kpps)),
    drawn(ENDS, LOAD_OF_CARD, BUDGETS, |found| by_budget(found, ends_kpps)),
    drawn(MORE_NAPI, DIFFERENCE_OF_INTERRUPTS, LOAD, |found| {
        paired(["napi 300", "napi 2"].map(|name| more_at_each(found, name)), |one, two| (one + two) / 2.0)
    }),
    drawn(MORE_DE, DIFFERENCE_OF_INTERRUPTS, LOAD, |found| more_at_each(found, "de")),
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
        paper: "saturation near 250 kpps a card; in mode II about 20 kpps more by all three; best are DE in mode I, and \
                NAPI with a budget of 300 and DE in mode II",
        missed: "The paper has what mode II is ahead from less waiting for the lock. Here mode II waits for the lock more, since \
                 its line goes from chip to chip, and gains by the packets' own lines, which do not; what is left of both \
                 is a small difference, of which NAPI with a budget of 2 has less than the others. In mode I DE is not \
                 ahead of NAPI with a budget of 300 but level with it: what NAPI does beside packets it does once for 64 of \
                 them.",
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
        paper: "at low load DE has least, then NAPI with a budget of 2; a short rise about 100 kpps; at saturation 2.3 to 2.7 ms \
                in mode II, more in mode I, least with DE",
        missed: "DE has least delay here up to 40 kpps a card, as long as packets come one by one, and again at saturation; from 80 \
                 to 200 it has most, where the paper has it least up to 200: what came while its handler ran waits until the \
                 card has collected enough for the next interrupt, while NAPI finds it when it looks once more. Up to 40 \
                 kpps a budget of 2 makes no difference to NAPI, since no run has more than two packets.",
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
        paper: "those of the cards that receive are far busier than that of the card that sends, which has much more left in \
                mode II; of 60 % in mode I and 40 % in mode II",
        missed: "The paper contradicts itself: that mode II leaves more it says three times, and argues for it (with Fig. 5, with \
                 Fig. 8, in the conclusions), but the one sentence with numbers has 60 % for mode I and 40 % for mode II. \
                 Here its words count, and these numbers are taken to be exchanged. What is calibrated is their mean, which is \
                 the same either way. By the numbers as they stand the model would be off by a third and by half.",
        machine: Machine::aff,
        curves: short,
        drawn: LEFT,
        numbers: &[
            number("sends, left, mean of modes", "%", 50.0, Told::Calibrated, (SENDS, MOST_SHORT), |found| {
                (left(found, "mode I") + left(found, "mode II")) / 2.0
            }),
            number(
                "sends, mode I, left (exchanged)",
                "%",
                40.0,
                Told::Text,
                (SENDS_I, MOST_SHORT),
                |found| left(found, "mode I"),
            ),
            number(
                "sends, mode II, left (exchanged)",
                "%",
                60.0,
                Told::Text,
                (SENDS_II, MOST_SHORT),
                |found| left(found, "mode II"),
            ),
        ],
    },
    Figure {
        name: "AFF-9",
        about: "rates of interrupts, as AFF-5 (Figs. 9 and 10)",
        paper: "they rise to about 50 kpps offered, fall, and rise again; with NAPI they are near zero from about 200 kpps on, \
                with a budget of 2 sooner; with DE never quite; those of the card that sends are higher in mode II, with \
                NAPI by almost 4 000 a second and with DE by almost 2 000",
        missed: "They first fall where frames come closer together than the 25 us for which the card collects them, by the \
                 driver's settings: behind 40 kpps. With NAPI interrupts end here where the processor is saturated, between 250 and 300 \
                 kpps a card, and not before. \
                 The card that sends interrupts more often in mode II by about as much with all three: what decides is how \
                 soon it is cleaned, which is no business of those who receive.",
        machine: Machine::aff,
        curves: short,
        drawn: INTERRUPTS,
        numbers: &[
            number("first peak, of a card", "kpps offered", 50.0, Told::Text, (PEAK, BUDGET), |found| {
                first_peak_kpps(found, DEFAULT_BUDGET)
            }),
            number("NAPI ends, of a card", "kpps offered", 200.0, Told::Text, (ENDS, BUDGET), |found| {
                ends_kpps(found, DEFAULT_BUDGET)
            }),
            number(
                "who sends, NAPI, mode II more",
                "1/s",
                4_000.0,
                Told::Text,
                (MORE_NAPI, MOST_SHORT),
                |found| (more(found, "napi 300") + more(found, "napi 2")) / 2.0,
            ),
            number(
                "who sends, DE, mode II more",
                "1/s",
                2_000.0,
                Told::Text,
                (MORE_DE, MOST_SHORT),
                |found| more(found, "de"),
            ),
        ],
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
