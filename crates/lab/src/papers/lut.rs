//! *The IP Lookup Mechanism in a Linux Software Router* (LUT): route caches by flow and by destination, Radix and LC-trie, in
//! the plain router with NAPI.
//!
//! Lookups differ by tens of nanoseconds, so the detour is no longer than it takes for the tester to saturate the router.
//! `causeway bench lut` has the structures alone and in the standard router in memory, where it is lookups that count.

use super::claim::{At, Claim, last, more};
use super::needs::{Needs, ports};
use super::osr::PACKET_SOCKETS;
use super::setup::{QUOTA, Setup, recycling};
use super::{Experiment, Picture, Shows, What, picture};
use crate::bed::{Graph, Kind};
use causeway_results::traffic::{Matrix, Values};

const DETOUR_ROUTES: u32 = 2_000;
/// Chains of the cache, as in `causeway bench lut`: what Linux 2.6 gave a machine of the paper's size.
const CACHE: &str = "BUCKETS 4096, TABLE radix";
/// Addresses that are used, of sources or of destinations.
const ADDRESSES: [u32; 5] = [1, 256, 1_024, 8_192, 16_384];
/// Routes of the tables that are compared.
const ROUTES: [u32; 3] = [256, 1_024, 16_384];

fn router(name: String, lookup: &str, routes: u32) -> (String, Kind) {
    let reception = vec![format!("RECEPTION napi, QUOTA {QUOTA}")];
    let (lookup, routes) = (Some(lookup.to_owned()), Some(routes));
    (name, Kind::Graph(Graph { reception, detour_routes: DETOUR_ROUTES, lookup, routes, ..Graph::default() }))
}

/// One way from `sources` to `destinations`, each in turn.
fn one_way(sources: u32, destinations: u32, routers: Vec<(String, Kind)>) -> Setup {
    let mut setup = Setup::new(2, Matrix::Unidirectional, routers);
    for stream in &mut setup.traffic.streams {
        stream.source_host = Values::Counted { first: 0, count: sources };
        stream.destination_host = Values::Counted { first: 0, count: destinations };
    }
    setup
}

/// The router with a cache by `key`, and what its name says of the traffic.
fn cached(key: &str, count: u32, of: &str) -> Vec<(String, Kind)> {
    let several = if count == 1 { "" } else { "s" };
    let lookup = format!("CachedIPLookup KEY {key}, {CACHE}");
    vec![router(format!("by {key}, {count} {of}{several}"), &lookup, 1)]
}

fn sources(key: &str) -> Vec<Setup> {
    ADDRESSES.map(|count| one_way(count, 1, cached(key, count, "source"))).into()
}

fn destinations() -> Vec<Setup> {
    ADDRESSES.map(|count| one_way(1, count, cached("destination", count, "destination"))).into()
}

/// A figure of the routers whose names begin so.
const fn of(figure: &'static str, shows: Shows, of: &'static str) -> Picture {
    Picture { figure, shows, of, points: &[] }
}

