//! What takes part: anything that looks up, built by name, timed alike.

use std::time::{Duration, Instant};

use causeway_fib::{Fib, Lookup, Structure, Table};

use crate::tables::{Family, Route};

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

/// A table in the race.
pub trait Contender<A> {
    /// Name in the report.
    fn name(&self) -> &str;
    /// Memory of the lookup structure, in bytes.
    fn bytes(&self) -> usize;
    /// Time to build it from the routes.
    fn build(&self) -> Duration;
    /// Looks all addresses up and returns the processor time of it; `None` if the mode makes no sense here.
    fn run(&self, mode: Mode, addresses: &[A], results: &mut [u32]) -> Option<Duration>;
    /// Applies a change, for those that take updates.
    fn update(&mut self, update: &crate::tables::Update<A>) -> bool;
}

/// One of this project's tables.
pub struct Ours<A: Family, S> {
    fib: Fib<A, S>,
    build: Duration,
    updates: bool,
}

/// Builds a table of structure `S`.
pub fn ours<A: Family, S: Structure<A> + 'static>(
    routes: &[Route<A>],
    updates: bool,
) -> Box<dyn Contender<A>> {
    let start = Instant::now();
    let fib = Fib::<A, S>::build(routes).unwrap_or_else(|error| panic!("{}: {error}", S::NAME));
    Box::new(Ours { fib, build: start.elapsed(), updates })
}

impl<A: Family, S: Structure<A>> Contender<A> for Ours<A, S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn bytes(&self) -> usize {
        self.fib.bytes()
    }

    fn build(&self) -> Duration {
        self.build
    }

    fn run(&self, mode: Mode, addresses: &[A], results: &mut [u32]) -> Option<Duration> {
        Some(time(self.fib.structure(), mode, addresses, results))
    }

    fn update(&mut self, update: &crate::tables::Update<A>) -> bool {
        if self.updates {
            match *update {
                (prefix, Some(next_hop)) => drop(self.fib.replace(prefix, next_hop)),
                (prefix, None) => drop(self.fib.withdraw(prefix)),
            }
        }
        self.updates
    }
}

/// Times one pass of a table over the addresses.
pub fn time<A: Family, L: Lookup<A>>(
    table: &L,
    mode: Mode,
    addresses: &[A],
    results: &mut [u32],
) -> Duration {
    let start = cpu_time();
    match mode {
        Mode::Chain => {
            // A zero that the compiler knows nothing about adds nothing but the dependency.
            let zero = std::hint::black_box(0);
            let mut before = 0;
            for (result, &address) in results.iter_mut().zip(addresses) {
                before = table.lookup(address ^ A::from_u32(before & zero));
                *result = before;
            }
        }
        Mode::Single => {
            for (result, &address) in results.iter_mut().zip(addresses) {
                *result = table.lookup(address);
            }
        }
        Mode::Batch => {
            for (found, some) in results.chunks_mut(256).zip(addresses.chunks(256)) {
                table.lookup_batch(some, found);
            }
        }
    }
    cpu_time() - start
}
