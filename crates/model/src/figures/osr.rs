//! The figures of OSR: a router of one processor with gigabit cards, forwarding by Linux 2.4.21.

use super::drawn::{RATIO_OF_RATES, drawn, of_each, of_rates};
use super::{Along, Curve, Figure, Found, Number, Told};
use crate::link::Link;
use crate::machine::Machine;
use crate::router::{Flow, Scenario};
use crate::run::Outcome;
use crate::software::linux::{Role, Setup, Without};
use causeway_engine::reception::{DEFAULT_BUDGET, DEFAULT_QUOTA, Mechanism};

pub(super) const GIGABIT: Link = Link { rate_bps: 1_000_000_000 };
const FAST: Link = Link { rate_bps: 100_000_000 };
pub(super) const NAPI: Mechanism = Mechanism::Napi { quota: DEFAULT_QUOTA };
/// Bytes of a frame around what it carries: addresses, type, checksum.
const AROUND: u32 = 18;
/// Payloads of OSR-5; what is called 64 bytes there is the shortest frame.
const PAYLOADS: [u32; 6] = [46, 128, 256, 512, 1_024, 1_500];

pub(super) fn flow(from: usize, to: usize, rate_fps: f64) -> Flow {
    Flow { from, to: vec![to], rate_fps }
}

pub(super) fn scenario(links: Vec<Link>, flows: Vec<Flow>, mechanism: Mechanism) -> Scenario {
    let kernel = Setup {
        mechanisms: vec![mechanism; links.len()],
        budget: DEFAULT_BUDGET,
        recycling: false,
        role: Role::Forward,
        without: Without::default(),
    };
    Scenario { links, flows, bytes: 64, moderated: false, kernel }
}

/// A curve over so many loads up to the highest, evenly.
pub(super) fn curve(name: &str, points: usize, most_fps: f64, at: impl Fn(f64) -> Scenario) -> Curve {
    let load = |n: usize| most_fps * n as f64 / points as f64;
    let points = (1..=points).map(|n| (load(n).round(), at(load(n))));
    Curve { name: name.to_owned(), along: Along::Load, flows: Vec::new(), points: points.collect() }
}

pub(super) fn line() -> f64 {
    GIGABIT.most_fps(64)
}

pub(super) fn one_way(mechanism: Mechanism, load_fps: f64) -> Scenario {
    scenario(vec![GIGABIT; 2], vec![flow(0, 1, load_fps)], mechanism)
}

fn both_ways(load_fps: f64) -> Scenario {
    scenario(vec![GIGABIT; 2], vec![flow(0, 1, load_fps / 2.0), flow(1, 0, load_fps / 2.0)], NAPI)
}

pub(super) fn moderated(scenario: Scenario) -> Scenario {
    Scenario { moderated: true, ..scenario }
}

pub(super) fn with(scenario: Scenario, role: Role, recycling: bool) -> Scenario {
    Scenario { kernel: Setup { role, recycling, ..scenario.kernel }, ..scenario }
}

fn receive() -> Vec<Curve> {
    let count = |scenario| with(scenario, Role::Count, false);
    vec![
        curve("interrupt", 30, line(), |load| count(moderated(one_way(Mechanism::Interrupt, load)))),
        curve("napi", 15, line(), |load| count(one_way(NAPI, load))),
    ]
}

fn transmit() -> Vec<Curve> {
    let silent = moderated(scenario(vec![GIGABIT], Vec::new(), Mechanism::Interrupt));
    let points = vec![(64.0, with(silent, Role::Generate, false))];
    vec![Curve { name: "packetgen".to_owned(), along: Along::Length, flows: Vec::new(), points }]
}

fn mechanisms() -> Vec<Curve> {
    // The peaks are between two of the coarse loads.
    let mut interrupt = curve("interrupt", 30, line(), |load| one_way(Mechanism::Interrupt, load));
    interrupt
        .points
        .extend([210e3, 220e3, 230e3, 240e3].map(|load| (load, one_way(Mechanism::Interrupt, load))));
    interrupt.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut throttled = curve("moderated", 30, line(), |load| moderated(one_way(Mechanism::Interrupt, load)));
    let near = [460e3, 470e3, 480e3, 490e3, 500e3];
    throttled.points.extend(near.map(|load| (load, moderated(one_way(Mechanism::Interrupt, load)))));
    throttled.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    vec![interrupt, throttled, curve("napi", 15, line(), |load| one_way(NAPI, load))]
}

