//! What updates cost readers, and crafted worst cases: `fib-bench disturb` and `fib-bench worst`.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use causeway_fib::{Address, Fib, Lines6, Lookup, Prefix, Rank24, Shared, Structure, Table};

use crate::contender::{Mode, cpu_time, pin_to, time};
use crate::random::Random;
use crate::tables::{Family, Route, synthetic, synthetic_updates};

const ROUND: Duration = Duration::from_millis(400);
const ROUNDS: usize = 5;

/// Changes a second the writer makes: none while asleep or spinning.
#[derive(Clone, Copy, Debug)]
enum Writer {
    Asleep,
    Spinning,
    Rate(u32),
}

/// A reader on one processor in batches of 256, a writer on another; prints nanoseconds a lookup for each pace.
pub fn readers<A: Family, S: Shared<A> + Send>(routes: &[Route<A>]) {
    let mut fib = Fib::<A, S>::build(routes).unwrap_or_else(|error| panic!("{}: {error}", S::NAME));
    let stream = synthetic_updates(routes, 1 << 18, 3);
    let mut random = Random(5);
    let addresses: Vec<A> = (0..1 << 18)
        .map(|_| {
            let prefix = routes[random.below(routes.len())].0;
            prefix.first() | (A::any(&mut random) & !A::mask(prefix.len()))
        })
        .collect();
    println!("{} reader, ns a lookup in batches (5 rounds), by what the writer does meanwhile:", S::NAME);
    for writer in [Writer::Asleep, Writer::Spinning, Writer::Rate(10_000), Writer::Rate(100_000)] {
        let rounds: Vec<_> = (0..ROUNDS).map(|_| round(&mut fib, &addresses, &stream, writer)).collect();
        let list: Vec<_> = rounds.iter().map(|ns| format!("{ns:.2}")).collect();
        println!("  {:<14} {}", format!("{writer:?}"), list.join(" "));
    }
    println!(
        "  an update was seen by a polling reader after {:.1} us (median of 2000)",
        visibility(&mut fib, routes)
    );
}

fn round<A: Family, S: Shared<A> + Send>(
    fib: &mut Fib<A, S>,
    addresses: &[A],
    stream: &[crate::tables::Update<A>],
    writer: Writer,
) -> f64 {
    let (stop, reader) = (&AtomicBool::new(false), fib.reader());
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            pin_to(0);
            let mut results = vec![0; addresses.len()];
            let (mut spent, mut passes) = (Duration::ZERO, 0);
            while !stop.load(Ordering::Relaxed) {
                spent += time(&reader, Mode::Batch, addresses, &mut results);
                passes += 1;
            }
            spent.as_nanos() as f64 / (f64::from(passes) * addresses.len() as f64)
        });
        pin_to(1);
        let (start, mut done) = (Instant::now(), 0_usize);
        while start.elapsed() < ROUND {
            let due = match writer {
                Writer::Asleep => {
                    std::thread::sleep(Duration::from_millis(20));
                    0
                }
                Writer::Spinning => 0,
                Writer::Rate(rate) => (start.elapsed().as_secs_f64() * f64::from(rate)) as usize,
            };
            while done < due {
                let (prefix, next_hop) = stream[done % stream.len()];
                match next_hop {
                    Some(next_hop) => drop(fib.replace(prefix, next_hop)),
                    None => drop(fib.withdraw(prefix)),
                }
                done += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        worker.join().unwrap_or(f64::NAN)
    })
}

