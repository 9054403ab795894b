//! What the mirror says of itself, and what it is told beside the kernel's messages.

mod common;
#[allow(dead_code, reason = "sequences ask more of it")]
mod model;

use causeway_kernel::{
    Address, Family, Message, Mirror, Neighbour, Object, Operation, Path, Prefix, Qdisc, Route, Rule, Scope,
    Snapshot, Target,
};
use common::describe;
use model::{NaiveKernel, PORTS};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::net::IpAddr;

const REACHABLE: u16 = 0x02;
const STALE: u16 = 0x04;

fn host() -> IpAddr {
    "10.1.1.1".parse().unwrap()
}

/// A network on the link of the first port.
fn network() -> Route {
    let path = Path { ifindex: PORTS[0], gateway: None, weight: 1 };
    Route {
        prefix: Prefix::new("10.1.0.0".parse().unwrap(), 16),
        table: 254,
        tos: 0,
        metric: 0,
        protocol: 2,
        source_specific: false,
        target: Target::Paths(vec![path]),
        mtu_bytes: None,
        source: None,
        dead: Vec::new(),
        identity: 0,
    }
}

fn neighbour(state: u16) -> Neighbour {
    let mac = Some([2, 1, 0, 0, 0, 1]);
    Neighbour { address: host(), ifindex: PORTS[0], mac, state, managed: false, learned: false }
}

/// A mirror of a kernel with that network and a neighbour in it.
fn mirror(state: u16) -> (NaiveKernel, Mirror) {
    let mut kernel = NaiveKernel::new(false);
    kernel.add_route(network(), false, false);
    kernel.set_neighbour(neighbour(state), true);
    let mut mirror = Mirror::new(PORTS);
    kernel.dump(&mut mirror, Scope::ALL);
    (kernel, mirror)
}

/// What becomes of packets to the host.
fn answer(mirror: &mut Mirror) -> String {
    mirror.collect(|| {});
    let seen: Snapshot = mirror.snapshot();
    seen.lookup(host()).map_or("none".to_owned(), |hop| describe(&seen, hop))
}

#[test]
fn an_interface_that_is_no_port_any_more_is_the_kernels_at_once() {
    let (_, mut mirror) = mirror(REACHABLE);
    assert!(!answer(&mut mirror).starts_with("punt"));
    mirror.take_urgent();
    mirror.set_ports(PORTS);
    assert!(!mirror.take_urgent(), "nothing changed");
    mirror.set_ports([PORTS[1]]);
    assert!(mirror.take_urgent() && !mirror.take_urgent(), "it is said once");
    assert!(answer(&mut mirror).starts_with("punt"));
    assert_eq!(mirror.ports().collect::<Vec<_>>(), [PORTS[1]]);
    mirror.set_ports(PORTS);
    assert!(!answer(&mut mirror).starts_with("punt"));
}

#[test]
fn exceptions_are_the_kernels_while_they_stand() {
    let (_, mut mirror) = mirror(REACHABLE);
    let forwarded = answer(&mut mirror);
    assert!(!mirror.set_exceptions(BTreeSet::new()), "none before, none now");
    assert!(mirror.set_exceptions(BTreeSet::from([host()])));
    assert!(!mirror.set_exceptions(BTreeSet::from([host()])), "the same ones");
    assert!(answer(&mut mirror).starts_with("punt"));
    assert!(!mirror.set_exceptions(BTreeSet::from([host()])), "the same ones, with nothing else to tell");
    assert!(mirror.set_exceptions(BTreeSet::new()));
    assert_eq!(answer(&mut mirror), forwarded);
}

#[test]
fn stale_hosts_are_those_in_use() {
    let (mut kernel, mut with_stale) = mirror(STALE);
    let stale = |mirror: &Mirror| mirror.stale_hosts().collect::<Vec<_>>();
    answer(&mut with_stale);
    assert_eq!(stale(&with_stale), [(PORTS[0], host())]);
    // Where rules bear on its packets, it is still one host.
    kernel.set_rule(Rule { from: Some(network().prefix), ..Rule::plain(Family::V4, 50, 100) }, true);
    kernel.dump(&mut with_stale, Scope::RULES);
    answer(&mut with_stale);
    assert_eq!(stale(&with_stale), [(PORTS[0], host())]);
    kernel.set_neighbour(neighbour(REACHABLE), true);
    kernel.dump(&mut with_stale, Scope::NEIGHBOURS);
    answer(&mut with_stale);
    assert_eq!(stale(&with_stale), []);
}

#[test]
fn gateways_are_those_of_routes_in_use() {
    let (mut kernel, mut mirror) = mirror(REACHABLE);
    let gateway = |ifindex: u32| IpAddr::from([10, ifindex as u8, 0, 9]);
    let by = |ifindex: u32, metric: u32| {
        let path = Path { ifindex, gateway: Some(gateway(ifindex)), weight: 1 };
        let prefix = Prefix::new("192.0.2.0".parse().unwrap(), 24);
        Route { prefix, metric, target: Target::Paths(vec![path]), ..network() }
    };
    for (ifindex, metric) in PORTS.into_iter().zip([20, 10]) {
        kernel.add_route(by(ifindex, metric), false, false);
        kernel.dump(&mut mirror, Scope::ALL);
        mirror.collect(|| {});
        assert_eq!(mirror.gateways(), BTreeSet::from([(ifindex, gateway(ifindex))]), "the least metric");
    }
}

