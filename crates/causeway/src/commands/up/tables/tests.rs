//! The tables after any sequence of changes, against a plain lookup in what the changes add up to.

use super::*;
use causeway_fib::{Lookup, MISS};
use causeway_kernel::{Family, PuntReason, ReversePath, Rewrite, Snapshot};
use proptest::prelude::*;

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
    let action = prop_oneof![
        Just(Action::Punt(PuntReason::Blackhole)),
        (prop::collection::vec(leg, 1..4), prop::option::of(1000u32..2000))
            .prop_map(|(legs, mtu_bytes)| Action::Forward { legs, mtu_bytes }),
    ];
    action.prop_map(|action| Hop { action, reverse_path: ReversePath::Unknown })
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

fn expected(state: &Snapshot, hop: &Hop) -> BTreeSet<Way> {
    let Action::Forward { legs, mtu_bytes } = &hop.action else { return BTreeSet::from([None]) };
    let way = |leg: &Leg| {
        let adjacency = state.adjacencies[&leg.adjacency];
        let port = PORTS.iter().position(|&p| p == adjacency.ifindex)?;
        let rewrite = adjacency.rewrite?;
        Some((port as u16, rewrite.destination, rewrite.mtu_bytes.min(mtu_bytes.unwrap_or(u32::MAX))))
    };
    legs.iter().map(way).collect()
}

fn found(tables: &Tables, index: AdjacencyIndex) -> BTreeSet<Way> {
    let reader = tables.neighbors.reader();
    let view = reader.pin();
    let way = |hash| {
        let hop = view.resolve(index, hash).expect("an index in use");
        let mac = std::array::from_fn(|i| hop.addresses[i]);
        (hop.port != KERNEL).then_some((hop.port, mac, hop.mtu_bytes))
    };
    (0..256).map(way).collect()
}

fn check(tables: &Tables, state: &Snapshot) {
    for family in [Family::V4, Family::V6] {
        let index = match probe(family) {
            IpAddr::V4(a) => tables.v4.reader().lookup(a.to_bits()),
            IpAddr::V6(a) => tables.v6.reader().lookup(a.to_bits()),
        };
        match state.lookup(probe(family)) {
            None => assert_eq!(index, MISS),
            Some(hop) => assert_eq!(found(tables, index), expected(state, hop), "{hop:?}"),
        }
    }
    let legs: usize = tables.hops.values().map(|entry| entry.legs.len()).sum();
    assert_eq!(tables.neighbors.len(), 1 + tables.hops.len() + legs, "no index is lost");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_tables_are_what_the_changes_add_up_to(states in prop::collection::vec((state(), any::<bool>()), 1..8)) {
        let Ok(local) = LocalAddresses::new() else {
            eprintln!("skipped: needs root to make BPF maps");
            return Ok(());
        };
        let names = vec!["a".to_owned(), "b".to_owned()];
        let mut tables = Tables::new(names, PORTS.to_vec(), Arc::new(local)).unwrap();
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
            });
            check(&tables, &state);
            old = state;
        }
    }
}
