//! How routes of one prefix join, push each other out and follow each other, told by messages and by dumps.

mod common;
#[allow(dead_code, reason = "sequences ask more of it")]
mod model;

use causeway_kernel::{
    Family, Link, Message, Mirror, Object, Operation, Path, Prefix, Route, Scope, Setting, SettingScope,
    Snapshot, Target,
};
use common::describe;
use model::{NaiveKernel, PORTS};
use std::net::IpAddr;

const ADDED: Operation = Operation::Added { replace: false, append: false };
const APPENDED: Operation = Operation::Added { replace: false, append: true };
const REPLACED: Operation = Operation::Added { replace: true, append: false };
const GONE: Operation = Operation::Removed;

/// A route to `prefix` by these ports, with their gateways or on the link.
fn route(prefix: &str, len: u8, ports: &[u32], gateway: impl Fn(u32) -> Option<IpAddr>) -> Route {
    let path = |&ifindex: &u32| Path { ifindex, gateway: gateway(ifindex), weight: 1 };
    Route {
        prefix: Prefix::new(prefix.parse().unwrap(), len),
        table: 254,
        tos: 0,
        metric: 1024,
        protocol: 3,
        source_specific: false,
        target: Target::Paths(ports.iter().map(path).collect()),
        mtu_bytes: None,
        source: None,
        dead: Vec::new(),
        identity: 0,
    }
}

fn by4(ifindex: u32) -> Route {
    route("192.0.2.0", 24, &[ifindex], |ifindex| Some([10, ifindex as u8, 0, 9].into()))
}

fn by6(ports: &[u32]) -> Route {
    route("2001:db8:7::", 48, ports, |ifindex| format!("fe80::{ifindex}").parse().ok())
}

fn mirror() -> Mirror {
    let mut mirror = Mirror::new(PORTS);
    NaiveKernel::new(false).dump(&mut mirror, Scope::ALL);
    mirror
}

fn tell(mirror: &mut Mirror, operation: Operation, route: Route) {
    mirror.apply(Message { operation, object: Object::Route(route) });
}

/// Says that the first port's link lost its carrier, or has it.
fn tell_carrier(mirror: &mut Mirror, carrier: bool) {
    let link = Link { carrier, ..NaiveKernel::new(false).links[&1].clone() };
    mirror.apply(Message { operation: ADDED, object: Object::Link(link) });
}

fn dump(mirror: &mut Mirror, table: Scope, routes: &[Route]) {
    mirror.begin_resync();
    routes.iter().for_each(|route| tell(mirror, Operation::Dumped, route.clone()));
    mirror.end_resync(table);
}

/// What becomes of packets to a destination.
fn answer(mirror: &mut Mirror, to: &str) -> String {
    mirror.collect(|| {});
    let seen: Snapshot = mirror.snapshot();
    seen.lookup(to.parse::<IpAddr>().unwrap()).map_or("none".to_owned(), |hop| describe(&seen, hop))
}

const BY_1: &str = "p1 via fe80::1 weight 1 unresolved";
const BY_2: &str = "p2 via fe80::2 weight 1 unresolved";
const ON_LINK: &str = "punt on-link";
const UNCLEAR: &str = "punt unclear";

