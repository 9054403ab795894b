//! What single messages do to the mirror, and which tables it asks for then.

mod common;
#[allow(dead_code, reason = "sequences ask more of it")]
mod model;

use causeway_kernel::{
    Address, Family, Link, Message, Mirror, Neighbour, NextHop, NextHopKind, Object, Operation, Path, Prefix,
    PuntReason, Qdisc, ReversePath, Rewrite, Route, Rule, Scope, Setting, SettingScope, Snapshot, Target,
};
use common::{describe, describe_reverse};
use model::{NaiveKernel, PORTS};
use std::net::IpAddr;

const ADDED: Operation = Operation::Added { replace: false, append: false };
const APPENDED: Operation = Operation::Added { replace: false, append: true };
const SHOWN: Operation = Operation::Dumped;
const GONE: Operation = Operation::Removed;

const BY_BOTH: &str = "p1 via 10.1.0.9 weight 1 unresolved, p2 via 10.2.0.9 weight 1 unresolved";
const BY_SECOND: &str = "p2 via 10.2.0.9 weight 1 unresolved";

/// What has to be dumped to know which routes are left.
fn routing() -> Scope {
    Scope::NEXT_HOPS | Scope::ROUTES4 | Scope::ROUTES6
}

/// A mirror of a kernel with three links, of which two are ports, and nothing else; nothing is needed.
fn mirror() -> Mirror {
    let mut mirror = Mirror::new(PORTS);
    NaiveKernel::new(false).dump(&mut mirror, Scope::ALL);
    forget(&mut mirror);
    mirror
}

/// All that is pending has been seen.
fn forget(mirror: &mut Mirror) {
    mirror.collect(|| {});
    let _ = (mirror.take_needs(), mirror.take_urgent());
}

fn tell(mirror: &mut Mirror, operation: Operation, object: Object) {
    mirror.apply(Message { operation, object });
}

/// A dump of `table` that shows these objects and no more.
fn dump(mirror: &mut Mirror, table: Scope, objects: impl IntoIterator<Item = Object>) {
    mirror.begin_resync();
    objects.into_iter().for_each(|object| tell(mirror, SHOWN, object));
    mirror.end_resync(table);
}

fn link(index: u32) -> Link {
    NaiveKernel::new(false).links[&index].clone()
}

fn without_carrier(index: u32) -> Link {
    Link { carrier: false, ..link(index) }
}

fn down(index: u32) -> Link {
    Link { up: false, ..without_carrier(index) }
}

fn path(ifindex: u32) -> Path {
    Path { ifindex, gateway: Some([10, ifindex as u8, 0, 9].into()), weight: 1 }
}

/// A route to 192.0.`net`.0/24.
fn route(net: u8, target: Target) -> Route {
    Route {
        prefix: Prefix::new([192, 0, net, 0].into(), 24),
        table: 254,
        tos: 0,
        metric: 0,
        protocol: 3,
        source_specific: false,
        target,
        mtu_bytes: None,
        source: None,
        dead: Vec::new(),
        identity: 0,
    }
}

/// A route by these ports.
fn by(ports: &[u32]) -> Route {
    route(0, Target::Paths(ports.iter().copied().map(path).collect()))
}

/// By both ports, to 2001:db8::/32.
fn by_both6() -> Route {
    let path = |ifindex: u32| {
        let gateway = Some(format!("2001:db8:{ifindex}::9").parse().unwrap());
        Path { ifindex, gateway, weight: 1 }
    };
    let target = Target::Paths(PORTS.map(path).into());
    Route { prefix: Prefix::new("2001:db8::".parse().unwrap(), 32), ..route(0, target) }
}

fn object(id: u32, kind: NextHopKind) -> Object {
    Object::NextHop(NextHop { id, kind })
}

fn group(members: &[u32], resilient: bool) -> NextHopKind {
    NextHopKind::Group { members: members.iter().map(|&id| (id, 1)).collect(), resilient }
}

fn ignores(family: Family, scope: SettingScope, ignores: bool) -> Object {
    Object::Setting(Setting { family, scope, ignores_linkdown: Some(ignores) })
}

