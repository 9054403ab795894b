//! *Open-Source PC-Based Software Routers* (OSR): how mechanisms of reception behave, and what ports, quotas and lengths change.

use super::claim::{At, Claim, ITSELF, fall, last, more, stay};
use super::needs::ports;
use super::setup::{QUOTA, Setup, alone, fixed, mechanism, napi, recycling, two_threads};
use super::{Experiment, Picture, Shows, What, picture};
use crate::bed::Kind;
use crate::tester::Alone;
use causeway_results::traffic::Matrix;

/// Frame lengths of the paper: payloads of IP, with the headers of IP and Ethernet and the checksum.
const SIZES: [u32; 6] = [82, 146, 274, 530, 1042, 1518];
/// What a gigabit link carries of minimum-size frames, in thousands a second.
const LINE_KPPS: f64 = 1488.0;
/// What ports of a gigabit and of a tenth of it carry together.
const UNEVEN_KPPS: f64 = 1.1 * LINE_KPPS;
/// What the paper's router forwards with NAPI (OSR-4), in thousands a second.
const NAPI_KPPS: f64 = 510.0;
/// What is not as in the papers where a device receives or transmits alone.
pub const NO_CARD: &str = "A veth is no card: what a device takes from it the tester's own system call brings, and what it sends \
                           into it its own system call carries to the tester. Rates are what the device counts itself, and of \
                           transmission what the tester hears; packets make no detour. Processor time a packet is in the \
                           results.";

/// What is not as in the papers where buffers are recycled or not.
pub const PACKET_SOCKETS: &str = "Ports over AF_XDP need the pool that recycles, so those here are packet sockets, for which the \
                                  kernel copies each packet, and makes a buffer of its own for it, with recycling and without. \
                                  The allocator is that of the C library, which takes far less of the processor than making a \
                                  buffer took in the kernel of the paper. Packets make no detour, and trials last a second: \
                                  what waits in the sockets' rings at the end, some 50 000 frames, counts as forwarded.";

fn two_ports(matrix: Matrix, routers: Vec<(String, Kind)>) -> Setup {
    Setup::new(2, matrix, routers)
}

/// From port 0 to 1 ten times of what goes from port 2 to 3.
fn uneven(router: (String, Kind)) -> Vec<Setup> {
    let matrix = Matrix::Custom(vec![vec![0, 10, 0, 0], vec![0; 4], vec![0, 0, 0, 1], vec![0; 4]]);
    vec![Setup::new(4, matrix, vec![router])]
}

fn many(matrix: Matrix, ports: usize, name: &str) -> Setup {
    Setup::new(ports, matrix, vec![napi(&format!("napi, {ports} ports, {name}"), &[QUOTA])])
}

/// Jain's index of max-min fairness at the highest load.
const fn fairness(says: &'static str, router: &'static str, between: (f64, f64)) -> Claim {
    Claim { says, shows: Shows::Fairness, of: (router, At::Last), to: ITSELF, between }
}

