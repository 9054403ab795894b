//! Random sequences of messages: applied one by one they must come to what a new dump comes to, and both to what a naive
//! kernel answers.

mod common;
mod model;

use std::collections::BTreeSet;
use std::net::IpAddr;

use causeway_kernel::{
    Hop, HopId, Mirror, Neighbour, NextHopKind, Path, Prefix, PuntReason, Route, Rule, Scope, Snapshot,
    Target,
};
use common::describe;
use model::{NaiveKernel, PORTS};
use proptest::prelude::*;

const PREFIXES: [(&str, u8); 12] = [
    ("0.0.0.0", 0),
    ("10.0.0.0", 8),
    ("10.1.0.0", 16),
    ("10.1.1.0", 24),
    ("10.1.1.1", 32),
    ("10.2.0.0", 16),
    ("::", 0),
    ("2001:db8::", 32),
    ("2001:db8:1::", 48),
    ("2001:db8:1::1", 128),
    ("2001:db8:2::", 48),
    ("2001:db8::", 64),
];

const HOSTS: [&str; 10] = [
    "10.1.1.1",
    "10.1.1.2",
    "10.1.2.1",
    "10.2.0.1",
    "192.0.2.1",
    "2001:db8:1::1",
    "2001:db8:1::2",
    "2001:db8:2::1",
    "2001:db8::1",
    "fe80::1",
];

fn host(index: usize) -> IpAddr {
    HOSTS[index % HOSTS.len()].parse().unwrap()
}

/// One thing that happens to the kernel; the numbers choose among the few values above.
#[derive(Clone, Debug)]
enum Step {
    Route {
        prefix: usize,
        table: usize,
        metric: u32,
        tos: bool,
        target: usize,
        legs: Vec<(u32, usize)>,
        how: u8,
    },
    RemoveRoute(usize),
    Link {
        index: u32,
        up: bool,
        carrier: bool,
    },
    Neighbour {
        host: usize,
        ifindex: u32,
        state: usize,
        there: bool,
    },
    Object {
        id: u32,
        target: usize,
        ifindex: u32,
        host: usize,
    },
    Rule {
        family: bool,
        there: bool,
    },
    /// The mirror is asked what changed.
    Collect,
    /// The mirror dumps everything again before it has read all messages.
    Resync,
    /// Messages are lost, and the mirror dumps everything again.
    Lose,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let legs = proptest::collection::vec((1u32..4, 0usize..12), 1..3);
    let route = (0usize..12, 0usize..8, 0u32..3, 0u8..12, 0usize..8, legs, 0u8..4).prop_map(
        |(prefix, table, metric, tos, target, legs, how)| Step::Route {
            prefix,
            table,
            metric: 100 + metric,
            tos: tos == 0,
            target,
            legs,
            how,
        },
    );
    let step = prop_oneof![
        8 => route,
        5 => any::<usize>().prop_map(Step::RemoveRoute),
        2 => (1u32..4, 0u8..4, any::<bool>()).prop_map(|(index, up, carrier)| Step::Link { index, up: up > 0, carrier }),
        6 => (0usize..10, 1u32..4, 0usize..4, any::<bool>())
            .prop_map(|(host, ifindex, state, there)| Step::Neighbour { host, ifindex, state, there }),
        3 => (1u32..5, 0usize..5, 1u32..4, 0usize..12)
            .prop_map(|(id, target, ifindex, host)| Step::Object { id, target, ifindex, host }),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(family, there)| Step::Rule { family, there }),
        3 => Just(Step::Collect),
        1 => Just(Step::Resync),
        1 => Just(Step::Lose),
    ];
    proptest::collection::vec(step, 1..80)
}

fn gateway(prefix: Prefix, index: usize) -> Option<IpAddr> {
    let of_family = |address: &IpAddr| Prefix::host(*address).family() == prefix.family();
    Some(host(index)).filter(|address| index < HOSTS.len() && of_family(address))
}