fn qdisc(ifindex: u32) -> Object {
    Object::Qdisc(Qdisc { ifindex, handle: 1, parent: u32::MAX, kind: "htb".to_owned() })
}

fn address(text: &str, ifindex: u32) -> Address {
    Address { address: text.parse().unwrap(), prefix_len: 16, ifindex }
}

/// What becomes of packets to a destination, and what a check of it as a source asks.
fn answers(mirror: &mut Mirror, to: &str) -> (String, String) {
    mirror.collect(|| {});
    let seen: Snapshot = mirror.snapshot();
    let hop = seen.lookup(to.parse::<IpAddr>().unwrap());
    hop.map_or_else(Default::default, |hop| (describe(&seen, hop), describe_reverse(&seen, hop)))
}

fn answer(mirror: &mut Mirror) -> String {
    answers(mirror, "192.0.0.1").0
}

/// What becomes of a route by both ports after these messages about the first one's link.
fn after_links(messages: &[(Operation, Link)]) -> (Mirror, String) {
    let mut mirror = mirror();
    for (operation, link) in messages.iter().cloned() {
        tell(&mut mirror, operation, Object::Link(link));
    }
    dump(&mut mirror, Scope::ROUTES4, [Object::Route(by(&PORTS))]);
    let answer = answer(&mut mirror);
    (mirror, answer)
}

#[test]
fn the_setting_counts_for_a_path_whose_carrier_was_seen_to_go() {
    let (up, carrierless, down) = (link(1), without_carrier(1), down(1));
    let lost = (ADDED, carrierless.clone());
    let found = (SHOWN, carrierless);
    for (messages, answer) in [
        (vec![lost.clone()], BY_BOTH),
        (vec![found.clone()], "punt unclear"),
        // Another message about it tells nothing new, whatever was known.
        (vec![found.clone(), lost.clone()], "punt unclear"),
        (vec![lost.clone(), found.clone()], BY_BOTH),
        // It may have come up long ago.
        (vec![(ADDED, down.clone()), found.clone()], "punt unclear"),
        (vec![(ADDED, down), lost.clone()], BY_BOTH),
        (vec![found.clone(), (ADDED, up.clone()), lost], BY_BOTH),
        (vec![found, (ADDED, up)], BY_BOTH),
    ] {
        assert_eq!(after_links(&messages).1, answer, "{messages:?}");
    }
}

#[test]
fn when_messages_were_lost_only_the_kernel_knows_of_paths_without_carrier() {
    for (link, before, after) in [
        (without_carrier(1), BY_BOTH, "punt unclear"),
        (link(1), BY_BOTH, BY_BOTH),
        (down(1), BY_SECOND, BY_SECOND),
    ] {
        let (mut mirror, answered) = after_links(&[(ADDED, link.clone())]);
        assert_eq!(answered, before, "{link:?}");
        mirror.lost();
        assert_eq!(answer(&mut mirror), after, "{link:?}");
    }
}

#[test]
fn a_dead_path_without_carrier_is_left_out_where_the_setting_says_so() {
    for (set, dead, answered) in [
        (false, false, BY_BOTH),
        (false, true, "punt unclear"),
        (true, false, BY_SECOND),
        (true, true, BY_SECOND),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, ignores(Family::V4, SettingScope::Interface(1), set));
        tell(&mut mirror, ADDED, Object::Link(without_carrier(1)));
        let dead = if dead { vec![1] } else { Vec::new() };
        tell(&mut mirror, ADDED, Object::Route(Route { dead: dead.clone(), ..by(&PORTS) }));
        assert_eq!(answer(&mut mirror), answered, "{set} {dead:?}");
    }
}

