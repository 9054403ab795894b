//! The tables after any sequence of changes, against a plain lookup in what the changes add up to.

use super::*;
use causeway_fib::{ADJACENCIES_MAX, Lookup, MISS, Table};
use causeway_kernel::{Family, PuntReason, Rewrite, Snapshot};
use proptest::prelude::*;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;

/// Interface indices of the ports, and of a device that is none.
const PORTS: [u32; 2] = [3, 5];
const OTHER: u32 = 9;
/// Numbers of adjacencies, hops and prefixes in the game.
const FEW: u32 = 4;

fn adjacency() -> impl Strategy<Value = Adjacency> {
    (prop::sample::select(vec![PORTS[0], PORTS[1], OTHER]), prop::option::weighted(0.8, 0u8..3)).prop_map(
        |(ifindex, mac)| Adjacency {
            ifindex,
            address: [10, 0, 0, 1].into(),
            rewrite: mac.map(|mac| Rewrite { destination: [mac; 6], source: [7; 6], mtu_bytes: 1500 }),
        },
    )
}

fn hop() -> impl Strategy<Value = Hop> {
    let leg = (0..FEW, 1u16..4).prop_map(|(a, weight)| Leg { adjacency: AdjacencyId(a), weight });
    prop_oneof![
        Just(PUNT),
        (prop::collection::vec(leg, 1..4), prop::option::of(1000u32..2000))
            .prop_map(|(legs, mtu_bytes)| forward(legs, mtu_bytes)),
    ]
}

/// A prefix by number, nested in one another, of either family.
fn prefix(n: u32) -> Prefix {
    let len = [0, 8, 16, 24][(n / 2) as usize];
    if n.is_multiple_of(2) {
        Prefix::new([10, 1, 2, 3].into(), len)
    } else {
        Prefix::new(probe(Family::V6), 2 * len)
    }
}

fn probe(family: Family) -> IpAddr {
    match family {
        Family::V4 => [10, 1, 2, 3].into(),
        Family::V6 => [0x2001, 0xdb8, 1, 2, 3, 4, 5, 6].into(),
    }
}

/// A state of the mirror in which every reference leads somewhere.
fn state() -> impl Strategy<Value = Snapshot> {
    let adjacencies = prop::collection::vec(adjacency(), FEW as usize);
    let hops = prop::collection::btree_map(0..FEW, hop(), 1..FEW as usize + 1);
    let routes = prop::collection::btree_map(0..2 * FEW, any::<prop::sample::Index>(), 0..8);
    (adjacencies, hops, routes).prop_map(|(adjacencies, hops, routes)| {
        let ids: Vec<u32> = hops.keys().copied().collect();
        Snapshot {
            adjacencies: (0..).map(AdjacencyId).zip(adjacencies).collect(),
            hops: hops.into_iter().map(|(id, hop)| (HopId(id), hop)).collect(),
            routes: routes.into_iter().map(|(n, at)| (prefix(n), HopId(*at.get(&ids)))).collect(),
            ..Snapshot::default()
        }
    })
}

fn difference<K: Ord + Copy, V: Clone + PartialEq>(
    old: &BTreeMap<K, V>,
    new: &BTreeMap<K, V>,
) -> Vec<(K, Option<V>)> {
    let gone = old.keys().filter(|k| !new.contains_key(k)).map(|k| (*k, None));
    let changed = new.iter().filter(|(k, v)| old.get(k) != Some(v)).map(|(k, v)| (*k, Some(v.clone())));
    gone.chain(changed).collect()
}

/// What a packet finds: port, MAC address and largest packet; none for the kernel.
type Way = Option<(u16, [u8; 6], u32)>;

/// Hashes from all regions.
fn hashes() -> impl Iterator<Item = u32> {
    (0..256).map(|n| n << 24 | 0x0055_5555)
}

