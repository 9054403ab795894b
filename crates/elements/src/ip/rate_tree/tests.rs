//! Trees that change while they are walked over.

use super::walk::PLACES;
use super::*;

/// A tree of the networks 1, 1.N, 1.N.0 and 1.N.0.0, in which all is looked at closely.
fn tree(of: u8) -> RateTree {
    let mut tree = RateTree::new(1 << 20);
    for now in 1..8 {
        for n in 0..of {
            tree.update(Ipv4Addr::new(1, n, 0, 0), Some(1_000), Way::Forward, 1, now);
        }
    }
    tree
}

fn names(networks: &[Network]) -> Vec<Vec<u8>> {
    networks.iter().map(|network| network.bytes[..=network.depth].to_vec()).collect()
}

#[test]
fn networks_are_copied_some_at_a_time() {
    let (mut tree, mut walk, mut seen, mut pieces) = (tree(30), Walk::default(), Vec::new(), 1);
    while tree.copy(&mut walk, 8, &mut seen) {
        pieces += 1;
    }
    let of = |n: u8| [vec![1, n], vec![1, n, 0], vec![1, n, 0, 0]];
    let expected: Vec<Vec<u8>> = [vec![1]].into_iter().chain((0..30).flat_map(of)).collect();
    assert_eq!(names(&seen), expected);
    assert_eq!(pieces, (256 * (2 + 2 * 30usize)).div_ceil(PLACES));
}

#[test]
fn levels_that_are_closed_meanwhile_are_passed_over() {
    let (mut tree, mut walk, mut seen) = (tree(30), Walk::default(), Vec::new());
    assert!(tree.copy(&mut walk, 8, &mut seen));
    assert!(walk.depth > 0, "in the middle of {:?}", walk.bytes);
    tree.keep_closed(Ipv4Addr::new(1, 0, 0, 0), 0, u32::MAX);
    while tree.go_on(1, 8) {}
    assert!(!tree.copy(&mut walk, 8, &mut seen));
    let mut once = names(&seen);
    once.dedup();
    assert!(once.len() == seen.len() && once.is_sorted(), "{once:?}");
}

/// Levels in the order in which they were opened.
fn levels(tree: &mut RateTree) -> usize {
    let (mut level, mut levels) = (tree.levels.at(ROOT).behind, 0);
    while level != NIL {
        (level, levels) = (tree.levels.at(level).behind, levels + 1);
    }
    levels
}

#[test]
fn what_is_closed_is_freed_some_levels_at_a_time() {
    let mut tree = tree(30);
    let used = tree.used();
    // The levels of 1, of each 1.N, and of each 1.N.0.
    assert_eq!(levels(&mut tree), 61);
    tree.keep_closed(Ipv4Addr::new(1, 0, 0, 0), 0, u32::MAX);
    assert_eq!((tree.used(), levels(&mut tree)), (used, 61), "not one was freed at once");
    assert!(tree.update(Ipv4Addr::new(1, 5, 0, 0), Some(1), Way::Forward, 1, 9).is_some());
    assert!(tree.go_on(7, 8));
    assert_eq!(levels(&mut tree), 54);
    assert!(tree.go_on(53, 8) && !tree.go_on(9, 8));
    assert_eq!((levels(&mut tree), tree.used()), (0, LEVEL_LEN + COUNTER_LEN));
}

#[test]
fn a_smaller_limit_is_reached_some_levels_at_a_time_and_by_the_lowest_rates() {
    let mut tree = tree(30);
    for now in 8..12 {
        tree.update(Ipv4Addr::new(1, 7, 0, 0), Some(1_000_000), Way::Forward, 1, now);
    }
    let limit = 12 * (LEVEL_LEN + COUNTER_LEN);
    tree.set_limit(limit, 1);
    assert_eq!(levels(&mut tree), 61);
    let mut steps = 0;
    while tree.go_on(5, 12) {
        steps += 1;
    }
    assert!(steps > 10 && tree.used() <= limit, "{steps} {}", tree.used());
    assert!(tree.level_of(&[1, 7, 0]).is_some());
    tree.set_limit(0, 1);
    tree.set_limit(limit, 1);
    assert!(!tree.go_on(99, 12) && tree.level_of(&[1, 7, 0]).is_some(), "the last limit counts");
}

#[test]
fn a_fold_goes_on_where_levels_are_closed_meanwhile() {
    for from_oldest in [true, false] {
        let mut tree = tree(30);
        tree.fold(i64::MAX, from_oldest, 0);
        assert!(tree.go_on(3, 8));
        tree.keep_closed(Ipv4Addr::new(1, 0, 0, 0), 0, u32::MAX);
        while tree.go_on(1, 8) {}
        assert_eq!((levels(&mut tree), tree.used()), (0, LEVEL_LEN + COUNTER_LEN), "{from_oldest}");
        let reopened = (9..40).any(|now| {
            tree.update(Ipv4Addr::new(2, 0, 0, 0), Some(1_000), Way::Forward, 1, now);
            levels(&mut tree) == 3
        });
        assert!(reopened);
    }
}