/// A flow has its max-min share at the highest load.
const fn share(says: &'static str, flow: &'static str, its: &'static str) -> Claim {
    last(says, Shows::Flows, [flow, its], (0.9, 1.1))
}

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        about: "one port, reception alone",
        paper: "1.0 Mpps by interrupts, 1.1 Mpps by NAPI",
        needs: ports(2),
        pictures: &[Picture {
            figure: "OSR-rx",
            shows: Shows::Alone,
            of: "",
            points: &[("interrupt", &[(LINE_KPPS, 1000.0)]), ("napi", &[(LINE_KPPS, 1100.0)])],
        }],
        what: What::Measured {
            setups: || {
                let one = |name: &str| alone(name, Alone::Receive, name);
                let kernel = ("kernel".to_owned(), Kind::KernelReceives { looks: true });
                vec![Setup::alone(1, vec![one("interrupt"), one("napi"), kernel])]
            },
            claims: &[more(
                "interrupts alone receive nine tenths of what NAPI receives",
                ["interrupt", "napi"],
                (0.85, 0.97),
            )],
            here: NO_CARD,
        },
    },
    Experiment {
        about: "one port, transmission alone",
        paper: "650 kpps",
        needs: ports(2),
        pictures: &[Picture {
            figure: "OSR-tx",
            shows: Shows::Ports,
            of: "",
            points: &[("packetgen", &[(1.0, 650.0)])],
        }],
        what: What::Measured {
            setups: || vec![Setup::alone(1, vec![alone("graph, 1 port", Alone::Transmit, "napi")])],
            claims: &[],
            here: NO_CARD,
        },
    },
    Experiment {
        about: "mechanisms of reception: forwarding rate against offered load, one way, 64 bytes",
        paper: "interrupts peak at 230 kpps and moderated ones at 500 kpps, then both fall to 0; NAPI stays at 510 kpps",
        needs: ports(2),
        pictures: &[Picture {
            figure: "OSR-4",
            shows: Shows::Loads,
            of: "",
            points: &[
                ("interrupt", &[(230.0, 230.0), (LINE_KPPS, 0.0)]),
                ("moderated", &[(500.0, 500.0), (LINE_KPPS, 0.0)]),
                ("napi", &[(510.0, 510.0), (LINE_KPPS, 510.0)]),
            ],
        }],
        what: What::Measured {
            setups: || {
                let mechanisms = ["interrupt", "moderated", "napi", "disable-enable", "polling"];
                let mut routers = mechanisms.map(|name| mechanism(name, name)).to_vec();
                routers.push(two_threads("interrupt, two threads"));
                vec![two_ports(Matrix::Unidirectional, routers)]
            },
            claims: &[
                fall("interrupts collapse", "interrupt", 0.5),
                fall("moderated interrupts collapse", "moderated", 0.5),
                more(
                    "receive livelock: what a thread below the interrupts forwards, of what NAPI forwards",
                    ["interrupt, two threads", "napi"],
                    (0.0, 0.5),
                ),
                stay("NAPI stays at its peak", "napi"),
                Claim {
                    says: "NAPI's peak is twice that of interrupts",
                    shows: Shows::Loads,
                    of: ("napi", At::Peak),
                    to: ("interrupt", At::Peak),
                    between: (1.8, 2.6),
                },
            ],
            here: "An interrupt costs nothing here: the worker does first what its handler would do, so that \
                       interrupts cost what their handlers do, and alone do not take the whole processor at the \
                       loads that the tester can offer. Where reception is a thread of a higher real-time priority \
                       than forwarding, as a handler of interrupts is, it does: the curve of two threads.",
        },
    },
    Experiment {
        about: "lengths of frames with NAPI, one way",
        paper: "near 500 kpps up to 128 bytes of payload, where the processor is the limit; 1 Gbit/s from 512 bytes on",
        needs: ports(2),
        pictures: &[Picture {
            figure: "OSR-5",
            shows: Shows::Lengths,
            of: "",
            points: &[(
                "napi",
                &[(82.0, 500.0), (146.0, 500.0), (530.0, 227.0), (1042.0, 118.0), (1518.0, 81.0)],
            )],
        }],
        what: What::Measured {
            setups: || {
                let setup = two_ports(Matrix::Unidirectional, vec![napi("napi", &[QUOTA])]);
                vec![setup.of_sizes(SIZES.map(fixed).to_vec())]
            },
            claims: &[Claim {
                says: "up to 128 bytes of payload the processor is the limit, whatever the length",
                shows: Shows::Lengths,
                of: ("napi", At::X(146.0)),
                to: ("napi", At::X(82.0)),
                between: (0.9, 1.1),
            }],
            here: "A veth has no bit rate, so no length meets a line rate; longer frames cost the copies that \
                       the kernel makes.",
        },
    },
    Experiment {
        about: "one way and both ways with NAPI, 64 bytes",
        paper: "510 kpps one way, 620 kpps both ways",
        needs: ports(2),
        pictures: &[Picture {
            figure: "OSR-6",
            shows: Shows::Loads,
            of: "",
            points: &[("napi, one way", &[(LINE_KPPS, 510.0)]), ("napi, both ways", &[(LINE_KPPS, 620.0)])],
        }],
        what: What::Measured {
            setups: || {
                [(Matrix::Unidirectional, "napi, one way"), (Matrix::OneToOne, "napi, both ways")]
                    .map(|(matrix, name)| two_ports(matrix, vec![napi(name, &[QUOTA])]))
                    .into()
            },
            claims: &[more(
                "both ways are ahead of one way, by a fifth",
                ["napi, both ways", "napi, one way"],
                (1.1, 1.35),
            )],
            here: "The paper's gain comes from a card whose interrupts clean two rings at once; a veth has none \
                       to clean.",
        },
    },
    Experiment {
        about: "recycling of buffers, both ways with NAPI, 64 bytes",
        paper: "620 kpps without, 730 kpps with it",
        needs: ports(2),
        pictures: &[Picture {
            figure: "OSR-7",
            shows: Shows::Loads,
            of: "",
            points: &[("no recycling", &[(LINE_KPPS, 620.0)]), ("recycling", &[(LINE_KPPS, 730.0)])],
        }],
        what: What::Measured {
            setups: || vec![recycling(2, Matrix::OneToOne)],
            claims: &[more(
                "recycling brings almost a fifth more",
                ["recycling", "no recycling"],
                (1.1, 1.25),
            )],
            here: PACKET_SOCKETS,
        },
    },
    Experiment {
        about: "ports with loads of 10:1, quota 64, budget 300",
        paper: "past saturation the smaller flow grows at the cost of the other, to max-min fairness; the sum is constant",
        needs: ports(4),
        pictures: &[Picture {
            figure: "OSR-8",
            shows: Shows::Flows,
            of: "",
            points: &[
                ("t0 to t1, its share of 510", &[(UNEVEN_KPPS, NAPI_KPPS - 0.1 * LINE_KPPS)]),
                ("t2 to t3, its share of 510", &[(UNEVEN_KPPS, 0.1 * LINE_KPPS)]),
            ],
        }],
        what: What::Measured {
            setups: || uneven(napi("napi, Q 64", &[QUOTA])),
            claims: &[
                Claim {
                    says: "the smaller flow does not fall past saturation",
                    shows: Shows::Flows,
                    of: ("t2 to t3", At::Last),
                    to: ("t2 to t3", At::Peak),
                    between: (0.9, f64::INFINITY),
                },
                Claim {
                    says: "the larger flow gives way",
                    shows: Shows::Flows,
                    of: ("t0 to t1", At::Last),
                    to: ("t0 to t1", At::Peak),
                    between: (0.0, 0.95),
                },
                share("the smaller flow has its max-min share", "t2 to t3", "t2 to t3, its max-min share"),
                share("and so has the larger", "t0 to t1", "t0 to t1, its max-min share"),
                fairness("Jain's index of max-min fairness is 1", "napi, Q 64", (0.98, 1.0)),
                stay("the sum is constant", "napi, Q 64"),
            ],
            here: "The paper's text gives no rates: its points are the shares that its policy gives of its 510 kpps (OSR-4) at \
                   the highest load. What the tester offers and what the router takes share a machine: at the highest loads \
                   the tester itself sends less.",
        },
    },
    Experiment {
        about: "as OSR-8, with quotas in the ratio of the loads",
        paper: "the shares follow the quotas 270 and 27, and the sum is higher",
        needs: ports(4),
        pictures: &[Picture {
            figure: "OSR-9",
            shows: Shows::Flows,
            of: "",
            points: &[
                ("t0 to t1, by its quota, of 510", &[(UNEVEN_KPPS, NAPI_KPPS * 10.0 / 11.0)]),
                ("t2 to t3, by its quota, of 510", &[(UNEVEN_KPPS, NAPI_KPPS / 11.0)]),
            ],
        }],
        what: What::Measured {
            setups: || uneven(napi("napi, Q 270 and 27", &[270, 270, 27, 27])),
            claims: &[
                last(
                    "shares at the highest load are as the quotas, 10 to 1",
                    Shows::Flows,
                    ["t0 to t1", "t2 to t3"],
                    (8.0, 12.0),
                ),
                last(
                    "a turn takes as the quotas are: polls of a packet, of the smaller port to the larger",
                    Shows::Polls,
                    ["napi, Q 270 and 27: in2", "napi, Q 270 and 27: in0"],
                    (8.0, 12.0),
                ),
                last(
                    "the smaller flow has less than its max-min share",
                    Shows::Flows,
                    ["t2 to t3", "t2 to t3, its max-min share"],
                    (0.0, 0.9),
                ),
                fairness(
                    "and Jain's index of max-min fairness is below 1",
                    "napi, Q 270 and 27",
                    (0.0, 0.95),
                ),
                stay("the sum is constant", "napi, Q 270 and 27"),
            ],
            here: "The points are of the paper's 510 kpps (OSR-4) by its quotas, since its text gives no rates. A veth's ring holds \
                   256 packets, so the larger port seldom gives its quota of 270. Then it leaves the polling list, and the \
                   smaller one, which gave all of its quota, has a second turn in a run of 300 packets before the larger one has \
                   interrupted again: shares are between those of quotas and equal ones, though what a turn takes is near the quotas.",
        },
    },
    Experiment {
        about: "6, 10 and 14 ports in pairs, both ways",
        paper: "the saturation rate falls slightly with the number of ports; its text gives no rates",
        needs: ports(14),
        pictures: &[picture("OSR-10", Shows::Loads)],
        what: What::Measured {
            setups: || [6, 10, 14].map(|ports| many(Matrix::OneToOne, ports, "in pairs")).into(),
            claims: &[more(
                "14 ports are slightly slower than 6",
                ["napi, 14 ports, in pairs", "napi, 6 ports, in pairs"],
                (0.85, 1.0),
            )],
            here: "There is no bus that the ports share; more ports cost the worker's way round them, and the \
                       tester more system calls.",
        },
    },
    Experiment {
        about: "14 ports, in pairs and each to all others",
        paper: "each to all others is slightly lower; its text gives no rates",
        needs: ports(14),
        pictures: &[picture("OSR-11", Shows::Loads)],
        what: What::Measured {
            setups: || vec![many(Matrix::OneToOne, 14, "in pairs"), many(Matrix::Uniform, 14, "each to all")],
            claims: &[more(
                "each to all others is slightly slower",
                ["napi, 14 ports, each to all", "napi, 14 ports, in pairs"],
                (0.85, 1.0),
            )],
            here: "There is no bus that the ports share.",
        },
    },
];
