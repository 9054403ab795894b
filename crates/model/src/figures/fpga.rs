//! The figure of FPGA that is of commercial cards. Those of its own card come from the Verilog.

use super::osr::{GIGABIT, NAPI, kpps, scenario};
use super::{Along, Curve, Figure, Told};
use crate::machine::Machine;
use crate::router::{Flow, Scenario};

/// Enough to offer more than a bus of 8 Gbit/s can carry twice.
const PORTS: usize = 8;
/// What the paper's axis goes through.
const LENGTHS: [u32; 7] = [64, 128, 256, 512, 1_024, 1_280, 1_518];
const CARDS: &str = "commercial cards";

fn lengths() -> Vec<Curve> {
    let at = |bytes: u32| {
        let of = |from: usize| Flow { from, to: vec![from ^ 1], rate_fps: GIGABIT.most_fps(bytes) };
        let all = scenario(vec![GIGABIT; PORTS], (0..PORTS).map(of).collect(), NAPI);
        (f64::from(bytes), Scenario { bytes, ..all })
    };
    let points = LENGTHS.map(at).into();
    vec![Curve { name: CARDS.to_owned(), along: Along::Length, flows: Vec::new(), points }]
}

/// All of them.
pub const FIGURES: &[Figure] = &[Figure {
    name: "FPGA-4",
    about: "commercial cards, lengths of frames, eight gigabit ports in pairs on one bus of 8 Gbit/s",
    paper: "a bound of 600 kpps for small frames, and of 4 Gbit/s, which is half of the bus, for large ones",
    missed: "",
    machine: Machine::fpga,
    curves: lengths,
    numbers: &[
        kpps("64 bytes", 600.0, Told::Text, Some((CARDS, 64.0)), |found| {
            found.near(CARDS, 64.0).rate_fps() / 1e3
        }),
        kpps("1518 bytes, 4 Gbit/s", 329.4, Told::Text, Some((CARDS, 1518.0)), |found| {
            found.near(CARDS, 1518.0).rate_fps() / 1e3
        }),
    ],
}];