#[test]
fn a_setting_that_a_dump_does_not_show_is_not_known() {
    let own = |family, ifindex| ignores(family, SettingScope::Interface(ifindex), false);
    let all = ignores(Family::V4, SettingScope::All, false);
    for (family, table, route, to, shown) in [
        (Family::V4, Scope::SETTINGS4, by(&PORTS), "192.0.0.1", vec![all, own(Family::V4, 2)]),
        (Family::V6, Scope::SETTINGS6, by_both6(), "2001:db8::1", vec![]),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, qdisc(1));
        tell(&mut mirror, ADDED, Object::Link(without_carrier(1)));
        tell(&mut mirror, ADDED, Object::Route(route));
        let known = answers(&mut mirror, to).0;
        assert!(known.contains("p1 via") && known.contains("p2 via"), "{known}");
        dump(&mut mirror, table, shown.iter().cloned().chain([own(family, 1)]));
        assert_eq!(answers(&mut mirror, to).0, known, "all is shown");
        dump(&mut mirror, table, shown);
        assert_eq!(answers(&mut mirror, to).0, "punt unclear");
        assert_eq!(mirror.qdiscs().count(), 1, "another table");
    }
}

#[test]
fn a_link_is_worth_a_dump_of_routes_if_something_hangs_on_it() {
    let punt = |interfaces| Target::Punt {
        reason: PuntReason::UnknownAttribute,
        reverse_path: ReversePath::Interfaces(interfaces),
    };
    let hanging = |ifindex: u32| {
        [
            Object::Address(address("10.1.0.1", ifindex)),
            Object::Route(by(&[ifindex])),
            Object::Route(route(0, punt(vec![ifindex]))),
            object(5, NextHopKind::Path(path(ifindex))),
        ]
    };
    for (of, needs) in [(1, routing()), (2, Scope::default())] {
        for object in hanging(of) {
            let mut mirror = mirror();
            tell(&mut mirror, ADDED, object.clone());
            forget(&mut mirror);
            tell(&mut mirror, ADDED, Object::Link(down(1)));
            assert_eq!(mirror.take_needs(), needs, "{object:?}");
        }
    }
    // Of a link that is no port nothing is urgent but that routes may be gone.
    for (of, urgent) in [(3, true), (2, false)] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, Object::Route(by(&[of])));
        forget(&mut mirror);
        tell(&mut mirror, ADDED, Object::Link(down(3)));
        assert_eq!(mirror.take_urgent(), urgent, "{of}");
    }
}

#[test]
fn what_is_needed_and_urgent_adds_up() {
    for (of, messages) in [
        (1, vec![(ADDED, down(1))]),
        (1, vec![(GONE, link(1))]),
        (3, vec![(ADDED, down(3)), (ADDED, down(3))]),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, Object::Route(by(&[of])));
        forget(&mut mirror);
        for (operation, link) in messages.iter().cloned() {
            tell(&mut mirror, operation, Object::Link(link));
        }
        assert_eq!((mirror.take_needs(), mirror.take_urgent()), (routing(), true), "{messages:?}");
    }
    // That a port changed is urgent by itself.
    for (operation, link) in [(ADDED, down(1)), (GONE, link(1))] {
        let mut mirror = mirror();
        tell(&mut mirror, operation, Object::Link(link));
        assert_eq!((mirror.take_needs(), mirror.take_urgent()), (Scope::default(), true), "{operation:?}");
    }
    let mut mirror = mirror();
    let both = ["10.1.0.1", "10.1.0.2"].map(|text| Object::Address(address(text, 1)));
    both.iter().cloned().for_each(|address| tell(&mut mirror, ADDED, address));
    forget(&mut mirror);
    both.into_iter().for_each(|address| tell(&mut mirror, GONE, address));
    assert_eq!(mirror.take_needs(), Scope::ROUTES4);
}

#[test]
fn a_link_that_is_announced_again_may_have_brought_dead_paths_back() {
    for (operation, dead, needs) in [
        (ADDED, vec![1], routing()),
        (ADDED, vec![2], Scope::default()),
        (ADDED, vec![], Scope::default()),
        (SHOWN, vec![1], Scope::default()),
    ] {
        for again in [Object::Link(link(1)), Object::Address(address("10.1.0.1", 1))] {
            let mut mirror = mirror();
            tell(&mut mirror, ADDED, Object::Route(Route { dead: dead.clone(), ..by(&PORTS) }));
            forget(&mut mirror);
            tell(&mut mirror, operation, again.clone());
            assert_eq!(mirror.take_needs(), needs, "{operation:?} {dead:?} {again:?}");
        }
    }
}

