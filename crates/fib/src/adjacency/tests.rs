//! What the table promises, one thing at a time.

use super::*;
use crate::lookup::MISS;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn equal_next_hops_share_an_index_and_move_together() {
    let mut table = Adjacencies::new();
    let reader = table.reader();
    let first = table.acquire("10.0.0.1").unwrap();
    assert_eq!(table.acquire("10.0.0.1").unwrap(), first);
    let second = table.acquire("10.0.0.2").unwrap();
    assert_ne!(first, second);
    table.set_next_hop(first, "10.0.0.9").unwrap();
    assert_eq!(reader.pin().resolve(first, 0), Some(&"10.0.0.9"));
    assert_eq!(reader.pin().resolve(MISS, 0), None);
    assert_eq!(table.acquire("10.0.0.9"), Ok(first), "shared by what it is now");
    assert_ne!(table.acquire("10.0.0.1"), Ok(first), "not by what it was");
    (0..2).for_each(|_| table.release(first).unwrap());
    assert_eq!(reader.pin().resolve(first, 0), Some(&"10.0.0.9"), "one user is left");
    table.release(first).unwrap();
    assert_eq!(reader.pin().resolve(first, 0), None);
    assert_eq!(table.release(first), Err(FibError::AdjacencyUnused { adjacency: first }));
    assert_ne!(table.acquire("10.0.0.9"), Ok(first), "nobody shares an index that waits for readers");
}

#[test]
fn next_hops_that_became_equal_stay_apart() {
    let mut table = Adjacencies::new();
    let reader = table.reader();
    let (a, b) = (table.acquire("a").unwrap(), table.acquire("b").unwrap());
    table.set_next_hop(b, "a").unwrap();
    table.set_next_hop(b, "a").unwrap();
    table.release(b).unwrap();
    assert_eq!(table.acquire("a"), Ok(a));
    table.set_next_hop(a, "c").unwrap();
    assert_eq!((reader.pin().resolve(a, 0), reader.pin().resolve(b, 0)), (Some(&"c"), None));
}

#[test]
fn an_index_is_not_reused_under_a_reader_that_may_have_met_it() {
    let mut table = Adjacencies::new();
    let (early, late) = (table.reader(), table.reader());
    let indices: Vec<_> = (1..ADJACENCIES_MAX).map(|hop| table.acquire(hop).unwrap()).collect();
    assert_eq!(table.acquire(0), Err(FibError::Full));
    let view = early.pin();
    assert_eq!(view.resolve(indices[7], 0), Some(&8));
    table.release(indices[7]).unwrap();
    assert_eq!(table.acquire(0), Err(FibError::Busy), "the reader may hold the index");
    let later = late.pin();
    assert_eq!(table.acquire(0), Err(FibError::Busy));
    drop(view);
    assert_eq!(table.acquire(0), Ok(indices[7]), "the other reader came after");
    assert_eq!(table.acquire(40_000), Err(FibError::Full));
    table.release(indices[9]).unwrap();
    assert_eq!(table.acquire(40_000), Err(FibError::Busy));
    drop(later);
    assert_eq!(table.acquire(40_000), Ok(indices[9]));
}

#[test]
fn groups_follow_their_members() {
    let mut table = Adjacencies::new();
    let reader = table.reader();
    let (a, b) = (table.acquire("a").unwrap(), table.acquire("b").unwrap());
    let group = table.group(&[(a, 1), (b, 3)]).unwrap();
    let count = |wanted| {
        let view = reader.pin();
        (0..256).filter(|hash| view.resolve(group, hash << 24) == Some(&wanted)).count()
    };
    assert_eq!((count("a"), count("b")), (64, 192));
    table.set_next_hop(a, "c").unwrap();
    assert_eq!(count("c"), 64);
    table.set_members(group, &[(b, 3)]).unwrap();
    assert_eq!(count("b"), 256);
    assert_eq!(table.group(&[(b, 0)]), Err(FibError::NoWeight));
    assert_eq!(table.set_members(group, &[]), Err(FibError::NoWeight));
    assert_eq!(count("b"), 256, "as it was");
}

