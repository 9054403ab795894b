//! *Performance of IP-forwarding of Linux hosts with multiple network interfaces* (AFF): two ports that receive, one that sends.
//!
//! Its modes of affinity take four processors in two pairs; here one processor does everything, and the tester has the other.

use super::claim::{At, Claim, more, stay};
use super::setup::{Setup, fixed, mechanism, napi};
use super::{Experiment, Picture, Shows, What, picture};
use causeway_results::traffic::{Matrix, Sizes};

/// Why what differs between processors is not measured.
const PROCESSORS: &str = "it compares processors that receive with one that sends: four in two pairs, of which this machine \
                          has none to spare. `causeway model` has it";

/// From ports 0 and 1 to port 2, by the mechanisms that the paper compares.
fn two_to_one(size: (String, Sizes)) -> Vec<Setup> {
    let matrix = Matrix::Custom(vec![vec![0, 0, 1], vec![0, 0, 1], vec![0; 3]]);
    let de = mechanism("disable-enable", "disable-enable");
    let routers = vec![napi("napi, Q 300", &[300]), napi("napi, Q 2", &[2]), de];
    vec![Setup::new(3, matrix, routers).of_sizes(vec![size])]
}

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        about: "two ports to a third one, NAPI with quotas of 300 and 2, and Disable-Enable, 64 bytes",
        paper: "saturation near 500 kpps in all, whatever the mechanism; Disable-Enable has the least delay at low load; \
                NAPI's interrupts vanish from some 400 kpps in all on, those of Disable-Enable never quite",
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
                Claim {
                    says: "those of Disable-Enable do not",
                    shows: Shows::Interrupts,
                    of: ("disable-enable: in0", At::Last),
                    to: ("disable-enable: in0", At::Peak),
                    between: (0.0001, 1.0),
                },
            ],
            here: "Both ports and both mechanisms have one processor here, and an interrupt costs nothing (see \
                       OSR-4). Delay at low load is that of threads that wake each other, whatever the mechanism.",
        },
    },
    Experiment {
        about: "availability of the processors that receive and of the one that sends",
        paper: "those that receive are far busier",
        pictures: &[picture("AFF-7", Shows::Availability), picture("AFF-8", Shows::Availability)],
        what: What::Refused(PROCESSORS),
    },
    Experiment {
        about: "interrupts of the ports that receive and of the one that sends",
        paper: "those of reception dip near 50 kpps a port and then rise; those of transmission follow the throughput",
        pictures: &[picture("AFF-10", Shows::Interrupts)],
        what: What::Refused(
            "a veth tells nobody when it has sent. `causeway model` has it; AFF-9 has those of reception",
        ),
    },
    Experiment {
        about: "as AFF-5, with frames of 64, 594 and 1 518 bytes, 7:4:1",
        paper: "saturation at 280 kpps in all; about 3.7 ms of delay there",
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
