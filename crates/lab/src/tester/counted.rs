//! Trials of a device that only receives, or only transmits: nothing that is sent to it comes back, so what it did is what
//! it counts itself, and of what it transmits also what the tester hears.

use super::receiving::Coming;
use super::waiting::wait_for;
use super::{Attached, Ports, pin};
use crate::analyser::{Analyser, Counts};
use crate::search::{Outcome, Request, Tester};
use anyhow::Result;
use causeway_packet::{BATCH, Batch};
use serde::Deserialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a device does that forwards nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alone {
    /// It takes what comes, and counts it.
    Receive,
    /// It sends as much as it can, all the time.
    Transmit,
}

/// Asks a device how many frames it has received, or sent, by each of its ports in order.
pub type Counting = Box<dyn FnMut() -> Result<Vec<u64>> + Send>;

/// Before it is listened to what a device sends all the time, what waits in the rings of the tester's ports is taken out.
const STALE: Duration = Duration::from_millis(50);

/// Something that was counted, and when.
struct Count {
    at: Instant,
    frames: Vec<u64>,
}

impl Count {
    /// Of a device. It takes a while to answer, and counts in the middle of it.
    fn of(counting: &mut Counting) -> Result<Count> {
        let asked = Instant::now();
        let frames = counting()?;
        Ok(Count { at: asked + asked.elapsed() / 2, frames })
    }

    /// Of the tester's ports.
    fn heard(heard: &[AtomicU64]) -> Count {
        let frames = heard.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Count { at: Instant::now(), frames }
    }

    /// What was counted since, in `time` if it was as much at other times: by one port.
    fn since(&self, before: &Count, time: Duration, port: usize) -> u64 {
        let at = |count: &Count| count.frames.get(port).copied().unwrap_or(0);
        let took = (self.at - before.at).as_secs_f64();
        let frames = at(self).saturating_sub(at(before)) as f64;
        if took > 0.0 { (frames * time.as_secs_f64() / took) as u64 } else { 0 }
    }
}

impl Tester for Ports {
    fn trial(&mut self, request: &Request) -> Result<Outcome> {
        let Some((alone, mut counting)) = self.control.alone.take() else {
            return self.exchange(request, true);
        };
        let outcome = match alone {
            Alone::Receive => self.received(request, &mut counting),
            Alone::Transmit => self.listen(request, &mut counting),
        };
        self.control.alone = Some((alone, counting));
        outcome
    }
}

impl Ports {
    /// Sends, and has the device say what it received. Several flows of a port have what came there in the order of their
    /// numbers.
    fn received(&mut self, request: &Request, counting: &mut Counting) -> Result<Outcome> {
        let before = counting()?;
        let mut outcome = self.exchange(request, false)?;
        let mut came = counting()?;
        came.iter_mut().zip(before).for_each(|(now, before)| *now = now.saturating_sub(before));
        for (flow, counts) in self.plan.flows().iter().zip(&mut outcome.analysis.flows) {
            let left = came.get_mut(flow.from);
            let got = left.as_ref().map_or(0, |left| counts.sent.min(**left));
            left.into_iter().for_each(|left| *left -= got);
            *counts = of(counts.sent, got);
        }
        Ok(outcome)
    }

    /// Sends nothing, and counts what comes as long as the request has it, whatever its load. As sent counts what the device
    /// says, as received what the tester hears.
    fn listen(&mut self, request: &Request, counting: &mut Counting) -> Result<Outcome> {
        self.check()?;
        let time = Duration::from_nanos(request.duration_ns());
        let heard: Vec<AtomicU64> = self.ports.iter().map(|_| AtomicU64::new(0)).collect();
        let (ended, manner, plan) = (AtomicBool::new(false), &self.manner, &self.plan);
        let speaks = |port: usize| !plan.order(port).is_empty();
        let interrupted = &*self.control.interrupted;
        let counts = std::thread::scope(|scope| {
            for (number, (port, heard)) in self.ports.iter_mut().zip(&heard).enumerate() {
                // When they come does not count, so that nobody need wait awake.
                let coming = Coming { stamped: true, expected: speaks(number) };
                let ended = &ended;
                scope.spawn(move || {
                    pin(&manner.processors);
                    hear(port, coming, heard, ended);
                });
            }
            let mut all = || {
                wait_for(STALE, interrupted);
                let device = Count::of(counting)?;
                let begun = Count::heard(&heard);
                wait_for(time, interrupted);
                Ok([device, begun, Count::heard(&heard), Count::of(counting)?])
            };
            let counts: Result<_> = all();
            ended.store(true, Ordering::Relaxed);
            counts
        });
        let [device, begun, over, device_over] = counts?;
        self.check()?;
        let took = over.at - begun.at;
        let flows = self.plan.flows();
        let mut analysis = Analyser::new(0, 0).finish(&[]);
        analysis.flows = vec![Counts::default(); flows.len()];
        // What a port is heard to send is its first flow's.
        for (at, flow) in flows.iter().enumerate().rev() {
            let first = flows[..at].iter().all(|other| other.from != flow.from);
            if first {
                let got = over.since(&begun, took, flow.from);
                // The two do not count at quite the same times.
                let sent = device_over.since(&device, took, flow.from).max(got);
                analysis.flows[at] = of(sent, got);
            }
        }
        let sent = analysis.total().sent;
        Ok(Outcome { intended: sent, effective_ns: took.as_nanos() as u64, limited: false, analysis })
    }
}

/// So many frames, of which so many came.
fn of(sent: u64, got: u64) -> Counts {
    Counts { sent, in_order: got, lost: sent - got, ..Counts::default() }
}

/// Counts what comes to a port, whoever sent it.
fn hear(port: &mut Attached, coming: Coming, heard: &AtomicU64, ended: &AtomicBool) {
    let mut batch = Batch::new();
    while !ended.load(Ordering::Relaxed) {
        let more = port.rx.poll(&mut batch, BATCH);
        if batch.is_empty() && !more {
            coming.wait();
        }
        heard.fetch_add(batch.len() as u64, Ordering::Relaxed);
        batch.clear();
    }
}
