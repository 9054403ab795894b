//! Workers that look up and follow routes while another thread changes them: one announcement a round for all tables.
//!
//!     cargo run --release -p causeway-fib --example workers

use std::sync::atomic::{AtomicBool, Ordering};

use causeway_fib::{
    Adjacencies, AdjacencyReader, BATCH_MAX, Domain, Fib, Fib4, Fib4Reader, FibError, Lookup, MISS,
    Participant, Prefix, Table,
};

/// A worker's round after round: addresses in, next hops out. Returns how many packets had a next hop.
fn work(
    worker: &Participant,
    fib: &Fib4Reader,
    hops: &AdjacencyReader<&'static str>,
    stop: &AtomicBool,
) -> u64 {
    let addresses: [u32; BATCH_MAX] = std::array::from_fn(|packet| 0x0a00_0000 | (packet as u32) << 12);
    let mut found = [MISS; BATCH_MAX];
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let round = worker.pin();
        if let Some(table) = fib.under(&round) {
            table.lookup_batch(&addresses, &mut found);
        }
        let view = hops.under(&round);
        let hops = found.iter().zip(&addresses).filter_map(|(&index, &flow)| view.resolve(index, flow));
        sent += hops.filter(|name| !name.is_empty()).count() as u64;
    }
    sent
}

fn main() -> Result<(), FibError> {
    let domain = Domain::new();
    let mut fib: Fib4 = Fib::in_domain(&domain)?;
    let mut hops = Adjacencies::in_domain(&domain);
    let (left, right) = (hops.acquire("left")?, hops.acquire("right")?);
    let both = hops.group(&[(left, 1), (right, 3)])?;
    fib.insert(Prefix::truncated(0x0a00_0000, 8), both)?;
    let stop = &AtomicBool::new(false);
    let sent: u64 = std::thread::scope(|scope| {
        let workers = [0, 1].map(|_| {
            let (worker, fib, hops) = (domain.participant(), fib.reader(), hops.reader());
            scope.spawn(move || work(&worker, &fib, &hops, stop))
        });
        // Many routes at once, and one store that moves them all.
        let changes: Vec<_> =
            (0..256).map(|n| (Prefix::truncated(0x0a00_0000 | n << 12, 20), Some(left))).collect();
        let done = fib.apply(&changes).and_then(|()| hops.set_next_hop(left, "other left"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        done.map(|()| workers.into_iter().filter_map(|worker| worker.join().ok()).sum())
    })?;
    println!("{sent} packets; routes of 10.0.0.0/20 lead to {:?}", hops.reader().pin().resolve(left, 0));
    Ok(())
}
