//! The loop of a thread that sends.

use super::Since;
use causeway_netio::Tx;
use causeway_packet::Batch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sleeps end so much later than they should, at most, on a machine that is not overloaded.
const SLEEP_ERROR_NS: u64 = 80_000;
/// The longest sleep, so that an interrupt is heard.
const LONGEST_SLEEP_NS: u64 = 20_000_000;
/// A sender that has fallen behind may go on for so much longer: a twentieth, and this.
const GRACE_NS: u64 = 50_000_000;
/// How long what was taken may be on its way into the device.
const FLUSHES: usize = 1_000;

/// What is sent, and when; without a clock and without a port.
pub trait Source {
    /// What is to be said of it in the end.
    type Report;

    /// Appends the frames that are due at `now_ns`, as far as `batch` and the pool have room. Says when the next is due
    /// that was not appended; `None`: there is none.
    fn fill(&mut self, now_ns: u64, batch: &mut Batch) -> Option<u64>;

    /// So many frames were handed over at a time, which took so long since they were due to be written.
    fn gone(&mut self, frames: usize, took_ns: u64) {
        let _ = (frames, took_ns);
    }

    /// Ends it at `last_ns`. What is in `left` was not sent after all.
    fn finish(self, left: &Batch, last_ns: u64) -> Self::Report;
}

/// Sends what is due until nothing is left, or `duration_ns` and some more are over.
pub fn send<S: Source>(
    tx: &mut dyn Tx,
    mut source: S,
    duration_ns: Option<u64>,
    since: Since,
    interrupted: &AtomicBool,
) -> S::Report {
    let end_ns = duration_ns.map_or(u64::MAX, |ns| ns.saturating_add(ns / 20 + GRACE_NS));
    let mut batch = Batch::new();
    let mut last_ns = 0;
    while !interrupted.load(Ordering::Relaxed) {
        let now_ns = since.ns();
        let next = source.fill(now_ns, &mut batch);
        if now_ns > end_ns {
            break;
        }
        if !batch.is_empty() {
            let all = batch.len();
            tx.offer(&mut batch);
            tx.flush();
            last_ns = since.ns();
            source.gone(all - batch.len(), last_ns.saturating_sub(now_ns));
            if !batch.is_empty() {
                // The device is full; whoever empties it may need this processor.
                std::thread::yield_now();
            }
            continue;
        }
        match next {
            None => break,
            Some(due_ns) => wait(due_ns.saturating_sub(now_ns), tx),
        }
    }
    for _ in 0..FLUSHES {
        if tx.in_flight() == 0 {
            break;
        }
        tx.flush();
        std::thread::yield_now();
    }
    source.finish(&batch, last_ns)
}

fn wait(ns: u64, tx: &mut dyn Tx) {
    if tx.in_flight() > 0 {
        tx.flush();
    } else if ns > SLEEP_ERROR_NS {
        std::thread::sleep(Duration::from_nanos((ns - SLEEP_ERROR_NS).min(LONGEST_SLEEP_NS)));
    } else {
        std::thread::yield_now();
    }
}
