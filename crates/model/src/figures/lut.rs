//! The figures of LUT: how a kernel finds routes, one flow from card to card by Linux 2.6.16.

use super::drawn::{DIFFERENCE, RATIO_OF_RATES, drawn, of_each, of_rates, paired};
use super::osr::{LINE, NAPI, curve, kpps, line, one_way, with};
use super::{Along, Curve, Figure, Found, Number, Told};
use crate::machine::Machine;
use crate::run::Outcome;
use crate::software::linux::{By, Class, Lookup, Role};
use causeway_fib::route_cache::CacheKey;

/// Addresses or routes that the paper's tests have.
const RANGES: [u32; 4] = [256, 1_024, 8_192, 16_384];
const MANY: u32 = 16_384;
const POINTS: usize = 10;

fn routed(name: &str, by: By, sources: u32, destinations: u32) -> Curve {
    let role = Role::Route(Lookup { by, sources, destinations });
    curve(name, POINTS, line(), |load| with(one_way(NAPI, load), role, true))
}

const FLOW: By = By::Cache(CacheKey::Flow);
const DESTINATION: By = By::Cache(CacheKey::Destination);

fn by_sources(by: By) -> Vec<Curve> {
    let of = |sources: u32| routed(&format!("{sources} sources"), by, sources, 1);
    std::iter::once(1).chain(RANGES).map(of).collect()
}

fn flow_keyed() -> Vec<Curve> {
    by_sources(FLOW)
}

fn destination_keyed() -> Vec<Curve> {
    by_sources(DESTINATION)
}

fn profiles() -> Vec<Curve> {
    [1, MANY].map(|sources| routed(&format!("{sources} sources"), FLOW, sources, 1)).into()
}

fn counters() -> Vec<Curve> {
    let role = Role::Route(Lookup { by: FLOW, sources: 1, destinations: 1 });
    vec![curve("1 sources", 30, line(), |load| with(one_way(NAPI, load), role, true))]
}

fn destinations() -> Vec<Curve> {
    RANGES.map(|n| routed(&format!("{n} destinations"), DESTINATION, 1, n)).into()
}

/// By the trees, only where they are the limit.
fn trees() -> Vec<Curve> {
    let of = |name: &str, by: By, routes: u32| {
        let role = Role::Route(Lookup { by, sources: 1, destinations: routes });
        curve(&format!("{name}, {routes} routes"), 3, line(), |load| with(one_way(NAPI, load), role, true))
    };
    let both = |routes| [of("radix", By::Radix, routes), of("lc-trie", By::Trie, routes)];
    RANGES.into_iter().flat_map(both).collect()
}

/// By rules, as many as there are sources, only where they are the limit.
fn rules() -> Vec<Curve> {
    let of = |rules: u32| {
        let role = Role::Route(Lookup { by: By::Rules(rules), sources: rules, destinations: 256 });
        curve(&format!("{rules} rules"), 3, line(), |load| with(one_way(NAPI, load), role, true))
    };
    RANGES.map(of).into()
}

fn recycling() -> Vec<Curve> {
    let role = Role::Route(Lookup { by: FLOW, sources: 1, destinations: 1 });
    let of = |name: &str, recycling| {
        curve(name, POINTS, line(), |load| with(one_way(NAPI, load), role, recycling))
    };
    vec![of("standard", false), of("recycling", true)]
}

/// What of its time the processor works on IP at a curve's last point.
fn of_ip(found: &Found, name: &str) -> f64 {
    found.curve(name).last().map_or(0.0, part_of_ip)
}

fn part_of_ip(outcome: &Outcome) -> f64 {
    outcome.classes[Class::Ip as usize]
}

fn polls(outcome: &Outcome) -> f64 {
    outcome.polls[0] / outcome.rate_fps()
}

fn ahead(found: &Found, routes: u32) -> f64 {
    found.last_kpps(&format!("radix, {routes} routes"))
        - found.last_kpps(&format!("lc-trie, {routes} routes"))
}

