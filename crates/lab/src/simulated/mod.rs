//! A device that does what it is told, for tests: every loss, delay and order is known.
//!
//! [`Device`] takes frames and says what comes out and when; [`Simulated`] is a tester with such a device between
//! its ports, in no time.

#[cfg(test)]
mod tests;

use crate::analyser::{Analyser, Sent};
use crate::frame::{Seen, Tag};
use crate::search::{Event, Outcome, Request, Tester};
use crate::timetable::Timetable;
use anyhow::Result;
use causeway_results::traffic::{Plan, Traffic};

/// What a device does to every so manyth frame; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Delay of every frame in nanoseconds.
    pub delay_ns: u64,
    /// Loses each of these.
    pub lose_every: u64,
    /// Sends each of these twice.
    pub duplicate_every: u64,
    /// Breaks each of these.
    pub corrupt_every: u64,
    /// Holds each of these back.
    pub hold_every: u64,
    /// For so many nanoseconds.
    pub hold_ns: u64,
    /// Time that it takes over a frame, one after the other, in nanoseconds.
    pub service_ns: u64,
    /// Frames that may wait for that.
    pub queue: u64,
    /// How long it forwards nothing when it is reset or reconfigured, in nanoseconds.
    pub blocked_ns: u64,
}

/// A device in a trial.
#[derive(Debug)]
struct Running {
    device: Device,
    /// Frames that have come.
    seen: u64,
    /// When it will have done with what waits.
    free_ns: u64,
    /// It forwards nothing from here to there.
    blocked: std::ops::Range<u64>,
    /// What comes out: time, frame.
    out: Vec<(u64, Seen)>,
}

fn every(n: u64, seen: u64) -> bool {
    n > 0 && seen.is_multiple_of(n)
}

impl Running {
    /// A frame comes in. Times do not fall.
    fn offer(&mut self, at_ns: u64, tag: Tag) {
        let device = self.device;
        self.seen += 1;
        if every(device.lose_every, self.seen) || self.blocked.contains(&at_ns) {
            return;
        }
        let mut done_ns = at_ns;
        if device.service_ns > 0 {
            let backlog_ns = self.free_ns.saturating_sub(at_ns);
            // One of them is being served.
            if backlog_ns.div_ceil(device.service_ns) > device.queue {
                return;
            }
            self.free_ns = self.free_ns.max(at_ns) + device.service_ns;
            done_ns = self.free_ns;
        }
        if every(device.hold_every, self.seen) {
            done_ns += device.hold_ns;
        }
        let seen = if every(device.corrupt_every, self.seen) { Seen::Corrupt } else { Seen::Test(tag) };
        let copies = if every(device.duplicate_every, self.seen) { 2 } else { 1 };
        self.out.extend(std::iter::repeat_n((done_ns + device.delay_ns, seen), copies));
    }
}

/// A tester of a simulated device.
#[derive(Debug)]
pub struct Simulated {
    traffic: Traffic,
    plan: Plan,
    device: Device,
    trial: u16,
}

impl Simulated {
    /// Offers `traffic` by so many ports to `device`.
    ///
    /// # Errors
    /// If the traffic is not possible.
    pub fn new(traffic: Traffic, ports: usize, device: Device) -> Result<Simulated> {
        let plan = Plan::new(&traffic, ports)?;
        Ok(Simulated { traffic, plan, device, trial: 0 })
    }

    /// All departures of a trial in order: time, port.
    fn departures(&self, request: &Request) -> Vec<(u64, usize)> {
        let of =
            |port| Timetable::new(&self.traffic, &self.plan, request, port).map(move |at_ns| (at_ns, port));
        let mut all: Vec<(u64, usize)> = (0..self.plan.ports()).flat_map(of).collect();
        all.sort_unstable();
        all
    }
}

impl Tester for Simulated {
    fn trial(&mut self, request: &Request) -> Result<Outcome> {
        self.trial = self.trial.wrapping_add(1);
        let blocked = match request.event {
            Some((Event::Reset | Event::Routes | Event::Swap, at_ns)) => {
                at_ns..at_ns + self.device.blocked_ns
            }
            None => 0..0,
        };
        let mut running = Running { device: self.device, seen: 0, free_ns: 0, blocked, out: Vec::new() };
        let mut sent = vec![Sent::default(); self.plan.flows().len()];
        let mut places = vec![0; self.plan.ports()];
        let departures = self.departures(request);
        for &(at_ns, port) in &departures {
            let order = self.plan.order(port);
            let flow = order[places[port] % order.len()];
            places[port] += 1;
            let of = &mut sent[usize::from(flow)];
            let tag = Tag { trial: self.trial, flow, sequence: of.frames as u32, sent_ns: at_ns };
            *of = Sent { frames: of.frames + 1, last_ns: at_ns };
            running.offer(at_ns, tag);
        }
        running.out.sort_by_key(|&(at_ns, _)| at_ns);
        let mut analyser = Analyser::new(self.trial, sent.len());
        running.out.iter().for_each(|&(at_ns, seen)| analyser.record(seen, at_ns));
        Ok(Outcome {
            intended: departures.len() as u64,
            effective_ns: request.duration_ns(),
            limited: false,
            analysis: analyser.finish(&sent),
        })
    }
}
