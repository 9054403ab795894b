use super::*;

fn group(members: &[u32], resilient: bool) -> NextHopKind {
    NextHopKind::Group { members: members.iter().map(|&id| (id, 1)).collect(), resilient }
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