#[test]
fn what_is_a_links_goes_with_it_and_what_is_anothers_stays() {
    let mut mirror = mirror();
    let host = |ifindex: u32| IpAddr::from([10, ifindex as u8, 0, 9]);
    for ifindex in PORTS {
        let mac = Some([2, 1, 0, 0, 0, 1]);
        let neighbour =
            Neighbour { address: host(ifindex), ifindex, mac, state: 2, managed: false, learned: false };
        tell(&mut mirror, ADDED, Object::Neighbour(neighbour));
        tell(&mut mirror, ADDED, Object::Address(address(&format!("10.{ifindex}.0.1"), ifindex)));
        tell(&mut mirror, ADDED, qdisc(ifindex));
    }
    let left = |mirror: &Mirror| {
        let addresses: Vec<u32> = mirror.addresses().map(|address| address.ifindex).collect();
        let qdiscs: Vec<u32> = mirror.qdiscs().map(|qdisc| qdisc.ifindex).collect();
        let neighbours = PORTS.into_iter().filter(|&i| mirror.neighbour_entry(i, host(i)).is_some());
        [addresses, qdiscs, neighbours.collect()]
    };
    assert_eq!(left(&mirror), [[1, 2]; 3]);
    forget(&mut mirror);
    tell(&mut mirror, GONE, Object::Link(link(1)));
    assert_eq!(left(&mirror), [[2]; 3]);
    assert!(mirror.take_urgent(), "it was a port");
    let changes = mirror.collect(|| {});
    assert_eq!(changes.links, [(1, None)]);
    assert_eq!(changes.addresses, [("10.1.0.1".parse().unwrap(), false)]);
    tell(&mut mirror, GONE, Object::Link(link(1)));
    assert!(mirror.collect(|| {}).links.is_empty(), "there was none");
}

/// A mirror with objects 1 and 2 by the first and the second port, and with groups 3 of both and 4 of the first; routes by each
/// to 192.0.1.0/24 and so on.
fn with_objects() -> (Mirror, Vec<Object>) {
    let mut mirror = mirror();
    let kinds =
        [NextHopKind::Path(path(1)), NextHopKind::Path(path(2)), group(&[1, 2], false), group(&[1], false)];
    for (id, kind) in (1..).zip(kinds) {
        tell(&mut mirror, ADDED, object(id, kind));
    }
    let routes: Vec<_> = (1..=4).map(|id| Object::Route(route(id, Target::Object(id.into())))).collect();
    routes.iter().cloned().for_each(|route| tell(&mut mirror, ADDED, route));
    assert_eq!(answers(&mut mirror, "192.0.3.1").0, BY_BOTH);
    forget(&mut mirror);
    (mirror, routes)
}

#[test]
fn objects_go_with_the_carrier_of_their_link_and_groups_with_their_last_member() {
    let (mut mirror, routes) = with_objects();
    tell(&mut mirror, ADDED, Object::Link(without_carrier(1)));
    let mut told = || (1..=4).map(|id| answers(&mut mirror, &format!("192.0.{id}.1")).0).collect::<Vec<_>>();
    // The kernel has taken the routes away, but for what the mirror knows others may have come since.
    assert_eq!(told(), ["punt unclear", BY_SECOND, BY_SECOND, "punt unclear"]);
    dump(&mut mirror, Scope::ROUTES4, routes);
    let mut told = || (1..=4).map(|id| answers(&mut mirror, &format!("192.0.{id}.1")).0).collect::<Vec<_>>();
    assert_eq!(told(), ["punt next-hop-missing", BY_SECOND, BY_SECOND, "punt next-hop-missing"]);
}

#[test]
fn routes_of_a_link_that_was_down_or_may_have_been_are_in_doubt_until_they_are_dumped() {
    for (link1, operation) in [(down(1), ADDED), (without_carrier(1), SHOWN), (link(1), SHOWN)] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, Object::Route(by(&[1])));
        let via = answer(&mut mirror);
        let changed = !link1.alive();
        tell(&mut mirror, operation, Object::Link(link1));
        tell(&mut mirror, ADDED, Object::Link(link(1)));
        assert_eq!(answer(&mut mirror) == "punt unclear", changed);
        dump(&mut mirror, Scope::ROUTES4, [Object::Route(by(&[1]))]);
        assert_eq!(answer(&mut mirror), via);
    }
}

