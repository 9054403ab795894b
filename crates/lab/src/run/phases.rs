//! What is measured of a device at a frame length, in its order.

use super::ground::Ready;
use super::{Findings, Place, Preset};
use crate::inside::{Inside, Meter};
use crate::search::mlr::{GoalResult, NDR, PDR, Search};
use crate::search::rfc2544::{BackToBack, Repeat};
use crate::search::{Event, Outcome, Procedure, Request, Tester, run};
use crate::tester::{Alone, Ports, SelfTest};
use crate::yardstick::{Calm, Yardstick};
use anyhow::Result;

/// Parts of the PDR at which delay is measured.
const DELAY_LOADS: [f64; 3] = [0.1, 0.5, 0.9];
/// Loads at which forwarding rate and loss are measured, as parts of the highest.
pub const CURVE: [f64; 10] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
/// The lowest load of a search, as a part of the highest.
const LOWEST: f64 = 0.001;
/// The load at which something happens to a device, as a part of its PDR: what is lost then is not lost to the load.
const EVENT_LOAD: f64 = 0.5;

/// How it is measured.
pub struct How<'a> {
    /// How long trials take.
    pub preset: &'a Preset,
    /// How often delay is measured at a load.
    pub delays: usize,
    /// What the tester can do.
    pub test: &'a SelfTest,
    /// Frames a second that the links carry, where that is known.
    pub line_fps: Option<f64>,
    /// What is to happen to the device.
    pub events: &'static [Event],
    /// Whether only rates at loads are asked for.
    pub only_curve: bool,
    /// Looks into the machine, where it lets itself be looked into.
    pub inside: Option<&'a Inside>,
    /// The device.
    pub device: &'a Ready,
    /// Its processor time, where that is known.
    pub meter: Option<Meter>,
}

