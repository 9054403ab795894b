//! Real routing tables, given by path: every prefix's first and last address and the neighbours outside.
//!
//! `CAUSEWAY_FIB_V4` and `CAUSEWAY_FIB_V6` name text files of `prefix [next hop]` lines; without them nothing is
//! tested here.

use std::collections::HashMap;

use causeway_fib::{Address, CompactFib4, Fib4, Fib6, MISS, Prefix, Table};

fn routes<A: Address>(variable: &str) -> Option<Vec<(Prefix<A>, u32)>> {
    let Ok(path) = std::env::var(variable) else {
        eprintln!("skipped: {variable} names no table");
        return None;
    };
    let text = std::fs::read_to_string(path).expect("a readable table");
    let route = |(number, line): (usize, &str)| {
        let mut words = line.split_whitespace();
        let prefix = words.next()?.parse().expect("a prefix");
        Some((prefix, words.next().map_or(number as u32 % 200 + 1, |word| word.parse().expect("a next hop"))))
    };
    Some(text.lines().enumerate().filter_map(route).collect())
}

/// Longest-prefix match by trying every length.
fn expected<A: Address>(by_length: &[HashMap<A, u32>], address: A) -> u32 {
    let lengths = (0..=A::BITS).rev();
    lengths
        .filter_map(|len| by_length[usize::from(len)].get(&(address & A::mask(len))))
        .next()
        .copied()
        .unwrap_or(MISS)
}

fn check<A: Address, T: Table<A>>(table: &mut T, routes: &[(Prefix<A>, u32)], before: impl Fn(A) -> A) {
    table.load(routes).expect("room for the table");
    let mut by_length = vec![HashMap::new(); usize::from(A::BITS) + 1];
    for (prefix, next_hop) in routes {
        by_length[usize::from(prefix.len())].insert(prefix.first(), *next_hop);
    }
    let probes: Vec<A> = routes
        .iter()
        .flat_map(|(p, _)| [p.first(), p.last(), before(p.first()), p.last().successor().unwrap_or(A::ZERO)])
        .collect();
    let mut results = vec![0; probes.len()];
    table.lookup_batch(&probes, &mut results);
    for (&address, &result) in probes.iter().zip(&results) {
        assert_eq!(result, expected(&by_length, address), "{}", address.to_ip());
    }
    assert_eq!(table.rib().len(), by_length.iter().map(HashMap::len).sum::<usize>());
}

#[test]
fn ipv4() {
    if let Some(routes) = routes("CAUSEWAY_FIB_V4") {
        check(&mut Fib4::new(), &routes, |address: u32| address.wrapping_sub(1));
        check(&mut CompactFib4::new(), &routes, |address: u32| address.wrapping_sub(1));
    }
}

#[test]
fn ipv6() {
    if let Some(routes) = routes("CAUSEWAY_FIB_V6") {
        check(&mut Fib6::new(), &routes, |address: u128| address.wrapping_sub(1));
    }
}
