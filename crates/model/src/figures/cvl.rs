//! The figures of CvL: Linux 2.6.1 against Click, on up to eight gigabit cards.

use super::drawn::{RATE, drawn, of_each, of_rates};
use super::osr::{GIGABIT, LINE, NAPI, flow, kpps, line, moderated, scenario, with};
use super::{Along, Curve, Figure, Found, Number, Told};
use crate::machine::Machine;
use crate::router::{Flow, Scenario};
use crate::run::Outcome;
use crate::software::linux::{Drop, Graph, Role};

/// Cards that the router has.
const CARDS: usize = 8;
/// Payloads of CvL-6b, and what a frame has around them.
const PAYLOADS: [u32; 6] = [46, 128, 256, 512, 1_024, 1_500];
const AROUND: u32 = 18;

fn over(name: &str, most: usize, at: impl Fn(usize) -> Scenario) -> Curve {
    let points = (1..=most).map(|n| (n as f64, at(n))).collect();
    Curve { name: name.to_owned(), along: Along::Active, flows: Vec::new(), points }
}

fn received(name: &str, role: Role) -> Curve {
    let flows = |n| (0..n).map(|port| flow(port, port, line())).collect();
    over(name, CARDS, |n| with(scenario(vec![GIGABIT; n], flows(n), NAPI), role, true))
}

fn reception() -> Vec<Curve> {
    vec![
        received("linux udpcount", Role::Count),
        received("linux no touch", Role::CountUntouched),
        received("click udpcount", Role::Click(Graph::Count)),
    ]
}

fn transmission() -> Vec<Curve> {
    let of = |name: &str, role: Role| {
        // The driver delays what a card has to say of frames that it sent.
        over(name, CARDS, |n| moderated(with(scenario(vec![GIGABIT; n], Vec::new(), NAPI), role, true)))
    };
    vec![of("linux packetgen", Role::Generate), of("click udpgen", Role::Click(Graph::Generate))]
}

/// Each flow from one card to the next.
fn one_way(flows: usize, bytes: u32) -> Vec<Flow> {
    (0..flows).map(|n| flow(2 * n, 2 * n + 1, GIGABIT.most_fps(bytes))).collect()
}

fn forwarded(name: &str, most: usize, role: Role) -> Curve {
    over(name, most, |n| with(scenario(vec![GIGABIT; 2 * n], one_way(n, 64), NAPI), role, true))
}

fn transfer() -> Vec<Curve> {
    vec![
        forwarded("linux", CARDS / 2, Role::Transfer),
        forwarded("click", CARDS / 2, Role::Click(Graph::Transfer)),
    ]
}

fn lengths() -> Vec<Curve> {
    let of = |name: &str, role: Role, both: bool| {
        let at = |payload: u32| {
            let bytes = payload + AROUND;
            let mut flows = one_way(CARDS / 2, bytes);
            if both {
                let back = flows.iter().map(|f| flow(f.to[0], f.from, f.rate_fps)).collect::<Vec<_>>();
                flows.extend(back);
            }
            let all = with(scenario(vec![GIGABIT; CARDS], flows, NAPI), role, true);
            (f64::from(bytes), Scenario { bytes, ..all })
        };
        let points = PAYLOADS.map(at).into();
        Curve { name: name.to_owned(), along: Along::Length, flows: Vec::new(), points }
    };
    let click = Role::Click(Graph::Transfer);
    vec![
        of("linux, one way", Role::Transfer, false),
        of("linux, both ways", Role::Transfer, true),
        of("click, one way", click, false),
        of("click, both ways", click, true),
    ]
}

fn routing() -> Vec<Curve> {
    vec![forwarded("linux", 3, Role::Forward), forwarded("click", 3, Role::Click(Graph::Route))]
}

fn at(found: &Found, name: &str, active: usize) -> f64 {
    found.near(name, active as f64).rate_fps() / 1e3
}

