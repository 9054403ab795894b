//! Times at which a processor did nothing at all: the machine below gave it to another.
//!
//! A thread above all others sleeps for a millisecond, and finds how much later it wakes. A processor that forwards keeps it
//! waiting for a turn of soft interrupts: mostly a part of a millisecond, and where the driver's programs forward all of what a
//! tester sends now and then 2 to 4. What is longer is nobody's work here, and the kernel knows it too, as time that was stolen, but
//! tells it in hundredths of a second only.

use crate::process::set_fifo;
use crate::tester::pin;
use anyhow::{Context, Result};
use rustix::thread::gettid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long it sleeps: a thousand times a second two changes of thread cost the processor a part in three hundred.
const PERIOD: Duration = Duration::from_millis(1);
/// A processor stood still if its thread wakes so much later.
pub const LIMIT: Duration = Duration::from_millis(4);
/// Above the threads of a device that have real-time priorities (1 to 99).
const PRIORITY: u32 = 90;

/// Watches some processors while it lives.
pub struct Stalls {
    seen: Arc<Seen>,
    /// With their ids in the kernel.
    threads: Vec<(i32, JoinHandle<()>)>,
}

#[derive(Default)]
struct Seen {
    count: AtomicU64,
    ended: AtomicBool,
}

impl Stalls {
    /// Begins to watch these.
    ///
    /// # Errors
    /// If this user may not have threads above all others.
    pub fn watch(processors: &[usize]) -> Result<Stalls> {
        let mut stalls = Stalls { seen: Arc::default(), threads: Vec::new() };
        for &processor in processors {
            let (seen, (tell, told)) = (stalls.seen.clone(), channel());
            let thread = std::thread::Builder::new().name(format!("stalls-{processor}"));
            let thread = thread.spawn(move || watch(processor, &seen, &tell))?;
            let id = told.recv().context("the thread that watches a processor")?;
            stalls.threads.push((id, thread));
            set_fifo(id, PRIORITY)?;
        }
        Ok(stalls)
    }

    /// How often one of them has stood still so far.
    pub fn count(&self) -> u64 {
        self.seen.count.load(Ordering::Relaxed)
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.seen.ended.store(true, Ordering::Relaxed);
        for (_, thread) in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn watch(processor: usize, seen: &Seen, tell: &Sender<i32>) {
    pin(&[processor]);
    if tell.send(gettid().as_raw_nonzero().get()).is_err() {
        return;
    }
    while !seen.ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        std::thread::sleep(PERIOD);
        if stood_still(began.elapsed()) {
            seen.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether a sleep of [`PERIOD`] that took so long says so.
fn stood_still(slept: Duration) -> bool {
    slept > PERIOD + LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::usable_processors;

    #[test]
    fn a_sleep_that_ends_late_says_that_the_processor_stood_still() {
        assert!(!stood_still(PERIOD) && !stood_still(PERIOD + LIMIT));
        assert!(stood_still(PERIOD + LIMIT + Duration::from_micros(1)));
    }

    #[test]
    fn processors_are_watched_by_threads_above_all_others() {
        let processors = usable_processors();
        let Ok(stalls) = Stalls::watch(&processors) else {
            return eprintln!("skipped: needs root to give a thread a real-time priority");
        };
        assert_eq!(stalls.threads.len(), processors.len());
        for ((id, _), processor) in stalls.threads.iter().zip(processors) {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{id}/stat")).expect("it lives");
            let (_, rest) = stat.rsplit_once(") ").expect("a name ends");
            let fields: Vec<&str> = rest.split(' ').collect();
            // proc(5): of what comes behind the name, the 37th field is the processor, the 38th the priority.
            assert_eq!((fields[36], fields[37]), (processor.to_string().as_str(), "90"), "{stat}");
        }
        // It ends.
        drop(stalls);
    }
}
