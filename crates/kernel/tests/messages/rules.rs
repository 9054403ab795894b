//! Policy rules: what packets come to by them, and what messages about them are worth.

use super::*;

const V4: Family = Family::V4;

/// The table that rules look in.
const TABLE: u32 = 100;

fn plain(priority: u32, table: u32) -> Rule {
    Rule::plain(V4, priority, table)
}

/// A rule that looks in [`TABLE`], before main.
fn first() -> Rule {
    plain(50, TABLE)
}

fn iif(name: &str) -> Option<String> {
    Some(name.to_owned())
}

/// A mirror that was told these rules and routes.
fn told(rules: impl IntoIterator<Item = Rule>, routes: impl IntoIterator<Item = Route>) -> Mirror {
    let mut mirror = mirror();
    rules.into_iter().for_each(|rule| tell(&mut mirror, ADDED, Object::Rule(rule)));
    routes.into_iter().for_each(|route| tell(&mut mirror, ADDED, Object::Route(route)));
    mirror
}

/// 10.9.0.0/16 by the first port in [`TABLE`], 10.0.0.0/8 by the second in main.
fn two_ways() -> [Route; 2] {
    [in_table(TABLE, "10.9.0.0/16", way(1)), in_table(254, "10.0.0.0/8", way(2))]
}

/// What becomes of packets to an address inside both networks, and what is found of packets from it.
fn comes_to(mirror: &mut Mirror) -> (String, String) {
    answers(mirror, "10.9.1.7")
}

#[test]
fn rules_are_asked_in_their_order_as_far_as_they_are_about_packets_that_are_forwarded() {
    let more = || Rule { more: true, ..first() };
    // A check of sources may come to either, and by no port would both let packets in.
    let unclear = ("punt policy-rules", "");
    let by_second = (BY_SECOND, "p2");
    for (rules, expected) in [
        (vec![], by_second),
        (vec![first()], (BY_FIRST, "p1")),
        (vec![plain(40_000, TABLE)], by_second),
        (vec![plain(40_000, 254), first()], (BY_FIRST, "p1")),
        (vec![Rule { to: Some(prefix("10.9.1.0/24")), ..first() }], (BY_FIRST, "p1")),
        (vec![Rule { to: Some(prefix("10.9.2.0/24")), ..first() }], by_second),
        (vec![Rule { action: RuleAction::Nothing, ..first() }], by_second),
        (vec![Rule { action: RuleAction::Other, ..first() }], ("punt policy-rules", "unknown")),
        (vec![Rule { oif: true, ..first() }], by_second),
        (vec![Rule::plain(Family::V6, 50, TABLE)], by_second),
        (vec![more()], unclear),
        (vec![more(), Rule { priority: 60, ..more() }], unclear),
        (vec![more(), Rule { priority: 60, iif: iif("p1"), ..first() }], unclear),
        // What comes in by that port is the kernel's, and what goes there need not come to the same.
        (vec![Rule { iif: iif("p1"), ..first() }], (BY_SECOND, "")),
        // No port, so nothing that is forwarded comes in by it.
        (vec![Rule { iif: iif("p3"), ..first() }], by_second),
        (vec![Rule { iif: iif("nosuch"), ..first() }], unclear),
        (vec![Rule { from: Some(prefix("10.9.0.0/16")), ..first() }], (BY_SECOND, "ruled")),
        (vec![Rule { from: Some(prefix("10.8.0.0/16")), ..first() }], (BY_SECOND, "")),
    ] {
        let mut mirror = told(rules.clone(), two_ways());
        let (to, from) = comes_to(&mut mirror);
        assert_eq!((&to[..], &from[..]), expected, "{rules:?}");
    }
}

/// A rule stays with the interface that had its name when it was made.
#[test]
fn a_name_that_a_link_had_beside_its_own_may_stand_for_that_link() {
    let rule = Rule { iif: iif("p3"), ..first() };
    for (other_names, to) in [(vec![], BY_SECOND), (vec!["p3".to_owned()], "punt policy-rules")] {
        let mut mirror = told([rule.clone()], two_ways());
        tell(&mut mirror, ADDED, Object::Link(Link { other_names, ..link(1) }));
        assert_eq!(comes_to(&mut mirror).0, to);
    }
}

