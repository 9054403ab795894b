//! What is looked at again when a route or a rule changes: all that may come to something else, and little more.

use super::*;

const V4: Family = Family::V4;
const NESTED: [&str; 3] = ["10.0.0.0/8", "10.9.0.0/16", "10.9.1.0/24"];

/// Sets of rules, beside the kernel's own, under which a route bears on others in all the ways there are.
fn sets_of_rules() -> Vec<Vec<Rule>> {
    let first = || Rule::plain(V4, 50, 100);
    let to = |text: &str| Some(prefix(text));
    vec![
        vec![first()],
        vec![Rule { to: to("10.9.0.0/16"), ..first() }],
        vec![Rule { from: to("10.9.0.0/17"), ..first() }],
        vec![Rule { more: true, ..first() }],
        vec![Rule { iif: Some("p1".to_owned()), ..first() }],
        vec![Rule { shortest: 20, ..first() }],
        vec![Rule { shortest: 20, ..Rule::plain(V4, 50, 254) }, Rule::plain(V4, 60, 100)],
        vec![Rule { to: to("10.9.0.0/18"), action: RuleAction::Other, ..first() }],
        vec![Rule::plain(V4, 40, 254), first()],
        vec![Rule { shortest: 20, ..first() }, Rule { to: to("10.9.1.0/24"), ..Rule::plain(V4, 60, 254) }],
    ]
}

/// What there may be at a place: table, prefix and target.
type Place = (u32, &'static str, Vec<Option<Target>>);

fn places() -> Vec<Place> {
    let of_table = NESTED.map(|to| (100, to, vec![None, Some(way(1)), Some(blackhole())]));
    let of_main = [NESTED[0], NESTED[1]].map(|to| (254, to, vec![None, Some(way(2))]));
    of_table.into_iter().chain(of_main).collect()
}

/// All that users were told.
fn view(mirror: &mut Mirror) -> Vec<(Prefix, String, String)> {
    mirror.collect(|| {});
    let seen = mirror.snapshot();
    let of = |(prefix, hop): (&Prefix, _)| {
        let hop = &seen.hops[hop];
        (*prefix, describe(&seen, hop), describe_reverse(&seen, hop))
    };
    seen.routes.iter().map(of).collect()
}

/// A mirror that was told all at once.
fn at_once(rules: &[Rule], routes: &[Route]) -> Mirror {
    let mut mirror = mirror();
    rules.iter().for_each(|rule| tell(&mut mirror, ADDED, Object::Rule(rule.clone())));
    routes.iter().for_each(|route| tell(&mut mirror, ADDED, Object::Route(route.clone())));
    mirror
}

fn routes(places: &[Place], state: &[usize]) -> Vec<Route> {
    let at = |((table, to, targets), &which): (&Place, &usize)| {
        targets[which].clone().map(|target| in_table(*table, to, target))
    };
    places.iter().zip(state).filter_map(at).collect()
}

/// Every combination of what there may be at the places.
fn states(places: &[Place]) -> Vec<Vec<usize>> {
    places.iter().fold(vec![vec![]], |states, (_, _, targets)| {
        let longer = |state: Vec<usize>| (0..targets.len()).map(move |which| [&state[..], &[which]].concat());
        states.into_iter().flat_map(longer).collect()
    })
}

/// Takes a mirror from one state to another that differs in one place.
fn step(mirror: &mut Mirror, (table, to, targets): &Place, from: usize, into: usize) {
    for (operation, which) in [(GONE, from), (ADDED, into)] {
        if let Some(target) = targets[which].clone() {
            tell(mirror, operation, Object::Route(in_table(*table, to, target)));
        }
    }
}

#[test]
fn whatever_route_changes_all_is_as_if_it_had_been_told_at_once() {
    let places = places();
    let states = states(&places);
    for rules in sets_of_rules() {
        let views: Vec<_> =
            states.iter().map(|state| view(&mut at_once(&rules, &routes(&places, state)))).collect();
        let at = |state: &[usize]| &views[states.iter().position(|other| other == state).unwrap()];
        for state in &states {
            let mut mirror = at_once(&rules, &routes(&places, state));
            assert_eq!(&view(&mut mirror), at(state));
            for (n, place) in places.iter().enumerate() {
                for into in (0..place.2.len()).filter(|&into| into != state[n]) {
                    let mut changed = state.clone();
                    changed[n] = into;
                    step(&mut mirror, place, state[n], into);
                    assert_eq!(&view(&mut mirror), at(&changed), "{rules:?}: from {state:?} to {changed:?}");
                    step(&mut mirror, place, into, state[n]);
                    assert_eq!(&view(&mut mirror), at(state), "{rules:?}: from {changed:?} to {state:?}");
                }
            }
        }
    }
}

#[test]
fn a_rule_that_went_leaves_nothing() {
    let places = places();
    let all: Vec<usize> = places.iter().map(|(_, _, targets)| targets.len() - 1).collect();
    for family in [V4, Family::V6] {
        let mut routes = routes(&places, &all);
        routes.push(Route { table: 100, ..by_both6() });
        let mut mirror = at_once(&[], &routes);
        let before = view(&mut mirror);
        for rules in sets_of_rules() {
            let of_family = |rule: &Rule| family == V4 || rule.to.is_none() && rule.from.is_none();
            let rules: Vec<_> =
                rules.into_iter().filter(of_family).map(|rule| Rule { family, ..rule }).collect();
            for operation in [ADDED, GONE] {
                rules.iter().for_each(|rule| tell(&mut mirror, operation, Object::Rule(rule.clone())));
                let now = view(&mut mirror);
                assert_eq!(now == before, operation == GONE || rules.is_empty(), "{operation:?} {rules:?}");
            }
        }
    }
}

/// How often a collection says that it gets on when a route is told: once in 256 prefixes that it looks at.
fn looked_at(rules: &[Rule], table: u32, changed: Route) -> usize {
    // Prefixes of which all are inside the one that changes.
    let inner = (0..600u32).map(|n| Prefix::new(IpAddr::from((0x0a00_0000 | n << 8).to_be_bytes()), 24));
    let inner: Vec<_> =
        inner.map(|prefix| Route { prefix, ..in_table(table, "10.0.0.0/24", way(2)) }).collect();
    let mut mirror = at_once(rules, &inner);
    forget(&mut mirror);
    let count = std::cell::Cell::new(0);
    tell(&mut mirror, ADDED, Object::Route(changed));
    mirror.collect(|| count.set(count.get() + 1));
    count.get()
}

#[test]
fn only_what_may_lie_behind_a_route_is_looked_at_with_it() {
    let to = |table: u32| in_table(table, "10.0.0.0/8", way(1));
    let suppressed = Rule { shortest: 20, ..Rule::plain(V4, 50, 100) };
    for (rules, table, changed, looks) in [
        // Own prefixes of a table that is asked before count whatever comes behind.
        (vec![], 254, to(253), 1),
        (vec![], 254, to(254), 1),
        (vec![Rule::plain(V4, 50, 100)], 100, to(254), 1),
        (vec![], 254, to(255), 3),
        // Where routes to short prefixes do not count, those of long ones do.
        (vec![suppressed.clone()], 100, to(100), 1),
        (vec![suppressed], 100, to(254), 3),
        (vec![], 254, to(77), 0),
    ] {
        let table_changed = changed.table;
        assert_eq!(looked_at(&rules, table, changed), looks, "{rules:?} {table} {table_changed}");
    }
}
