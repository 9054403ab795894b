//! Tables of flows beside a plain model, and at their limits.

use super::*;
use proptest::prelude::*;

/// What the table should do, done by looking at everything.
#[derive(Default)]
struct Model {
    flows: Vec<([u128; 2], u32, usize, u64)>,
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u8, usize),
    Touch(u8, usize),
    Remove(u8),
    Expire(usize),
    Limit(usize),
    GoOn(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0u8..40, 0u8..40, 0usize..3).prop_map(|(a, b, q)| Step::Insert(a, b, q)),
        4 => (0u8..40, 0usize..3).prop_map(|(k, q)| Step::Touch(k, q)),
        2 => (0u8..40).prop_map(Step::Remove),
        1 => (0usize..3).prop_map(Step::Expire),
        1 => (4usize..200).prop_map(Step::Limit),
        1 => (0usize..9).prop_map(Step::GoOn),
    ]
}

/// Keys of the two halves, so that both count.
fn key(k: u8) -> u128 {
    u128::from(k) << if k.is_multiple_of(2) { 0 } else { 90 }
}

proptest! {
    #[test]
    fn the_table_does_as_a_list_would(steps in prop::collection::vec(step(), 1..300)) {
        let mut table: FlowTable<u32, 2> = FlowTable::new(16, 3);
        let mut model = Model::default();
        let mut limit = 16;
        for (now, step) in steps.into_iter().enumerate() {
            let expires = now as u64 + 100;
            let place = |m: &Model, k: u8| m.flows.iter().position(|f| f.0.contains(&key(k)));
            match step {
                Step::Insert(a, b, queue) => {
                    let keys = [key(a), key(b)];
                    let done = table.insert(keys, now as u32, queue, expires);
                    match place(&model, a).or(place(&model, b)) {
                        Some(i) => {
                            let Err(NoPlace::Taken(id)) = done else { panic!("{done:?}") };
                            prop_assert_eq!(table.get(id), Some(&model.flows[i].1));
                        }
                        None if model.flows.len() >= limit => {
                            prop_assert_eq!(done, Err(NoPlace::Full));
                        }
                        None => {
                            prop_assert!(done.is_ok());
                            model.flows.push((keys, now as u32, queue, expires));
                        }
                    }
                }
                Step::Touch(k, queue) => {
                    if let Some((id, which)) = table.find(key(k)) {
                        table.touch(id, queue, expires);
                        let i = place(&model, k).unwrap();
                        let mut flow = model.flows.remove(i);
                        prop_assert_eq!(flow.0[which], key(k));
                        (flow.2, flow.3) = (queue, expires);
                        model.flows.push(flow);
                    } else {
                        prop_assert_eq!(place(&model, k), None);
                    }
                }
                Step::Remove(k) => {
                    let id = table.find(key(k)).map(|f| f.0);
                    let removed = id.and_then(|id| table.remove(id));
                    let expected = place(&model, k).map(|i| model.flows.remove(i).1);
                    prop_assert_eq!(removed, expected);
                }
                Step::Expire(queue) => {
                    let next = table.next(queue);
                    let expected = model.flows.iter().position(|f| f.2 == queue);
                    prop_assert_eq!(next.map(|n| n.0), expected.map(|i| model.flows[i].3));
                    if let (Some((_, id)), Some(i)) = (next, expected) {
                        prop_assert_eq!(table.keys(id), model.flows[i].0);
                        prop_assert_eq!(table.remove(id), Some(model.flows.remove(i).1));
                    }
                }
                Step::Limit(n) => {
                    table.set_limit(n);
                    limit = n;
                }
                Step::GoOn(most) => {
                    table.go_on(most);
                }
            }
            prop_assert_eq!(table.len(), model.flows.len());
            for flow in &model.flows {
                for key in flow.0 {
                    let (id, _) = table.find(key).unwrap();
                    prop_assert_eq!(table.get(id), Some(&flow.1));
                    prop_assert_eq!(table.expiry(id), (flow.3, flow.2));
                }
            }
        }
        prop_assert_eq!(table.iter().count(), model.flows.len());
    }
}

#[test]
fn nothing_moves_in_memory_below_the_limit() {
    let mut table: FlowTable<u64, 1> = FlowTable::new(10_000, 1);
    let before = (table.slots.first.as_ptr(), table.index.words.as_ptr());
    for round in 0..3u64 {
        for key in 0..10_000u64 {
            table.insert([u128::from(key)], key, 0, round).unwrap();
        }
        assert_eq!(table.insert([u128::MAX], 0, 0, round), Err(NoPlace::Full));
        while let Some((_, id)) = table.next(0) {
            table.remove(id);
        }
    }
    assert_eq!(
        (table.slots.first.as_ptr(), table.index.words.as_ptr(), table.len()),
        (before.0, before.1, 0)
    );
}

#[test]
fn of_a_key_that_a_flow_has_twice_the_last_counts() {
    let mut table: FlowTable<(), 2> = FlowTable::new(4, 1);
    let id = table.insert([5, 5], (), 0, 0).unwrap();
    assert_eq!(table.find(5), Some((id, 1)));
    table.remove(id);
    assert_eq!(table.find(5), None);
}

#[test]
fn room_for_more_is_made_without_a_look_at_the_flows_and_these_move_some_at_a_time() {
    let mut table: FlowTable<u64, 2> = FlowTable::new(100, 1);
    let keys = |n: u64| [u128::from(n), u128::from(n) << 70 | 1 << 69];
    (1..101).for_each(|n| assert!(table.insert(keys(n), n, 0, 0).is_ok()));
    let (first, second) = (table.slots.first.as_ptr(), table.insert(keys(101), 0, 0, 0));
    assert_eq!(second, Err(NoPlace::Full));
    table.set_limit(1_000);
    table.set_limit(3_000);
    let left = |table: &FlowTable<u64, 2>| -> usize {
        table.earlier.iter().flat_map(|index| &index.words).filter(|&&word| word != 0).count()
    };
    let found = |table: &FlowTable<u64, 2>, to: u64| {
        (1..to)
            .all(|n| keys(n).iter().all(|key| table.find(*key).and_then(|(id, _)| table.get(id)) == Some(&n)))
    };
    assert_eq!(left(&table), 200);
    for n in 1..4 {
        assert!(table.go_on(10) && found(&table, 101));
        assert_eq!(left(&table), 200 - 20 * n);
    }
    (101..111).for_each(|n| assert!(table.insert(keys(n), n, 0, 0).is_ok()));
    assert_eq!((left(&table), found(&table, 111)), (200 - 60 - 20 * MOVED, true));
    while table.go_on(10) {}
    (111..3_001).for_each(|n| assert!(table.insert(keys(n), n, 0, 0).is_ok()));
    assert_eq!((left(&table), found(&table, 3_001), table.unused.len()), (0, true, 0));
    assert_eq!(table.slots.first.as_ptr(), first);
    assert_eq!(table.insert(keys(4_000), 0, 0, 0), Err(NoPlace::Full));
}
