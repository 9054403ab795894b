//! What the tests of concurrency and of real tables share.
#![allow(dead_code)] // each test file uses its part

use std::collections::HashMap;

use causeway_fib::{Address, Prefix};

/// A repeatable generator (a linear congruence, the upper bits of it).
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `below`.
    pub fn next(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (((self.0 >> 33) * u64::from(below)) >> 31) as u32
    }
}

/// A number from the environment.
pub fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The table that a variable names: a text file of `prefix [next hop]` lines.
pub fn routes<A: Address>(variable: &str) -> Option<Vec<(Prefix<A>, u32)>> {
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

/// Routes by length and address.
pub struct ByLength<A>(Vec<HashMap<A, u32>>);

impl<A: Address> ByLength<A> {
    pub fn new(routes: &[(Prefix<A>, u32)]) -> Self {
        let mut by_length = vec![HashMap::new(); usize::from(A::BITS) + 1];
        for (prefix, next_hop) in routes {
            by_length[usize::from(prefix.len())].insert(prefix.first(), *next_hop);
        }
        ByLength(by_length)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(HashMap::len).sum()
    }

    /// What all prefixes around an address lead to, the longest first.
    pub fn around(&self, address: A) -> impl Iterator<Item = u32> {
        let lengths = (0..=A::BITS).rev();
        lengths.filter_map(move |len| self.0[usize::from(len)].get(&(address & A::mask(len))).copied())
    }
}
