//! The lookup paper's experiments (Bolla and Bruschi), standalone: `fib-bench lut`.
//!
//! LUT-2 to LUT-4: one destination, 1 to 16 384 sources, the flow as cache key. LUT-9: the destination as key.
//! LUT-10 and 12: one source, 1 to 16 384 destinations. LUT-11, 13 to 15: no cache, Radix against LC-trie, tables of
//! 16 to 1 048 576 routes hit uniformly; the default table for comparison.

use std::fmt::Write as _;
use std::path::Path;

use causeway_fib::papers::cache::{CacheConfig, CacheKey, Flow, RouteCache};
use causeway_fib::papers::{lctrie::LcTrie, radix::Radix};
use causeway_fib::{Fib, Lookup, Rank24, Structure};

use crate::contender::cpu_time;
use crate::random::Random;
use crate::tables::{Route, synthetic};

const LOOKUPS: usize = 1 << 18;
const ROUNDS: usize = 5;
/// Time between packets as the cache sees it: a million a second.
const PACKETS_PER_MS: u64 = 1000;

/// One point of a curve.
struct Point {
    experiment: &'static str,
    curve: &'static str,
    x: usize,
    ns: f64,
    active: usize,
    total: usize,
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Nanoseconds a packet through a cache in front of `table`, after one pass to fill it.
fn through_cache<L: Lookup<u32>>(table: &L, key: CacheKey, flows: &[Flow<u32>]) -> (f64, usize, usize) {
    // 4 096 buckets is what Linux 2.6 gave a machine of the paper's size.
    let mut cache = RouteCache::new(CacheConfig::with_buckets(key, 4096), 0x5eed);
    let mut packets = 0;
    let mut pass = |cache: &mut RouteCache<u32>| {
        let start = cpu_time();
        let mut sum = 0_u32;
        for &flow in flows {
            packets += 1;
            sum = sum
                .wrapping_add(cache.lookup(flow, packets / PACKETS_PER_MS, |address| table.lookup(address)));
        }
        std::hint::black_box(sum);
        (cpu_time() - start).as_nanos() as f64 / flows.len() as f64
    };
    pass(&mut cache);
    let ns = median((0..ROUNDS).map(|_| pass(&mut cache)).collect());
    (ns, cache.active(), cache.total())
}

fn cached(routes: &[Route<u32>], points: &mut Vec<Point>) {
    let mut random = Random(11);
    let table = Fib::<u32, Radix<u32>>::build(routes).unwrap_or_else(|error| panic!("radix: {error}"));
    let table = table.structure();
    let inside = |random: &mut Random| {
        let prefix = routes[random.below(routes.len())].0;
        prefix.first() | (random.next() as u32 & !(u32::MAX << (32 - u32::from(prefix.len()))))
    };
    let one = inside(&mut random);
    for exponent in (0..=14).step_by(2) {
        let count = 1_usize << exponent;
        let sources: Vec<u32> = (0..count).map(|_| random.next() as u32).collect();
        let flows: Vec<_> = (0..LOOKUPS)
            .map(|_| Flow { source: sources[random.below(count)], destination: one, tos: 0 })
            .collect();
        for (experiment, curve, key) in [
            ("LUT-2/3/4", "flow key", CacheKey::Flow),
            ("LUT-9", "destination key", CacheKey::Destination),
            ("LUT-9", "no cache", CacheKey::Off),
        ] {
            let (ns, active, total) = through_cache(table, key, &flows);
            points.push(Point { experiment, curve, x: count, ns, active, total });
        }
        let destinations: Vec<u32> = (0..count).map(|_| inside(&mut random)).collect();
        let flows: Vec<_> = (0..LOOKUPS)
            .map(|_| Flow { source: 1, destination: destinations[random.below(count)], tos: 0 })
            .collect();
        for (curve, key) in [("destination key", CacheKey::Destination), ("no cache", CacheKey::Off)] {
            let (ns, active, total) = through_cache(table, key, &flows);
            points.push(Point { experiment: "LUT-10/12", curve, x: count, ns, active, total });
        }
    }
}

fn uncached<S: Structure<u32>>(routes: &[Route<u32>], curve: &'static str, points: &mut Vec<Point>) {
    let fib = Fib::<u32, S>::build(routes).unwrap_or_else(|error| panic!("{curve}: {error}"));
    let mut random = Random(12);
    let addresses: Vec<u32> = (0..LOOKUPS)
        .map(|_| {
            let prefix = routes[random.below(routes.len())].0;
            prefix.first() | (random.next() as u32 & (prefix.last() ^ prefix.first()))
        })
        .collect();
    let pass = || {
        let start = cpu_time();
        let sum =
            addresses.iter().fold(0_u32, |sum, &address| sum.wrapping_add(fib.structure().lookup(address)));
        std::hint::black_box(sum);
        (cpu_time() - start).as_nanos() as f64 / addresses.len() as f64
    };
    pass();
    let ns = median((0..ROUNDS).map(|_| pass()).collect());
    points.push(Point { experiment: "LUT-11/13-15", curve, x: routes.len(), ns, active: 0, total: 0 });
}

/// Runs all of them, prints them and writes `lut.csv`.
pub fn run(output: &Path) -> Result<(), String> {
    let mut points = Vec::new();
    cached(&synthetic::<u32>(16_384, 1), &mut points);
    for exponent in (4..=20).step_by(2) {
        let routes = synthetic::<u32>(1 << exponent, 1);
        uncached::<Radix<u32>>(&routes, "radix", &mut points);
        uncached::<LcTrie<u32>>(&routes, "lc-trie", &mut points);
        uncached::<Rank24>(&routes, "rank24", &mut points);
    }
    let mut csv = String::from("experiment,curve,x,ns_per_lookup,cache_active,cache_total\n");
    println!(
        "{:<14} {:<16} {:>9} {:>12} {:>8} {:>8}",
        "experiment", "curve", "x", "ns a lookup", "active", "total"
    );
    for Point { experiment, curve, x, ns, active, total } in &points {
        println!("{experiment:<14} {curve:<16} {x:>9} {ns:>12.1} {active:>8} {total:>8}");
        let _ = writeln!(csv, "{experiment},{curve},{x},{ns:.2},{active},{total}");
    }
    let write = || std::fs::create_dir_all(output).and_then(|()| std::fs::write(output.join("lut.csv"), csv));
    write().map_err(|error| format!("{}: {error}", output.display()))
}
