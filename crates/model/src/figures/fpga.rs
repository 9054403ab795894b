//! The figure of FPGA that is of commercial cards. Those of its own card come from the Verilog.

use super::drawn::{drawn, of_each};
use super::osr::{GIGABIT, NAPI, kpps, line, one_way, scenario};
use super::{Along, Curve, Figure, Number, Told};
use crate::machine::Machine;
use crate::router::{Flow, Scenario};

/// Enough to offer more than a bus of 8 Gbit/s can carry twice.
const PORTS: usize = 8;
/// What the paper's axis goes through.
const LENGTHS: [u32; 7] = [64, 128, 256, 512, 1_024, 1_280, 1_518];
/// What is offered in all, where it is half of what the bus carries.
const HALF_BPS: f64 = 4e9;
const FULL: &str = "commercial cards, every wire full";
/// The one curve of A.
const SLOW: &str = "commercial cards, one flow";
const SLOW_BITS: &str = "commercial cards, one flow/bits on the wire";
const HALF: &str = "commercial cards, offered 4 Gbit/s";

fn curve(name: &str, most_fps: impl Fn(u32) -> f64) -> Curve {
    let at = |bytes: u32| {
        let rate_fps = GIGABIT.most_fps(bytes).min(most_fps(bytes) / PORTS as f64);
        let of = |from: usize| Flow { from, to: vec![from ^ 1], rate_fps };
        let all = scenario(vec![GIGABIT; PORTS], (0..PORTS).map(of).collect(), NAPI);
        (f64::from(bytes), Scenario { bytes, ..all })
    };
    let points = LENGTHS.map(at).into();
    Curve { name: name.to_owned(), along: Along::Length, flows: Vec::new(), points }
}

fn lengths() -> Vec<Curve> {
    vec![curve(FULL, |_| f64::INFINITY), curve(HALF, |bytes| HALF_BPS / 8.0 / f64::from(bytes))]
}

/// One port at line rate with 64 bytes, for another: what a router does whose cards know no routes.
pub(crate) fn commercial_cards() -> Scenario {
    one_way(NAPI, line())
}

/// Bits of the shortest frame on the wire, with preamble and gap.
const ON_WIRE_BITS: f64 = 84.0 * 8.0;

fn slow_path() -> Vec<Curve> {
    let points = vec![(64.0, commercial_cards())];
    vec![Curve { name: SLOW.to_owned(), along: Along::Length, flows: Vec::new(), points }]
}

/// All of them.
pub const FIGURES: &[Figure] = &[SLOW_PATH, LENGTHS_OF_FRAMES];

const SLOW_PATH: Figure = Figure {
    name: "FPGA-A",
    about: "one flow by way of the processor, 64 bytes; cards that know no routes, as commercial ones",
    paper: "roughly 400 Mbit/s, which is as much as 600 kpps with preamble and gap",
    missed: "It is the router of OSR, which has 510 kpps one way, 0.34 Gbit/s, by the paper of the same authors, and 620 both \
             ways. That 600 kpps are one way this paper does not say of a measurement, and the model has 510.",
    machine: Machine::fpga,
    curves: slow_path,
    drawn: &[drawn(SLOW_BITS, ["forwarding rate on the wire", "Mbit/s"], Along::Length.axis(), |found| {
        of_each(found, SLOW, |outcome| outcome.rate_fps() * ON_WIRE_BITS / 1e6)
    })],
    numbers: &[Number {
        what: "one flow",
        unit: "Mbit/s",
        paper: 400.0,
        told: Told::Text,
        shown: (SLOW_BITS, 64.0),
        of: |found| found.last_kpps(SLOW) * ON_WIRE_BITS / 1e3,
    }],
};

const LENGTHS_OF_FRAMES: Figure = Figure {
    name: "FPGA-4",
    about: "commercial cards, lengths of frames, eight gigabit ports in pairs on one bus of 8 Gbit/s",
    paper: "a bound of 600 kpps for small frames, and of 4 Gbit/s, which is half of the bus, for large ones",
    missed: "For small frames it misses what it misses at OSR-6: the rate is near that of OSR one way. The paper's bound for \
             large frames is half of the bus without what transactions cost beside their data, addresses, turnarounds and \
             descriptors, which leave 3.7 Gbit/s. And a bus that is offered more forwards less: cards that receive ask for \
             it as often as those that send, and bring in what nobody can send.",
    machine: Machine::fpga,
    curves: lengths,
    drawn: &[],
    numbers: &[
        kpps("64 bytes", 600.0, Told::Text, (FULL, 64.0), |found| found.near(FULL, 64.0).rate_fps() / 1e3),
        kpps("1518 bytes, 4 Gbit/s", 329.4, Told::Text, (HALF, 1518.0), |found| {
            found.near(HALF, 1518.0).rate_fps() / 1e3
        }),
    ],
};
