//! How fast the machine is while it measures, and trials at times when it is as fast as it mostly is.
//!
//! Processors of a virtual machine are threads of cores whose other thread often has another owner. While that one is
//! busy, what the kernel does for a packet takes up to half as long again, for tenths of a second or for minutes, and
//! nothing in /proc says so: results then have two modes that are not the device's. A system call takes longer by the same
//! part, and is timed in a fraction of a millisecond: before and after each trial. Now and then such a processor stands still
//! for milliseconds, and a device loses what its queues do not hold: a thread that wakes late tells ([`stalls`]). While a
//! system call takes long, trials wait, and one in which it became slow, or a processor stood still, is made again. Which
//! trials count is said by the yardstick, and never by what came of them.

mod stalls;

use crate::search::{Outcome, Request, Tester};
use crate::tester::pin;
use anyhow::Result;
use causeway_engine::usable_processors;
use causeway_results::stats::quantile;
use rustix::process::getppid;
use stalls::{LIMIT, Stalls};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// System calls of a round, and rounds, of which the shortest counts: the others were interrupted.
const CALLS: u32 = 250;
const ROUNDS: u32 = 4;
/// Processors that are measured on at most.
const MOST_PROCESSORS: usize = 4;
/// How often it is measured before the first trial, and how long lies between two that follow each other.
const FIRST: usize = 15;
const PAUSE: Duration = Duration::from_millis(20);
/// Of so many times that were measured last, what the machine mostly does, and how much longer it takes when it is slow.
const RECENT: usize = 1_000;
const MOSTLY: f64 = 0.25;
const SLOW: f64 = 1.1;
/// How often a trial is made at most, and waited for.
const TRIES: u32 = 3;
const MOST_PAUSES: u32 = 25;
/// Time for waiting and for trials that do not count: so much, and this part of what the run has taken.
const PATIENCE: Duration = Duration::from_secs(2);
const PART: f64 = 0.2;

/// What is seen of the processors in a look.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Look {
    /// Nanoseconds of a system call.
    call_ns: f64,
    /// How often a processor has stood still so far.
    stalls: u64,
}

/// The speed of some processors, and when trials are made.
pub struct Yardstick<'a> {
    look: Box<dyn FnMut() -> Look + 'a>,
    /// Nanoseconds of a system call.
    times: Vec<f64>,
    stalls: u64,
    /// Why it is not seen that a processor stands still.
    blind: Option<String>,
    began: Instant,
    spent: Duration,
    trials: u32,
    again: u32,
    slow: u32,
}

impl Yardstick<'static> {
    /// Of these processors; of some that there are if none is named.
    pub fn new(processors: &[usize]) -> Yardstick<'static> {
        let mut chosen = if processors.is_empty() { usable_processors() } else { processors.to_vec() };
        chosen.sort_unstable();
        chosen.dedup();
        chosen.truncate(MOST_PROCESSORS);
        let (watch, blind) = match Stalls::watch(&chosen) {
            Ok(watch) => (Some(watch), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let mut yardstick = Yardstick::of(move || Look {
            call_ns: slowest_ns(&chosen),
            stalls: watch.as_ref().map_or(0, Stalls::count),
        });
        yardstick.blind = blind;
        for _ in 0..FIRST {
            yardstick.is_slow();
            std::thread::sleep(PAUSE);
        }
        yardstick
    }
}