/// Microseconds from the call of `replace` until a reader on another processor gets the new result.
fn visibility<A: Family, S: Shared<A> + Send>(fib: &mut Fib<A, S>, routes: &[Route<A>]) -> f64 {
    let reader = fib.reader();
    let (target, seen) = (routes[routes.len() / 2].0, &AtomicU32::new(0));
    let stop = &AtomicBool::new(false);
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        scope.spawn(move || {
            pin_to(0);
            while !stop.load(Ordering::Relaxed) {
                seen.store(reader.lookup(target.last()), Ordering::Release);
            }
        });
        pin_to(1);
        let times = (0..2000_u32)
            .map(|turn| {
                let next_hop = 1000 + turn % 2;
                let start = Instant::now();
                drop(fib.replace(Prefix::host(target.last()), next_hop));
                while seen.load(Ordering::Acquire) != next_hop {
                    std::hint::spin_loop();
                }
                start.elapsed().as_nanos() as f64 / 1e3
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        times
    });
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Tables and traffic made to be slow; prints the dearest of each.
pub fn worst() {
    let mut random = Random(21);
    println!("crafted worst cases, ns a lookup: chained / batch");
    // Every /24 of a /9 differs from its neighbours, and each has a host route: three levels, nothing merges.
    let mut routes: Vec<Route<u32>> =
        (0..1_u32 << 15).map(|n| (Prefix::truncated(n << 8, 24), 1 + n % 2)).collect();
    routes.extend((0..1_u32 << 14).map(|n| (Prefix::host(n << 9 | 77), 3)));
    let addresses: Vec<u32> = (0..1 << 18).map(|_| (random.below(1 << 14) as u32) << 9 | 77).collect();
    show::<u32, Rank24>("host routes in every second /24", &routes, &addresses);
    // Every /24 there is, alternating: the most leaves there can be.
    let routes: Vec<Route<u32>> =
        (0..1_u32 << 21).map(|n| (Prefix::truncated(n << 11, 24), 1 + n % 2)).collect();
    let addresses: Vec<u32> = (0..1 << 18).map(|_| random.next() as u32).collect();
    show::<u32, Rank24>("2 097 152 scattered /24s, uniform traffic", &routes, &addresses);
    // Host routes that agree on 64 bits or more: a line for every window on the way down.
    let base = 0x2001_0db8_u128 << 96;
    for (name, shift) in [("/48s", 80), ("/64s", 64), ("/96s", 32), ("/128s", 0)] {
        let routes: Vec<Route<u128>> = (0..1_u128 << 16)
            .map(|n| (Prefix::truncated(base | n << shift, 128 - shift as u8), 1 + n as u32 % 2))
            .collect();
        let addresses: Vec<u128> =
            (0..1 << 18).map(|_| base | u128::from(random.next() & 0xffff) << shift).collect();
        show::<u128, Lines6>(&format!("65 536 neighbouring {name}"), &routes, &addresses);
    }
    let sparse = synthetic::<u128>(50_000, 8);
    let hosts: Vec<Route<u128>> = sparse
        .iter()
        .map(|r| (Prefix::host(r.0.first() | (u128::any(&mut random) & !u128::mask(r.0.len()))), r.1))
        .collect();
    let addresses: Vec<u128> = (0..1 << 18).map(|_| hosts[random.below(hosts.len())].0.first()).collect();
    show::<u128, Lines6>("50 000 scattered /128s", &hosts, &addresses);
}

fn show<A: Family, S: Structure<A>>(name: &str, routes: &[Route<A>], addresses: &[A]) {
    let start = cpu_time();
    let fib = match Fib::<A, S>::build(routes) {
        Ok(fib) => fib,
        Err(error) => return println!("  {name}: {error}"),
    };
    let build_ms = (cpu_time() - start).as_secs_f64() * 1e3;
    let mut results = vec![0; addresses.len()];
    let mut best = |mode| {
        (0..ROUNDS)
            .map(|_| time(fib.structure(), mode, addresses, &mut results))
            .min()
            .unwrap_or_default()
            .as_nanos() as f64
            / addresses.len() as f64
    };
    println!(
        "  {:<10} {name:<44} {:.1} / {:.2}   ({:.1} bytes a prefix, built in {build_ms:.0} ms)",
        S::NAME,
        best(Mode::Chain),
        best(Mode::Batch),
        fib.bytes() as f64 / routes.len() as f64
    );
}
