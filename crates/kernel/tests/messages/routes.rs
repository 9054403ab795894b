use super::*;

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

const REPLACED: Operation = Operation::Added { replace: true, append: false };

#[test]
fn of_routes_in_one_place_the_first_counts_whether_told_or_dumped() {
    let (one, other) = (by(&[1]), by(&[2]));
    let told = |messages: &[(Operation, &Route)]| {
        let mut mirror = mirror();
        let mut answers = Vec::new();
        for &(operation, route) in messages {
            tell(&mut mirror, operation, Object::Route(route.clone()));
            answers.push(answer(&mut mirror));
        }
        answers
    };
    assert_eq!(told(&[(ADDED, &one), (APPENDED, &other)]), [BY_FIRST, BY_FIRST], "behind it");
    assert_eq!(told(&[(ADDED, &one), (ADDED, &other)]), [BY_FIRST, BY_SECOND], "before it");
    assert_eq!(told(&[(ADDED, &one), (REPLACED, &other)]), [BY_FIRST, BY_SECOND]);
    assert_eq!(told(&[(ADDED, &one), (REPLACED, &other), (GONE, &other)])[2], "", "the first was replaced");
    assert_eq!(told(&[(ADDED, &one), (ADDED, &other), (GONE, &other)])[2], BY_FIRST);
    let mut mirror = mirror();
    dump(&mut mirror, Scope::ROUTES4, [one, other].map(Object::Route));
    assert_eq!(answer(&mut mirror), BY_FIRST);
}

#[test]
fn dumped_routes_of_ipv6_with_other_metrics_are_others() {
    let by = |port: u32, metric| {
        let gateway = Some(format!("2001:db8:{port}::9").parse().unwrap());
        let target = Target::Paths(vec![Path { gateway, ..path(port) }]);
        Route { metric, target, ..by_both6() }
    };
    let mut mirror = mirror();
    dump(&mut mirror, Scope::ROUTES6, [by(1, 10), by(2, 20)].map(Object::Route));
    let mut first = || answers(&mut mirror, "2001:db8::1").1;
    assert_eq!(first(), "p1");
    tell(&mut mirror, GONE, Object::Route(by(1, 10)));
    assert_eq!(answers(&mut mirror, "2001:db8::1").1, "p2");
}

#[test]
fn a_route_that_went_hangs_on_nothing() {
    let mut mirror = mirror();
    let way = object(1, NextHopKind::Path(path(1)));
    let by_object = Object::Route(route(0, Target::Object(1)));
    for (operation, object) in [(ADDED, way.clone()), (ADDED, by_object.clone()), (GONE, by_object)] {
        tell(&mut mirror, operation, object);
        forget(&mut mirror);
    }
    tell(&mut mirror, GONE, way);
    assert_eq!(mirror.take_needs(), Scope::NEXT_HOPS, "no routes may have gone with it");
}

/// The kernel has such routes for each of its addresses, and says when they go.
#[test]
fn a_route_that_prefers_an_address_that_went_is_in_doubt_unless_it_is_the_kernels_own() {
    for (protocol, after) in [(2, "not unicast"), (3, "unknown")] {
        let mut mirror = mirror();
        let own = Object::Address(address("10.1.0.1", 1));
        let source = Some([10, 1, 0, 1].into());
        tell(&mut mirror, ADDED, own.clone());
        tell(&mut mirror, ADDED, Object::Address(address("10.1.0.2", 1)));
        tell(&mut mirror, ADDED, Object::Route(Route { protocol, source, ..route(0, blackhole()) }));
        let told = |from: &str| ("punt blackhole".to_owned(), from.to_owned());
        assert_eq!(answers(&mut mirror, "192.0.0.1"), told("not unicast"));
        tell(&mut mirror, GONE, own);
        assert_eq!(answers(&mut mirror, "192.0.0.1"), told(after), "{protocol}");
    }
}