#[test]
fn routes_that_prefer_an_address_are_in_doubt_when_it_is_gone() {
    let addresses = ["10.1.0.1", "10.1.0.2"].map(|text| text.parse::<IpAddr>().unwrap());
    for (gone, in_doubt) in addresses.into_iter().zip([true, false]) {
        let mut kernel = NaiveKernel::new(false);
        kernel.set_neighbour(neighbour(REACHABLE), true);
        let of = |address| Address { address, prefix_len: 16, ifindex: PORTS[0] };
        addresses.into_iter().for_each(|address| kernel.set_address(of(address), true));
        kernel.add_route(Route { source: Some([10, 1, 0, 1].into()), ..network() }, false, false);
        let mut mirror = Mirror::new(PORTS);
        kernel.dump(&mut mirror, Scope::ALL);
        assert!(answer(&mut mirror).starts_with("p1"), "{}", answer(&mut mirror));
        mirror.apply(Message { operation: Operation::Removed, object: Object::Address(of(gone)) });
        let now = answer(&mut mirror);
        assert_eq!(now.starts_with("punt"), in_doubt, "{gone}: {now}");
    }
}

#[test]
fn routes_are_counted_and_a_dump_takes_away_what_it_does_not_show() {
    let (mut kernel, mut mirror) = mirror(REACHABLE);
    assert_eq!((mirror.route_count(), mirror.unclear_count()), (1, 0));
    kernel.remove_route(0);
    kernel.dump(&mut mirror, Scope::ROUTES6);
    assert_eq!(mirror.route_count(), 1, "the other family's table tells nothing of it");
    kernel.dump(&mut mirror, Scope::ROUTES4);
    assert_eq!((mirror.route_count(), answer(&mut mirror).as_str()), (0, "none"));
}

/// How many there are of what an empty dump of each of [`TABLES`] takes away.
fn sizes(mirror: &Mirror) -> [usize; 6] {
    [
        mirror.links().count(),
        mirror.addresses().count(),
        mirror.neighbour_entry(PORTS[0], host()).into_iter().count(),
        mirror.rules().count(),
        mirror.qdiscs().count(),
        mirror.route_count(),
    ]
}

const TABLES: [Scope; 6] =
    [Scope::LINKS, Scope::ADDRESSES, Scope::NEIGHBOURS, Scope::RULES, Scope::QDISCS, Scope::ROUTES4];

#[test]
fn an_empty_dump_takes_all_of_its_table_away() {
    let address = Address { address: "10.1.0.1".parse().unwrap(), prefix_len: 16, ifindex: PORTS[0] };
    let qdisc = Qdisc { ifindex: PORTS[0], handle: 1, parent: u32::MAX, kind: "htb".to_owned() };
    for (at, table) in TABLES.into_iter().enumerate() {
        let (mut kernel, mut mirror) = mirror(REACHABLE);
        kernel.set_address(address, true);
        kernel.dump(&mut mirror, Scope::ADDRESSES);
        mirror.apply(Message { operation: Operation::Dumped, object: Object::Qdisc(qdisc.clone()) });
        assert!(sizes(&mirror).iter().all(|&n| n > 0), "{:?}", sizes(&mirror));
        assert_eq!(mirror.link_by_index(PORTS[0]).map(|link| link.index), Some(PORTS[0]));
        assert_eq!(mirror.link_by_index(77), None);
        mirror.begin_resync();
        mirror.end_resync(table);
        assert_eq!(sizes(&mirror)[at], 0, "{table:?}");
    }
}

#[test]
fn changes_say_whether_other_rules_are_followed() {
    let (mut kernel, mut mirror) = mirror(REACHABLE);
    assert!(mirror.collect(|| {}).rules, "the first");
    kernel.set_neighbour(neighbour(STALE), true);
    kernel.dump(&mut mirror, Scope::NEIGHBOURS | Scope::RULES);
    assert!(!mirror.collect(|| {}).rules, "they are the same");
    let from = Rule { from: Some(network().prefix), ..Rule::plain(Family::V4, 50, 100) };
    kernel.set_rule(from, true);
    kernel.dump(&mut mirror, Scope::RULES);
    assert!(mirror.collect(|| {}).rules);
    // One that is about nothing that is forwarded.
    kernel.set_rule(Rule { oif: true, ..Rule::plain(Family::V4, 60, 100) }, true);
    kernel.dump(&mut mirror, Scope::RULES);
    assert!(!mirror.collect(|| {}).rules);
}

#[test]
fn collecting_says_that_it_gets_on() {
    let (_, mut mirror) = mirror(REACHABLE);
    let words = Cell::new(0);
    mirror.collect(|| words.set(words.get() + 1));
    assert_eq!(words.get(), 1, "a few prefixes");
    let many = (0..500u32).map(|n| IpAddr::from(n.to_be_bytes())).collect();
    assert!(mirror.set_exceptions(many));
    mirror.collect(|| words.set(words.get() + 1));
    assert_eq!(words.get(), 3, "at the first, and after some hundreds");
}
