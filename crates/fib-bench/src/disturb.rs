//! What updates cost readers, and crafted worst cases: `fib-bench disturb` and `fib-bench worst`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use causeway_fib::{Address, Fib, Lines6, Lookup, Prefix, Rank24, Shared, Table};

use causeway_results::stats;

use crate::contender::{Announced, Contender, Fill, Mode, Rounds, pin_to, shared, time};
use crate::random::Random;
use crate::tables::{Family, Route, Update, synthetic};

/// Rounds of worst cases; the median counts.
const ROUNDS: usize = 5;
/// How long the writer keeps a pace. Short, so that what else the machine does falls on all paces alike.
const ROUND: Duration = Duration::from_millis(40);
/// Times that all paces take turns.
const TURNS: usize = 60;
/// Addresses between two looks at the pace.
const PASS: usize = 1 << 13;

/// What the writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Asleep,
    /// Keeps its processor busy without changing anything: the control.
    Spinning,
    /// Changes a second.
    Rate(u32),
}

const WRITERS: [Writer; 4] = [Writer::Asleep, Writer::Spinning, Writer::Rate(10_000), Writer::Rate(100_000)];
const CONTROL: usize = 1;
const END: usize = usize::MAX;

/// A reader on one processor in batches of 256, a writer on another that changes its pace all the time; prints
/// nanoseconds a lookup for each pace, and what it costs beside the control of the same turn.
pub fn readers<A: Family, S: Shared<A> + Send>(routes: &[Route<A>], stream: &[Update<A>]) {
    let mut fib = Fib::<A, S>::build(routes).unwrap_or_else(|error| panic!("{}: {error}", S::NAME));
    let mut random = Random::new(5);
    let addresses: Vec<A> = (0..1 << 18)
        .map(|_| {
            let prefix = routes[random.below(routes.len())].0;
            prefix.first() | (A::any(&mut random) & !A::mask(prefix.len()))
        })
        .collect();
    let (pace, reader, addresses) =
        (&AtomicUsize::new(0), Announced::new(fib.structure().handle()), &addresses);
    let (ns, made) = std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            pin_to(0);
            read(&reader, addresses, pace)
        });
        pin_to(1);
        let made = write(&mut fib, stream, pace);
        (worker.join().unwrap_or_default(), made)
    });
    println!(
        "{} reader, ns a lookup in batches, by what the writer does meanwhile; medians (and quartiles) of {TURNS} turns of {} ms each:",
        S::NAME,
        ROUND.as_millis()
    );
    for (number, writer) in WRITERS.iter().enumerate() {
        let turns = || ns.chunks(WRITERS.len());
        let loss: Vec<f64> = turns().map(|turn| (turn[number] / turn[CONTROL] - 1.0) * 100.0).collect();
        let ns: Vec<f64> = turns().map(|turn| turn[number]).collect();
        println!(
            "  {:<14} {}; more than the control of the same turn, %: {}; {:.0} changes a second made",
            format!("{writer:?}"),
            quartiles(&ns),
            quartiles(&loss),
            made[number]
        );
    }
    println!(
        "  an update was seen by a polling reader after {:.1} us (median of 2000)",
        visibility(&mut fib, routes)
    );
}

fn quartiles(samples: &[f64]) -> String {
    let at = |share| stats::quantile(samples, share).unwrap_or(f64::NAN);
    format!("{:.2} ({:.2} to {:.2})", at(0.5), at(0.25), at(0.75))
}

/// Looks up until the pace is [`END`]; returns nanoseconds a lookup for each round.
fn read<A: Family, T: Rounds<A>>(table: &T, addresses: &[A], pace: &AtomicUsize) -> Vec<f64> {
    let mut results = [0; PASS];
    let mut rounds = vec![(Duration::ZERO, 0_usize); TURNS * WRITERS.len()];
    for some in addresses.chunks(PASS).cycle() {
        let now = pace.load(Ordering::Relaxed);
        if now == END {
            break;
        }
        let spent = time(table, Mode::Batch, some, &mut results);
        // What began under another pace counts for none.
        if pace.load(Ordering::Relaxed) == now {
            rounds[now].0 += spent;
            rounds[now].1 += some.len();
        }
    }
    rounds.iter().map(|(spent, count)| spent.as_nanos() as f64 / (*count).max(1) as f64).collect()
}

/// Changes the table at each pace in turn; returns the changes made a second.
fn write<A: Family, S: Shared<A>>(
    fib: &mut Fib<A, S>,
    stream: &[Update<A>],
    pace: &AtomicUsize,
) -> [f64; WRITERS.len()] {
    let mut changes = stream.iter().cycle();
    let mut made = [(0, Duration::ZERO); WRITERS.len()];
    for number in 0..TURNS * WRITERS.len() {
        pace.store(number, Ordering::Relaxed);
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < ROUND {
            let due = match WRITERS[number % WRITERS.len()] {
                Writer::Asleep => {
                    std::thread::sleep(ROUND);
                    0
                }
                Writer::Spinning => 0,
                Writer::Rate(rate) => (start.elapsed().as_secs_f64() * f64::from(rate)) as usize,
            };
            for &(prefix, next_hop) in changes.by_ref().take(due - done) {
                match next_hop {
                    Some(next_hop) => drop(fib.replace(prefix, next_hop)),
                    None => drop(fib.withdraw(prefix)),
                }
            }
            done = due;
        }
        let made = &mut made[number % WRITERS.len()];
        *made = (made.0 + done, made.1 + start.elapsed());
    }
    pace.store(END, Ordering::Relaxed);
    made.map(|(done, time)| done as f64 / time.as_secs_f64())
}

/// Microseconds from the call of `replace` until a reader on another processor gets the new result.
fn visibility<A: Family, S: Shared<A> + Send>(fib: &mut Fib<A, S>, routes: &[Route<A>]) -> f64 {
    let reader = fib.reader();
    let (target, seen) = (routes[routes.len() / 2].0, &AtomicU32::new(0));
    let stop = &AtomicBool::new(false);
    let times: Vec<f64> = std::thread::scope(|scope| {
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
    stats::median(&times).unwrap_or(f64::NAN)
}

/// Tables and traffic made to be slow; prints the dearest of each.
pub fn worst() {
    let mut random = Random::new(21);
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

fn show<A: Family, S: Shared<A> + 'static>(name: &str, routes: &[Route<A>], addresses: &[A]) {
    let table: Box<dyn Contender<A>> = shared::<A, S>(routes, Fill::Whole);
    let mut results = vec![0; addresses.len()];
    let mut median = |mode| {
        let each = |time: Duration| time.as_nanos() as f64 / addresses.len() as f64;
        let rounds = (0..ROUNDS).filter_map(|_| table.run(mode, addresses, &mut results));
        stats::median(&rounds.map(each).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    println!(
        "  {:<10} {name:<44} {:.1} / {:.2}   ({:.1} bytes a prefix, loaded in {:.0} ms)",
        S::NAME,
        median(Mode::Chain),
        median(Mode::Batch),
        table.bytes() as f64 / routes.len() as f64,
        table.build().as_secs_f64() * 1e3
    );
}
