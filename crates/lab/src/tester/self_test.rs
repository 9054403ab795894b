//! The tester without a device: what it can do, and whether it counts right.

use crate::search::{Request, Tester};
use anyhow::{Context, Result, ensure};

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
        self.steps.iter().filter(|step| step.clean()).map(|step| step.received_fps).fold(0.0, f64::max)
    }

    /// Whether the tester itself may be what limits a device to this rate: it does a tenth more, or not even that.
    pub fn limits(&self, rate_fps: f64) -> bool {
        rate_fps * 1.1 > self.most_fps()
    }
}

impl Step {
    fn clean(&self) -> bool {
        self.received_fps >= self.offered_fps * 0.999
    }

    /// The better of two at the same load.
    fn or(self, other: Step) -> Step {
        let part = |step: &Step| step.received_fps / step.offered_fps.max(1.0);
        if part(&other) > part(&self) { other } else { self }
    }
}

/// How often a load is offered until it is received whole. A trial is short: that something else had the processor for a
/// moment says nothing of the tester.
const TRIES: usize = 3;
/// How often the distance between the highest load that was received whole and the next one is halved.
const HALVINGS: usize = 3;

/// Offers each load for `duration_ns` over a cable, and then loads above the highest that was received whole: `independent` is what somebody else counted of received
/// frames so far, which must agree with the tester.
///
/// # Errors
/// If a trial fails, or the tester's counts are not those of the independent counter.
pub fn self_test(
    tester: &mut dyn Tester,
    loads_fps: &[f64],
    duration_ns: u64,
    mut independent: impl FnMut() -> Result<u64>,
) -> Result<SelfTest> {
    let mut bias_ns = None;
    let mut tried = |asked_fps| -> Result<Step> {
        let mut best: Option<Step> = None;
        for _ in 0..TRIES {
            let (step, delay) = offer(tester, asked_fps, duration_ns, &mut independent)?;
            bias_ns = bias_ns.or(delay);
            best = Some(best.map_or(step, |best| best.or(step)));
            if step.clean() {
                break;
            }
        }
        best.context("a load is tried at least once")
    };
    let mut steps = loads_fps.iter().map(|&load| tried(load)).collect::<Result<Vec<_>>>()?;
    let highest = steps.iter().rposition(Step::clean);
    if let Some([low, high]) = highest.and_then(|at| steps.get(at..at + 2)) {
        let (mut low, mut high) = (low.asked_fps, high.asked_fps);
        for _ in 0..HALVINGS {
            let step = tried((low + high) / 2.0)?;
            *(if step.clean() { &mut low } else { &mut high }) = step.asked_fps;
            steps.push(step);
        }
    }
    steps.sort_by(|a, b| a.asked_fps.total_cmp(&b.asked_fps));
    Ok(SelfTest { steps, bias_ns })
}

/// Offers a load once; also the smallest delay.
fn offer(
    tester: &mut dyn Tester,
    asked_fps: f64,
    duration_ns: u64,
    independent: &mut impl FnMut() -> Result<u64>,
) -> Result<(Step, Option<u64>)> {
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
    let step = Step {
        asked_fps,
        offered_fps: outcome.offered_fps(),
        received_fps: outcome.forwarding_fps(),
        limited: outcome.limited,
    };
    Ok((step, outcome.analysis.latency.min_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Outcome;
    use crate::simulated::{Device, Simulated};
    use causeway_results::traffic::{Matrix, Traffic};
    use std::cell::Cell;
    use std::rc::Rc;

    /// A cable that carries 714 286 frames a second, and at each load loses one in a hundred at so many first trials.
    struct Cable {
        disturbed: usize,
        trials: Vec<f64>,
        carried: Rc<Cell<u64>>,
    }

    impl Tester for Cable {
        fn trial(&mut self, request: &Request) -> Result<Outcome> {
            let before = self.trials.iter().filter(|&&load| load == request.load_fps()).count();
            let lose_every = if before < self.disturbed { 100 } else { 0 };
            self.trials.push(request.load_fps());
            let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
            let cable = Device { service_ns: 1_400, queue: 10, lose_every, ..Device::default() };
            let outcome = Simulated::new(traffic, 2, cable)?.trial(request)?;
            self.carried.set(self.carried.get() + outcome.received());
            Ok(outcome)
        }
    }

    fn found(disturbed: usize) -> (SelfTest, Vec<f64>) {
        let carried = Rc::new(Cell::new(0));
        let mut cable = Cable { disturbed, trials: Vec::new(), carried: carried.clone() };
        let found = self_test(&mut cable, &[250e3, 500e3, 1e6, 2e6], 20_000_000, || Ok(carried.get()));
        (found.expect("they agree"), cable.trials)
    }

    #[test]
    fn the_highest_load_is_found_between_the_steps() {
        let (test, trials) = found(0);
        assert_eq!(test.most_fps(), 687.5e3);
        let asked: Vec<f64> = test.steps.iter().map(|step| step.asked_fps).collect();
        assert_eq!(asked, [250e3, 500e3, 625e3, 687.5e3, 750e3, 1e6, 2e6]);
        // What is received whole at once is not offered again.
        assert_eq!(trials.iter().filter(|&&load| load == 500e3).count(), 1);
        assert_eq!(trials.iter().filter(|&&load| load == 1e6).count(), TRIES);
    }

    #[test]
    fn a_disturbed_trial_does_not_decide() {
        assert_eq!(found(TRIES - 1).0.most_fps(), 687.5e3);
        assert_eq!(found(TRIES).0.most_fps(), 0.0, "what is never received whole counts as not received");
    }
}