/// Measures; `all`: bursts, recovery and events too, where the repetition has them.
///
/// # Errors
/// Those of trials.
pub fn measure(
    how: &How<'_>,
    (tester, yardstick): (&mut Ports, &mut Yardstick<'_>),
    place: &Place<'_>,
    all: bool,
    findings: &mut Findings<'_>,
) -> Result<()> {
    let preset = how.preset;
    let highest = how.line_fps.map_or(how.test.most_fps(), |line| how.test.most_fps().min(line));
    tester.trial(&Request::new(highest * LOWEST, preset.trial_ns))?;
    if how.device.alone() == Some(Alone::Transmit) {
        // It sends what it can, whatever the load.
        return curve(how, (tester, yardstick), place, (highest, &CURVE[..1]), findings);
    }
    if how.only_curve {
        return curve(how, (tester, yardstick), place, (highest, &CURVE), findings);
    }
    let whole = preset.is_whole(place.repetition);
    let parts = if whole { &CURVE[..] } else { &CURVE[..1] };
    let results = search(how, &mut Calm { tester, yardstick }, place, highest, findings)?;
    curve(how, (tester, yardstick), place, (highest, parts), findings)?;
    if let Some(line) = how.line_fps {
        findings.line_rate(place, "forwarding rate", "saturation forwarding rate", line);
    }
    let lower = |goal: &str| results.iter().find(|result| result.goal == goal)?.lower_fps;
    let all = all && whole;
    let Some(pdr) = lower(PDR) else {
        let what = if all { "delay, bursts, recovery and what happens to it" } else { "delay" };
        findings.not_measured(place, what, "it has no PDR");
        return Ok(());
    };
    for (part, load) in DELAY_LOADS.map(|part| (part, pdr as f64 * part)) {
        let outcomes =
            made(&mut Calm { tester, yardstick }, Repeat::latency(load, preset.delay_ns, how.delays))?;
        findings.delay(place, part, &outcomes);
    }
    if all {
        let ndr = lower(NDR).map(|ndr| ndr as f64);
        disturb(how, (tester, yardstick), place, (ndr, pdr as f64, highest), findings)?;
    }
    Ok(())
}

/// Rate, loss, and what is seen inside, at these parts of the highest load, the highest first.
fn curve(
    how: &How<'_>,
    (tester, yardstick): (&mut Ports, &mut Yardstick<'_>),
    place: &Place<'_>,
    (highest, parts): (f64, &[f64]),
    findings: &mut Findings<'_>,
) -> Result<()> {
    let loads: Vec<f64> = parts.iter().map(|part| highest * part).collect();
    let mut outcomes = Vec::new();
    for &load in &loads {
        let (outcome, took_ns, seen, reported) = yardstick.calmly(|| {
            let before = how.device.reported()?;
            let look = how.inside.map(Inside::begin).transpose()?;
            // What it takes beside the trial in which it is heard is not for packets that are counted.
            let meter = how.meter.as_ref().filter(|_| how.device.alone() != Some(Alone::Transmit));
            let meter_ns = || meter.map(Meter::read_ns).transpose();
            let begun_ns = meter_ns()?;
            let outcome = tester.trial(&Request::new(load, how.preset.trial_ns))?;
            let took_ns = begun_ns.zip(meter_ns()?).map(|(begun, ended)| ended.saturating_sub(begun));
            let seen = look.map(|look| look.end(&how.device.ids())).transpose()?;
            Ok((outcome, took_ns, seen, before.zip(how.device.reported()?)))
        })?;
        if let Some(took_ns) = took_ns {
            findings.processor_time(place, load, took_ns, &outcome);
        }
        let flows = tester.flows();
        if flows.len() > 1 {
            findings.flows(place, load, &flows, &outcome);
        }
        outcomes.push(outcome);
        if let Some(seen) = seen {
            findings.inside(place, load, &seen);
        }
        if let Some(entries) = how.device.cache_entries()? {
            findings.cache_entries(place, load, entries);
        }
        if let Some((before, after)) = reported {
            findings.reported(place, load, (&before, &after), how.preset.trial_ns);
        }
    }
    findings.curve(place, &loads, &outcomes, how.test);
    Ok(())
}

fn search(
    how: &How<'_>,
    tester: &mut dyn Tester,
    place: &Place<'_>,
    highest: f64,
    findings: &mut Findings<'_>,
) -> Result<Vec<GoalResult>> {
    let mut trace = Vec::new();
    let mut search = Search::new(how.preset.goals(), (highest * LOWEST) as u64, highest as u64);
    run(&mut search, tester, |request, outcome, _| {
        trace.push((request.load_fps(), outcome.loss_ratio(), outcome.limited));
        Ok(())
    })?;
    let results = search.results();
    findings.bounds(place, &results, how.test);
    findings.trace(place, &trace);
    for result in results.iter().filter(|result| result.lower_fps.is_some()) {
        if let Some(line) = how.line_fps {
            findings.line_rate(place, "load", &result.goal, line);
        }
    }
    Ok(results)
}

/// Bursts, recovery, and what happens to the device: at a device with this NDR and PDR.
fn disturb(
    how: &How<'_>,
    (tester, yardstick): (&mut Ports, &mut Yardstick<'_>),
    place: &Place<'_>,
    (ndr, pdr, highest): (Option<f64>, f64, f64),
    findings: &mut Findings<'_>,
) -> Result<()> {
    let preset = how.preset;
    let mut bursts = BackToBack::new(highest, preset.burst_ns, preset.bursts, preset.burst_width);
    let calm = &mut Calm { tester, yardstick };
    run(&mut bursts, calm, |_, _, _| Ok(()))?;
    // Without an NDR nothing of a burst is forwarded while it comes.
    if let Some(lengths) = bursts.lengths(ndr.unwrap_or(0.0)) {
        findings.bursts(place, &lengths);
    }
    match ndr {
        Some(ndr) => {
            let mut recovery = Repeat::recovery(ndr, highest, preset.overload_ns, preset.overload_ns, 1);
            if let Some(request) = recovery.next() {
                made(calm, recovery)?.iter().for_each(|outcome| findings.recovery(place, &request, outcome));
            }
        }
        None => findings.not_measured(place, "recovery", "it has no NDR"),
    }
    for &event in how.events {
        let outcomes = made(tester, Repeat::disturbed(pdr * EVENT_LOAD, preset.event_ns, event, 1))?;
        outcomes.iter().for_each(|outcome| findings.blocked(place, event, outcome));
    }
    Ok(())
}

fn made(tester: &mut dyn Tester, mut repeat: Repeat) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    run(&mut repeat, tester, |_, outcome, _| {
        outcomes.push(outcome.clone());
        Ok(())
    })?;
    Ok(outcomes)
}
