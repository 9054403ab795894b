//! *Click vs. Linux* (CvL): frames from port to port without a look at them, and IP routing, over one to four pairs of ports.
//!
//! Nothing is slowed down here. A kernel that forwards between veths does so in the tester's own system calls, so its rate is
//! also the tester's; `causeway lab compare kernel click` sets Click beside both.

use super::claim::{At, Claim, last, more};
use super::needs::ports;
use super::osr::NO_CARD;
use super::setup::{Setup, alone, fixed, pairs};
use super::{Experiment, Picture, Shows, What};
use crate::bed::{Graph, Kind};
use crate::tester::Alone;

/// Payloads of 46 to 1 500 bytes with headers and checksum.
const SIZES: [u32; 3] = [64, 512, 1518];

/// Ports that receive alone: enough for the curve, of which each point takes three devices at ten loads.
const RECEIVE: [usize; 4] = [1, 2, 4, 8];
/// Ports that transmit alone.
const TRANSMIT: [usize; 5] = [1, 2, 4, 7, 8];
/// What is not as in the paper where a device transmits alone.
const TRANSMITTING: &str = "In the paper one card is the limit of one port. A veth is none, and all ports share one processor of the \
                            router's, whose own system calls carry the frames to the tester. Rates are what the tester hears; what \
                            the device counts itself is in the results as its loss. Linux is \
                            not here: its packet generator is in few kernels (CONFIG_NET_PKTGEN), and was not in this one.";

/// This program, and the kernel with a look into frames and without, which receive by so many ports.
fn receiving(ports: usize) -> Vec<(String, Kind)> {
    let kernel = |name: &str, looks| (format!("{name}, {}", of_ports(ports)), Kind::KernelReceives { looks });
    let graph = alone(&format!("graph, {}", of_ports(ports)), Alone::Receive, "polling");
    vec![kernel("kernel, looks", true), kernel("kernel, does not look", false), graph]
}

fn transmitting(ports: usize) -> Vec<(String, Kind)> {
    vec![alone(&format!("graph, {}", of_ports(ports)), Alone::Transmit, "polling")]
}

fn of_ports(ports: usize) -> String {
    if ports == 1 { "1 port".to_owned() } else { format!("{ports} ports") }
}

/// A plain router over one to three pairs of ports, and the kernel.
fn routing(flows: usize) -> Setup {
    let named = |name: &str| format!("{name}, {}", counted(flows));
    let routers = vec![(named("kernel"), Kind::Kernel {}), (named("graph"), Kind::Graph(Graph::default()))];
    Setup::new(2 * flows, pairs(flows, false), routers)
}

/// From the first port of each pair to the second, and back: what is not looked at is only moved.
fn transfer(flows: usize, both: bool) -> Vec<(String, Kind)> {
    let ways = if both { ", both ways" } else { "" };
    let named = |name: &str| format!("{name}, {}{ways}", counted(flows));
    let graph = Graph { transfer: true, ..Graph::default() };
    vec![(named("kernel"), kernel_transfer(2 * flows)), (named("graph"), Kind::Graph(graph))]
}

fn counted(flows: usize) -> String {
    if flows == 1 { "1 flow".to_owned() } else { format!("{flows} flows") }
}

