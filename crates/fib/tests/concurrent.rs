//! Readers look up while the writer changes routes as fast as it can: no result may ever belong to another prefix,
//! which is what reuse of memory under a reader would show as.
//!
//! Two seconds a table and 300 000 changes; `CAUSEWAY_STRESS_SECONDS` and `CAUSEWAY_STRESS_CHANGES` set others.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use causeway_fib::baseline::dir24_8::Dir24_8;
use causeway_fib::baseline::{lctrie::LcTrie, radix::Radix};
use causeway_fib::policy::{PolicyReader, SharedPolicy};
use causeway_fib::{
    Address, Adjacencies, AdjacencyReader, Compact16, CompactFib4, Domain, Fib, Fib4, Fib4Reader, Fib6,
    FibError, LeftRight, Lookup, Participant, Prefix, Rank24, Shared, Table,
};
use common::{Numbers, setting};

/// Disjoint prefixes, each with two results of its own.
const PREFIXES: u32 = 4096;
/// What covers them all: one of two.
const COVERS: [u32; 2] = [1, 2];
const OWN: u32 = 10;

fn own(number: u32) -> u32 {
    OWN + number % 4000 * 2
}

/// Reads until told to stop; returns how many results it checked.
fn read<A: Address, L: Lookup<A>>(reader: &L, prefixes: &[Prefix<A>], stop: &AtomicBool, seed: u64) -> u64 {
    let mut numbers = Numbers(seed);
    let (mut checked, mut addresses, mut of) = (0, [A::ZERO; 256], [0; 256]);
    let mut results = [0; 256];
    while !stop.load(Ordering::Relaxed) {
        for (address, of) in addresses.iter_mut().zip(&mut of) {
            *of = numbers.next(PREFIXES);
            let prefix = prefixes[*of as usize];
            *address = if numbers.next(2) == 0 { prefix.first() } else { prefix.last() };
        }
        reader.lookup_batch(&addresses, &mut results);
        for (&result, &of) in results.iter().zip(&of) {
            let fits = COVERS.contains(&result) || result & !1 == own(of);
            assert!(fits, "prefix {of} gave {result}, which is neither {} nor a cover", own(of));
        }
        checked += results.len() as u64;
    }
    checked
}

/// Changes a route. A reader that the machine keeps from running holds on to what it sees, and a writer at full speed
/// may find no room then: the change is refused, and the table stays as it was.
fn change<A: Address, S: Shared<A>>(fib: &mut Fib<A, S>, prefix: Prefix<A>, to: u32) {
    match fib.replace(prefix, to) {
        Err(FibError::Busy) => std::thread::yield_now(),
        other => drop(other.expect("a change within the table's limits")),
    }
}

/// Tells the readers to stop, also when the writer fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn stress<A: Address, S: Shared<A>>(cover: Prefix<A>, prefixes: &[Prefix<A>]) {
    let seconds = setting("CAUSEWAY_STRESS_SECONDS", 2);
    let mut fib = Fib::<A, S>::build(&[(cover, COVERS[0])]).unwrap();
    let (stop, checked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (reader, stop, checked) = (fib.reader(), &stop, &checked);
            scope.spawn(move || checked.fetch_add(read(&reader, prefixes, stop, seed), Ordering::Relaxed));
        }
        let _stop = Stop(&stop);
        let mut numbers = Numbers(99);
        let (end, mut changes) = (Instant::now() + Duration::from_secs(seconds), 0_u32);
        while Instant::now() < end {
            for _ in 0..64 {
                changes += 1;
                let number = numbers.next(PREFIXES);
                let prefix = prefixes[number as usize];
                match numbers.next(3) {
                    0 => drop(fib.withdraw(prefix)),
                    which => change(&mut fib, prefix, own(number) + which - 1),
                }
                if changes % 4096 == 0 {
                    change(&mut fib, cover, COVERS[changes as usize / 4096 % 2]);
                }
            }
        }
        assert!(changes > 64, "the writer never ran");
    });
    assert!(checked.load(Ordering::Relaxed) > 0, "the readers never ran");
}

/// Any thread may own and change a table, and any number may share the way to it.
#[test]
fn tables_may_be_changed_by_another_thread_than_the_one_that_looks_up() {
    fn goes<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    goes::<(Fib4, CompactFib4, Fib6, LeftRight<u32, Radix<u32>>)>();
    goes::<(Adjacencies<u32>, SharedPolicy<u32, Compact16>)>();
    goes::<(Fib4Reader, AdjacencyReader<u32>, PolicyReader<u32, Compact16>, Participant)>();
    is_shared::<(<Rank24 as Shared<u32>>::Handle, Domain)>();
    let mut fib = Fib4::new().unwrap();
    let reader = fib.reader();
    let fib = std::thread::spawn(move || {
        fib.insert(Prefix::DEFAULT, 1).unwrap();
        fib
    });
    let fib = fib.join().unwrap();
    assert_eq!((reader.lookup(7), fib.rib().len()), (1, 1));
}

fn prefixes4() -> Vec<Prefix<u32>> {
    (0..PREFIXES)
        .map(|number| Prefix::truncated(0x0a00_0000 | number << 12, 20 + (number % 13) as u8))
        .collect()
}