#[test]
fn a_view_tells_which_member_it_chose() {
    let mut table = Adjacencies::new();
    let reader = table.reader();
    let (a, b) = (table.acquire("a").unwrap(), table.acquire("b").unwrap());
    let group = table.group(&[(b, 1), (a, 1)]).unwrap();
    let view = reader.pin();
    assert_eq!(view.choose_with(group, || 0), Some((b, &"b")));
    assert_eq!(view.choose_with(group, || u32::MAX), Some((a, &"a")));
    assert_eq!(view.choose_with(a, || panic!("only groups want a hash")), Some((a, &"a")));
    assert_eq!(view.choose_with(MISS, || 0), None);
    assert_eq!(view.choose_with(ADJACENCIES_MAX, || 0), None);
}

#[test]
fn a_group_holds_its_members() {
    let mut table = Adjacencies::new();
    let reader = table.reader();
    let (a, b) = (table.acquire(1).unwrap(), table.acquire(2).unwrap());
    let group = table.group(&[(a, 1), (b, 1), (a, 1)]).unwrap();
    table.release(a).unwrap();
    assert_eq!(
        table.release(a),
        Err(FibError::AdjacencyUnused { adjacency: a }),
        "the group's is not a user's"
    );
    for other in 3..1000 {
        let index = table.acquire(other).unwrap();
        assert_ne!(index, a, "the group leads there");
        table.release(index).unwrap();
    }
    assert_eq!(reader.pin().resolve(group, 0), Some(&1));
    assert_eq!(table.acquire(1), Ok(a), "it is still shared");
    table.release(a).unwrap();
    table.set_members(group, &[(b, 1)]).unwrap();
    assert_eq!((reader.pin().resolve(a, 0), table.len()), (None, 2));
    table.set_members(group, &[(b, 7)]).unwrap();
    table.release(b).unwrap();
    assert_eq!(reader.pin().resolve(group, 0), Some(&2));
    table.release(group).unwrap();
    assert_eq!((reader.pin().resolve(b, 0), table.is_empty()), (None, true));
}

#[test]
fn kinds_are_kept_unless_they_are_to_change() {
    let mut table = Adjacencies::new();
    let reader = table.reader();
    let (a, b) = (table.acquire("a").unwrap(), table.acquire("b").unwrap());
    let group = table.group(&[(a, 1)]).unwrap();
    let kind = |adjacency| Err(FibError::AdjacencyKind { adjacency });
    let unused = Err(FibError::AdjacencyUnused { adjacency: 9 });
    assert_eq!(table.group(&[(a, 1), (group, 1)]).map(drop), kind(group), "groups do not nest");
    assert_eq!(table.set_members(group, &[(group, 1)]), kind(group));
    assert_eq!(table.set_members(b, &[(a, 1)]), kind(b));
    assert_eq!(table.set_next_hop(group, "c"), kind(group));
    assert_eq!(table.set_next_hop(9, "c"), unused);
    assert_eq!(table.set_members(group, &[(9, 1)]), unused);
    assert_eq!(table.replace(a, Target::Group(&[(b, 1)])), kind(a), "it is in a group");
    assert_eq!(table.replace(b, Target::Group(&[(b, 1)])), kind(b));
    assert_eq!(table.replace(9, Target::NextHop("c")), unused);
    assert_eq!(reader.pin().resolve(group, 0), Some(&"a"), "as it was");
    table.replace(b, Target::Group(&[(a, 1)])).unwrap();
    table.replace(group, Target::NextHop("c")).unwrap();
    assert_eq!((reader.pin().resolve(b, 0), reader.pin().resolve(group, 0)), (Some(&"a"), Some(&"c")));
    assert_eq!(table.set_members(group, &[(a, 1)]), kind(group));
    table.release(a).unwrap();
    assert_eq!(reader.pin().resolve(b, 0), Some(&"a"), "the new group holds it");
    table.replace(b, Target::NextHop("d")).unwrap();
    assert_eq!(reader.pin().resolve(a, 0), None, "the old one did no more");
}

/// A next hop that counts how often it is hashed or compared.
#[derive(Clone, Debug)]
struct Counted(u32, Arc<AtomicUsize>);

impl Counted {
    fn count(&self) -> u32 {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.count() == other.0
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.count().hash(state);
    }
}