/// The leg of each flow: the first whose share and those before it reach beyond the flow's hash.
fn expected(state: &Snapshot, hop: &Hop) -> Vec<Way> {
    let Action::Forward { legs, mtu_bytes } = &hop.action else { return vec![None; hashes().count()] };
    let total: u64 = legs.iter().map(|leg| u64::from(leg.weight)).sum();
    let way = |hash: u32| {
        let mut sum = 0;
        let leg = legs.iter().find(|leg| {
            sum += u64::from(leg.weight);
            u64::from(hash) * total < sum << 32
        })?;
        let adjacency = state.adjacencies[&leg.adjacency];
        let port = PORTS.iter().position(|&p| p == adjacency.ifindex)?;
        let rewrite = adjacency.rewrite?;
        Some((port as u16, rewrite.destination, rewrite.mtu_bytes.min(mtu_bytes.unwrap_or(u32::MAX))))
    };
    hashes().map(way).collect()
}

fn found(tables: &Tables, index: AdjacencyIndex) -> Vec<Way> {
    let reader = tables.neighbours.reader();
    let view = reader.pin();
    let way = |hash| {
        let hop = view.resolve(index, hash).expect("an index in use");
        let mac = std::array::from_fn(|i| hop.addresses[i]);
        (hop.port != KERNEL).then_some((hop.port, mac, hop.mtu_bytes))
    };
    hashes().map(way).collect()
}

fn check(tables: &Tables, state: &Snapshot) {
    for family in [Family::V4, Family::V6] {
        let index = match probe(family) {
            IpAddr::V4(a) => tables.v4.fib().reader().lookup(a.to_bits()),
            IpAddr::V6(a) => tables.v6.fib().reader().lookup(a.to_bits()),
        };
        match state.lookup(probe(family)) {
            None => assert_eq!(index, MISS),
            Some(hop) => assert_eq!(found(tables, index), expected(state, hop), "{hop:?}"),
        }
    }
    let legs: usize = tables.hops.values().map(|entry| entry.legs.len()).sum();
    // The kernel's, and that of routes apart.
    assert_eq!(tables.neighbours.len(), 2 + tables.hops.len() + legs, "no index is lost");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_tables_are_what_the_changes_add_up_to(states in prop::collection::vec((state(), any::<bool>()), 1..8)) {
        let mut tables = tables();
        let mut old = Snapshot::default();
        for (mut state, only_adjacencies) in states {
            if only_adjacencies {
                (state.hops, state.routes) = (old.hops.clone(), old.routes.clone());
            }
            tables.apply(&Changes {
                adjacencies: difference(&old.adjacencies, &state.adjacencies),
                hops: difference(&old.hops, &state.hops),
                routes: difference(&old.routes, &state.routes),
                ..Changes::default()
            }, &mut || ());
            check(&tables, &state);
            old = state;
        }
    }
}

fn tables() -> Tables {
    let lease = Arc::new(AtomicU64::new(0));
    Tables::new(vec!["a".to_owned(), "b".to_owned()], PORTS.to_vec(), lease).unwrap()
}

const PUNT: Hop = Hop { action: Action::Punt(PuntReason::Blackhole), reverse_path: ReversePath::NotUnicast };

fn forward(legs: Vec<Leg>, mtu_bytes: Option<u32>) -> Hop {
    Hop { action: Action::Forward { legs, mtu_bytes }, reverse_path: ReversePath::Unknown }
}

#[test]
fn workers_forward_again_when_the_routes_fit_again() {
    let mut tables = tables();
    tables.v4 = Routes::new(Rank24::with_capacity(0).unwrap(), tables.kernel);
    let route = |n, hop: Option<u32>| Changes {
        hops: vec![(HopId(0), Some(PUNT)), (HopId(1), Some(PUNT))],
        routes: vec![(prefix(n), hop.map(HopId))],
        ..Changes::default()
    };
    let mut apply = |changes| {
        tables.apply(&changes, &mut || ());
        (tables.fit(), tables.routes())
    };
    // A default route needs no room, a /24 does.
    assert_eq!(apply(route(0, Some(0))), (true, (1, 0)));
    assert_eq!(apply(route(6, Some(1))), (false, (2, 0)));
    assert_eq!(apply(route(1, Some(0))), (false, (2, 1)), "the other family goes on");
    assert_eq!(apply(route(6, None)), (true, (1, 1)));
}