/// The kernel moves what it receives by one port of a pair to the other, by a rule of nftables that asks nothing.
fn kernel_transfer(ports: usize) -> Kind {
    let chain = |port: usize| {
        format!(
            "add chain netdev move r{port} {{ type filter hook ingress device r{port} priority 0; }}\n\
             add rule netdev move r{port} fwd to r{}\n",
            port ^ 1
        )
    };
    let rules: String = (0..ports).map(chain).collect();
    let script = format!(
        "trap 'nft delete table netdev move; exit' TERM\n\
         nft -f - <<'end' || exit 1\nadd table netdev move\n{rules}end\necho ready\n\
         while :; do sleep 0.1; done"
    );
    let start = ["sh", "-c", &script].map(str::to_owned).to_vec();
    Kind::Command { start, ready: Some("ready".to_owned()), beside_kernel: false, stop: None }
}

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        about: "reception alone, 1 to 8 ports",
        paper: "Linux 1.1 Mpps, 1.488 if it does not look at packets; Click 1.488 of one port, 3 of two or more",
        needs: ports(9),
        pictures: &[Picture {
            figure: "CvL-4",
            shows: Shows::Ports,
            of: "",
            points: &[
                ("Linux, looks", &[(1.0, 1100.0), (8.0, 1000.0)]),
                ("Linux, does not look", &[(1.0, 1488.0), (8.0, 1250.0)]),
                ("Click", &[(1.0, 1488.0), (2.0, 3000.0), (8.0, 3000.0)]),
            ],
        }],
        what: What::Measured {
            setups: || RECEIVE.map(|ports| Setup::alone(ports, receiving(ports))).into(),
            claims: &[
                more(
                    "Linux falls by a tenth from one port to eight",
                    ["kernel, looks, 8 ports", "kernel, looks, 1 port"],
                    (0.8, 0.97),
                ),
                more(
                    "a Linux that does not look at packets receives more, of one port",
                    ["kernel, does not look, 1 port", "kernel, looks, 1 port"],
                    (1.1, 1.6),
                ),
                more(
                    "two ports of Click bring twice as much as one",
                    ["graph, 2 ports", "graph, 1 port"],
                    (1.8, 2.2),
                ),
                more("eight bring no more than two", ["graph, 8 ports", "graph, 2 ports"], (0.9, 1.1)),
            ],
            here: NO_CARD,
        },
    },
    Experiment {
        about: "transmission alone, 1 to 8 ports",
        paper: "Linux 740 kpps, falling to 690; Click 730 kpps of one port, 4.2 Mpps of seven",
        needs: ports(9),
        pictures: &[Picture {
            figure: "CvL-5",
            shows: Shows::Ports,
            of: "",
            points: &[
                ("Linux", &[(1.0, 740.0), (8.0, 690.0)]),
                ("Click", &[(1.0, 730.0), (7.0, 4200.0), (8.0, 4200.0)]),
            ],
        }],
        what: What::Measured {
            setups: || TRANSMIT.map(|ports| Setup::alone(ports, transmitting(ports))).into(),
            claims: &[
                more(
                    "seven ports of Click send almost six times as much as one",
                    ["graph, 7 ports", "graph, 1 port"],
                    (5.0, 7.0),
                ),
                more("eight send no more than seven", ["graph, 8 ports", "graph, 7 ports"], (0.9, 1.1)),
            ],
            here: TRANSMITTING,
        },
    },
    Experiment {
        about: "from port to port without a look, 1 to 4 flows, 64 bytes",
        paper: "650 kpps of one flow, 1.2 Mpps of two; of three Click has 1.8 Mpps; of four Linux has 1.0 and Click 2.1 Mpps",
        needs: ports(8),
        pictures: &[Picture {
            figure: "CvL-6a",
            shows: Shows::Numbers,
            of: "",
            points: &[
                ("Linux", &[(1.0, 650.0), (2.0, 1200.0), (4.0, 1000.0)]),
                ("Click", &[(1.0, 650.0), (2.0, 1200.0), (3.0, 1800.0), (4.0, 2100.0)]),
            ],
        }],
        what: What::Measured {
            setups: || {
                let one = |flows| Setup::new(2 * flows, pairs(flows, false), transfer(flows, false));
                (1..=4).map(one).collect()
            },
            claims: &[
                more("two flows of Click are ahead of one", ["graph, 2 flows", "graph, 1 flow"], (1.5, 2.1)),
                more("and so are two of Linux", ["kernel, 2 flows", "kernel, 1 flow"], (1.5, 2.1)),
                more(
                    "Linux falls from two flows to four",
                    ["kernel, 4 flows", "kernel, 2 flows"],
                    (0.75, 0.95),
                ),
                more(
                    "four flows of Click are twice those of Linux",
                    ["graph, 4 flows", "kernel, 4 flows"],
                    (1.8, 2.4),
                ),
                more("and are ahead of its three", ["graph, 4 flows", "graph, 3 flows"], (1.05, 1.35)),
            ],
            here: "In the paper one card is the limit of one flow. A veth is none: all flows share one processor \
                       of the router's, and what the kernel moves it moves within the tester's own system calls.",
        },
    },
    Experiment {
        about: "from port to port without a look, 4 flows one way and both ways, lengths of frames",
        paper: "5.5 Gbit/s of frames of 1 518 bytes, which is 452 kpps",
        needs: ports(8),
        pictures: &[Picture {
            figure: "CvL-6b",
            shows: Shows::Lengths,
            of: "",
            points: &[("both", &[(1518.0, 452.0)])],
        }],
        what: What::Measured {
            setups: || {
                let one = |both| Setup::new(8, pairs(4, both), transfer(4, both));
                [false, true].map(|both| one(both).of_sizes(SIZES.map(fixed).to_vec())).into()
            },
            claims: &[
                last(
                    "the longest frames are more both ways, where four gigabits are not the limit",
                    Shows::Lengths,
                    ["graph, 4 flows, both ways", "graph, 4 flows"],
                    (1.2, 1.5),
                ),
                Claim {
                    says: "and by bits far fewer than the shortest: 325 of 2 100 kpps of Click",
                    shows: Shows::Lengths,
                    of: ("graph, 4 flows", At::Last),
                    to: ("graph, 4 flows", At::First),
                    between: (0.1, 0.25),
                },
                Claim {
                    says: "of Linux 325 of 1 000 kpps",
                    shows: Shows::Lengths,
                    of: ("kernel, 4 flows", At::Last),
                    to: ("kernel, 4 flows", At::First),
                    between: (0.25, 0.4),
                },
            ],
            here: "A veth has no bit rate and there is no bus: a longer frame costs no more than copying it. What one way carries \
                   in the paper is four lines of a gigabit, 325 kpps.",
        },
    },
    Experiment {
        about: "IP routing, 1 to 3 flows, 64 bytes",
        paper: "about 800 kpps at most",
        needs: ports(6),
        pictures: &[Picture {
            figure: "CvL-7",
            shows: Shows::Numbers,
            of: "",
            points: &[("at most", &[(1.0, 800.0), (2.0, 800.0), (3.0, 800.0)])],
        }],
        what: What::Measured {
            setups: || (1..=3).map(routing).collect(),
            claims: &[more(
                "three flows are no faster than one",
                ["kernel, 3 flows", "kernel, 1 flow"],
                (0.85, 1.15),
            )],
            here: "What the kernel forwards it forwards within the tester's own system calls.",
        },
    },
];
