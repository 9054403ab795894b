//! Procedures: which trials answer a question, and what their outcomes say.
//!
//! A [`Procedure`] says which trial is next and is told what came of it; it neither sends nor waits. A [`Tester`] makes
//! trials: of ports, or of a [simulated device](crate::simulated). [`run`] brings the two together. So what is found for a
//! device that is known is known too, and is tested.
//!
//! * [`mlr`]: the load that a device forwards, for several goals at once (MLRsearch, RFC 9971); throughput in the sense of RFC 2544 is one goal;
//! * [`rfc2544`]: loss against load, bursts, recovery, and what follows from repetitions at one load.
//!
//! Loads are of all ports together, in frames a second.

pub mod mlr;
pub mod rfc2544;
#[cfg(test)]
mod tests;

use crate::analyser::Analysis;
use anyhow::Result;

const NS_PER_S: f64 = 1e9;

/// A load for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Frames a second.
    pub load_fps: f64,
    /// For so long, in nanoseconds.
    pub duration_ns: u64,
}

/// What happens to the device in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is killed and started again (RFC 6201 §4.2.1: software reset).
    Reset,
    /// Routes are added, and taken away again.
    Routes,
    /// Its graph is put in the place of itself.
    Swap,
}

impl Event {
    /// As a noun.
    pub fn name(self) -> &'static str {
        match self {
            Event::Reset => "reset",
            Event::Routes => "change of routes",
            Event::Swap => "swap of graphs",
        }
    }
}

/// A trial that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Loads, one after the other.
    pub segments: Vec<Segment>,
    /// After so many frames nothing more is sent.
    pub most_frames: Option<u64>,
    /// What happens, and how many nanoseconds after the start.
    pub event: Option<(Event, u64)>,
}

impl Request {
    /// One load.
    pub fn new(load_fps: f64, duration_ns: u64) -> Request {
        Request { segments: vec![Segment { load_fps, duration_ns }], most_frames: None, event: None }
    }

    /// A burst at the rate `rate_fps`.
    pub fn burst(frames: u64, rate_fps: f64) -> Request {
        // The last frame leaves well inside of the duration.
        let duration_ns = ((frames as f64 + 1.0) / rate_fps * NS_PER_S) as u64;
        Request { most_frames: Some(frames), ..Request::new(rate_fps, duration_ns) }
    }

    /// How long it takes in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.segments.iter().map(|segment| segment.duration_ns).sum()
    }

    /// Its mean load in frames a second.
    pub fn load_fps(&self) -> f64 {
        let frames = |s: &Segment| s.load_fps * s.duration_ns as f64;
        self.segments.iter().map(frames).sum::<f64>() / (self.duration_ns() as f64).max(1.0)
    }
}

/// What came of a trial.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Frames that were to be sent.
    pub intended: u64,
    /// How long sending took in nanoseconds: the trial's duration, or longer if the tester could not keep up.
    pub effective_ns: u64,
    /// Whether the tester could not offer what was asked for, so that the device is at least as good as it seems.
    pub limited: bool,
    /// What arrived.
    pub analysis: Analysis,
}

impl Outcome {
    /// Frames sent.
    pub fn sent(&self) -> u64 {
        self.analysis.total().sent
    }

    /// Frames forwarded, each counted once.
    pub fn received(&self) -> u64 {
        self.analysis.total().received()
    }

    /// The part of the frames that were sent and lost, 0 to 1; 0 if none was sent.
    pub fn loss_ratio(&self) -> f64 {
        let total = self.analysis.total();
        total.lost as f64 / (total.sent as f64).max(1.0)
    }

    /// The part of the frames that were to be sent and did not arrive, sent or not: what a search for a load goes by,
    /// because a load that was not offered was not forwarded.
    pub fn shortfall_ratio(&self) -> f64 {
        self.intended.saturating_sub(self.received()) as f64 / (self.intended as f64).max(1.0)
    }

    /// Frames that were sent a second.
    pub fn offered_fps(&self) -> f64 {
        self.sent() as f64 * NS_PER_S / (self.effective_ns as f64).max(1.0)
    }

    /// Frames that were forwarded a second.
    pub fn forwarding_fps(&self) -> f64 {
        self.received() as f64 * NS_PER_S / (self.effective_ns as f64).max(1.0)
    }
}

/// Asks for trials until it knows.
pub trait Procedure {
    /// The next trial; `None` when there is nothing more to find out. Asked again without an outcome, it says the same.
    fn next(&mut self) -> Option<Request>;

    /// What came of the trial that was asked for last.
    fn record(&mut self, outcome: &Outcome);

    /// An estimate of the time that trials still take in all, in nanoseconds.
    fn remaining_ns(&self) -> u64;
}

/// Makes trials.
pub trait Tester {
    /// Makes one.
    ///
    /// # Errors
    /// If the tester or the device failed: there is no outcome.
    fn trial(&mut self, request: &Request) -> Result<Outcome>;
}

/// Makes all trials that `procedure` asks for, and tells `seen` of each, which ends it by an error.
///
/// # Errors
/// Those of the tester and of `seen`.
pub fn run(
    procedure: &mut dyn Procedure,
    tester: &mut dyn Tester,
    mut seen: impl FnMut(&Request, &Outcome, u64) -> Result<()>,
) -> Result<()> {
    while let Some(request) = procedure.next() {
        let outcome = tester.trial(&request)?;
        procedure.record(&outcome);
        seen(&request, &outcome, procedure.remaining_ns())?;
    }
    Ok(())
}
