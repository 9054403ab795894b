//! The thread that keeps the tables in step with the kernel.

use super::checks;
use super::tables::Tables;
use crate::lease::{Lease, Objector, Voucher};
use anyhow::{Context, Result};
use causeway_kernel::{Changes, Finding, Watcher};
use causeway_netio::bpf::front::{Front, monotonic_ns};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread waits for changes before it gives its word and looks whether it is to stop.
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
    pub fn start(watcher: Watcher, tables: Tables, front: Arc<Front>, lease: &Lease) -> Result<Follower> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let voucher = Voucher::new("the follower of the kernel's tables", Voucher::ALIVE);
        lease.require(voucher.clone());
        let objector = lease.objector();
        let follow = Follow { watcher, tables, front, voucher, objector, known: Vec::new() };
        let thread = std::thread::Builder::new().name("kernel".to_owned());
        let thread = thread.spawn(move || follow.run(&stopped)).context("cannot start a thread")?;
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

struct Follow {
    watcher: Watcher,
    tables: Tables,
    front: Arc<Front>,
    voucher: Voucher,
    objector: Objector,
    known: Vec<Finding>,
}

impl Follow {
    fn run(mut self, stop: &AtomicBool) {
        self.known = self.watcher.findings().unwrap_or_default();
        while !stop.load(Ordering::Relaxed) {
            self.voucher.word_ns.store(monotonic_ns(), Ordering::Release);
            match self.watcher.wait(TURN) {
                Ok(changes) => {
                    apply(&changes, &mut self.tables, &self.front);
                    self.objector.withdraw("follower");
                    if changes.findings {
                        self.show_new();
                    }
                }
                Err(error) => {
                    self.objector
                        .object("follower", format!("the kernel's routes cannot be followed: {error}"));
                    std::thread::sleep(RETRY);
                }
            }
        }
    }

    /// Prints the findings that were not there before.
    fn show_new(&mut self) {
        match self.watcher.findings() {
            Ok(findings) => {
                let new: Vec<Finding> =
                    findings.iter().filter(|f| !self.known.contains(f)).cloned().collect();
                checks::show(&new);
                self.known = findings;
            }
            Err(error) => log::warn!("cannot ask the kernel what it does to forwarded packets: {error}"),
        }
    }
}

/// Brings the tables and the programs' set of our own addresses up to date.
pub fn apply(changes: &Changes, tables: &mut Tables, front: &Front) {
    for (address, there) in &changes.addresses {
        let local = front.local();
        let done = match (*address, *there) {
            (IpAddr::V4(a), true) => local.insert_v4(a),
            (IpAddr::V6(a), true) => local.insert_v6(a),
            (IpAddr::V4(a), false) => local.remove_v4(a).map(drop),
            (IpAddr::V6(a), false) => local.remove_v6(a).map(drop),
        };
        if let Err(error) = done {
            // It comes to the kernel all the same, by way of the graph.
            log::warn!("{address} is not told apart in the driver: {error}");
        }
    }
    // What did not fit is tried again, also when nothing changes.
    if !changes.is_empty() || !tables.fit() {
        tables.apply(changes);
    }
}