fn perform(kernel: &mut NaiveKernel, step: &Step) {
    match step {
        Step::Route { prefix, table, metric, tos, target, legs, how } => {
            let (address, len) = PREFIXES[*prefix];
            let prefix = Prefix::new(address.parse().unwrap(), len);
            let mut paths: Vec<Path> = Vec::new();
            for &(ifindex, index) in legs {
                let gateway = gateway(prefix, index);
                if !paths.iter().any(|path| (path.ifindex, path.gateway) == (ifindex, gateway)) {
                    paths.push(Path { ifindex, gateway, weight: 1 });
                }
            }
            // A kernel, too, takes the same paths in another order for the same route.
            paths.sort();
            let target = match target {
                0 => Target::Punt(PuntReason::Blackhole),
                1 | 2 if kernel.objects.contains_key(&(metric - 99)) => Target::Object(metric - 99),
                _ => Target::Paths(paths),
            };
            let table = [255, 254, 254, 254, 254, 254, 253, 100][*table];
            let tos = if *tos && prefix.family() == causeway_kernel::Family::V4 { 8 } else { 0 };
            let (metric, protocol, source_specific) = (*metric, 3, false);
            let route =
                Route { prefix, table, tos, metric, protocol, source_specific, target, mtu_bytes: None };
            kernel.add_route(route, *how == 0, *how == 1);
        }
        Step::RemoveRoute(index) => kernel.remove_route(*index),
        Step::Link { index, up, carrier } => kernel.set_link(*index, *up, *carrier),
        Step::Neighbour { host: index, ifindex, state, there } => {
            // Reachable, stale, incomplete, failed.
            let state = [0x02, 0x04, 0x01, 0x20][*state];
            let mac = Some([2, 1, 0, 0, *ifindex as u8, *index as u8]);
            let neighbour =
                Neighbour { address: host(*index), ifindex: *ifindex, mac, state, managed: false };
            kernel.set_neighbour(neighbour, *there);
        }
        Step::Object { id, target, ifindex, host: index } => {
            let gateway = Some(host(*index)).filter(|_| *index < HOSTS.len());
            let kind = match (target, id) {
                (0, _) => None,
                (1, _) => Some(NextHopKind::Punt(PuntReason::Blackhole)),
                // Groups and single objects have numbers of their own, as groups hold no groups.
                (_, 1 | 2) => Some(NextHopKind::Path(Path { ifindex: *ifindex, gateway, weight: 1 })),
                (2, _) => Some(NextHopKind::Group(vec![(1, 1)])),
                _ => Some(NextHopKind::Group(vec![(1, 10), (2, 20)])),
            };
            kernel.set_object(*id, kind);
        }
        Step::Rule { family, there } => {
            let family = if *family { causeway_kernel::Family::V4 } else { causeway_kernel::Family::V6 };
            let rule = Rule { family, priority: 50, table: 100, plain: false, bytes: vec![1] };
            kernel.set_rule(rule, *there);
        }
        Step::Collect | Step::Resync | Step::Lose => {}
    }
}

/// Reads what the kernel said, as the watcher does: then dumps what the messages leave in doubt.
fn read(kernel: &mut NaiveKernel, mirror: &mut Mirror) {
    for message in std::mem::take(&mut kernel.said) {
        mirror.apply(message);
    }
    let needs = mirror.take_needs();
    if !needs.is_empty() {
        kernel.dump(mirror, needs);
        mirror.take_needs();
    }
}

/// Takes in the changes; all that is pointed to must be there, and nothing else.
fn collect(mirror: &mut Mirror, seen: &mut Snapshot) {
    seen.apply(&mirror.collect());
    assert_eq!(*seen, mirror.snapshot());
    let hops: BTreeSet<HopId> = seen.routes.values().copied().collect();
    assert!(hops.iter().eq(seen.hops.keys()), "{hops:?} {:?}", seen.hops);
    let mut adjacencies = BTreeSet::new();
    for hop in seen.hops.values() {
        if let Hop::Forward { legs, .. } = hop {
            assert!(!legs.is_empty());
            adjacencies.extend(legs.iter().map(|leg| leg.adjacency));
        }
    }
    assert!(adjacencies.iter().eq(seen.adjacencies.keys()), "{adjacencies:?} {:?}", seen.adjacencies);
}

fn lines(seen: &Snapshot) -> Vec<String> {
    seen.routes.iter().map(|(prefix, hop)| format!("{prefix} {}", describe(seen, &seen.hops[hop]))).collect()
}

/// Performs the steps, then compares the mirror that followed with one that dumps, and both with the naive kernel.
fn check(mut kernel: NaiveKernel, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut mirror, mut seen) = (Mirror::new(PORTS), Snapshot::default());
    for step in steps {
        perform(&mut kernel, step);
        match step {
            Step::Collect => {
                read(&mut kernel, &mut mirror);
                collect(&mut mirror, &mut seen);
            }
            Step::Resync => {
                // Otherwise the messages that were said before the dump are read after it.
                if kernel.duplicates {
                    read(&mut kernel, &mut mirror);
                }
                kernel.dump(&mut mirror, Scope::ALL);
            }
            Step::Lose => {
                kernel.said.clear();
                kernel.dump(&mut mirror, Scope::ALL);
            }
            _ => {}
        }
    }
    read(&mut kernel, &mut mirror);
    collect(&mut mirror, &mut seen);

    let (mut fresh, mut anew) = (Mirror::new(PORTS), Snapshot::default());
    kernel.dump(&mut fresh, Scope::ALL);
    collect(&mut fresh, &mut anew);
    prop_assert_eq!(lines(&seen), lines(&anew));

    for address in HOSTS.iter().chain(&["10.9.9.9", "2001:db8:9::9"]) {
        let address: IpAddr = address.parse().unwrap();
        let answer = seen.lookup(address).map_or("none".into(), |hop| describe(&seen, hop));
        prop_assert_eq!(answer, kernel.lookup(address), "{}", address);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_by_one_is_the_same_as_a_dump(steps in steps()) {
        check(NaiveKernel::new(true), &steps)?;
    }

    #[test]
    fn messages_from_before_a_dump_do_no_harm(steps in steps()) {
        check(NaiveKernel::new(false), &steps)?;
    }
}
