//! Random sequences of messages: applied one by one they must come to what a new dump comes to, and both to what a naive
//! kernel answers; and in between, while messages do not tell all, the answer is the kernel's or a punt.

mod common;
mod model;

use std::collections::BTreeSet;
use std::net::IpAddr;

use causeway_kernel::{
    Action, Address, Family, HopId, Mirror, Neighbour, NextHopKind, Path, Prefix, PuntReason, ReversePath,
    Route, Rule, RuleAction, Scope, Snapshot, Target,
};
use common::{describe, describe_reverse};
use model::{NaiveKernel, PORTS, Packet, blackhole, local};
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
        legs: Vec<(u32, usize, u16)>,
        source: usize,
        how: u8,
    },
    RemoveRoute(usize),
    Link {
        index: u32,
        up: bool,
        carrier: bool,
    },
    Address {
        host: u8,
        ifindex: u32,
        there: bool,
    },
    Ignores {
        family: bool,
        ifindex: u32,
        set: bool,
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
        which: usize,
        there: bool,
    },
    /// The mirror is asked what changed.
    Collect,
    /// The mirror dumps everything again before it has read all messages.
    Resync,
    /// A dump of IPv6 routes is disturbed, before the mirror has read all messages.
    Partial(usize),
    /// Messages are lost, and the mirror dumps everything again.
    Lose,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let legs = proptest::collection::vec((1u32..4, 0usize..12, 1u16..4), 1..4);
    let route = (0usize..12, 0usize..8, 0u32..3, 0u8..12, 0usize..8, legs, 0usize..8, 0u8..4).prop_map(
        |(prefix, table, metric, tos, target, legs, source, how)| Step::Route {
            prefix,
            table,
            metric: 100 + metric,
            tos: tos == 0,
            target,
            legs,
            source,
            how,
        },
    );
    let step = prop_oneof![
        8 => route,
        5 => any::<usize>().prop_map(Step::RemoveRoute),
        3 => (1u32..4, 0u8..4, any::<bool>()).prop_map(|(index, up, carrier)| Step::Link { index, up: up > 0, carrier }),
        2 => (0u8..2, 1u32..4, any::<bool>())
            .prop_map(|(host, ifindex, there)| Step::Address { host, ifindex, there }),
        1 => (any::<bool>(), 1u32..4, any::<bool>())
            .prop_map(|(family, ifindex, set)| Step::Ignores { family, ifindex, set }),
        6 => (0usize..10, 1u32..4, 0usize..4, any::<bool>())
            .prop_map(|(host, ifindex, state, there)| Step::Neighbour { host, ifindex, state, there }),
        3 => (1u32..5, 0usize..5, 1u32..4, 0usize..12)
            .prop_map(|(id, target, ifindex, host)| Step::Object { id, target, ifindex, host }),
        2 => (any::<bool>(), 0..RULES, any::<bool>())
            .prop_map(|(family, which, there)| Step::Rule { family, which, there }),
        3 => Just(Step::Collect),
        1 => Just(Step::Resync),
        1 => any::<usize>().prop_map(Step::Partial),
        1 => Just(Step::Lose),
    ];
    proptest::collection::vec(step, 1..80)
}

/// Rules that [`rule`] has.
const RULES: usize = 18;

/// One of all kinds of rules. The first are followed; of two with one priority the order counts.
fn rule(family: Family, which: usize) -> Rule {
    let prefix = |index: usize| {
        let (address, len) = PREFIXES[if family == Family::V4 { index } else { index + 6 }];
        Some(Prefix::new(address.parse().unwrap(), len))
    };
    let plain = |priority, table| Rule { bytes: vec![which as u8], ..Rule::plain(family, priority, table) };
    let iif = |name: &str| Some(name.to_owned());
    match which {
        0 => plain(50, 100),
        1 => Rule { to: prefix(2), ..plain(50, 100) },
        2 => Rule { to: prefix(3), ..plain(40, 253) },
        3 => Rule { to: prefix(5), action: RuleAction::Other, ..plain(60, 0) },
        4 => Rule { to: prefix(1), ..plain(50, 254) },
        // The kernel's own.
        5 => Rule::plain(family, 32766, 254),
        6 => Rule { from: prefix(5), ..plain(60, 100) },
        7 => Rule { iif: iif("p1"), ..plain(30, 100) },
        8 => Rule { iif: iif("p3"), ..plain(30, 100) },
        9 => Rule { iif: iif("lo"), ..plain(30, 100) },
        10 => Rule { oif: true, ..plain(45, 100) },
        11 => Rule { more: true, bytes: vec![11, 0], ..plain(55, 100) },
        12 => Rule { more: true, bytes: vec![12, 1], to: prefix(1), ..plain(55, 100) },
        13 => Rule { action: RuleAction::Nothing, ..plain(20, 0) },
        14 => Rule { from: prefix(2), iif: iif("p2"), to: prefix(1), ..plain(35, 253) },
        15 => Rule { iif: iif("nosuch"), ..plain(36, 100) },
        16 => Rule { shortest: 1, ..plain(48, 254) },
        _ => Rule { shortest: if family == Family::V4 { 20 } else { 40 }, to: prefix(1), ..plain(47, 100) },
    }
}

