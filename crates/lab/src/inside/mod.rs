//! Inside of the device while a trial runs: runs of its network code, where processor time goes, what interrupts it.
//!
//! All of it is of the whole machine: on veths the kernel forwards in the tester's own system calls, and whose time that is no
//! process says. The profile goes by the processors' cycles where they count them. Otherwise it goes by a software clock and
//! does not see code that holds interrupts off; it is held against the idle time of /proc/stat, and the difference stands
//! beside it.

mod counters;
mod meter;
mod proc;
mod profile;
mod programs;
pub mod reported;
mod symbols;
mod tally;

pub use counters::{Place, Runs};
pub use meter::{Meter, process_ns};
pub use proc::Load;
pub use symbols::Class;

use anyhow::{Result, ensure};
use causeway_bpf::Clock;
use counters::Counters;
use proc::Proc;
use profile::{Profile, shares, with_idle};
use programs::{Programs, mappings};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use symbols::Symbols;

/// Looks inside.
pub struct Inside {
    counters: Counters,
    symbols: Symbols,
    programs: RefCell<Programs>,
}

/// A look that has begun.
pub struct Look<'a> {
    inside: &'a Inside,
    profile: Profile,
    runs: BTreeMap<(String, Place), Runs>,
    proc: Proc,
    began: Instant,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// For how long.
    pub time: Duration,
    /// Runs of network code, by device and place.
    pub runs: BTreeMap<(String, Place), Runs>,
    /// Parts of the time of all processors, 0 to 1.
    pub shares: BTreeMap<Class, f64>,
    /// Processors by /proc.
    pub load: Load,
    clock: Clock,
}

impl Inside {
    /// Prepares for looks.
    ///
    /// # Errors
    /// If this kernel or this user cannot.
    pub fn open() -> Result<Inside> {
        let symbols = Symbols::parse(&std::fs::read_to_string("/proc/kallsyms")?);
        ensure!(!symbols.is_empty(), "the kernel does not say where its functions are");
        Ok(Inside { counters: Counters::open()?, symbols, programs: RefCell::default() })
    }

    /// Begins a look.
    ///
    /// # Errors
    /// If this kernel or this user cannot.
    pub fn begin(&self) -> Result<Look<'_>> {
        let (profile, runs) = (Profile::begin()?, self.counters.read()?);
        Ok(Look { inside: self, profile, runs, proc: Proc::read()?, began: Instant::now() })
    }
}

impl Look<'_> {
    /// Ends it; `device` has the device's processes.
    ///
    /// # Errors
    /// If the kernel does not say what it counted.
    pub fn end(self, device: &[u32]) -> Result<Seen> {
        let (time, now) = (self.began.elapsed(), Proc::read()?);
        let samples = self.profile.samples()?;
        let mut runs = self.inside.counters.read()?;
        for (of, runs) in &mut runs {
            let before = self.runs.get(of).copied().unwrap_or_default();
            *runs = runs.since(&before);
        }
        runs.retain(|_, runs| runs.runs > 0);
        // Of a process that has ended nothing is known any more.
        let code = |&id: &u32| {
            (id, mappings(&std::fs::read_to_string(format!("/proc/{id}/maps")).unwrap_or_default()))
        };
        let device = device.iter().map(code).collect();
        let mut programs = self.inside.programs.borrow_mut();
        let shares = shares(&samples, (&self.inside.symbols, &mut programs), &device, std::process::id());
        let load = now.since(&self.proc);
        let shares = with_idle(shares, self.profile.clock(), load.idle());
        Ok(Seen { time, runs, shares, load, clock: self.profile.clock() })
    }
}

/// What [`Seen::idle_difference`] is called in results: no class, but how far the classes are to be trusted.
pub const IDLE_DIFFERENCE: &str = "idle beyond what proc has";

impl Seen {
    /// What the samples were taken by, in words.
    pub fn sampled_by(&self) -> &'static str {
        match self.clock {
            Clock::Cycles => "by the processors' cycles; idle time by /proc/stat",
            Clock::Software => "by the kernel's clock; what holds interrupts off is not seen",
        }
    }

    /// By how much the idle time of the profile is above that of /proc/stat, as a part of all time.
    pub fn idle_difference(&self) -> f64 {
        self.shares.get(&Class::Idle).copied().unwrap_or(0.0) - self.load.idle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::{Bed, Device, Kind};
    use crate::search::{Request, Tester};
    use crate::tester::{Manner, Ports};
    use causeway_results::traffic::{Matrix, Traffic};
    use std::sync::Arc;

    #[test]
    fn polls_and_time_of_a_trial_are_seen() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to make network namespaces and to listen to the kernel");
        }
        let inside = match Inside::open() {
            Ok(inside) => inside,
            Err(e) => return eprintln!("skipped: this kernel cannot be listened to: {e:#}"),
        };
        let bed = Bed::new("i", 2).expect("a bed");
        let kernel = Device::start(&Kind::Kernel {}, &bed, &[]).expect("started");
        let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
        let (settle, pause) = (Duration::from_millis(100), Duration::ZERO);
        let manner = Manner { processors: Vec::new(), settle, pause };
        let ports = bed.open("packet").expect("ports");
        let mut tester =
            Ports::new(ports, traffic, manner, kernel.control(Arc::default())).expect("a tester");
        let look = inside.begin().expect("a look");
        let outcome = tester.trial(&Request::new(5_000.0, 200_000_000)).expect("an outcome");
        let seen = look.end(&[]).expect("seen");
        let polls = seen.runs.get(&("r0".to_owned(), Place::Poll)).expect("r0 was polled");
        assert!(polls.packets >= outcome.received() && polls.runs > 0, "{polls:?}, {}", outcome.received());
        assert!((seen.shares.values().sum::<f64>() - 1.0).abs() < 1e-6, "{:?}", seen.shares);
        assert!(!seen.load.availability.is_empty() && seen.load.receptions > 0);
        assert!(seen.idle_difference().abs() <= 1.0);
    }
}
