//! What takes part: anything that looks up, built by name, timed alike.

use std::time::Duration;

use causeway_fib::{Fib, Handle, Lookup, MISS, Participant, Shared, Structure, Table};

use crate::tables::{Family, Route, Update};

/// Processor time of this thread: what others on the machine do counts less.
pub fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which `time` is.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Keeps this thread on one processor.
pub fn pin_to(processor: usize) {
    // SAFETY: a zeroed set is valid, and only this thread is affected.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// How lookups follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Each address depends on the result before: latency.
    Chain,
    /// One call an address, independent.
    Single,
    /// Calls of 256 addresses.
    Batch,
}

/// Packets of a worker's round, and addresses of a batch.
pub const ROUND: usize = 256;

/// How a table got its routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// One after the other, in the order of the file, as a routing daemon gives them.
    ByRoute,
    /// All in one call.
    Whole,
}

impl Fill {
    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Fill::ByRoute => "route by route",
            Fill::Whole => "loaded",
        }
    }
}

/// A table in the race.
pub trait Contender<A> {
    /// Name in the report.
    fn name(&self) -> &str;
    /// How it was filled.
    fn fill(&self) -> Fill;
    /// Memory of the lookup structure, in bytes.
    fn bytes(&self) -> usize;
    /// Processor time to fill it.
    fn build(&self) -> Duration;
    /// Looks all addresses up and returns the processor time of it; `None` if the mode makes no sense here.
    fn run(&self, mode: Mode, addresses: &[A], results: &mut [u32]) -> Option<Duration>;
    /// Applies a change, for those that take updates.
    fn update(&mut self, update: &Update<A>) -> bool;
}

/// A table as a worker looks at it: for a round at a time.
pub trait Rounds<A: Family> {
    /// What is looked at.
    type Table: Lookup<A>;

    /// Looks for a round.
    fn round<R>(&self, look: impl FnOnce(&Self::Table) -> R) -> Option<R>;
}

/// A table that other threads may change: each round is announced.
pub struct Announced<H> {
    handle: H,
    worker: Participant,
}

impl<H> Announced<H> {
    /// A worker's view of a table.
    pub fn new<A: Family>(handle: H) -> Self
    where
        H: Handle<A>,
    {
        let worker = handle.domain().participant();
        Announced { handle, worker }
    }
}

impl<A: Family, H: Handle<A>> Rounds<A> for Announced<H> {
    type Table = H::Table;

    #[inline]
    fn round<R>(&self, look: impl FnOnce(&H::Table) -> R) -> Option<R> {
        let pinned = self.worker.pin();
        self.handle.under(&pinned).map(look)
    }
}

/// A table that nobody changes meanwhile.
pub struct Still<'a, S>(pub &'a S);

impl<A: Family, S: Lookup<A>> Rounds<A> for Still<'_, S> {
    type Table = S;

    #[inline]
    fn round<R>(&self, look: impl FnOnce(&S) -> R) -> Option<R> {
        Some(look(self.0))
    }
}

/// One of this project's tables.
pub struct Ours<A: Family, S> {
    fib: Fib<A, S>,
    fill: Fill,
    build: Duration,
    run: Run<A, S>,
}

type Run<A, S> = fn(&Fib<A, S>, Mode, &[A], &mut [u32]) -> Duration;

/// A table that workers share.
pub fn shared<A: Family, S: Shared<A> + 'static>(routes: &[Route<A>], fill: Fill) -> Box<dyn Contender<A>> {
    ours::<A, S>(routes, fill, |fib, mode, addresses, results| {
        time(&Announced::new(fib.structure().handle()), mode, addresses, results)
    })
}

/// A table of one thread.
pub fn still<A: Family, S: Structure<A> + 'static>(routes: &[Route<A>], fill: Fill) -> Box<dyn Contender<A>> {
    ours::<A, S>(routes, fill, |fib, mode, addresses, results| {
        time(&Still(fib.structure()), mode, addresses, results)
    })
}

fn ours<A: Family, S: Structure<A> + 'static>(
    routes: &[Route<A>],
    fill: Fill,
    run: Run<A, S>,
) -> Box<dyn Contender<A>> {
    let start = cpu_time();
    let fib = match fill {
        Fill::Whole => Fib::<A, S>::build(routes),
        Fill::ByRoute => Fib::<A, S>::new().and_then(|mut fib| {
            routes.iter().try_for_each(|&(prefix, next_hop)| fib.replace(prefix, next_hop).map(drop))?;
            Ok(fib)
        }),
    };
    let fib = fib.unwrap_or_else(|error| panic!("{}: {error}", S::NAME));
    Box::new(Ours { fib, fill, build: cpu_time() - start, run })
}

impl<A: Family, S: Structure<A>> Contender<A> for Ours<A, S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn fill(&self) -> Fill {
        self.fill
    }

    fn bytes(&self) -> usize {
        self.fib.bytes()
    }

    fn build(&self) -> Duration {
        self.build
    }

    fn run(&self, mode: Mode, addresses: &[A], results: &mut [u32]) -> Option<Duration> {
        Some((self.run)(&self.fib, mode, addresses, results))
    }

    fn update(&mut self, update: &Update<A>) -> bool {
        match *update {
            (prefix, Some(next_hop)) => drop(self.fib.replace(prefix, next_hop)),
            (prefix, None) => drop(self.fib.withdraw(prefix)),
        }
        true
    }
}

/// Times one pass of a table over the addresses, which lie in memory as they do in packets; to turn them into numbers
/// counts.
pub fn time<A: Family, T: Rounds<A>>(
    table: &T,
    mode: Mode,
    addresses: &[A],
    results: &mut [u32],
) -> Duration {
    let wire: Vec<A::Wire> = addresses.iter().map(|&address| address.to_wire()).collect();
    // A zero that the compiler knows nothing about adds nothing but the dependency.
    let zero = std::hint::black_box(0);
    let (mut before, mut batch) = (MISS, [A::ZERO; ROUND]);
    let start = cpu_time();
    for (found, some) in results.chunks_mut(ROUND).zip(wire.chunks(ROUND)) {
        table.round(|table| match mode {
            Mode::Chain => {
                for (result, &wire) in found.iter_mut().zip(some) {
                    before = table.lookup(A::from_wire(wire) ^ A::from_u32(before & zero));
                    *result = before;
                }
            }
            Mode::Single => {
                for (result, &wire) in found.iter_mut().zip(some) {
                    *result = table.lookup(A::from_wire(wire));
                }
            }
            Mode::Batch => {
                batch.iter_mut().zip(some).for_each(|(address, &wire)| *address = A::from_wire(wire));
                table.lookup_batch(&batch[..some.len()], found);
            }
        });
    }
    cpu_time() - start
}
