//! Real routing tables, given by path: every prefix's first and last address and the neighbours outside; readers
//! while a writer changes the table; and memory under many changes.
//!
//! `CAUSEWAY_FIB_V4` and `CAUSEWAY_FIB_V6` name text files of `prefix [next hop]` lines; without them nothing is
//! tested here. `CAUSEWAY_STRESS_SECONDS` and `CAUSEWAY_STRESS_CHANGES` say how long the readers and the changes go on.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use causeway_fib::{
    Address, Compact16, CompactFib4, Fib, Fib4, Fib6, FibError, Lines6, Lookup, MISS, Prefix, Rank24, Shared,
    Table,
};
use common::{ByLength, Numbers, routes, setting};

type Routes<A> = Vec<(Prefix<A>, u32)>;

fn check<A: Address, T: Table<A>>(table: &mut T, routes: &[(Prefix<A>, u32)], before: impl Fn(A) -> A) {
    table.load(routes).expect("room for the table");
    let by_length = ByLength::new(routes);
    let probes: Vec<A> = routes
        .iter()
        .flat_map(|(p, _)| [p.first(), p.last(), before(p.first()), p.last().successor().unwrap_or(A::ZERO)])
        .collect();
    let mut results = vec![0; probes.len()];
    table.lookup_batch(&probes, &mut results);
    for (&address, &result) in probes.iter().zip(&results) {
        let expected = by_length.around(address).next().unwrap_or(MISS);
        assert_eq!(result, expected, "{}", address.to_ip());
    }
    assert_eq!(table.rib().len(), by_length.len());
}

#[test]
fn ipv4() {
    if let Some(routes) = routes("CAUSEWAY_FIB_V4") {
        check(&mut Fib4::new().unwrap(), &routes, |address: u32| address.wrapping_sub(1));
        check(&mut CompactFib4::new().unwrap(), &routes, |address: u32| address.wrapping_sub(1));
    }
}

#[test]
fn ipv6() {
    if let Some(routes) = routes("CAUSEWAY_FIB_V6") {
        check(&mut Fib6::new().unwrap(), &routes, |address: u128| address.wrapping_sub(1));
    }
}

/// The same prefixes, each with a result of its own, as far as there are enough; it and the next one up are the
/// prefix's.
fn with_own_results<A: Address>(variable: &str) -> Option<Routes<A>> {
    let routes = routes(variable)?;
    Some((0..).zip(routes).map(|(number, (prefix, _))| (prefix, 2 + number % 16_000 * 2)).collect())
}

/// Withdraws a route or sets it to one of its two results.
fn change<A: Address, S: Shared<A>>(fib: &mut Fib<A, S>, routes: &Routes<A>, numbers: &mut Numbers) {
    let (prefix, own) = routes[numbers.next(routes.len() as u32) as usize];
    let refused = match numbers.next(3) {
        0 => fib.withdraw(prefix).err(),
        which => fib.replace(prefix, own + which - 1).err(),
    };
    match refused {
        None | Some(FibError::NotFound) => {}
        // A reader that the machine keeps from running holds on to what it sees.
        Some(FibError::Busy) => std::thread::yield_now(),
        Some(error) => panic!("{prefix}: {error}"),
    }
}

/// Reads until told to stop; returns how many results it checked.
fn read<A: Address, L: Lookup<A>>(reader: &L, routes: &Routes<A>, stop: &AtomicBool, seed: u64) -> u64 {
    let by_length = ByLength::new(routes);
    let (mut numbers, mut checked) = (Numbers(seed), 0);
    let (mut addresses, mut results) = ([A::ZERO; 256], [0; 256]);
    while !stop.load(Ordering::Relaxed) {
        for address in &mut addresses {
            let (prefix, _) = routes[numbers.next(routes.len() as u32) as usize];
            *address = if numbers.next(2) == 0 { prefix.first() } else { prefix.last() };
        }
        reader.lookup_batch(&addresses, &mut results);
        for (&address, &result) in addresses.iter().zip(&results) {
            let fits = result == MISS || by_length.around(address).any(|own| own == result & !1);
            assert!(fits, "{} gave {result}, which no prefix around it has", address.to_ip());
        }
        checked += results.len() as u64;
    }
    checked
}

fn stress<A: Address, S: Shared<A>>(routes: &Routes<A>) {
    let mut fib = Fib::<A, S>::build(routes).expect("room for the table");
    let stop = AtomicBool::new(false);
    let time = Duration::from_secs(setting("CAUSEWAY_STRESS_SECONDS", 2));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|seed| {
                let (reader, stop) = (fib.reader(), &stop);
                scope.spawn(move || read(&reader, routes, stop, seed))
            })
            .collect();
        let (mut numbers, start) = (Numbers(99), Instant::now());
        while start.elapsed() < time && !readers.iter().any(|reader| reader.is_finished()) {
            (0..64).for_each(|_| change(&mut fib, routes, &mut numbers));
        }
        stop.store(true, Ordering::Relaxed);
        let checked: u64 = readers.into_iter().map(|reader| reader.join().expect("a reader's checks")).sum();
        assert!(checked > 0, "the readers never ran");
    });
}

#[test]
fn readers_of_real_tables_see_only_what_was_there() {
    if let Some(routes) = with_own_results("CAUSEWAY_FIB_V4") {
        stress::<u32, Rank24>(&routes);
        stress::<u32, Compact16>(&routes);
    }
    if let Some(routes) = with_own_results("CAUSEWAY_FIB_V6") {
        stress::<u128, Lines6>(&routes);
    }
}

fn no_growth<A: Address, S: Shared<A>>(routes: &Routes<A>) {
    let changes = setting("CAUSEWAY_STRESS_CHANGES", 300_000);
    let mut fib = Fib::<A, S>::build(routes).expect("room for the table");
    let mut numbers = Numbers(5);
    let loaded = fib.bytes();
    (0..changes / 4 * 3).for_each(|_| change(&mut fib, routes, &mut numbers));
    let before = fib.bytes();
    (0..changes / 4).for_each(|_| change(&mut fib, routes, &mut numbers));
    println!(
        "{}: {loaded} bytes loaded, {before} after three quarters of {changes} changes, {} after all",
        S::NAME,
        fib.bytes()
    );
    let growth = fib.bytes() as f64 / before as f64;
    assert!(growth < 1.02, "{}: from {before} to {} bytes in the last quarter", S::NAME, fib.bytes());
}

#[test]
fn memory_of_real_tables_does_not_grow_with_changes() {
    if let Some(routes) = with_own_results("CAUSEWAY_FIB_V4") {
        no_growth::<u32, Rank24>(&routes);
        no_growth::<u32, Compact16>(&routes);
    }
    if let Some(routes) = with_own_results("CAUSEWAY_FIB_V6") {
        no_growth::<u128, Lines6>(&routes);
    }
}