#[test]
fn ipv6_routes_of_one_metric_with_gateways_join_and_others_stand_beside_them() {
    let on_link_of = |ifindex: u32| route("2001:db8:7::", 48, &[ifindex], |_| None);
    let on_link = || on_link_of(1);
    let preferred = || Route { metric: 512, ..by6(&[2]) };
    let both = format!("{BY_1}, {BY_2}");
    for (messages, expected) in [
        // The kernel announces the whole of what it joined.
        (vec![(ADDED, by6(&[1])), (ADDED, by6(&[2, 1]))], &both[..]),
        (vec![(ADDED, by6(&[1])), (ADDED, by6(&[2]))], UNCLEAR),
        (vec![(ADDED, by6(&[1])), (ADDED, by6(&[1, 2])), (GONE, by6(&[1]))], BY_2),
        (vec![(ADDED, by6(&[1])), (REPLACED, by6(&[2]))], BY_2),
        (vec![(ADDED, by6(&[1])), (ADDED, by6(&[1, 2])), (REPLACED, by6(&[1]))], BY_1),
        (vec![(ADDED, on_link()), (ADDED, on_link())], ON_LINK),
        (vec![(ADDED, on_link()), (ADDED, on_link()), (GONE, on_link())], "none"),
        (vec![(ADDED, on_link()), (REPLACED, on_link()), (GONE, on_link())], "none"),
        (vec![(ADDED, on_link()), (REPLACED, by6(&[2]))], BY_2),
        // Of two that are not joined, only the kernel knows which was replaced.
        (vec![(ADDED, by6(&[1])), (ADDED, on_link()), (REPLACED, on_link())], UNCLEAR),
        (vec![(ADDED, by6(&[1])), (ADDED, on_link()), (REPLACED, on_link_of(2))], UNCLEAR),
        (vec![(ADDED, by6(&[1])), (ADDED, on_link()), (GONE, on_link())], BY_1),
        (vec![(ADDED, by6(&[1])), (ADDED, on_link()), (ADDED, on_link_of(2))], "punt ambiguous"),
        (vec![(REPLACED, on_link())], ON_LINK),
        (vec![(ADDED, by6(&[1])), (ADDED, preferred())], BY_2),
        (vec![(ADDED, by6(&[1])), (ADDED, preferred()), (GONE, preferred())], BY_1),
    ] {
        let mut mirror = mirror();
        messages.iter().for_each(|(operation, route)| tell(&mut mirror, *operation, route.clone()));
        assert_eq!(answer(&mut mirror, "2001:db8:7::1"), expected, "{messages:?}");
    }
}

#[test]
fn a_dump_shows_in_which_order_routes_are() {
    let (first, second) = ("p1 via 10.1.0.9 weight 1 unresolved", "p2 via 10.2.0.9 weight 1 unresolved");
    for (shown, expected) in [
        (vec![1, 2], first),
        (vec![2, 1], second),
        // One that changed its place while others were shown is where it was seen first.
        (vec![1, 2, 1], first),
        (vec![2], second),
        (vec![], "none"),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, by4(1));
        tell(&mut mirror, APPENDED, by4(2));
        assert_eq!(answer(&mut mirror, "192.0.2.1"), first);
        let routes: Vec<Route> = shown.iter().map(|&ifindex| by4(ifindex)).collect();
        dump(&mut mirror, Scope::ROUTES4, &routes);
        assert_eq!(answer(&mut mirror, "192.0.2.1"), expected, "{shown:?}");
    }
}

#[test]
fn paths_that_a_dump_says_are_dead_are_so_for_all_routes_by_them() {
    let by_both = |prefix: &str, dead: &[u32]| {
        let route = route(prefix, 24, &PORTS, |ifindex| Some([10, ifindex as u8, 0, 9].into()));
        Route { dead: dead.to_vec(), ..route }
    };
    let mut mirror = mirror();
    let setting =
        Setting { family: Family::V4, scope: SettingScope::Interface(1), ignores_linkdown: Some(false) };
    mirror.apply(Message { operation: ADDED, object: Object::Setting(setting) });
    tell_carrier(&mut mirror, false);
    let other = by_both("198.51.100.0", &[]);
    dump(&mut mirror, Scope::ROUTES4, &[by_both("192.0.2.0", &[1]), other.clone()]);
    assert_eq!(answer(&mut mirror, "192.0.2.1"), UNCLEAR);
    // Of another table, and then a route goes that says nothing of it.
    dump(&mut mirror, Scope::ROUTES6, &[]);
    tell(&mut mirror, GONE, other);
    assert_eq!(answer(&mut mirror, "192.0.2.1"), UNCLEAR);
    dump(&mut mirror, Scope::ROUTES4, &[by_both("192.0.2.0", &[])]);
    assert!(answer(&mut mirror, "192.0.2.1").starts_with("p1 via"), "alive again");
}

#[test]
fn a_carrier_that_comes_and_goes_leaves_routes_where_they_are() {
    let mut mirror = mirror();
    tell(&mut mirror, ADDED, by4(1));
    let by = answer(&mut mirror, "192.0.2.1");
    assert!(by.starts_with("p1 via"), "{by}");
    tell_carrier(&mut mirror, false);
    assert_eq!(answer(&mut mirror, "192.0.2.1"), "punt link-down");
    tell_carrier(&mut mirror, true);
    assert_eq!(answer(&mut mirror, "192.0.2.1"), by);
}
