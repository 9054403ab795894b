//! The loop of a thread that receives.

use super::Since;
use crate::analyser::Analyser;
use crate::frame::{Seen, look};
use causeway_netio::Rx;
use causeway_packet::{BATCH, Batch};
use causeway_results::traffic::Plan;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A pause when nothing waits, where the kernel has the time of arrival or others need the processor.
const PAUSE: Duration = Duration::from_micros(20);
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
    /// Whether there are more threads that have work than processors. Then one that waits awake has another wait for its turn,
    /// which is far longer than a pause.
    pub crowded: bool,
}

impl Coming {
    /// Waits for a moment.
    pub fn wait(self) {
        match self {
            Coming { expected: false, .. } => std::thread::sleep(LONG_PAUSE),
            Coming { stamped: true, .. } | Coming { crowded: true, .. } => std::thread::sleep(PAUSE),
            Coming { .. } => std::thread::yield_now(),
        }
    }
}

/// Receives until `ended` is set and nothing waits; `sort` is shown each frame and may take it for something else. `came`
/// has how many test frames came so far. Returns how often nothing was there.
pub fn receive(
    rx: &mut dyn Rx,
    coming: Coming,
    mut sort: impl FnMut(Seen, &[u8]) -> Seen,
    analyser: &mut Analyser,
    since: Since,
    ended: &AtomicBool,
    came: &AtomicU64,
) -> u64 {
    let mut batch = Batch::new();
    let mut pauses = 0;
    loop {
        // Looked at before the port: what came before the end is received.
        let last = ended.load(Ordering::Relaxed);
        let more = rx.poll(&mut batch, BATCH);
        if batch.is_empty() && !more {
            if last {
                return pauses;
            }
            pauses += 1;
            coming.wait();
            continue;
        }
        let found_ns = since.ns();
        let mut tests = 0;
        for packet in batch.iter() {
            let at_ns = match packet.timestamp_ns() {
                time if coming.stamped && time > 0 => since.at(time),
                _ => found_ns,
            };
            let seen = sort(look(packet.data()), packet.data());
            tests += u64::from(matches!(seen, Seen::Test(_)));
            analyser.record(seen, at_ns);
        }
        came.fetch_add(tests, Ordering::Relaxed);
        batch.clear();
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
