//! The IPv6 table on tables made to be hard for it.

use super::*;
use crate::memory::mapping::Baseline;
use crate::{Address, Fib, Fib6, FibError, Lines6, Lookup, Prefix, Prefix6, Table};

const BASE: u128 = 0x2001_0db8 << 96;

/// Prefixes made to be hard to reach, and how many steps below the first leaf they may take.
fn crafted() -> Vec<(&'static str, Vec<Prefix6>, usize)> {
    let host = |bits: u128| Prefix::host(BASE | bits);
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        u128::from(seed >> 40)
    };
    vec![
        ("neighbouring /48s", (0..1 << 12).map(|n| Prefix::truncated(BASE | n << 80, 48)).collect(), 0),
        ("neighbouring /64s", (0..1 << 12).map(|n| Prefix::truncated(BASE | n << 64, 64)).collect(), 3),
        ("neighbouring hosts", (0..1 << 12).map(host).collect(), 3),
        ("scattered hosts", (0..1 << 12).map(|_| host(random() << 72 | random())).collect(), 7),
        ("a chain of every length", (17..=128).map(|len| Prefix::truncated(BASE | 1, len)).collect(), 4),
        (
            "a chain of clusters",
            (0..12).flat_map(|n| (0..64).map(move |low| host(low << (8 * n) | 1 << (8 * n)))).collect(),
            5,
        ),
        (
            "scattered in groups at every depth",
            (0..1 << 12).map(|n| host((random() << (n % 72)) | (random() % 64))).collect(),
            10,
        ),
    ]
}

fn table(prefixes: &[Prefix6]) -> Fib6 {
    let routes: Vec<_> = prefixes.iter().copied().zip((1..).map(|n| 1 + n % 250)).collect();
    Fib6::build(&routes).unwrap()
}

fn probes(prefixes: &[Prefix6]) -> Vec<u128> {
    prefixes
        .iter()
        .flat_map(|p| [p.first(), p.last(), p.first().wrapping_sub(1), p.last().wrapping_add(1)])
        .collect()
}

/// Steps below the first leaf to the result for an address.
fn steps(core: &Lines6Core, address: u128) -> usize {
    let (index, rest) = core.first(address);
    let slot = slot(core.entry(index).load(Ordering::Relaxed), rest);
    let leaf = leaf_of(core.word(slot).load(Ordering::Relaxed), slot);
    let steps = std::iter::successors(Some(LEAF | leaf), |&entry| {
        (entry & (LEAF | BRANCH) != 0).then(|| core.below(Baseline, entry, &address))
    });
    steps.count() - 2
}

#[test]
fn the_steps_to_a_result_are_few_whatever_the_routes() {
    for (name, prefixes, most) in crafted() {
        let fib = table(&prefixes);
        let core = fib.structure().core();
        for address in probes(&prefixes) {
            let steps = steps(core, address);
            assert!(steps <= most, "{name}: {steps} steps below the first leaf to {}", address.to_ip());
        }
    }
}

#[test]
fn the_plain_code_answers_as_the_routes_do() {
    for (name, prefixes, _) in crafted() {
        let fib = table(&prefixes);
        let probes = probes(&prefixes);
        let mut results = vec![0; probes.len()];
        fib.structure().core().batch(Baseline, &probes, &mut results);
        for (&address, &result) in probes.iter().zip(&results) {
            assert_eq!(result, fib.rib().lookup(address), "{name}, batch, {}", address.to_ip());
            assert_eq!(fib.structure().core().one(Baseline, address), result, "{name}, {}", address.to_ip());
            assert_eq!(fib.lookup(address), result, "{name}, fast, {}", address.to_ip());
        }
    }
}

#[test]
fn churn_in_crowded_parts_leaves_every_result_right() {
    let mut seed = 7_u64;
    let mut random = |below: u128| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        u128::from(seed >> 33) % below
    };
    // Four /36s full of /48s, with a few longer and a few shorter ones: words of many leaves, leaves of leaves.
    let mut pool: Vec<Prefix6> =
        (0..6000).map(|_| Prefix::truncated(BASE | random(1 << 14) << 80, 48)).collect();
    pool.extend(
        (0..600_u32)
            .map(|n| Prefix::truncated(BASE | random(1 << 14) << 80 | random(9) << 60, (30 + n % 80) as u8)),
    );
    let mut fib = Fib6::new().unwrap();
    for step in 0..40_000 {
        let prefix = pool[random(pool.len() as u128) as usize];
        // Grows, then shrinks.
        if random(10) < if step < 20_000 { 8 } else { 3 } {
            fib.replace(prefix, 1 + random(250) as u32).unwrap();
        } else {
            drop(fib.withdraw(prefix));
        }
        if step % 4000 == 3999 {
            let probes = probes(&pool);
            let mut results = vec![0; probes.len()];
            fib.lookup_batch(&probes, &mut results);
            for (&address, &result) in probes.iter().zip(&results) {
                assert_eq!(result, fib.rib().lookup(address), "after {step} changes, {}", address.to_ip());
            }
        }
    }
}