fn tables() -> Vec<Setup> {
    let routers = [("radix", "RadixIPLookup"), ("lc-trie", "LCTrieIPLookup")];
    let of =
        |routes: u32| routers.map(|(name, class)| router(format!("{name}, {routes} routes"), class, routes));
    ROUTES.map(|routes| one_way(1, 16_384, of(routes).into())).into()
}

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        about: "a route cache by flow, 1 to 16 384 sources, 64 bytes",
        paper: "throughput falls and delay at saturation grows with the sources, entries of the cache linearly; the share of IP doubles, that of \
                interrupts vanishes at saturation; from 2 polls a packet to 0.22",
        needs: ports(2),
        pictures: &[
            picture("LUT-2", Shows::Loads),
            picture("LUT-3", Shows::Delay),
            picture("LUT-4", Shows::Entries),
            of("LUT-5", Shows::Profile, "by flow, 1 source:"),
            of("LUT-6", Shows::Profile, "by flow, 16384 sources:"),
            Picture {
                figure: "LUT-7",
                shows: Shows::Polls,
                of: "",
                points: &[("the receiving port", &[(1488.0, 0.22)])],
            },
        ],
        what: What::Measured {
            setups: || sources("flow"),
            claims: &[
                more(
                    "throughput falls with the sources",
                    ["by flow, 16384 sources", "by flow, 1 source"],
                    (0.0, 0.97),
                ),
                Claim {
                    says: "delay at saturation grows with the sources",
                    shows: Shows::Delay,
                    of: ("by flow, 16384 sources", At::Last),
                    to: ("by flow, 1 source", At::Last),
                    between: (1.03, f64::INFINITY),
                },
                last(
                    "the share of IP doubles",
                    Shows::Profile,
                    ["by flow, 16384 sources: IP", "by flow, 1 source: IP"],
                    (1.6, 2.4),
                ),
                Claim {
                    says: "the share of interrupts vanishes at saturation",
                    shows: Shows::Profile,
                    of: ("by flow, 1 source: interrupts", At::Last),
                    to: ("by flow, 1 source: interrupts", At::Peak),
                    between: (0.0, 0.1),
                },
                Claim {
                    says: "and so does the rate at which reception takes them",
                    shows: Shows::Interrupts,
                    of: ("by flow, 1 source: in0", At::Last),
                    to: ("by flow, 1 source: in0", At::Peak),
                    between: (0.0, 0.05),
                },
                Claim {
                    says: "entries of the cache grow linearly: 8 192 sources have as many times those of 256",
                    shows: Shows::Entries,
                    of: ("by flow, 8192 sources: active", At::Last),
                    to: ("by flow, 256 sources: active", At::Last),
                    between: (30.0, 34.0),
                },
                Claim {
                    says: "polls of a packet fall to a tenth",
                    shows: Shows::Polls,
                    of: ("by flow, 1 source: in0", At::Last),
                    to: ("by flow, 1 source: in0", At::First),
                    between: (0.0, 0.15),
                },
            ],
            here: "A lookup is some tens of nanoseconds in a packet's two microseconds; what 16 384 sources cost \
                       is the cache's missing, and entering a new flow. The class of interrupts is the kernel's soft ones, by \
                       which a veth hands on each frame that the tester sends, at any load; those that the router's reception \
                       takes are counted apart. The detour is no IP and has a class of its own.",
        },
    },
    Experiment {
        about: "cleanings of the transmission ring by interrupt and by reception",
        paper: "by interrupts up to saturation, within reception from there on",
        needs: Needs { interrupts: Some("that clean a ring"), ..ports(2) },
        pictures: &[picture("LUT-8", Shows::Interrupts)],
        what: What::Refused(super::MODEL),
    },
    Experiment {
        about: "a route cache by destination, 1 to 16 384 sources, 64 bytes",
        paper: "the number of sources makes no difference",
        needs: ports(2),
        pictures: &[picture("LUT-9", Shows::Loads)],
        what: What::Measured {
            setups: || sources("destination"),
            claims: &[more(
                "the number of sources makes no difference",
                ["by destination, 16384 sources", "by destination, 1 source"],
                (0.97, 1.03),
            )],
            here: "The cache has one entry, however many sources there are: what repetitions are apart is the machine's doing.",
        },
    },
    Experiment {
        about: "a route cache by destination, 1 to 16 384 destinations, 64 bytes",
        paper: "throughput falls again, from chains of the hash table",
        needs: ports(2),
        pictures: &[
            picture("LUT-12", Shows::Loads),
            of("LUT-10", Shows::Profile, "by destination, 16384 destinations:"),
        ],
        what: What::Measured {
            setups: destinations,
            claims: &[more(
                "throughput falls with the destinations",
                ["by destination, 16384 destinations", "by destination, 1 destination"],
                (0.0, 0.97),
            )],
            here: "A chain of four entries is read in a few tens of nanoseconds of a packet's three microseconds: less than what \
                   repetitions are apart. `causeway bench lut` has the caches alone, where chains are seen.",
        },
    },
    Experiment {
        about: "recycling of buffers alone, one way with NAPI, 64 bytes",
        paper: "150 to 175 % of the standard kernel's rate",
        needs: ports(2),
        pictures: &[picture("LUT-skb", Shows::Loads)],
        what: What::Measured {
            setups: || vec![recycling(2, Matrix::Unidirectional)],
            claims: &[more(
                "recycling brings half as much again or more",
                ["recycling", "no recycling"],
                (1.5, 1.75),
            )],
            here: PACKET_SOCKETS,
        },
    },
    Experiment {
        about: "no cache, Radix and LC-trie, 256 to 16 384 routes, 64 bytes",
        paper: "Radix is ahead by 30 to 50 kpps, less with more routes",
        needs: ports(2),
        pictures: &[
            of("LUT-11", Shows::Loads, "radix"),
            of("LUT-13", Shows::Loads, "lc-trie"),
            of("LUT-14", Shows::Delay, "lc-trie"),
            of("LUT-15", Shows::Delay, "radix"),
            of("LUT-16", Shows::Profile, "radix, 256 routes:"),
            of("LUT-17", Shows::Profile, "radix, 16384 routes:"),
            of("LUT-18", Shows::Profile, "lc-trie, 256 routes:"),
            of("LUT-19", Shows::Profile, "lc-trie, 16384 routes:"),
        ],
        what: What::Measured {
            setups: tables,
            claims: &[
                more(
                    "Radix is ahead with few routes",
                    ["radix, 256 routes", "lc-trie, 256 routes"],
                    (1.02, 1.2),
                ),
                more("and less with many", ["radix, 16384 routes", "lc-trie, 16384 routes"], (1.0, 1.1)),
                last(
                    "Radix has the lower delay at saturation",
                    Shows::Delay,
                    ["radix, 256 routes", "lc-trie, 256 routes"],
                    (0.0, 1.0),
                ),
                last(
                    "and the smaller share of IP, with few routes",
                    Shows::Profile,
                    ["radix, 256 routes: IP", "lc-trie, 256 routes: IP"],
                    (0.0, 1.0),
                ),
                last(
                    "and with many",
                    Shows::Profile,
                    ["radix, 16384 routes: IP", "lc-trie, 16384 routes: IP"],
                    (0.0, 1.0),
                ),
            ],
            here: "Radix reads a node for each place where routes part, and each read waits for the one before; the LC-trie \
                   computes where to read, which on today's processors costs less than to wait. So the order is the other way \
                   round: `causeway bench lut` has the structures alone, where LC-trie takes a tenth to a sixth of Radix's \
                   time. That would be some 4 % of a packet here; the detour's list, which goes through the processor's cache \
                   between two lookups, makes Radix's reads dearer than they are alone.",
        },
    },
];
