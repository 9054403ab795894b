//! Compiled rules against a list of rules that is searched from end to end.

use super::*;
use crate::table::Table;
use crate::v4::compact16::Compact16;
use proptest::prelude::*;

fn rule() -> impl Strategy<Value = Rule<u32>> {
    let source = prop::option::of(
        (0_u32..8, 0_u8..=8).prop_map(|(top, len)| Prefix::new(top << 29, len).expect("a length up to 8")),
    );
    let mark = prop::option::of((0_u32..4, prop::sample::select(vec![1, 3, u32::MAX])));
    let action = prop_oneof![4 => (0_u8..5).prop_map(Action::Table), 1 => Just(Action::Unreachable)];
    (0_u32..100, source, prop::option::of(0_u8..3), mark, prop::option::of(0_u32..3), action).prop_map(
        |(priority, source, tos, mark, interface, action)| Rule {
            priority,
            source,
            tos,
            mark,
            interface,
            action,
        },
    )
}

fn key() -> impl Strategy<Value = PolicyKey<u32>> {
    (any::<u32>(), 0_u32..4, 0_u8..3, 0_u32..4, 0_u32..3).prop_map(|(source, top, tos, mark, interface)| {
        PolicyKey { source, destination: top << 24, tos, mark, interface }
    })
}

fn naive(rules: &[Rule<u32>], policy: &Policy<u32, Compact16>, key: &PolicyKey<u32>) -> u32 {
    let mut sorted = rules.to_vec();
    sorted.sort_by_key(|rule| rule.priority);
    for rule in sorted.iter().filter(|rule| rule.selects(key)) {
        let Action::Table(number) = rule.action else { return MISS };
        let found = policy.tables.get(&number).map_or(MISS, |table| table.lookup(key.destination));
        if found != MISS {
            return found;
        }
    }
    MISS
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn compiled_rules_choose_as_a_list_does(
        rules in prop::collection::vec(rule(), 0..300),
        keys in prop::collection::vec(key(), 1..300),
    ) {
        let mut policy = Policy::<u32, Compact16>::new().unwrap();
        policy.set_rules(&rules).unwrap();
        // Table n knows the destinations up to n: the others go on to the next rule.
        for number in 1..4_u8 {
            for top in 0..u32::from(number) {
                let prefix = Prefix::new(top << 24, 8).unwrap();
                policy.table(NonZeroU8::new(number).unwrap()).unwrap().insert(prefix, u32::from(number) * 10 + top).unwrap();
            }
        }
        let mut results = vec![u32::MAX; keys.len()];
        policy.lookup_batch(&keys, &mut results);
        for (key, result) in keys.iter().zip(results) {
            let expected = naive(&rules, &policy, key);
            prop_assert_eq!(policy.lookup(key), expected);
            prop_assert_eq!(result, expected);
        }
    }
}

#[test]
fn the_last_of_thousands_of_rules_is_found() {
    let last = 10_000;
    let rules: Vec<Rule<u32>> = (0..=last)
        .map(|number| Rule {
            priority: number,
            source: Prefix::new(0x0a00_0000 | number, 32).ok(),
            tos: None,
            mark: None,
            interface: None,
            action: Action::Table(1),
        })
        .collect();
    let mut policy = Policy::<u32, Compact16>::new().unwrap();
    policy.set_rules(&rules).unwrap();
    policy.table(NonZeroU8::MIN).unwrap().insert(Prefix::DEFAULT, 5).unwrap();
    let key = |source| PolicyKey { source, ..PolicyKey::default() };
    assert_eq!(policy.lookup(&key(0x0a00_0000 | last)), 5);
    assert_eq!(policy.lookup(&key(0x0a00_0001 + last)), MISS);
}

#[test]
fn too_many_masks_are_refused_and_the_rules_stay() {
    let rule = |mask| Rule::<u32> {
        priority: 0,
        source: None,
        tos: None,
        mark: Some((0, mask)),
        interface: None,
        action: Action::Table(1),
    };
    let mut policy = Policy::<u32, Compact16>::new().unwrap();
    policy.set_rules(&[rule(1)]).unwrap();
    policy.table(NonZeroU8::MIN).unwrap().insert(Prefix::DEFAULT, 5).unwrap();
    let many: Vec<_> = (1..10).map(rule).collect();
    assert_eq!(policy.set_rules(&many), Err(FibError::Full));
    assert_eq!((policy.rules().len(), policy.lookup(&PolicyKey::default())), (1, 5));
    assert_eq!(policy.set_rules(&many[..8]), Ok(()));
}

#[test]
fn the_shorter_slice_decides_how_many_are_looked_up() {
    let mut policy = Policy::<u32, Compact16>::new().unwrap();
    policy.set_rules(&[]).unwrap();
    let mut results = [7; 3];
    policy.lookup_batch(&[PolicyKey::default(); 2], &mut results);
    assert_eq!(results, [MISS, MISS, 7]);
    let mut results = [7; 1];
    policy.lookup_batch(&[PolicyKey::default(); 2], &mut results);
    assert_eq!(results, [MISS]);
}

/// Rules 0: sources of 10.0.0.0/8 to table 1, which knows nothing; 1: those with ToS 1 to table 2; 2: all to table 3.
#[test]
fn a_visit_reads_what_the_rules_make_it_read() {
    let of = |source, tos, table| Rule {
        priority: 0,
        source,
        tos,
        mark: None,
        interface: None,
        action: Action::Table(table),
    };
    let ten = Prefix::new(10 << 24, 8).unwrap();
    let mut policy = Policy::<u32, Radix<u32>>::new().unwrap();
    policy.set_rules(&[of(Some(ten), None, 1), of(None, Some(1), 2), of(None, None, 3)]).unwrap();
    for number in [2, 3_u8] {
        let table = policy.table(NonZeroU8::new(number).unwrap()).unwrap();
        table.insert(Prefix::new(20 << 24, 8).unwrap(), number.into()).unwrap();
    }
    let visit = |source: u32, tos| {
        let key = PolicyKey { source, destination: 20 << 24, tos, ..PolicyKey::default() };
        let mut reads = Vec::new();
        let found = policy.visit(&key, |place| reads.push(place));
        assert_eq!(found, policy.lookup(&key));
        let count = |of: fn(&PolicyPlace) -> bool| reads.iter().filter(|place| of(place)).count();
        let groups = count(|place| matches!(place, PolicyPlace::Group(_)));
        let values = count(|place| matches!(place, PolicyPlace::Values(_)));
        let nodes = count(|place| matches!(place, PolicyPlace::Table(..)));
        (found, groups, values, nodes)
    };
    // Of another source: the rules for all, one place for its ToS, one node of the table.
    assert_eq!(visit(11 << 24, 1), (2, 1, 1, 1));
    // Its ToS would be where that of rule 1 is, so that the next place is looked at.
    assert_eq!(visit(11 << 24, 0), (3, 1, 2, 1));
    // Of this one: two groups and the ToS, nothing in table 1, and all that again for the next rule.
    assert_eq!(visit(10 << 24, 1), (2, 4, 2, 1));
}