const fn times(
    what: &'static str,
    paper: f64,
    told: Told,
    shown: (&'static str, f64),
    of: fn(&Found) -> f64,
) -> Number {
    Number { what, unit: "times", paper, told, shown, of }
}

/// Entries of the route cache, at the last point of each of these curves.
fn entries(found: &Found, of: fn([usize; 2]) -> usize) -> Vec<(f64, f64)> {
    let last = |sources: u32| found.curve(&format!("{sources} sources")).last().map(|last| last.entries);
    let all = std::iter::once(1).chain(RANGES);
    all.filter_map(|sources| Some((f64::from(sources), of(last(sources)?) as f64))).collect()
}

const ENTRIES: [&str; 2] = ["entries of the route cache", ""];
const SOURCES: [&str; 2] = ["sources", ""];
const ROUTES: [&str; 2] = ["routes", ""];
const OF_IP: &str = "16384 sources to 1/ratio of the parts of IP";
const POLLS: &str = "port 0/inside 1 sources, 64 bytes: polls of a packet";
const CLEANINGS: &str = "port 1/inside 1 sources, 64 bytes: cleanings of a packet";
const DEFERRED: &str = "all ports/inside 1 sources, 64 bytes: runs of deferred work of a packet";
const AHEAD: &str = "radix less lc-trie/difference of rates";
const RATIO: &str = "with recycling to without/ratio of rates";

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "LUT-2",
        about: "the route cache keyed by flow, one flow from ever more sources (Figs. 2 to 4)",
        paper: "saturation past half of the offered load with one source; less, and more delay, with more sources",
        missed: "",
        machine: Machine::lut,
        curves: flow_keyed,
        drawn: &[
            drawn("active/entries of the route cache", ENTRIES, SOURCES, |found| {
                entries(found, |[active, _]| active)
            }),
            drawn("in all/entries of the route cache", ENTRIES, SOURCES, |found| {
                entries(found, |[_, all]| all)
            }),
        ],
        numbers: &[kpps(
            "saturation, 1 source",
            LINE / 2e3,
            Told::Calibrated,
            ("1 sources", LINE),
            |found| found.last_kpps("1 sources"),
        )],
    },
    Figure {
        name: "LUT-5",
        about: "where the processor's time goes, with one source and with 16384 (Figs. 5 and 6)",
        paper: "the part of IP doubles; that of interrupts falls to nothing at saturation",
        missed: "",
        machine: Machine::lut,
        curves: profiles,
        drawn: &[drawn(OF_IP, ["ratio of the parts of IP", ""], Along::Load.axis(), |found| {
            let parts = ["16384 sources", "1 sources"].map(|name| of_each(found, name, part_of_ip));
            paired(parts, |many, one| many / one)
        })],
        numbers: &[times("IP, 16384 to 1 sources", 2.0, Told::Calibrated, (OF_IP, LINE), |found| {
            of_ip(found, "16384 sources") / of_ip(found, "1 sources")
        })],
    },
    Figure {
        name: "LUT-7",
        about: "interrupts, polls and cleanings with one source (Figs. 7 and 8)",
        paper: "two polls a packet at low load, about 0.22 at saturation; interrupts fall, cleanings rise",
        missed: "Past saturation the ring is always full, so that a poll takes its quota of 64 packets and there are 0.016 a \
                 packet. For 0.22 a poll would have to find four or five; what ends it so early the paper does not say, and \
                 nothing was fitted to have it.",
        machine: Machine::lut,
        curves: counters,
        drawn: &[
            drawn(POLLS, ["polls of a packet", ""], Along::Load.axis(), |found| {
                of_each(found, "1 sources", polls)
            }),
            drawn(CLEANINGS, ["cleanings of a packet", ""], Along::Load.axis(), |found| {
                of_each(found, "1 sources", |outcome| outcome.cleanings[1] / outcome.rate_fps())
            }),
            drawn(DEFERRED, ["runs of a packet", ""], Along::Load.axis(), |found| {
                of_each(found, "1 sources", |outcome| outcome.deferred / outcome.rate_fps())
            }),
        ],
        numbers: &[
            times("polls, a tenth of load", 2.0, Told::Text, (POLLS, LINE / 10.0), |found| {
                polls(found.near("1 sources", LINE / 10.0))
            }),
            times("polls, saturation", 0.22, Told::Text, (POLLS, LINE), |found| {
                found.curve("1 sources").last().map_or(0.0, polls)
            }),
        ],
    },
    Figure {
        name: "LUT-9",
        about: "the route cache keyed by destination, one flow from ever more sources",
        paper: "no less with more sources",
        missed: "",
        machine: Machine::lut,
        curves: destination_keyed,
        drawn: &[],
        numbers: &[],
    },
    Figure {
        name: "LUT-12",
        about: "the route cache keyed by destination, to 256 to 16384 destinations (Figs. 10 and 12)",
        paper: "less with more destinations, as in LUT-2 with more sources",
        missed: "",
        machine: Machine::lut,
        curves: destinations,
        drawn: &[],
        numbers: &[],
    },
    Figure {
        name: "LUT-11",
        about: "no route cache, Radix tree and LC-trie of 256 to 16384 routes (Figs. 11 and 13 to 19)",
        paper: "the Radix tree is 30 to 50 kpps ahead, and less so with more routes",
        missed: "With 16384 routes the nodes of this Radix tree are more than the cache holds, and it loses a little more of what \
                 it is ahead than the paper's.",
        machine: Machine::lut,
        curves: trees,
        drawn: &[drawn(AHEAD, DIFFERENCE, ROUTES, |found| {
            RANGES.map(|routes| (f64::from(routes), ahead(found, routes) * 1e3)).into()
        })],
        numbers: &[
            kpps("ahead, 256 routes", 50.0, Told::Calibrated, (AHEAD, 256.0), |found| ahead(found, 256)),
            kpps("ahead, 16384 routes", 30.0, Told::Text, (AHEAD, 16_384.0), |found| ahead(found, MANY)),
        ],
    },
    Figure {
        name: "LUT-rules",
        about: "policy routing (LUT 2.B): no route cache, a rule for each of 256 to 16384 sources, tables of 256 routes",
        paper: "no number: it says how rules and tables are gone through",
        missed: "",
        machine: Machine::lut,
        curves: rules,
        drawn: &[],
        numbers: &[],
    },
    Figure {
        name: "LUT-skb",
        about: "recycling of buffers alone (LUT 3.A)",
        paper: "150 to 175 % of the standard kernel's rate",
        missed: "",
        machine: Machine::lut,
        curves: recycling,
        drawn: &[drawn(RATIO, RATIO_OF_RATES, Along::Load.axis(), |found| {
            of_rates(found, ["recycling", "standard"], |with, without| with / without)
        })],
        numbers: &[times("with to without", 1.625, Told::Calibrated, (RATIO, LINE), |found| {
            found.last_kpps("recycling") / found.last_kpps("standard")
        })],
    },
];