/// Whether answers depend on the destination alone.
fn by_destination(kernel: &NaiveKernel) -> bool {
    kernel.rules.iter().all(|rule| {
        rule.from.is_none() && rule.iif.is_none() && !rule.oif && !rule.more && rule.shortest == 0
    })
}

fn gateway(prefix: Prefix, index: usize) -> Option<IpAddr> {
    let of_family = |address: &IpAddr| Prefix::host(*address).family() == prefix.family();
    Some(host(index)).filter(|address| index < HOSTS.len() && of_family(address))
}

fn route(step: &Step, kernel: &NaiveKernel) -> Option<Route> {
    let Step::Route { prefix, table, metric, tos, target, legs, source, .. } = step else { return None };
    let (address, len) = PREFIXES[*prefix];
    let prefix = Prefix::new(address.parse().unwrap(), len);
    let mut paths: Vec<Path> = Vec::new();
    for &(ifindex, index, weight) in legs {
        let gateway = gateway(prefix, index);
        if !paths.iter().any(|path| (path.ifindex, path.gateway) == (ifindex, gateway)) {
            paths.push(Path { ifindex, gateway, weight });
        }
    }
    if let [path] = &mut paths[..] {
        path.weight = 1;
    }
    // IPv6 takes several paths only if all have a gateway.
    if prefix.family() == Family::V6 && paths.len() > 1 {
        paths.retain(|path| path.gateway.is_some());
    }
    let table = [255, 254, 254, 254, 254, 100, 253, 100][*table];
    let target = match target {
        0 if table == 255 && *metric < 102 => local(),
        0 => blackhole(),
        1 | 2 if kernel.objects.contains_key(&(metric - 99)) => Target::Object(metric - 99),
        _ if paths.is_empty() => blackhole(),
        _ => Target::Paths(paths),
    };
    let v4 = prefix.family() == Family::V4;
    Some(Route {
        prefix,
        table,
        tos: if *tos && v4 { 8 } else { 0 },
        metric: *metric,
        protocol: 3,
        source_specific: false,
        target,
        mtu_bytes: None,
        source: (*source < 2 && v4).then(|| [10, 7, 0, *source as u8].into()),
        dead: vec![],
        identity: 0,
    })
}

fn perform(kernel: &mut NaiveKernel, step: &Step) {
    match step {
        Step::Route { how, .. } => {
            if let Some(route) = route(step, kernel) {
                kernel.add_route(route, *how == 0, *how == 1);
            }
        }
        Step::RemoveRoute(index) => kernel.remove_route(*index),
        Step::Link { index, up, carrier } => kernel.set_link(*index, *up, *carrier),
        Step::Address { host, ifindex, there } => {
            let address = Address { address: [10, 7, 0, *host].into(), prefix_len: 24, ifindex: *ifindex };
            kernel.set_address(address, *there);
        }
        Step::Ignores { family, ifindex, set } => {
            let family = if *family { Family::V4 } else { Family::V6 };
            kernel.set_ignores(family, *ifindex, *set);
        }
        Step::Neighbour { host: index, ifindex, state, there } => {
            // Reachable, stale, incomplete, failed.
            let state = [0x02, 0x04, 0x01, 0x20][*state];
            let mac = Some([2, 1, 0, 0, *ifindex as u8, *index as u8]);
            let (address, ifindex) = (host(*index), *ifindex);
            let neighbour = Neighbour { address, ifindex, mac, state, managed: false, learned: false };
            kernel.set_neighbour(neighbour, *there);
        }
        Step::Object { id, target, ifindex, host: index } => {
            let gateway = Some(host(*index)).filter(|_| *index < HOSTS.len());
            let group = |members: &[(u32, u16)]| {
                Some(NextHopKind::Group { members: members.to_vec(), resilient: false })
            };
            let kind = match (target, id) {
                (0, _) => None,
                (1, _) => Some(NextHopKind::Punt {
                    reason: PuntReason::Blackhole,
                    reverse_path: ReversePath::NotUnicast,
                }),
                // Groups and single objects have numbers of their own, as groups hold no groups.
                (_, 1 | 2) => Some(NextHopKind::Path(Path { ifindex: *ifindex, gateway, weight: 1 })),
                (2, _) => group(&[(1, 1)]),
                _ => group(&[(2, 10), (1, 20)]),
            };
            kernel.set_object(*id, kind);
        }
        Step::Rule { family, which, there } => {
            kernel.set_rule(rule(if *family { Family::V4 } else { Family::V6 }, *which), *there);
        }
        Step::Collect | Step::Resync | Step::Partial(_) | Step::Lose => {}
    }
}

