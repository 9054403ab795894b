//! The tester without a device: what it can do, and whether it counts right.

use super::Ports;
use crate::search::{Request, Tester};
use anyhow::{Result, ensure};

/// What the tester does by itself, over a cable.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    /// Rising loads.
    pub steps: Vec<Step>,
    /// The smallest delay at the lowest load, in nanoseconds: of the tester and the cable.
    pub bias_ns: Option<u64>,
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Frames a second that were asked for.
    pub asked_fps: f64,
    /// That were sent.
    pub offered_fps: f64,
    /// That were received.
    pub received_fps: f64,
    /// Whether sending fell behind.
    pub limited: bool,
}

impl SelfTest {
    /// The most frames a second that the tester has shown to send and receive, losing at most one in a thousand.
    pub fn most_fps(&self) -> f64 {
        let clean = self.steps.iter().filter(|step| step.received_fps >= step.offered_fps * 0.999);
        clean.map(|step| step.received_fps).fold(0.0, f64::max)
    }

    /// Whether the tester itself may be what limits a device to this rate: it does a tenth more, or not even that.
    pub fn limits(&self, rate_fps: f64) -> bool {
        rate_fps * 1.1 > self.most_fps()
    }
}

/// Offers each load for `duration_ns` over a cable: `independent` is what somebody else counted of received
/// frames so far, which must agree with the tester.
///
/// # Errors
/// If a trial fails, or the tester's counts are not those of the independent counter.
pub fn self_test(
    tester: &mut Ports,
    loads_fps: &[f64],
    duration_ns: u64,
    mut independent: impl FnMut() -> Result<u64>,
) -> Result<SelfTest> {
    let (mut steps, mut bias_ns) = (Vec::new(), None);
    for &asked_fps in loads_fps {
        let before = independent()?;
        let outcome = tester.trial(&Request::new(asked_fps, duration_ns))?;
        let (counted, sent, received) = (independent()? - before, outcome.sent(), outcome.received());
        // A cable of virtual ports loses what is too much for it.
        ensure!(
            (received..=sent).contains(&counted),
            "self-test at {asked_fps:.0} frames/s: the tester says it sent {sent} frames and received {received}, the \
             cable carried {counted}"
        );
        let total = outcome.analysis.total();
        ensure!(
            outcome.analysis.corrupt + total.duplicated + total.reordered + total.too_late == 0,
            "self-test at {asked_fps:.0} frames/s: over a cable frames were broken, doubled or out of order: {total:?}"
        );
        bias_ns = bias_ns.or(outcome.analysis.latency.min_ns());
        steps.push(Step {
            asked_fps,
            offered_fps: outcome.offered_fps(),
            received_fps: outcome.forwarding_fps(),
            limited: outcome.limited,
        });
    }
    Ok(SelfTest { steps, bias_ns })
}
