//! The tests of RFC 2544 beside throughput, which is a [goal](super::mlr::Goal::rfc2544) of the search for loads.
//!
//! Most are repetitions at loads that are known beforehand ([`Repeat`]), and differ in what is read from the outcomes:
//! delay (§26.2, with the definitions of RFC 8219), recovery from overload (§26.5), reset (§26.6, RFC 6201), the papers' saturation
//! forwarding rate. Loss against load ([`LossCurve`], §26.3) and bursts ([`BackToBack`], §26.4 as RFC 9004 has it)
//! decide by what they see.

mod back_to_back;

pub use back_to_back::{BackToBack, BurstLengths};

use super::{Event, NS_PER_S, Outcome, Procedure, Request, Segment};
use causeway_results::stats;

/// The same trials again and again: each request in turn, then all again, so that what is compared sees the same
/// machine.
#[derive(Debug)]
pub struct Repeat {
    requests: Vec<Request>,
    repetitions: usize,
    outcomes: Vec<Outcome>,
}

impl Repeat {
    /// Makes each trial so many times.
    pub fn new(requests: Vec<Request>, repetitions: usize) -> Repeat {
        Repeat { requests, repetitions, outcomes: Vec::new() }
    }

    /// Delay at a load (§26.2): 20 repetitions of 120 s are conformant.
    pub fn latency(load_fps: f64, duration_ns: u64, repetitions: usize) -> Repeat {
        Repeat::new(vec![Request::new(load_fps, duration_ns)], repetitions)
    }

    /// Forwarding rates at these loads; at the highest that the ports can carry it is the papers' saturation forwarding
    /// rate.
    pub fn rates(loads_fps: &[f64], duration_ns: u64, repetitions: usize) -> Repeat {
        Repeat::new(loads_fps.iter().map(|&load| Request::new(load, duration_ns)).collect(), repetitions)
    }

    /// Recovery from overload (§26.5): 110 % of the throughput, or the highest load if that is less, then half of that.
    pub fn recovery(
        throughput_fps: f64,
        highest_fps: f64,
        overload_ns: u64,
        after_ns: u64,
        repetitions: usize,
    ) -> Repeat {
        let over = (throughput_fps * 1.1).min(highest_fps);
        let segments = vec![
            Segment { load_fps: over, duration_ns: overload_ns },
            Segment { load_fps: over / 2.0, duration_ns: after_ns },
        ];
        Repeat::new(vec![Request { segments, most_frames: None, event: None }], repetitions)
    }

    /// Something happens to the device after a quarter of the time (§26.6 and reconfiguration).
    pub fn disturbed(load_fps: f64, duration_ns: u64, event: Event, repetitions: usize) -> Repeat {
        let request =
            Request { event: Some((event, duration_ns / 4)), ..Request::new(load_fps, duration_ns) };
        Repeat::new(vec![request], repetitions)
    }

    /// What came of the request number `i`, repetition by repetition.
    pub fn outcomes(&self, i: usize) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().skip(i).step_by(self.requests.len().max(1))
    }
}

impl Procedure for Repeat {
    fn next(&mut self) -> Option<Request> {
        let made = self.outcomes.len();
        let left = made < self.repetitions * self.requests.len();
        left.then(|| self.requests[made % self.requests.len()].clone())
    }

    fn record(&mut self, outcome: &Outcome) {
        self.outcomes.push(outcome.clone());
    }

    fn remaining_ns(&self) -> u64 {
        let all: u64 = self.requests.iter().map(Request::duration_ns).sum();
        let made = self.outcomes.len() as u64;
        let trials = (self.requests.len() * self.repetitions) as u64;
        (u128::from(all * self.repetitions as u64) * u128::from(trials - made) / u128::from(trials.max(1)))
            as u64
    }
}

/// Delay by RFC 8219 §7.2: medians over repetitions, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// Typical latency: the median of the medians.
    pub typical_ns: f64,
    /// Worst-case latency: the median of the 99.9th percentiles.
    pub worst_case_ns: f64,
}

impl Delay {
    /// Of these repetitions; `None` if no frame came in one.
    pub fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Option<Delay> {
        let percentiles = outcomes.map(|outcome| {
            let latency = &outcome.analysis.latency;
            Some((latency.percentile_ns(0.5)? as f64, latency.percentile_ns(0.999)? as f64))
        });
        let (medians, worst): (Vec<f64>, Vec<f64>) =
            percentiles.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Delay { typical_ns: stats::median(&medians)?, worst_case_ns: stats::median(&worst)? })
    }
}

/// How long the device still lost frames after the load fell, in nanoseconds (RFC 2544 §26.5).
pub fn recovery_ns(request: &Request, outcome: &Outcome) -> u64 {
    let fell_ns = request.segments.first().map_or(0, |segment| segment.duration_ns);
    outcome.analysis.last_loss_ns.map_or(0, |last| last.saturating_sub(fell_ns))
}

/// For how long the device forwarded nothing, effectively: the frames that it lost, in nanoseconds of the offered load
/// (RFC 6201 §4.1; CSIT calls it the effective blocked time of a reconfiguration).
pub fn blocked_ns(outcome: &Outcome) -> f64 {
    let rate = outcome.offered_fps();
    if rate > 0.0 { outcome.analysis.total().lost as f64 / rate * NS_PER_S } else { 0.0 }
}

/// Loss against load (RFC 2544 §26.3): from the highest load downwards in steps, until two in a row lose nothing.
#[derive(Debug)]
pub struct LossCurve {
    highest_fps: f64,
    steps: u32,
    duration_ns: u64,
    points: Vec<(f64, f64)>,
}

impl LossCurve {
    /// From `highest_fps` on in `steps` equal steps; the RFC wants ten or more.
    pub fn new(highest_fps: f64, steps: u32, duration_ns: u64) -> LossCurve {
        LossCurve { highest_fps, steps: steps.max(1), duration_ns, points: Vec::new() }
    }

    /// Loads in frames a second, and the part that was lost.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    fn load(&self) -> f64 {
        let left = f64::from(self.steps) - self.points.len() as f64;
        self.highest_fps * left / f64::from(self.steps)
    }

    fn is_done(&self) -> bool {
        let clean = matches!(self.points[..], [.., (_, a), (_, b)] if a == 0.0 && b == 0.0);
        clean || self.points.len() >= self.steps as usize
    }
}

impl Procedure for LossCurve {
    fn next(&mut self) -> Option<Request> {
        (!self.is_done()).then(|| Request::new(self.load(), self.duration_ns))
    }

    fn record(&mut self, outcome: &Outcome) {
        self.points.push((self.load(), outcome.loss_ratio()));
    }

    fn remaining_ns(&self) -> u64 {
        if self.is_done() { 0 } else { (u64::from(self.steps) - self.points.len() as u64) * self.duration_ns }
    }
}