fn lengths() -> Vec<Curve> {
    let at = |payload: u32| {
        let bytes = payload + AROUND;
        (f64::from(bytes), Scenario { bytes, ..one_way(NAPI, GIGABIT.most_fps(bytes)) })
    };
    let points = PAYLOADS.map(at).into();
    vec![Curve { name: "napi".to_owned(), along: Along::Length, flows: Vec::new(), points }]
}

fn ways() -> Vec<Curve> {
    vec![
        curve("napi, one way", 15, line(), |load| one_way(NAPI, load)),
        curve("napi, both ways", 15, 2.0 * line(), both_ways),
    ]
}

fn recycling() -> Vec<Curve> {
    vec![
        curve("napi", 15, 2.0 * line(), both_ways),
        curve("napi, recycling", 15, 2.0 * line(), |load| with(both_ways(load), Role::Forward, true)),
    ]
}

/// From port 0 to 1 ten times of what goes from port 2 to 3, where all links but the first two are slow.
fn uneven(name: &str, quotas: [u32; 2]) -> Vec<Curve> {
    let links = vec![GIGABIT, GIGABIT, FAST, FAST];
    let at = |load: f64| {
        let flows = vec![flow(0, 1, load * 10.0 / 11.0), flow(2, 3, load / 11.0)];
        let mut scenario = scenario(links.clone(), flows, NAPI);
        let quotas = [quotas[0], quotas[0], quotas[1], quotas[1]];
        scenario.kernel.mechanisms = quotas.map(|quota| Mechanism::Napi { quota }).into();
        scenario
    };
    let whole = curve(name, 15, 1.1 * line(), at);
    vec![Curve { flows: vec![(0, "1 Gbit/s"), (2, "100 Mbit/s")], ..whole }]
}

/// So many slow ports, each to its partner or to all others in turn.
fn many(name: &str, ports: usize, uniform: bool) -> Curve {
    curve(name, 12, ports as f64 * FAST.most_fps(64), |load| {
        let of = |from: usize| {
            let to = if uniform { (0..ports).filter(|&to| to != from).collect() } else { vec![from ^ 1] };
            Flow { from, to, rate_fps: load / ports as f64 }
        };
        scenario(vec![FAST; ports], (0..ports).map(of).collect(), NAPI)
    })
}

fn by_ports() -> Vec<Curve> {
    [6, 10, 14].map(|ports| many(&format!("napi, {ports} ports, in pairs"), ports, false)).into()
}

fn by_pattern() -> Vec<Curve> {
    vec![many("napi, 14 ports, in pairs", 14, false), many("napi, 14 ports, each to all", 14, true)]
}

const RATIO: &str = "with recycling to without/ratio of rates";
const OF_INTERRUPTS: &str = "port 1, both ways to one/ratio of interrupts";
/// The load at which OSR-6 counts interrupts.
const NEAR_ALL: f64 = 1e6;
const BUFFERS: [&str; 2] = ["buffers that there are", "buffers"];

/// Interrupts of the card that sends, both ways to one way.
fn of_interrupts_at(found: &Found, load_fps: f64) -> f64 {
    let sends = |name: &str| found.near(name, load_fps).interrupts[1];
    sends("napi, both ways") / sends("napi, one way").max(1.0)
}

/// The same at each load that there is of both.
fn of_interrupts(found: &Found) -> Vec<(f64, f64)> {
    let loads = of_each(found, "napi, both ways", |_| 0.0).into_iter().map(|(load, _)| load);
    loads.filter(|&load| load <= LINE).map(|load| (load, of_interrupts_at(found, load))).collect()
}

fn buffers(outcome: &Outcome) -> f64 {
    f64::from(outcome.buffers.0)
}

