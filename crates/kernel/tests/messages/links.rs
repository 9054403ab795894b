use super::*;

fn ignores(family: Family, scope: SettingScope, ignores: bool) -> Object {
    Object::Setting(Setting { family, scope, ignores_linkdown: Some(ignores) })
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

/// Whoever checks a source there may come to another route.
#[test]
fn of_a_route_that_the_kernel_may_pass_by_it_is_not_known_where_sources_come_from() {
    let dead = Route { dead: vec![1], ..by(&PORTS) };
    for (link, route, expected) in [
        (link(1), by(&PORTS), (BY_BOTH, "p1, p2")),
        (link(1), dead, ("punt unclear", "unknown")),
        (down(1), by(&[1]), ("punt link-down", "unknown")),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, Object::Link(link));
        tell(&mut mirror, ADDED, Object::Route(route));
        let (to, from) = answers(&mut mirror, "192.0.0.1");
        assert_eq!((&to[..], &from[..]), expected);
    }
}

#[test]
fn a_neighbour_counts_while_the_kernel_would_send_to_it() {
    let on_link = Target::Paths(vec![Path { gateway: None, ..path(1) }]);
    let (host, mac) = (IpAddr::from([192, 0, 0, 1]), [2, 1, 0, 0, 0, 1]);
    let known = format!("p1 via {host} weight 1 {mac:02x?}");
    // Incomplete, reachable, stale, delay, probe, failed, without neighbour discovery, permanent.
    for (state, mac, to) in [
        (0x01, Some(mac), "punt on-link"),
        (0x02, Some(mac), &known),
        (0x02, None, "punt on-link"),
        (0x04, Some(mac), &known),
        (0x08, Some(mac), &known),
        (0x10, Some(mac), &known),
        (0x20, Some(mac), "punt on-link"),
        (0x40, Some(mac), "punt on-link"),
        (0x80, Some(mac), &known),
        (0x02 | 0x04 | 0x08 | 0x10 | 0x80, Some(mac), &known),
    ] {
        let mut mirror = mirror();
        tell(&mut mirror, ADDED, Object::Route(route(0, on_link.clone())));
        let neighbour = Neighbour { address: host, ifindex: 1, mac, state, managed: false, learned: false };
        tell(&mut mirror, ADDED, Object::Neighbour(neighbour));
        assert_eq!(answer(&mut mirror), to, "{state:#x} {mac:?}");
    }
}

#[test]
fn a_dump_settles_the_doubts_of_its_own_table() {
    let mut mirror = mirror();
    tell(&mut mirror, ADDED, Object::Route(by(&[1])));
    tell(&mut mirror, ADDED, Object::Link(down(1)));
    tell(&mut mirror, ADDED, Object::Link(link(1)));
    assert_eq!(answer(&mut mirror), "punt unclear");
    dump(&mut mirror, Scope::ROUTES6, []);
    assert_eq!(answer(&mut mirror), "punt unclear", "of another family");
    dump(&mut mirror, Scope::ROUTES4, [Object::Route(by(&[1]))]);
    assert_eq!(answer(&mut mirror), BY_FIRST);
}