#[test]
fn a_group_whose_members_are_gone_forwards_nothing_even_if_no_route_is_by_them() {
    let mut mirror = mirror();
    let members = PORTS.map(|id| object(id, NextHopKind::Path(path(id))));
    members.iter().cloned().for_each(|member| tell(&mut mirror, ADDED, member));
    tell(&mut mirror, ADDED, object(3, group(&PORTS, false)));
    tell(&mut mirror, ADDED, Object::Route(route(0, Target::Object(3))));
    assert_eq!(answer(&mut mirror), BY_BOTH);
    members.into_iter().for_each(|member| tell(&mut mirror, GONE, member));
    assert_eq!(answer(&mut mirror), "punt next-hop-missing");
}

#[test]
fn a_group_without_its_members_forwards_nothing() {
    let (mut mirror, _) = with_objects();
    for id in PORTS {
        tell(&mut mirror, GONE, object(id, NextHopKind::Path(path(id))));
    }
    assert_eq!(mirror.take_needs(), Scope::NEXT_HOPS | Scope::ROUTES4);
    assert_eq!(answers(&mut mirror, "192.0.3.1").0, "punt next-hop-missing");
    assert_eq!(answers(&mut mirror, "192.0.1.1").0, "punt unclear");
}

#[test]
fn objects_that_a_dump_does_not_show_are_gone() {
    let (mut mirror, routes) = with_objects();
    tell(&mut mirror, ADDED, qdisc(1));
    dump(&mut mirror, Scope::NEXT_HOPS, [object(2, NextHopKind::Path(path(2)))]);
    assert_eq!(mirror.take_needs(), Scope::ROUTES4);
    dump(&mut mirror, Scope::ROUTES4, routes);
    assert_eq!(answers(&mut mirror, "192.0.1.1").0, "punt next-hop-missing");
    assert_eq!(answers(&mut mirror, "192.0.2.1").0, BY_SECOND);
    assert_eq!(mirror.qdiscs().count(), 1, "another table");
}

#[test]
fn the_flows_of_a_resilient_group_are_the_kernels_though_it_is_known_where_they_may_go() {
    for (resilient, to) in [(true, "punt resilient-group"), (false, BY_BOTH)] {
        let (mut mirror, _) = with_objects();
        // However often it changes.
        for members in [&[1][..], &[1, 2]] {
            tell(&mut mirror, ADDED, object(3, group(members, resilient)));
        }
        assert_eq!(answers(&mut mirror, "192.0.3.1"), (to.to_owned(), "p1, p2".to_owned()));
    }
}

#[test]
fn each_thing_that_makes_a_link_unfit_is_enough() {
    for (link, to) in [
        (link(2), BY_SECOND),
        (Link { ethernet: false, ..link(2) }, "punt not-ethernet"),
        (Link { mac: None, ..link(2) }, "punt not-ethernet"),
        (Link { no_arp: true, ..link(2) }, "punt not-ethernet"),
        (Link { loopback: true, ..link(2) }, "punt not-ethernet"),
        (Link { master: Some(9), ..link(2) }, "punt enslaved"),
        (down(2), "punt link-down"),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, Object::Link(link.clone()));
        tell(&mut mirror, ADDED, Object::Route(by(&[2])));
        assert_eq!(answer(&mut mirror), to, "{link:?}");
    }
}

