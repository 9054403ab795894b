//! The structures alone: a lookup after the other, nothing around them.

use super::super::graph::Route;
use anyhow::Result;
use causeway_fib::route_cache::{CacheConfig, CacheKey, Flow, RouteCache};
use causeway_fib::{Fib, Lookup, Prefix, Structure};
use rustix::time::{ClockId, clock_gettime};

/// Passes over the packets in a round: a few milliseconds at the least.
const PASSES: usize = 4;
/// Time between packets as the cache sees it: a million a second.
const PACKETS_PER_MS: u64 = 1000;

/// Routes as structures take them; gateways count from 0, adjacencies from 1.
pub fn routes(routes: &[Route]) -> Vec<(Prefix<u32>, u32)> {
    routes.iter().map(|&(prefix, len, gateway)| (Prefix::truncated(prefix, len), gateway + 1)).collect()
}

/// Nanoseconds of processor time a call of `pass` takes, by packet, in each round; the first pass is not counted.
fn measure(packets: usize, rounds: usize, mut pass: impl FnMut() -> u32) -> Vec<f64> {
    let now_ns = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    std::hint::black_box(pass());
    let round = |_| {
        let start_ns = now_ns();
        for _ in 0..PASSES {
            std::hint::black_box(pass());
        }
        (now_ns() - start_ns) / (PASSES * packets) as f64
    };
    (0..rounds).map(round).collect()
}

/// Nanoseconds a packet through a cache in front of `table`, and the entries that the cache then has.
pub fn cached<L: Lookup<u32>>(
    table: &L,
    key: CacheKey,
    buckets: usize,
    flows: &[Flow<u32>],
    rounds: usize,
) -> (Vec<f64>, u64) {
    let mut cache = RouteCache::new(CacheConfig::with_buckets(key, buckets), 0x5eed);
    let mut packets = 0;
    let rounds_ns = measure(flows.len(), rounds, || {
        let mut lookup = |flow: &Flow<u32>| {
            packets += 1;
            cache.lookup(*flow, packets / PACKETS_PER_MS, |address| table.lookup(address))
        };
        flows.iter().fold(0_u32, |sum, flow| sum.wrapping_add(lookup(flow)))
    });
    (rounds_ns, cache.active() as u64)
}

/// Nanoseconds a lookup in a table of `routes`.
pub fn uncached<S: Structure<u32>>(routes: &[Route], addresses: &[u32], rounds: usize) -> Result<Vec<f64>> {
    let fib = Fib::<u32, S>::build(&self::routes(routes))?;
    let table = fib.structure();
    Ok(measure(addresses.len(), rounds, || {
        addresses.iter().fold(0_u32, |sum, &address| sum.wrapping_add(table.lookup(address)))
    }))
}