#[test]
fn fib4_readers_see_only_what_was_there() {
    stress::<u32, causeway_fib::Rank24>("10.0.0.0/8".parse().unwrap(), &prefixes4());
}

#[test]
fn compact_readers_see_only_what_was_there() {
    stress::<u32, causeway_fib::Compact16>("10.0.0.0/8".parse().unwrap(), &prefixes4());
}

fn prefixes6() -> Vec<Prefix<u128>> {
    let prefix = |number: u32| {
        let address = 0x2001_0db8_u128 << 96 | u128::from(number) << 84;
        Prefix::truncated(address, 44 + (number % 85) as u8)
    };
    (0..PREFIXES).map(prefix).collect()
}

#[test]
fn fib6_readers_see_only_what_was_there() {
    stress::<u128, causeway_fib::Lines6>("2001:db8::/32".parse().unwrap(), &prefixes6());
}

#[test]
fn readers_of_two_copies_see_only_what_was_there() {
    let cover = "10.0.0.0/8".parse().unwrap();
    stress::<u32, LeftRight<u32, Radix<u32>>>(cover, &prefixes4());
    stress::<u32, LeftRight<u32, LcTrie<u32>>>(cover, &prefixes4());
    stress::<u32, LeftRight<u32, Dir24_8>>(cover, &prefixes4());
    stress::<u128, LeftRight<u128, Radix<u128>>>("2001:db8::/32".parse().unwrap(), &prefixes6());
}

/// Where a route leads: the prefix's number, and how often it was changed.
type Hop = (u32, u32);

/// Follows routes to their next hops until told to stop; returns how many it followed.
fn follow(fib: &Fib4Reader, hops: &AdjacencyReader<Hop>, prefixes: &[Prefix<u32>], stop: &AtomicBool) -> u64 {
    let (mut numbers, mut followed) = (Numbers(7), 0);
    let (mut of, mut results) = ([0; 64], [0; 64]);
    while !stop.load(Ordering::Relaxed) {
        of.fill_with(|| numbers.next(prefixes.len() as u32));
        let view = hops.pin();
        fib.lookup_batch(&of.map(|number| prefixes[number as usize].first()), &mut results);
        for (&index, &number) in results.iter().zip(&of) {
            // Nowhere, if the route was moved since.
            if let Some(hop) = view.resolve(index, 0) {
                assert_eq!(hop.0, number, "index {index} leads to the next hop of another route");
                followed += 1;
            }
        }
    }
    followed
}

/// Next hops come and go as fast as routes can be moved to them, so that few indices serve again and again.
#[test]
fn readers_never_meet_an_index_with_the_next_hop_of_another_route() {
    let prefixes = &prefixes4()[..16];
    let (mut fib, mut hops) = (Fib4::new().unwrap(), Adjacencies::new());
    let first =
        prefixes.iter().zip(0..).map(|(&prefix, number)| (prefix, hops.acquire((number, 0)).unwrap()));
    fib.load(&first.collect::<Vec<_>>()).unwrap();
    let (stop, followed) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (fib, hops, stop, followed) = (fib.reader(), hops.reader(), &stop, &followed);
            scope.spawn(move || {
                followed.fetch_add(follow(&fib, &hops, prefixes, stop), Ordering::Relaxed);
            });
        }
        let _stop = Stop(&stop);
        let mut numbers = Numbers(99);
        let end = Instant::now() + Duration::from_secs(setting("CAUSEWAY_STRESS_SECONDS", 2));
        for change in 1.. {
            let number = numbers.next(prefixes.len() as u32);
            match hops.acquire((number, change)) {
                Err(FibError::Busy) => std::thread::yield_now(),
                index => {
                    let old = fib.replace(prefixes[number as usize], index.unwrap()).unwrap();
                    hops.release(old.expect("every prefix has a route")).unwrap();
                }
            }
            if change % 64 == 0 && Instant::now() >= end {
                break;
            }
        }
    });
    assert!(followed.load(Ordering::Relaxed) > 0, "the readers never ran");
}

/// Memory is bounded by the busiest moment, however many changes come.
fn no_growth<A: Address, T: Table<A>>(fib: &mut T, prefixes: &[Prefix<A>]) {
    let changes = setting("CAUSEWAY_STRESS_CHANGES", 300_000);
    let mut numbers = Numbers(5);
    let mut churn = |fib: &mut T, count| {
        for _ in 0..count {
            let number = numbers.next(PREFIXES);
            match numbers.next(3) {
                0 => drop(fib.withdraw(prefixes[number as usize])),
                which => drop(fib.replace(prefixes[number as usize], own(number) + which - 1).unwrap()),
            }
        }
    };
    churn(fib, changes / 4 * 3);
    let before = fib.bytes();
    churn(fib, changes / 4);
    let growth = fib.bytes() as f64 / before as f64;
    assert!(growth < 1.02, "from {before} to {} bytes in the last quarter", fib.bytes());
}

#[test]
fn memory_does_not_grow_with_changes() {
    no_growth(&mut Fib4::new().unwrap(), &prefixes4());
    no_growth(&mut CompactFib4::new().unwrap(), &prefixes4());
    let six = |number: u32| Prefix::truncated(0x2001_0db8_u128 << 96 | u128::from(number) << 84, 48);
    no_growth(&mut Fib6::new().unwrap(), &(0..PREFIXES).map(six).collect::<Vec<_>>());
}