/// Gateways mean nothing there, and two routes to the same link are one way.
#[test]
fn by_a_link_without_link_layer_header_packets_go_without_a_neighbour() {
    let bare = Link { ethernet: false, bare: true, no_arp: true, mac: None, mtu_bytes: 1400, ..link(2) };
    let on_link = |ifindex| Path { gateway: None, ..path(ifindex) };
    let to_bare = "p2 via 0.0.0.0 weight 1";
    for (paths, to) in [
        (vec![path(2)], to_bare.to_owned()),
        (vec![on_link(2)], to_bare.to_owned()),
        (vec![path(1), on_link(2)], format!("p1 via 10.1.0.9 weight 1 unresolved, {to_bare}")),
        (vec![on_link(1), path(2)], "punt mixed-paths".to_owned()),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, Object::Link(bare.clone()));
        tell(&mut mirror, ADDED, Object::Route(route(0, Target::Paths(paths.clone()))));
        let text = answer(&mut mirror);
        assert!(text.starts_with(&to), "{paths:?}: {text}");
        let asked: Vec<u32> = mirror.gateways().into_iter().map(|(ifindex, _)| ifindex).collect();
        assert!(!asked.contains(&2), "nobody answers there: {asked:?}");
        let to_link = mirror.adjacency_id(2, [0; 4].into()).map(|id| mirror.snapshot().adjacencies[&id]);
        let rewrite = to_link.map(|adjacency| adjacency.rewrite);
        let expected = text.contains("p2").then_some(Some(Rewrite { mtu_bytes: 1400, ..Rewrite::BARE }));
        assert_eq!(rewrite, expected);
    }
    let mut mirror = mirror();
    tell(&mut mirror, ADDED, Object::Link(Link { up: false, carrier: false, ..bare }));
    tell(&mut mirror, ADDED, Object::Route(by(&[2])));
    assert_eq!(answer(&mut mirror), "punt link-down");
}

#[test]
fn routes_of_a_family_are_in_doubt_when_a_dump_does_not_show_one_of_its_addresses() {
    let addresses = [address("10.1.0.1", 1), address("2001:db8::1", 1)];
    for (shown, needs) in [(0, Scope::ROUTES6), (1, Scope::ROUTES4)] {
        let mut mirror = mirror();
        addresses.iter().for_each(|&address| tell(&mut mirror, ADDED, Object::Address(address)));
        forget(&mut mirror);
        dump(&mut mirror, Scope::ADDRESSES, [Object::Address(addresses[shown])]);
        assert_eq!(mirror.take_needs(), needs);
        let gone = (addresses[1 - shown].address, false);
        assert_eq!(mirror.collect(|| {}).addresses, [gone]);
    }
}

#[test]
fn messages_that_may_be_older_than_the_dump_leave_routes_of_one_place_in_doubt() {
    let (one, other) = (by(&[1]), by(&[2]));
    let crowd = vec![(ADDED, one.clone()), (APPENDED, other.clone())];
    // What is not there has gone before; but in order the kernel says it of another route.
    let gone = vec![(ADDED, one.clone()), (GONE, other)];
    for (messages, replaying, unclear) in [
        (crowd.clone(), true, 1),
        (crowd, false, 0),
        (gone.clone(), true, 0),
        (gone, false, 1),
        (vec![(ADDED, one)], true, 0),
    ] {
        let mut mirror = mirror();
        mirror.set_replaying(replaying);
        messages
            .iter()
            .cloned()
            .for_each(|(operation, route)| tell(&mut mirror, operation, Object::Route(route)));
        assert_eq!(mirror.unclear_count(), unclear, "{replaying} {messages:?}");
        assert_eq!(answer(&mut mirror) == "punt unclear", unclear > 0, "{replaying} {messages:?}");
        assert_eq!(mirror.take_needs() == Scope::ROUTES4, unclear > 0);
    }
}

#[test]
fn it_is_told_when_a_rule_is_about_another_port() {
    let mut mirror = mirror();
    let about = |port: &str| {
        let (iif, bytes) = (Some(port.to_owned()), port.into());
        Object::Rule(Rule { iif, bytes, ..Rule::plain(Family::V4, 50, 100) })
    };
    tell(&mut mirror, ADDED, about("p1"));
    assert!(mirror.collect(|| {}).rules);
    tell(&mut mirror, ADDED, about("p2"));
    tell(&mut mirror, GONE, about("p1"));
    assert!(mirror.collect(|| {}).rules, "what they come to is the same");
    assert!(mirror.is_ruled(Family::V4, "p2") && !mirror.is_ruled(Family::V4, "p1"));
}