/// Reads what the kernel said.
fn read(kernel: &mut NaiveKernel, mirror: &mut Mirror, replaying: bool) {
    mirror.set_replaying(replaying);
    for message in std::mem::take(&mut kernel.said) {
        mirror.apply(message);
    }
    mirror.set_replaying(false);
}

/// As the watcher does, dumps what the messages leave in doubt.
fn settle(kernel: &mut NaiveKernel, mirror: &mut Mirror) {
    let needs = mirror.take_needs();
    if !needs.is_empty() {
        kernel.dump(mirror, needs);
        mirror.take_needs();
    }
}

/// Takes in the changes; all that is pointed to must be there, and nothing else.
fn collect(mirror: &mut Mirror, seen: &mut Snapshot) {
    seen.apply(&mirror.collect(|| {}));
    assert_eq!(*seen, mirror.snapshot());
    let hops: BTreeSet<HopId> = seen.routes.values().copied().collect();
    assert!(hops.iter().eq(seen.hops.keys()), "{hops:?} {:?}", seen.hops);
    let mut adjacencies = BTreeSet::new();
    for hop in seen.hops.values() {
        if let Action::Forward { legs, .. } = &hop.action {
            assert!(!legs.is_empty());
            adjacencies.extend(legs.iter().map(|leg| leg.adjacency));
        }
    }
    assert!(adjacencies.iter().eq(seen.adjacencies.keys()), "{adjacencies:?} {:?}", seen.adjacencies);
}

/// What the mirror says of packets to an address, and from it.
fn answer(seen: &Snapshot, address: IpAddr) -> (String, String) {
    seen.lookup(address)
        .map_or(("none".into(), "none".into()), |hop| (describe(seen, hop), describe_reverse(seen, hop)))
}

fn all_hosts() -> impl Iterator<Item = IpAddr> {
    HOSTS.iter().chain(&["10.9.9.9", "2001:db8:9::9"]).map(|address| address.parse().unwrap())
}

/// For each host, the others of its family that it may exchange packets with.
fn pairs() -> impl Iterator<Item = (IpAddr, IpAddr)> {
    all_hosts().flat_map(|a| all_hosts().filter(move |b| a.is_ipv4() == b.is_ipv4()).map(move |b| (a, b)))
}

/// Whatever the mirror has not been told: its answer is the kernel's, or it leaves the packet to the kernel. Looks at one of
/// `sparing` pairs of hosts, at others in each `round`.
fn is_sure_or_passes(
    (mirror, seen): (&Mirror, &Snapshot),
    kernel: &NaiveKernel,
    (round, sparing): (usize, usize),
) -> Result<(), TestCaseError> {
    for (to, from) in pairs().skip(round % sparing).step_by(sparing) {
        let (hop, (there, back)) = (answer(seen, to).0, answer(seen, from));
        // What comes from an address of this machine is the kernel's.
        let back = if there == "punt local" { "ruled".to_owned() } else { back };
        for iif in ["p1", "p2"] {
            let packet = Packet { to, from, iif };
            let is_taken = back != "ruled" && !mirror.is_ruled(Family::of(to), iif);
            if is_taken && hop != "none" && !hop.starts_with("punt") {
                prop_assert_eq!(&hop, &kernel.lookup(packet).to, "{:?}", packet);
            }
            let packet = Packet { to: from, from: to, iif };
            let truth = kernel.lookup(packet).from;
            match &back[..] {
                "none" | "unknown" | "ruled" => {}
                "not unicast" => prop_assert_eq!(&back, &truth, "{:?}", packet),
                _ => {
                    let names: Vec<&str> = truth.split(", ").collect();
                    let have = back.split(", ").all(|name| name.is_empty() || names.contains(&name));
                    let unicast = names.iter().all(|name| name.starts_with('p'));
                    prop_assert!(have && unicast, "{:?}: {} {}", packet, back, truth);
                }
            }
        }
    }
    Ok(())
}