/// What the router's software saw.
fn seen_kpps(outcome: &Outcome) -> f64 {
    let lost = [Drop::Ring, Drop::Fifo].map(|drop| outcome.drops_fps[drop as usize]);
    (outcome.offered_fps - lost.iter().sum::<f64>()) / 1e3
}

/// The rates of a curve over lengths, in bits.
fn throughput(found: &Found, name: &str) -> Vec<(f64, f64)> {
    let rates = of_each(found, name, Outcome::rate_fps);
    rates.into_iter().map(|(bytes, rate_fps)| (bytes, rate_fps * bytes * 8.0 / 1e9)).collect()
}

const SEEN: [&str; 2] = ["reception rate", "frames/s"];
const THROUGHPUT: [&str; 2] = ["throughput", "Gbit/s"];
/// What the paper has one number of, whichever of both it was.
const FASTER: &str = "the faster of both/saturation forwarding rate";

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "CvL-4",
        about: "receiving only, by one to eight cards, 64 bytes",
        paper: "Linux 1.1 falling to 1.0 Mpps, 1.488 to 1.25 Mpps where it does not touch the header; Click, which \
                prefetches, 1.488 Mpps with one card and about 3 with more",
        missed: "",
        machine: Machine::cvl,
        curves: reception,
        drawn: &[],
        numbers: &[
            kpps("Linux, 1 card", 1_100.0, Told::Text, ("linux udpcount", 1.0), |f| {
                at(f, "linux udpcount", 1)
            }),
            kpps("Linux, 8 cards", 1_000.0, Told::Calibrated, ("linux udpcount", 8.0), |f| {
                at(f, "linux udpcount", 8)
            }),
            kpps("no touch, 1 card", LINE / 1e3, Told::Text, ("linux no touch", 1.0), |f| {
                at(f, "linux no touch", 1)
            }),
            kpps("no touch, 8 cards", 1_250.0, Told::Calibrated, ("linux no touch", 8.0), |f| {
                at(f, "linux no touch", 8)
            }),
            kpps("Click, 1 card", LINE / 1e3, Told::Text, ("click udpcount", 1.0), |f| {
                at(f, "click udpcount", 1)
            }),
            kpps("Click, 2 cards", 3_000.0, Told::Text, ("click udpcount", 2.0), |f| {
                at(f, "click udpcount", 2)
            }),
            kpps("Click, 8 cards", 3_000.0, Told::Calibrated, ("click udpcount", 8.0), |f| {
                at(f, "click udpcount", 8)
            }),
        ],
    },
    Figure {
        name: "CvL-5",
        about: "transmitting only what is made, by one to eight cards, 64 bytes",
        paper: "Linux 740 falling to 690 kpps; Click 730 kpps with one card, nearly linear to 4.2 Mpps with seven, no more \
                with eight",
        missed: "",
        machine: Machine::cvl,
        curves: transmission,
        drawn: &[],
        numbers: &[
            kpps("Linux, 1 card", 740.0, Told::Text, ("linux packetgen", 1.0), |f| {
                at(f, "linux packetgen", 1)
            }),
            kpps("Linux, 8 cards", 690.0, Told::Calibrated, ("linux packetgen", 8.0), |f| {
                at(f, "linux packetgen", 8)
            }),
            kpps("Click, 1 card", 730.0, Told::Text, ("click udpgen", 1.0), |f| at(f, "click udpgen", 1)),
            kpps("Click, 7 cards", 4_200.0, Told::Text, ("click udpgen", 7.0), |f| at(f, "click udpgen", 7)),
            kpps("Click, 8 cards", 4_200.0, Told::Text, ("click udpgen", 8.0), |f| at(f, "click udpgen", 8)),
        ],
    },
    Figure {
        name: "CvL-6a",
        about: "from card to card without looking, one to four flows, 64 bytes",
        paper: "650 kpps with one flow, though Linux sees 1.4 Mpps of it; 1.2 Mpps with two; then Linux falls to 1.0 Mpps, and \
                Click has 1.8 and 2.1 Mpps",
        missed: "Linux of one flow: a packet that is dropped at the queue costs as much here as one that nobody touches in CvL-4, \
                 which leaves less for seeing more. And with more flows the paper's Linux becomes slower, for which the rings \
                 and buffers of these cards, which the cache holds, give no reason.",
        machine: Machine::cvl,
        curves: transfer,
        drawn: &[
            drawn("linux/reception rate", SEEN, Along::Active.axis(), |f| {
                of_each(f, "linux", |outcome| seen_kpps(outcome) * 1e3)
            }),
            drawn("click/reception rate", SEEN, Along::Active.axis(), |f| {
                of_each(f, "click", |outcome| seen_kpps(outcome) * 1e3)
            }),
        ],
        numbers: &[
            kpps("Linux, 1 flow", 650.0, Told::Text, ("linux", 1.0), |f| at(f, "linux", 1)),
            kpps("Linux, 1 flow, seen", 1_400.0, Told::Text, ("linux/reception rate", 1.0), |f| {
                seen_kpps(f.near("linux", 1.0))
            }),
            kpps("Linux, 2 flows", 1_200.0, Told::Text, ("linux", 2.0), |f| at(f, "linux", 2)),
            kpps("Linux, 4 flows", 1_000.0, Told::Calibrated, ("linux", 4.0), |f| at(f, "linux", 4)),
            kpps("Click, 1 flow", 650.0, Told::Calibrated, ("click", 1.0), |f| at(f, "click", 1)),
            kpps("Click, 1 flow, seen", LINE / 1e3, Told::Text, ("click/reception rate", 1.0), |f| {
                seen_kpps(f.near("click", 1.0))
            }),
            kpps("Click, 2 flows", 1_200.0, Told::Text, ("click", 2.0), |f| at(f, "click", 2)),
            kpps("Click, 3 flows", 1_800.0, Told::Text, ("click", 3.0), |f| at(f, "click", 3)),
            kpps("Click, 4 flows", 2_100.0, Told::Text, ("click", 4.0), |f| at(f, "click", 4)),
        ],
    },
    Figure {
        name: "CvL-6b",
        about: "from card to card without looking, lengths of frames, four flows one way and both ways",
        paper: "5.5 Gbit/s at 1518 bytes, which is 11 Gbit/s on the bus",
        missed: "",
        machine: Machine::cvl,
        curves: lengths,
        drawn: &[
            drawn("linux, one way/throughput", THROUGHPUT, Along::Length.axis(), |f| {
                throughput(f, "linux, one way")
            }),
            drawn("linux, both ways/throughput", THROUGHPUT, Along::Length.axis(), |f| {
                throughput(f, "linux, both ways")
            }),
            drawn("click, one way/throughput", THROUGHPUT, Along::Length.axis(), |f| {
                throughput(f, "click, one way")
            }),
            drawn("click, both ways/throughput", THROUGHPUT, Along::Length.axis(), |f| {
                throughput(f, "click, both ways")
            }),
        ],
        numbers: &[Number {
            what: "both ways, 1518 bytes",
            unit: "Gbit/s",
            paper: 5.5,
            told: Told::Text,
            shown: ("linux, both ways/throughput", 1_518.0),
            of: |f| f.near("linux, both ways", 1_518.0).rate_fps() * 1_518.0 * 8.0 / 1e9,
        }],
    },
    Figure {
        name: "CvL-7",
        about: "routing, one to three flows, 64 bytes",
        paper: "about 800 kpps at most",
        missed: "",
        machine: Machine::cvl,
        curves: routing,
        drawn: &[drawn(FASTER, RATE, Along::Active.axis(), |f| of_rates(f, ["linux", "click"], f64::max))],
        numbers: &[kpps("highest rate", 800.0, Told::Text, (FASTER, 2.0), |f| {
            f.peak_kpps("linux").max(f.peak_kpps("click"))
        })],
    },
];
