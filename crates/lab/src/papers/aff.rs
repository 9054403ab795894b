//! *Performance of IP-forwarding of Linux hosts with multiple network interfaces* (AFF): two ports that receive, one that sends.
//!
//! What one processor shows of it is measured with one, so that it is measured on small machines too; its modes of affinity take
//! a processor for each port.

use super::claim::{At, Claim, last, more, stay};
use super::needs::{Needs, ports};
use super::setup::{Setup, fixed, mechanism, napi, threads};
use super::{Experiment, Picture, Shows, What, picture};
use crate::bed::Kind;
use causeway_results::traffic::{Matrix, Sizes};

/// The router's processors of the ports that receive and of the one that sends, of which the first two have a cache together:
/// mode I has there both that receive, mode II the first that receives and the one that sends (AFF §2.4).
const MODES: [(&str, [usize; 3]); 2] = [("mode I", [0, 1, 2]), ("mode II", [0, 2, 1])];

/// The mechanisms that the paper compares.
fn mechanisms() -> [(String, Kind); 3] {
    let de = mechanism("disable-enable", "disable-enable");
    [napi("napi, Q 300", &[300]), napi("napi, Q 2", &[2]), de]
}

fn to_third() -> Matrix {
    Matrix::Custom(vec![vec![0, 0, 1], vec![0, 0, 1], vec![0; 3]])
}

/// As [`two_to_one`], with a thread and a processor of each port.
fn modes() -> Vec<Setup> {
    let of = |(mode, processors): (&str, [usize; 3])| {
        mechanisms().map(|(name, kind)| threads((format!("{mode}, {name}"), kind), &processors))
    };
    vec![Setup::new(3, to_third(), MODES.map(of).concat())]
}

/// From ports 0 and 1 to port 2, by the mechanisms that the paper compares.
fn two_to_one(size: (String, Sizes)) -> Vec<Setup> {
    vec![Setup::new(3, to_third(), mechanisms().to_vec()).of_sizes(vec![size])]
}

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        about: "two ports to a third one, NAPI with quotas of 300 and 2, and Disable-Enable, 64 bytes",
        paper: "saturation near 500 kpps in all, whatever the mechanism; Disable-Enable has the least delay at low load; \
                NAPI's interrupts vanish from some 400 kpps in all on, those of Disable-Enable never quite",
        needs: ports(3),
        pictures: &[
            Picture {
                figure: "AFF-5",
                shows: Shows::Loads,
                of: "",
                points: &[("all", &[(500.0, 500.0), (1400.0, 500.0)])],
            },
            Picture {
                figure: "AFF-6",
                shows: Shows::Delay,
                of: "",
                points: &[("all, mode II", &[(1400.0, 2500.0)])],
            },
            picture("AFF-9", Shows::Interrupts),
        ],
        what: What::Measured {
            setups: || two_to_one(fixed(64)),
            claims: &[
                more("Disable-Enable reaches what NAPI does", ["disable-enable", "napi, Q 300"], (0.9, 1.1)),
                stay("NAPI stays at its peak", "napi, Q 300"),
                Claim {
                    says: "Disable-Enable has the least delay at low load",
                    shows: Shows::Delay,
                    of: ("disable-enable", At::First),
                    to: ("napi, Q 300", At::First),
                    between: (0.0, 1.0),
                },
                Claim {
                    says: "NAPI's interrupts vanish",
                    shows: Shows::Interrupts,
                    of: ("napi, Q 300: in0", At::Last),
                    to: ("napi, Q 300: in0", At::Peak),
                    between: (0.0, 0.05),
                },
                // Of some ten thousand a second at the peak: more than none in a trial of a tenth of a second.
                Claim {
                    says: "those of Disable-Enable do not",
                    shows: Shows::Interrupts,
                    of: ("disable-enable: in0", At::Last),
                    to: ("disable-enable: in0", At::Peak),
                    between: (0.0001, f64::INFINITY),
                },
            ],
            here: "Both ports and both mechanisms have one processor here, and an interrupt costs nothing (see \
                       OSR-4). Delay at low load is that of threads that wake each other, whatever the mechanism.",
        },
    },
    Experiment {
        about: "availability of the processors that receive and of the one that sends, in both modes of affinity",
        paper: "those that receive are far busier, and alike; that of the port that sends has 40 % left in mode I and 60 % in \
                mode II (its text gives these to the modes the other way round than it argues), and mode II is 20 kpps ahead",
        needs: Needs { processors: 4, ..ports(3) },
        pictures: &[
            Picture { figure: "AFF-7", shows: Shows::Availability, of: "mode I,", points: &[] },
            Picture {
                figure: "AFF-8",
                shows: Shows::Availability,
                of: "",
                points: &[
                    ("the port that sends, mode I", &[(1400.0, 40.0)]),
                    ("the port that sends, mode II", &[(1400.0, 60.0)]),
                ],
            },
        ],
        what: What::Measured {
            setups: modes,
            claims: &[
                last(
                    "a processor that receives has far less to spare than the one that sends",
                    Shows::Availability,
                    ["mode I, disable-enable: processor of in0", "mode I, disable-enable: processor of in2"],
                    (0.0, 0.5),
                ),
                Claim {
                    says: "those that receive are alike",
                    shows: Shows::Availability,
                    of: ("mode I, disable-enable: processor of in0", At::First),
                    to: ("mode I, disable-enable: processor of in1", At::First),
                    between: (0.9, 1.1),
                },
                last(
                    "the processor that sends has more to spare in mode II",
                    Shows::Availability,
                    ["mode II, napi, Q 300: processor of in2", "mode I, napi, Q 300: processor of in2"],
                    (1.05, f64::INFINITY),
                ),
                more(
                    "mode II is slightly ahead",
                    ["mode II, napi, Q 300", "mode I, napi, Q 300"],
                    (1.01, 1.1),
                ),
            ],
            here: "Modes differ where processors share a cache of the second level in pairs; else they are the same with other \
                   numbers. Packets cross from one thread to another by a ring of each pair, where the paper's took turns at \
                   the sending port's ring by a lock (LLTX): `causeway model` has the lock.",
        },
    },
    Experiment {
        about: "interrupts of the ports that receive and of the one that sends",
        paper: "those of reception dip near 50 kpps a port and then rise; those of transmission follow the throughput",
        needs: Needs { interrupts: Some("that say what was sent"), ..ports(3) },
        pictures: &[picture("AFF-10", Shows::Interrupts)],
        what: What::Refused("`causeway model` has it, and AFF-9 those of reception"),
    },
    Experiment {
        about: "as AFF-5, with frames of 64, 594 and 1 518 bytes, 7:4:1",
        paper: "saturation at 280 kpps in all; about 3.7 ms of delay there",
        needs: ports(3),
        pictures: &[
            Picture {
                figure: "AFF-11",
                shows: Shows::Loads,
                of: "",
                points: &[("all", &[(280.0, 280.0), (320.0, 280.0)])],
            },
            Picture { figure: "AFF-12", shows: Shows::Delay, of: "", points: &[("all", &[(320.0, 3700.0)])] },
            picture("AFF-13", Shows::Interrupts),
        ],
        what: What::Measured {
            setups: || two_to_one(("imix".to_owned(), Sizes::simple_imix())),
            claims: &[
                more("Disable-Enable reaches what NAPI does", ["disable-enable", "napi, Q 300"], (0.9, 1.1)),
                stay("NAPI stays at its peak", "napi, Q 300"),
            ],
            here: "As AFF-5.",
        },
    },
];