#[test]
fn a_change_of_a_next_hop_looks_at_no_others() {
    let count = Arc::new(AtomicUsize::new(0));
    let hop = |name| Counted(name, count.clone());
    let mut table = Adjacencies::new();
    let indices: Vec<_> = (0..ADJACENCIES_MAX - 1).map(|name| table.acquire(hop(name)).unwrap()).collect();
    count.store(0, Ordering::Relaxed);
    for (&index, name) in indices.iter().zip(1 << 20..).take(100) {
        table.set_next_hop(index, hop(name)).unwrap();
    }
    let each = count.load(Ordering::Relaxed) / 100;
    assert!(each < 10, "{each} times for a change");
}

proptest! {
    #[test]
    fn a_member_that_leaves_and_comes_back_gets_its_flows_back(
        weights in prop::collection::vec(1_u32..100, 2..40),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        hashes in prop::collection::vec(any::<u32>(), 64),
    ) {
        let mut table = Adjacencies::new();
        let reader = table.reader();
        let numbered = (0..).zip(weights);
        let members: Vec<_> = numbered.map(|(hop, weight)| (table.acquire(hop).unwrap(), weight)).collect();
        let group = table.group(&members).unwrap();
        let flows = || -> Vec<u32> {
            let view = reader.pin();
            hashes.iter().filter_map(|&hash| view.resolve(group, hash).copied()).collect()
        };
        let before = flows();
        prop_assert_eq!(before.len(), hashes.len());
        for lost in lost {
            let mut rest = members.clone();
            rest.remove(lost.index(members.len()));
            table.set_members(group, &rest).unwrap();
        }
        table.set_members(group, &members).unwrap();
        prop_assert_eq!(flows(), before);
    }
}

/// A next hop that notes where it ends.
#[derive(Clone, Debug)]
struct Ends(u32, std::sync::Arc<std::sync::Mutex<Vec<std::thread::ThreadId>>>);

impl PartialEq for Ends {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Ends {}

impl Hash for Ends {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(std::thread::current().id());
    }
}

#[test]
fn what_is_replaced_is_freed_by_its_owner() {
    let ends = std::sync::Arc::default();
    let mut table = Adjacencies::new();
    let index = table.acquire(Ends(0, std::sync::Arc::clone(&ends))).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (reader, done) = (table.reader(), &done);
        let worker = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                assert!(reader.pin().resolve(index, 0).is_some());
            }
        });
        for hop in 1..500 {
            table.set_next_hop(index, Ends(hop, ends.clone())).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        worker.join().unwrap();
    });
    table.release(index).unwrap();
    drop(table);
    let ends = ends.lock().unwrap();
    assert!(ends.len() >= 500 && ends.iter().all(|&id| id == std::thread::current().id()));
}

#[test]
fn the_owner_sees_next_hops_and_no_groups() {
    let mut table = Adjacencies::new();
    let hop = table.acquire("a").unwrap();
    let group = table.group(&[(hop, 1)]).unwrap();
    assert_eq!(
        [hop, group, MISS, 99].map(|index| table.next_hop(index).copied()),
        [Some("a"), None, None, None]
    );
    table.set_next_hop(hop, "b").unwrap();
    assert_eq!(table.next_hop(hop), Some(&"b"));
}

#[test]
fn the_owner_sees_who_is_in_a_group_and_where_each_ends() {
    let mut table = Adjacencies::new();
    assert!(table.is_empty());
    let [a, b] = ["a", "b"].map(|hop| table.acquire(hop).unwrap());
    let group = table.group(&[(b, 1), (a, 3)]).unwrap();
    assert!(!table.is_empty());
    assert_eq!(table.regions(group), [(1 << 29, b), (1 << 31, a)]);
    assert_eq!([a, MISS, 99].map(|index| table.regions(index)), [const { Vec::new() }; 3], "no groups");
}

#[test]
fn what_waits_for_a_reader_ends_with_the_last_of_the_table_and_its_readers() {
    let ends = std::sync::Arc::default();
    let mut table = Adjacencies::new();
    let index = table.acquire(Ends(0, std::sync::Arc::clone(&ends))).unwrap();
    let reader = table.reader();
    let view = reader.pin();
    table.set_next_hop(index, Ends(1, ends.clone())).unwrap();
    let seen = view.resolve(index, 0).map(|hop| hop.0);
    drop(table);
    assert_eq!((seen, view.resolve(index, 0).map(|hop| hop.0)), (Some(1), Some(1)));
    drop(view);
    drop(reader);
    assert_eq!(std::sync::Arc::strong_count(&ends), 1, "{} ended", ends.lock().unwrap().len());
}