/// Performs the steps, then compares the mirror that followed with one that dumps, and both with the naive kernel.
fn check(mut kernel: NaiveKernel, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut mirror, mut seen) = (Mirror::new(PORTS), Snapshot::default());
    let mut replaying = false;
    for step in steps {
        perform(&mut kernel, step);
        match step {
            Step::Collect => {
                read(&mut kernel, &mut mirror, std::mem::take(&mut replaying));
                settle(&mut kernel, &mut mirror);
                collect(&mut mirror, &mut seen);
            }
            // The messages that were said before the dump are read after it.
            Step::Resync => {
                kernel.dump(&mut mirror, Scope::ALL);
                replaying = true;
            }
            Step::Partial(seed) => {
                kernel.dump_some(&mut mirror, *seed);
                replaying = true;
            }
            Step::Lose => {
                kernel.said.clear();
                mirror.lost();
                kernel.dump(&mut mirror, Scope::ALL);
            }
            _ => {}
        }
    }
    read(&mut kernel, &mut mirror, replaying);
    settle(&mut kernel, &mut mirror);
    collect(&mut mirror, &mut seen);

    let (mut fresh, mut anew) = (Mirror::new(PORTS), Snapshot::default());
    kernel.dump(&mut fresh, Scope::ALL);
    collect(&mut fresh, &mut anew);
    prop_assert!(seen.routes.keys().eq(anew.routes.keys()));
    let addresses = kernel.addresses.iter().map(|address| address.address).collect::<BTreeSet<_>>();
    prop_assert_eq!([&seen.addresses, &anew.addresses], [&addresses; 2]);
    is_sure_or_passes((&mirror, &seen), &kernel, (0, 1))?;
    is_sure_or_passes((&fresh, &anew), &kernel, (0, 1))?;
    for address in all_hosts().filter(|_| by_destination(&kernel)) {
        let truth = kernel.lookup(Packet { to: address, from: address, iif: "p1" });
        for snapshot in [&seen, &anew] {
            let (to, from) = answer(snapshot, address);
            if !(truth.may_be_unclear && to.starts_with("punt")) {
                prop_assert_eq!((&to, &from), (&truth.to, &truth.from), "{}", address);
            }
        }
    }
    Ok(())
}

/// Reads every message, but dumps only now and then; the answers are looked at all the time.
fn check_all_the_time(mut kernel: NaiveKernel, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut mirror, mut seen) = (Mirror::new(PORTS), Snapshot::default());
    kernel.dump(&mut mirror, Scope::ALL);
    for (round, step) in steps.iter().enumerate() {
        perform(&mut kernel, step);
        match step {
            Step::Collect => settle(&mut kernel, &mut mirror),
            Step::Resync => {
                kernel.dump(&mut mirror, Scope::ALL);
                read(&mut kernel, &mut mirror, true);
            }
            Step::Partial(seed) => {
                kernel.dump_some(&mut mirror, *seed);
                read(&mut kernel, &mut mirror, true);
            }
            Step::Lose => {
                kernel.said.clear();
                mirror.lost();
                kernel.dump(&mut mirror, Scope::ALL);
            }
            // Some messages are read only together with the next.
            Step::Neighbour { state: 0, .. } | Step::RemoveRoute(0..4096) => continue,
            _ => {}
        }
        read(&mut kernel, &mut mirror, false);
        collect(&mut mirror, &mut seen);
        is_sure_or_passes((&mirror, &seen), &kernel, (round, 12))?;
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
    fn every_answer_is_the_kernels_or_a_punt(steps in steps()) {
        check_all_the_time(NaiveKernel::new(true), &steps)?;
    }
}
