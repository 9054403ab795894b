//! Who looks up allocates nothing, whatever was changed before; and changes that come and go allocate little.

mod common;
#[path = "../../elements/tests/counting/mod.rs"]
mod counting;

use causeway_fib::policy::{Action, PolicyKey, Rule, SharedPolicy};
use causeway_fib::{
    Address, Adjacencies, Compact16, Fib, Lines6, Lookup, MISS, Prefix, Rank24, Shared, Structure, Table,
};
use common::Numbers;
use std::num::NonZeroU8;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Routes of a table, and fewer blocks than a change may allocate.
const ROUTES: u32 = 4_000;
const MOST: u64 = 100;

/// What `work` allocates.
fn blocks(work: impl FnOnce()) -> u64 {
    let before = counting::blocks();
    work();
    counting::blocks() - before
}

fn address<A: Address>(numbers: &mut Numbers) -> A {
    (0..u32::from(A::BITS) / 16)
        .fold(A::default(), |address, _| address << 16 | A::from_u32(numbers.next(1 << 16)))
}

fn prefix<A: Address>(numbers: &mut Numbers) -> Prefix<A> {
    let len = 8 + numbers.next(u32::from(A::BITS) - 7) as u8;
    Prefix::truncated(address(numbers), len)
}

/// Changes a table of many routes; what lookups between the changes allocate, and each change at most.
fn changed<A: Address, S: Structure<A> + Shared<A>>() -> (u64, u64) {
    let mut numbers = Numbers(7);
    let routes: Vec<_> = (0..ROUTES).map(|n| (prefix::<A>(&mut numbers), 1 + n % 30)).collect();
    let mut table = Fib::<A, S>::build(&routes).unwrap();
    let reader = table.reader();
    let (mut looked_up, mut most) = (0, 0);
    for n in 0..2_000 {
        let (prefix, hop) = routes[numbers.next(ROUTES) as usize];
        let change = blocks(|| {
            if n % 2 == 0 {
                let _ = table.withdraw(prefix);
            } else {
                table.replace(prefix, hop).unwrap();
            }
        });
        most = most.max(change);
        let addresses: [A; 256] = std::array::from_fn(|_| address(&mut numbers));
        let mut found = [MISS; 256];
        looked_up += blocks(|| {
            reader.lookup_batch(&addresses, &mut found);
            found[0] = reader.lookup(prefix.first());
        });
    }
    (looked_up, most)
}

/// What is allocated to find next hops, between changes of which, and of groups of them.
fn adjacencies() -> u64 {
    let mut table = Adjacencies::new();
    let hops: Vec<_> = (0..64u32).map(|hop| table.acquire(hop).unwrap()).collect();
    let group = table.group(&[(hops[0], 1), (hops[1], 2)]).unwrap();
    let (reader, mut found) = (table.reader(), 0);
    let allocated = (0..500u32)
        .map(|n| {
            table.set_members(group, &[(hops[n as usize % 64], 1), (hops[n as usize % 7], 3)]).unwrap();
            table.set_next_hop(hops[n as usize % 64], 1_000 + n).unwrap();
            blocks(|| {
                let view = reader.pin();
                found += u32::from(view.resolve(group, n.wrapping_mul(0x9e37_79b9)).is_some());
                found += u32::from(hops.iter().all(|&hop| view.resolve(hop, n).is_some()));
            })
        })
        .sum();
    assert_eq!(found, 1_000);
    allocated
}

/// What is allocated to look up by rules, between changes of these and of the routes.
fn policy() -> u64 {
    let mut policy = SharedPolicy::<u32, Rank24>::new().unwrap();
    let reader = policy.reader();
    let mut numbers = Numbers(3);
    (0..200u32)
        .map(|n| {
            let source = Some(Prefix::truncated(numbers.next(1 << 31) << 1, 8 + n as u8 % 16));
            let rule = |priority, source, table| {
                let action = Action::Table(table);
                Rule { priority, source, tos: None, mark: None, interface: None, action }
            };
            policy.set_rules(&[rule(1, source, 1 + n as u8 % 3), rule(2, None, 4)]).unwrap();
            let table = policy.table(NonZeroU8::new(1 + n as u8 % 4).unwrap()).unwrap();
            table.replace(prefix(&mut numbers), 1 + n).unwrap();
            let keys: [_; 256] = std::array::from_fn(|_| PolicyKey {
                source: numbers.next(1 << 31) << 1,
                destination: numbers.next(1 << 31) << 1,
                ..PolicyKey::default()
            });
            let mut found = [MISS; 256];
            blocks(|| reader.lookup_batch(&keys, &mut found))
        })
        .sum()
}

#[test]
fn lookups_allocate_nothing_and_changes_not_a_block_a_route() {
    // One after the other, since blocks are counted for all threads.
    let tables = [changed::<u32, Rank24>(), changed::<u32, Compact16>(), changed::<u128, Lines6>()];
    assert_eq!((tables.map(|(looked_up, _)| looked_up), adjacencies(), policy()), ([0; 3], 0, 0));
    assert!(tables.iter().all(|&(_, most)| most < MOST), "{tables:?}");
}