#[test]
fn a_hop_without_an_index_is_the_kernels() {
    let mut tables = tables();
    let free = ADJACENCIES_MAX - 1 - tables.neighbours.len() as u32;
    let others: Vec<_> = (0..free)
        .map(|n| tables.neighbours.acquire(left_to_kernel(u32::MAX - n, PuntReason::OnLink)).unwrap())
        .collect();
    let reader = tables.neighbours.reader();
    let stalled = reader.pin();
    tables.release(others[0]);
    let hop = |id| Changes { hops: vec![(HopId(id), Some(PUNT))], ..Changes::default() };
    tables.apply(&hop(0), &mut || ());
    assert_eq!(tables.hops[&HopId(0)].index, tables.kernel, "a worker may have met the index");
    let reason =
        |tables: &Tables| reader.pin().resolve(tables.hops[&HopId(0)].index, 0).map(|hop| hop.reason);
    assert_eq!(reason(&tables), Some(PuntReason::TableFull as u8), "packets are counted as such");
    assert!(!tables.are_whole());
    drop(stalled);
    tables.apply(&Changes::default(), &mut || ());
    assert_eq!((tables.hops[&HopId(0)].index, tables.are_whole()), (others[0], true), "without any change");
    assert_eq!(reason(&tables), Some(PuntReason::Blackhole as u8));
}

#[test]
fn a_hop_without_an_index_gets_the_next_that_is_free_and_its_routes_with_it() {
    let mut tables = tables();
    let free = ADJACENCIES_MAX - 1 - tables.neighbours.len() as u32;
    let others: Vec<_> = (0..free)
        .map(|n| tables.neighbours.acquire(left_to_kernel(u32::MAX - n, PuntReason::OnLink)).unwrap())
        .collect();
    let route = |n, hop: Option<u32>| (prefix(n), hop.map(HopId));
    tables.apply(
        &Changes {
            hops: (0..3).map(|id| (HopId(id), Some(PUNT))).collect(),
            routes: vec![route(2, Some(0)), route(3, Some(0)), route(4, Some(1)), route(6, Some(2))],
            ..Changes::default()
        },
        &mut || (),
    );
    let indices = |tables: &Tables| {
        let of = |n| match prefix(n) {
            Prefix::V4(prefix) => tables.v4.fib().rib().exact(prefix),
            Prefix::V6(prefix) => tables.v6.fib().rib().exact(prefix),
        };
        [2, 3, 4, 6].map(|n| of(n).unwrap())
    };
    assert_eq!(indices(&tables), [tables.kernel; 4]);
    // One route leaves for elsewhere, one hop goes, and two indices are free.
    let changes = Changes {
        routes: vec![route(3, Some(1)), route(6, Some(0))],
        hops: vec![(HopId(2), None)],
        ..Changes::default()
    };
    tables.release(others[0]);
    tables.release(others[1]);
    tables.apply(&changes, &mut || ());
    let [first, second] = [0, 1].map(|id| tables.hops[&HopId(id)].index);
    assert!(first != tables.kernel && second != tables.kernel && first != second);
    assert_eq!(indices(&tables), [first, second, second, first]);
    assert!(tables.waiting.is_empty() && tables.strays.is_empty());
}

#[test]
fn many_neighbours_and_hops_are_said_to_get_on() {
    const MANY: u32 = 1_000;
    let mut tables = tables();
    let address = |n: u32| IpAddr::V4((0x0a00_0000 + n).into());
    let adjacency = |n| Adjacency { ifindex: PORTS[0], address: address(n), rewrite: None };
    let leg = |n| Leg { adjacency: AdjacencyId(n), weight: 1 };
    let mut said = |changes: Changes| {
        let mut said = 0;
        tables.apply(&changes, &mut || said += 1);
        said
    };
    let few = said(Changes::default());
    let neighbours = (0..MANY).map(|n| (AdjacencyId(n), Some(adjacency(n)))).collect();
    assert!(said(Changes { adjacencies: neighbours, ..Changes::default() }) >= few + 10, "neighbours");
    let hops = (0..MANY).map(|n| (HopId(n), Some(forward(vec![leg(n)], None)))).collect();
    assert!(said(Changes { hops, ..Changes::default() }) >= few + 10, "hops");
    let hops = (0..MANY).map(|n| (HopId(n), None)).collect();
    assert!(said(Changes { hops, ..Changes::default() }) >= few + 10, "hops that go");
}