impl<'a> Yardstick<'a> {
    fn of(look: impl FnMut() -> Look + 'a) -> Yardstick<'a> {
        Yardstick {
            look: Box::new(look),
            times: Vec::new(),
            stalls: 0,
            blind: None,
            began: Instant::now(),
            spent: Duration::ZERO,
            trials: 0,
            again: 0,
            slow: 0,
        }
    }

    /// Looks, and says whether the machine is slow, or stood still since the last look.
    fn is_slow(&mut self) -> bool {
        let Look { call_ns, stalls } = (self.look)();
        self.times.push(call_ns);
        let recent = &self.times[self.times.len().saturating_sub(RECENT)..];
        let slow = quantile(recent, MOSTLY).is_some_and(|mostly| call_ns > mostly * SLOW);
        slow | (std::mem::replace(&mut self.stalls, stalls) != stalls)
    }

    fn has_patience(&self) -> bool {
        self.spent < PATIENCE + self.began.elapsed().mul_f64(PART)
    }

    /// Makes a trial when the machine is not slow, and again if it became so, as far as there is time for that.
    ///
    /// # Errors
    /// Those of the trial.
    pub fn calmly<T>(&mut self, mut trial: impl FnMut() -> Result<T>) -> Result<T> {
        self.trials += 1;
        let mut tries = 1;
        loop {
            self.wait();
            let began = Instant::now();
            let outcome = trial()?;
            let slow = self.is_slow();
            if !slow || tries == TRIES || !self.has_patience() {
                self.slow += u32::from(slow);
                return Ok(outcome);
            }
            tries += 1;
            self.again += 1;
            self.spent += began.elapsed();
        }
    }

    /// Until the machine is not slow, or it has been long enough.
    fn wait(&mut self) {
        let mut pauses = 0;
        while self.is_slow() && pauses < MOST_PAUSES && self.has_patience() {
            std::thread::sleep(PAUSE);
            self.spent += PAUSE;
            pauses += 1;
        }
    }

    /// What results say of it: times of a system call, processors that stood still, trials that were made again.
    pub fn summary(&self) -> [(&'static str, String); 3] {
        let at = |share| quantile(&self.times, share).unwrap_or_default();
        let times = format!("{:.0} ns, {:.0} to {:.0} in nine of ten looks", at(0.5), at(0.05), at(0.95));
        let stalls = match &self.blind {
            None => format!("{} times for more than {} ms", self.stalls, LIMIT.as_millis()),
            Some(why) => format!("not seen: {why}"),
        };
        let trials = format!(
            "{} of {} because the machine became slow or a processor stood still, and {} count though it did",
            self.again, self.trials, self.slow
        );
        [
            ("system call on the processors", times),
            ("processors stood still", stalls),
            ("trials made again", trials),
        ]
    }
}

/// Makes trials calmly.
pub struct Calm<'t, 'y, T> {
    /// Makes them.
    pub tester: &'t mut T,
    /// Says when.
    pub yardstick: &'t mut Yardstick<'y>,
}

impl<T: Tester> Tester for Calm<'_, '_, T> {
    fn trial(&mut self, request: &Request) -> Result<Outcome> {
        let Calm { tester, yardstick } = self;
        yardstick.calmly(|| tester.trial(request))
    }
}

/// Nanoseconds of a system call, on the slowest of the processors.
fn slowest_ns(processors: &[usize]) -> f64 {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            processors.iter().map(|&processor| scope.spawn(move || call_ns(processor))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(0.0, f64::max)
    })
}

fn call_ns(processor: usize) -> f64 {
    pin(&[processor]);
    let round = |_| {
        let began = Instant::now();
        (0..CALLS).for_each(|_| {
            black_box(getppid());
        });
        began.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A yardstick that measures these times, and 100 ns afterwards.
    fn scripted(times: &[f64]) -> Yardstick<'_> {
        let mut rest = times.iter();
        looking(move || Look { call_ns: rest.next().copied().unwrap_or(100.0), stalls: 0 })
    }

    /// A yardstick to which 100 ns are what it mostly is.
    fn looking<'a>(look: impl FnMut() -> Look + 'a) -> Yardstick<'a> {
        let mut yardstick = Yardstick::of(look);
        yardstick.times = vec![100.0; FIRST];
        yardstick
    }

    #[test]
    fn a_trial_in_which_the_machine_became_slow_is_made_again() {
        let (count, mut yardstick) = (RefCell::new(0), scripted(&[100.0, 130.0, 100.0, 105.0]));
        let trial = || Ok(count.replace_with(|n| *n + 1));
        assert_eq!(yardstick.calmly(trial).expect("made"), 1, "the second trial counts");
        assert_eq!((yardstick.trials, yardstick.again, yardstick.slow), (1, 1, 0));
        assert_eq!(yardstick.calmly(trial).expect("made"), 2, "the next is made once");
    }

    #[test]
    fn a_trial_in_which_a_processor_stood_still_is_made_again() {
        // It stands still in the first trial, and before the second one.
        let mut rest = [3, 4, 5, 5, 5].into_iter();
        let mut yardstick = looking(move || Look { call_ns: 100.0, stalls: rest.next().unwrap_or(5) });
        yardstick.stalls = 3;
        let count = RefCell::new(0);
        assert_eq!(yardstick.calmly(|| Ok(count.replace_with(|n| *n + 1))).expect("made"), 1);
        assert_eq!((yardstick.trials, yardstick.again, yardstick.slow), (1, 1, 0));
        assert!(yardstick.spent >= PAUSE, "it waited after the second time");
        assert_eq!(yardstick.summary()[1].1, "5 times for more than 4 ms");
    }

    #[test]
    fn trials_wait_until_the_machine_is_as_fast_as_it_mostly_is() {
        let mut yardstick = scripted(&[150.0, 150.0, 90.0]);
        let spent = yardstick.spent;
        yardstick.calmly(|| Ok(())).expect("made");
        assert_eq!((yardstick.spent - spent, yardstick.again, yardstick.slow), (PAUSE * 2, 0, 0));
    }

    #[test]
    fn where_it_stays_slow_a_trial_counts_all_the_same() {
        let slow = [150.0; 3 * (MOST_PAUSES as usize + 2)];
        let mut yardstick = scripted(&slow);
        // Of so many as there were before, what came now is not what it mostly does.
        yardstick.times = vec![100.0; 1_000];
        let count = RefCell::new(0);
        yardstick.calmly(|| Ok(count.replace_with(|n| *n + 1))).expect("made");
        assert_eq!((count.take(), yardstick.again, yardstick.slow), (TRIES, TRIES - 1, 1));
        let told =
            "2 of 1 because the machine became slow or a processor stood still, and 1 count though it did";
        assert_eq!(yardstick.summary()[2].1, told);
    }

    #[test]
    fn there_is_an_end_to_its_patience() {
        let mut yardstick = scripted(&[150.0, 150.0]);
        yardstick.spent = Duration::from_secs(3_600);
        yardstick.calmly(|| Ok(())).expect("made");
        assert_eq!((yardstick.again, yardstick.slow, yardstick.times.len()), (0, 1, FIRST + 2));
    }

    #[test]
    fn a_system_call_takes_some_time() {
        let time = slowest_ns(&[0]);
        assert!(time.is_finite() && time > 0.0, "{time}");
    }
}
