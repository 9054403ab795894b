//! A port that sends, and the loop of a thread that does nothing else.

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

/// What came of a look at what is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It went, or is on its way.
    Gone,
    /// The device is full, and some of it waits.
    Waits,
    /// Nothing is for so many nanoseconds.
    In(u64),
    /// Nothing is left, or no time for it.
    Nothing,
}

/// A port that sends.
pub struct Sending<'a, S> {
    tx: &'a mut dyn Tx,
    /// What is sent, and when.
    pub source: S,
    /// What was due and is not gone.
    batch: Batch,
    end_ns: u64,
    last_ns: u64,
}

impl<'a, S: Source> Sending<'a, S> {
    /// It is over when nothing is left, or `duration_ns` and some more are over.
    pub fn new(tx: &'a mut dyn Tx, source: S, duration_ns: Option<u64>) -> Sending<'a, S> {
        let end_ns = duration_ns.map_or(u64::MAX, |ns| ns.saturating_add(ns / 20 + GRACE_NS));
        Sending { tx, source, batch: Batch::new(), end_ns, last_ns: 0 }
    }

    /// Sends what is due.
    #[inline]
    pub fn look(&mut self, since: Since) -> Due {
        let now_ns = since.ns();
        let next = self.source.fill(now_ns, &mut self.batch);
        if now_ns > self.end_ns {
            return Due::Nothing;
        }
        if !self.batch.is_empty() {
            let all = self.batch.len();
            self.tx.offer(&mut self.batch);
            self.tx.flush();
            self.last_ns = since.ns();
            self.source.gone(all - self.batch.len(), self.last_ns.saturating_sub(now_ns));
            return if self.batch.is_empty() { Due::Gone } else { Due::Waits };
        }
        let Some(due_ns) = next else { return Due::Nothing };
        if self.tx.in_flight() > 0 {
            self.tx.flush();
            return Due::Gone;
        }
        Due::In(due_ns.saturating_sub(now_ns))
    }

    /// What is to be said of it in the end.
    pub fn finish(self) -> S::Report {
        for _ in 0..FLUSHES {
            if self.tx.in_flight() == 0 {
                break;
            }
            self.tx.flush();
            std::thread::yield_now();
        }
        self.source.finish(&self.batch, self.last_ns)
    }
}

/// Sends on a thread that does nothing else, until it is over.
pub fn send<S: Source>(mut sending: Sending<'_, S>, since: Since, over: &AtomicBool) -> S::Report {
    while !over.load(Ordering::Relaxed) {
        match sending.look(since) {
            Due::Gone => {}
            // Whoever empties the device may need this processor.
            Due::Waits => std::thread::yield_now(),
            Due::In(ns) if ns > SLEEP_ERROR_NS => {
                std::thread::sleep(Duration::from_nanos((ns - SLEEP_ERROR_NS).min(LONGEST_SLEEP_NS)));
            }
            Due::In(_) => std::thread::yield_now(),
            Due::Nothing => break,
        }
    }
    sending.finish()
}
