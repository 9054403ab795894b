//! A port that receives, and the loop of a thread that does nothing else.

use super::Since;
use crate::analyser::Analyser;
use crate::frame::{Seen, look};
use causeway_netio::Rx;
use causeway_packet::{BATCH, Batch};
use causeway_results::traffic::Plan;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A pause when nothing waits, where the kernel has the time of arrival or others need the processor.
pub const PAUSE: Duration = Duration::from_micros(20);
/// One where no frames are sent to: what goes astray comes there, and its time says nothing.
const LONG_PAUSE: Duration = Duration::from_micros(500);

/// What comes to a port.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    /// Whether the kernel says when a frame came.
    pub stamped: bool,
    /// Whether frames are sent there. A thread that waits awake for none takes the processor from those that have work,
    /// where there are few.
    pub expected: bool,
}

impl Coming {
    /// Waits for a moment.
    pub fn wait(self) {
        match self {
            Coming { expected: false, .. } => std::thread::sleep(LONG_PAUSE),
            Coming { stamped: true, .. } => std::thread::sleep(PAUSE),
            Coming { .. } => std::thread::yield_now(),
        }
    }
}

/// A port that receives. `sort` is shown each frame and may take it for something else.
pub struct Sink<'a, F> {
    rx: &'a mut dyn Rx,
    /// What comes there.
    pub coming: Coming,
    sort: F,
    analyser: &'a mut Analyser,
    batch: Batch,
    /// What it took to take frames out and to look at them, nanoseconds.
    pub took_ns: u64,
}

impl<'a, F: FnMut(Seen, &[u8]) -> Seen> Sink<'a, F> {
    /// One whose frames are counted by `analyser`.
    pub fn new(rx: &'a mut dyn Rx, coming: Coming, sort: F, analyser: &'a mut Analyser) -> Sink<'a, F> {
        Sink { rx, coming, sort, analyser, batch: Batch::new(), took_ns: 0 }
    }

    /// Takes what has come, a batch at most. How many of the tester's frames are among it; `None` if nothing was there.
    #[inline]
    pub fn take(&mut self, since: Since) -> Option<u64> {
        let began_ns = since.ns();
        let more = self.rx.poll(&mut self.batch, BATCH);
        if self.batch.is_empty() && !more {
            return None;
        }
        let found_ns = since.ns();
        let mut tests = 0;
        for packet in self.batch.iter() {
            let at_ns = match packet.timestamp_ns() {
                time if self.coming.stamped && time > 0 => since.at(time),
                _ => found_ns,
            };
            let seen = (self.sort)(look(packet.data()), packet.data());
            tests += u64::from(matches!(seen, Seen::Test(_)));
            self.analyser.record(seen, at_ns);
        }
        self.batch.clear();
        self.took_ns += since.ns().saturating_sub(began_ns);
        Some(tests)
    }
}

/// Receives on a thread that does nothing else, until `ended` is set and nothing waits. `came` has how many test frames came so
/// far. Returns what taking them took, nanoseconds.
pub fn receive(
    mut sink: Sink<'_, impl FnMut(Seen, &[u8]) -> Seen>,
    since: Since,
    ended: &AtomicBool,
    came: &AtomicU64,
) -> u64 {
    loop {
        // Looked at before the port: what came before the end is received.
        let last = ended.load(Ordering::Relaxed);
        match sink.take(since) {
            Some(tests) => {
                came.fetch_add(tests, Ordering::Relaxed);
            }
            None if last => return sink.took_ns,
            None => sink.coming.wait(),
        }
    }
}

/// Frames that the device sent to a port where they should not go are not what was sent to it.
pub fn at_home(seen: Seen, plan: &Plan, port: usize) -> Seen {
    match seen {
        Seen::Test(tag) if plan.flows().get(usize::from(tag.flow)).is_some_and(|flow| flow.to != port) => {
            Seen::Foreign
        }
        seen => seen,
    }
}