#[test]
fn routes_to_short_prefixes_do_not_count_unless_one_may_reject() {
    let rule = Rule { shortest: 16, ..first() };
    let (paths, reject) = (|| way(1), blackhole);
    let unsure = "punt policy-rules";
    for (routes, to) in [
        (vec![("10.9.0.0/16", paths())], BY_FIRST),
        (vec![("10.9.1.0/24", paths())], BY_FIRST),
        (vec![("10.8.0.0/15", paths())], BY_SECOND),
        (vec![("10.8.0.0/15", paths()), ("10.0.0.0/8", paths())], BY_SECOND),
        (vec![("10.8.0.0/15", reject())], unsure),
        (vec![("10.8.0.0/15", paths()), ("10.0.0.0/8", reject())], unsure),
        (vec![("10.8.0.0/15", reject()), ("10.0.0.0/8", paths())], unsure),
        (vec![("10.9.0.0/16", paths()), ("10.0.0.0/8", reject())], BY_FIRST),
    ] {
        let routes: Vec<_> = routes.into_iter().map(|(to, target)| in_table(TABLE, to, target)).collect();
        let mut mirror = told([rule.clone()], routes.iter().cloned().chain([two_ways()[1].clone()]));
        assert_eq!(comes_to(&mut mirror).0, to, "{routes:?}");
    }
    // Of several to one prefix all must be ways, and it must be known which the kernel takes.
    let short = |metric, tos, target| Route { metric, tos, ..in_table(TABLE, "10.8.0.0/15", target) };
    for (one, other, to) in [
        (short(1, 0, paths()), short(2, 0, paths()), BY_SECOND),
        (short(1, 0, paths()), short(2, 0, reject()), unsure),
        (short(1, 0, paths()), short(1, 8, paths()), unsure),
    ] {
        let mut mirror = told([rule.clone()], [one, other, two_ways()[1].clone()]);
        assert_eq!(comes_to(&mut mirror).0, to);
    }
}

/// As long as there are only the kernel's own rules, IPv4's tables local and main are one.
#[test]
fn a_way_in_the_table_local_may_be_passed_by_for_a_longer_prefix_in_main() {
    let in_local = |target| in_table(255, "10.9.0.0/16", target);
    for (route, to) in [
        (in_local(way(1)), "punt local-table"),
        (in_local(blackhole()), "punt local-table"),
        (in_local(local()), "punt local"),
        (in_table(254, "10.9.0.0/16", way(1)), BY_FIRST),
    ] {
        let mut mirror = told([], [route.clone(), two_ways()[1].clone()]);
        assert_eq!(comes_to(&mut mirror).0, to, "{route:?}");
    }
    let mut mirror = told([], [Route { table: 255, ..by_both6() }]);
    assert!(answers(&mut mirror, "2001:db8::1").0.starts_with("p1 via "), "those of IPv6 never are");
}

#[test]
fn a_message_that_says_what_is_known_leaves_all_to_the_kernel_until_rules_are_dumped() {
    let (rule, unknown) = (first(), plain(60, TABLE));
    let own = [(0, 255), (32766, 254), (32767, 253)].map(|(priority, table)| plain(priority, table));
    for (replaying, operation, about, is_news) in [
        (false, ADDED, &unknown, true),
        (false, ADDED, &rule, false),
        (false, GONE, &rule, true),
        (false, GONE, &unknown, false),
        (true, ADDED, &unknown, false),
        (true, GONE, &rule, false),
    ] {
        let mut mirror = told([rule.clone()], two_ways());
        forget(&mut mirror);
        mirror.set_replaying(replaying);
        tell(&mut mirror, operation, Object::Rule(about.clone()));
        let of_v4 = mirror.rules().filter(|rule| rule.family == V4).count();
        assert_eq!(
            of_v4,
            4 + usize::from(operation == ADDED) - usize::from(operation == GONE && *about == rule)
        );
        assert_eq!((mirror.take_needs() == Scope::RULES, mirror.take_urgent()), (!is_news, true));
        assert_eq!(comes_to(&mut mirror).0 == "punt unclear", !is_news, "{operation:?} {about:?}");
        dump(&mut mirror, Scope::RULES, own.iter().chain([&rule]).cloned().map(Object::Rule));
        assert_eq!((mirror.take_needs(), comes_to(&mut mirror).0), (Scope::default(), BY_FIRST.to_owned()));
    }
}

#[test]
fn the_order_among_equals_and_how_many_are_alike_are_the_dumps() {
    let (a, b) = (first(), plain(50, 101));
    let routes = two_ways().into_iter().chain([in_table(101, "10.9.0.0/16", way(2))]);
    let mut mirror = told([a.clone(), b.clone()], routes);
    assert_eq!(comes_to(&mut mirror).0, BY_FIRST);
    let shown = |rules: &[&Rule]| rules.iter().map(|&rule| Object::Rule(rule.clone())).collect::<Vec<_>>();
    dump(&mut mirror, Scope::RULES, shown(&[&b, &a, &a]));
    assert_eq!((comes_to(&mut mirror).0, mirror.rules().count()), (BY_SECOND.to_owned(), 3));
    // One that is broken off has shown none twice.
    mirror.begin_resync();
    shown(&[&b]).into_iter().for_each(|rule| tell(&mut mirror, SHOWN, rule));
    assert_eq!(mirror.rules().count(), 3);
    dump(&mut mirror, Scope::RULES, shown(&[&a]));
    assert_eq!((comes_to(&mut mirror).0, mirror.rules().count()), (BY_FIRST.to_owned(), 1));
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