/// Of what a table holds and how far its lookups go: bytes, and steps below the first leaf from all addresses.
fn shape(fib: &Fib6, addresses: &[u128]) -> (usize, usize) {
    (fib.bytes(), addresses.iter().map(|&address| steps(fib.structure().core(), address)).sum())
}

#[test]
fn a_table_filled_route_by_route_becomes_what_it_would_be_loaded() {
    let mut seed = 3_u64;
    let mut random = move |below: u128| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        u128::from(seed >> 33) % below
    };
    // Crowded and empty parts of two /16s, in any order.
    let mut prefix = || {
        let (top, site) = (0x2001 + random(2), random(1 << 7) * random(1 << 7));
        Prefix::truncated(top << 112 | site << 90 | random(1 << 10) << 80, 48 - random(6) as u8)
    };
    let routes: Vec<_> = (0..30_000).map(|n| (prefix(), 1 + n % 60)).collect();
    let mut filled = Fib6::new().unwrap();
    for &(prefix, adjacency) in &routes {
        filled.replace(prefix, adjacency).unwrap();
    }
    let loaded = Fib6::build(&routes).unwrap();
    let probes = probes(&routes.iter().map(|route| route.0).collect::<Vec<_>>());
    let ((bytes, steps), (loaded_bytes, loaded_steps)) = (shape(&filled, &probes), shape(&loaded, &probes));
    assert!(steps <= loaded_steps + probes.len() / 10, "{steps} steps, loaded {loaded_steps}");
    assert!(bytes < loaded_bytes * 2, "{bytes} bytes, loaded {loaded_bytes}");
}

#[test]
fn changes_of_whole_16s_leave_a_plan_as_good_as_it_was() {
    let cover: Prefix6 = "2001::/16".parse().unwrap();
    let prefixes: Vec<_> = (0..3 << 10).map(|n| Prefix::truncated(BASE | n << 80, 48)).collect();
    let mut fib = Fib6::new().unwrap();
    for n in 0..100 {
        fib.replace(cover, 1 + n % 2).unwrap();
    }
    for (&prefix, n) in prefixes.iter().zip(0..) {
        fib.replace(prefix, 1 + n % 250).unwrap();
    }
    let routes: Vec<_> = fib.rib().iter().collect();
    let probes = probes(&prefixes);
    let ((_, steps), (_, loaded_steps)) =
        (shape(&fib, &probes), shape(&Fib6::build(&routes).unwrap(), &probes));
    assert!(steps <= loaded_steps + probes.len() / 10, "{steps} steps, loaded {loaded_steps}");
}

#[test]
fn a_full_table_refuses_changes_and_stays_as_it_was() {
    let prefixes: Vec<_> = (0..4096).map(|n| Prefix::truncated(BASE | n << 80, 48)).collect();
    let mut fib = Fib::with_structure(Lines6::with_capacity(256).unwrap());
    let mut refused = 0;
    for (&prefix, adjacency) in prefixes.iter().zip((1..251).cycle()) {
        match fib.insert(prefix, adjacency) {
            Err(FibError::Full) => refused += 1,
            other => other.unwrap(),
        }
        if refused % 512 == 1 {
            for address in probes(&prefixes[..1024]) {
                assert_eq!(fib.lookup(address), fib.rib().lookup(address), "{}", address.to_ip());
            }
        }
    }
    assert!(refused > 1024, "256 leaves hold {} routes", fib.rib().len());
    assert!(fib.rib().len() > 32, "256 leaves hold {} routes", fib.rib().len());
    for prefix in fib.rib().iter().map(|route| route.0).collect::<Vec<_>>() {
        fib.withdraw(prefix).unwrap();
    }
    assert!(fib.insert(prefixes[0], 1).is_ok(), "what was withdrawn made room");
}
