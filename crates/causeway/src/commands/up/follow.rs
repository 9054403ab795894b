//! The thread that keeps the tables in step with the kernel.

use super::checks;
use super::tables::Tables;
use anyhow::{Context, Result};
use causeway_kernel::{Finding, Watcher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread waits for changes before it looks whether it is to stop.
const TURN: Duration = Duration::from_millis(250);
/// How long it waits when the kernel cannot be asked.
const RETRY: Duration = Duration::from_secs(1);

/// Follows the kernel until it is dropped.
pub struct Follower {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts with tables that hold what `watcher` has told so far.
    pub fn start(watcher: Watcher, tables: Tables) -> Result<Follower> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("kernel".to_owned());
        let thread =
            thread.spawn(move || follow(watcher, tables, &stopped)).context("cannot start a thread")?;
        Ok(Follower { stop, thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by itself.
            let _ = thread.join();
        }
    }
}

fn follow(mut watcher: Watcher, mut tables: Tables, stop: &AtomicBool) {
    let mut known = watcher.findings().unwrap_or_default();
    let mut failed = false;
    while !stop.load(Ordering::Relaxed) {
        match watcher.wait(TURN) {
            Ok(changes) => {
                if !changes.is_empty() {
                    tables.apply(&changes);
                }
                if failed {
                    failed = false;
                    tables.trust();
                    log::info!("the kernel's routes are followed again");
                }
                if changes.findings {
                    show_new(&watcher, &mut known);
                }
            }
            Err(error) => {
                tables.distrust();
                if !failed {
                    log::warn!("the kernel's routes cannot be followed, so it forwards alone: {error}");
                }
                failed = true;
                std::thread::sleep(RETRY);
            }
        }
    }
}

/// Prints the findings that were not there before.
fn show_new(watcher: &Watcher, known: &mut Vec<Finding>) {
    match watcher.findings() {
        Ok(findings) => {
            let new: Vec<Finding> = findings.iter().filter(|f| !known.contains(f)).cloned().collect();
            checks::show(&new);
            *known = findings;
        }
        Err(error) => log::warn!("cannot ask the kernel what it does to forwarded packets: {error}"),
    }
}