pub(super) const fn kpps(
    what: &'static str,
    paper: f64,
    told: Told,
    shown: (&'static str, f64),
    of: fn(&Found) -> f64,
) -> Number {
    Number { what, unit: "kpps", paper, told, shown, of }
}

pub(super) const LINE: f64 = 1_488_095.0;

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "OSR-rx",
        about: "one card, receiving only, 64 bytes",
        paper: "a little more than 1 000 kpps by interrupts, 1 100 kpps by NAPI",
        missed: "",
        machine: Machine::osr,
        curves: receive,
        drawn: &[],
        numbers: &[
            kpps("highest rate, interrupts", 1_000.0, Told::Text, ("interrupt", 1e6), |found| {
                found.peak_kpps("interrupt")
            }),
            kpps("highest rate, NAPI", 1_100.0, Told::Calibrated, ("napi", LINE), |found| {
                found.peak_kpps("napi")
            }),
        ],
    },
    Figure {
        name: "OSR-tx",
        about: "one card, transmitting only what the kernel makes, 64 bytes",
        paper: "650 kpps at most",
        missed: "",
        machine: Machine::osr,
        curves: transmit,
        drawn: &[],
        numbers: &[kpps("highest rate", 650.0, Told::Calibrated, ("packetgen", 64.0), |found| {
            found.last_kpps("packetgen")
        })],
    },
    Figure {
        name: "OSR-4",
        about: "mechanisms of reception: forwarding rate against offered load, one way, 64 bytes",
        paper: "interrupts peak at 230 kpps and moderated ones at 500 kpps, then both fall to 0; NAPI stays at 510 kpps, and all \
                losses are at the reception ring",
        missed: "",
        machine: Machine::osr,
        curves: mechanisms,
        drawn: &[],
        numbers: &[
            kpps("peak, interrupts", 230.0, Told::Calibrated, ("interrupt", 230e3), |found| {
                found.peak_kpps("interrupt")
            }),
            kpps("peak, moderated", 500.0, Told::Text, ("moderated", 500e3), |found| {
                found.peak_kpps("moderated")
            }),
            kpps("plateau, NAPI", 510.0, Told::Calibrated, ("napi", LINE), |found| found.last_kpps("napi")),
            kpps("at line rate, interrupts", 0.0, Told::Text, ("interrupt", LINE), |found| {
                found.last_kpps("interrupt")
            }),
            kpps("at line rate, moderated", 0.0, Told::Text, ("moderated", LINE), |found| {
                found.last_kpps("moderated")
            }),
        ],
    },
    Figure {
        name: "OSR-5",
        about: "lengths of frames with NAPI, one way",
        paper: "near 500 kpps at 64 and 128 bytes, where the processor is the limit; 1 Gbit/s from 512 bytes on; less than \
                the wire carries at 256 bytes, for which the paper has no explanation",
        missed: "At 256 bytes the model carries what the wire does: the bus, on which the paper suspects a loss, is held for less \
                 than half of the time there.",
        machine: Machine::osr,
        curves: lengths,
        drawn: &[],
        numbers: &[
            kpps("64 bytes", 500.0, Told::Text, ("napi", 64.0), |found| {
                found.near("napi", 64.0).rate_fps() / 1e3
            }),
            kpps("128 bytes", 500.0, Told::Text, ("napi", 146.0), |found| {
                found.near("napi", 146.0).rate_fps() / 1e3
            }),
            kpps("512 bytes", 227.3, Told::Text, ("napi", 530.0), |found| {
                found.near("napi", 530.0).rate_fps() / 1e3
            }),
            kpps("1500 bytes", 81.3, Told::Text, ("napi", 1518.0), |found| {
                found.near("napi", 1518.0).rate_fps() / 1e3
            }),
        ],
    },
    Figure {
        name: "OSR-6",
        about: "one way and both ways with NAPI, 64 bytes",
        paper: "510 kpps one way, 620 kpps both ways; near 1 000 kpps offered the transmitting card raises 27 times as many \
                interrupts one way",
        missed: "The paper explains the gain by the interrupts of the card that only transmits. In the model, as the kernel's \
                 rules have it, that card interrupts once in a turn of 64 packets of the other: to make the difference \
                 each of these would have to take 20 us, and then interrupts alone would peak far below 230 kpps. So the \
                 gain has another reason, which the paper does not show. Both ways the model's cards never interrupt past \
                 saturation, where the paper counts some hundreds a second.",
        machine: Machine::osr,
        curves: ways,
        drawn: &[drawn(OF_INTERRUPTS, ["ratio of interrupts", ""], Along::Load.axis(), of_interrupts)],
        numbers: &[
            kpps("one way", 510.0, Told::Calibrated, ("napi, one way", LINE), |found| {
                found.last_kpps("napi, one way")
            }),
            kpps("both ways", 620.0, Told::Text, ("napi, both ways", 2.0 * LINE), |found| {
                found.last_kpps("napi, both ways")
            }),
            Number {
                what: "interrupts of who sends, both ways to one",
                unit: "times",
                paper: 1.0 / 27.0,
                told: Told::Text,
                shown: (OF_INTERRUPTS, NEAR_ALL),
                of: |found| of_interrupts_at(found, NEAR_ALL),
            },
        ],
    },
    Figure {
        name: "OSR-7",
        about: "recycling of buffers, both ways, 64 bytes",
        paper: "620 kpps without, 730 kpps with it; about 600 buffers",
        missed: "Both rates are lower than the paper's for what is said at OSR-6; their ratio is calibrated.",
        machine: Machine::osr,
        curves: recycling,
        drawn: &[
            drawn(RATIO, RATIO_OF_RATES, Along::Load.axis(), |found| {
                of_rates(found, ["napi, recycling", "napi"], |with, without| with / without)
            }),
            drawn("napi/buffers", BUFFERS, Along::Load.axis(), |found| of_each(found, "napi", buffers)),
            drawn("napi, recycling/buffers", BUFFERS, Along::Load.axis(), |found| {
                of_each(found, "napi, recycling", buffers)
            }),
        ],
        numbers: &[
            kpps("without", 620.0, Told::Text, ("napi", 2.0 * LINE), |found| found.last_kpps("napi")),
            kpps("with recycling", 730.0, Told::Text, ("napi, recycling", 2.0 * LINE), |found| {
                found.last_kpps("napi, recycling")
            }),
            Number {
                what: "with to without",
                unit: "times",
                paper: 730.0 / 620.0,
                told: Told::Calibrated,
                shown: (RATIO, 2.0 * LINE),
                of: |found| found.last_kpps("napi, recycling") / found.last_kpps("napi"),
            },
            Number {
                what: "buffers",
                unit: "buffers",
                paper: 600.0,
                told: Told::Text,
                shown: ("napi, recycling/buffers", 2.0 * LINE),
                of: |found| found.curve("napi, recycling").last().map_or(0.0, buffers),
            },
        ],
    },
    Figure {
        name: "OSR-8",
        about: "ports with loads of 10:1, quota 64, budget 300",
        paper: "past saturation the smaller flow grows at the cost of the other, to max-min fairness; the sum is constant",
        missed: "",
        machine: Machine::osr,
        curves: || uneven("napi, Q 64", [64, 64]),
        drawn: &[],
        numbers: &[],
    },
    Figure {
        name: "OSR-9",
        about: "as OSR-8, with quotas in the ratio of the loads",
        paper: "the shares follow the quotas 270 and 27, and the sum is higher",
        missed: "",
        machine: Machine::osr,
        curves: || uneven("napi, Q 270 and 27", [270, 27]),
        drawn: &[],
        numbers: &[],
    },
    Figure {
        name: "OSR-10",
        about: "6, 10 and 14 ports in pairs, both ways",
        paper: "the saturation rate falls slightly with the number of ports",
        missed: "",
        machine: Machine::osr,
        curves: by_ports,
        drawn: &[],
        numbers: &[],
    },
    Figure {
        name: "OSR-11",
        about: "14 ports, in pairs and each to all others",
        paper: "each to all others is slightly lower",
        missed: "",
        machine: Machine::osr,
        curves: by_pattern,
        drawn: &[],
        numbers: &[],
    },
];
