//! What a run has found, put into the document as it comes.

use super::Place;
use crate::search::Outcome;
use crate::search::mlr::GoalResult;
use crate::tester::SelfTest;
use causeway_results::{Axis, Document, Measurement, Series, Source};

/// Percentiles of delay that are kept.
const PERCENTILES: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0];
/// What a measurement says of which the tester may be the cause.
pub const LIMITED: &str = "limited by the tester";

/// Adds to a document.
pub struct Findings<'a> {
    document: &'a mut Document,
    first: String,
}

fn axis(quantity: &str, unit: &str) -> Axis {
    Axis { quantity: quantity.to_owned(), unit: unit.to_owned() }
}

/// Quantity and unit.
type What<'a> = (&'a str, &'a str);

impl<'a> Findings<'a> {
    /// Of these devices, of which the others are compared with the first.
    pub fn new(document: &'a mut Document, devices: &[String]) -> Findings<'a> {
        Findings { document, first: devices.first().cloned().unwrap_or_default() }
    }

    /// What the numbers depend on.
    pub fn setting(&mut self, name: &str, value: &str) {
        self.document.run.settings.insert(name.to_owned(), value.to_owned());
    }

    /// What a device is.
    pub fn version(&mut self, device: &str, version: &str) {
        self.document.run.versions.insert(device.to_owned(), version.to_owned());
    }

    /// One more repetition of a point.
    fn add(&mut self, name: &str, (quantity, unit): What<'_>, x: (Axis, f64), value: f64, note: &str) {
        let series = match self.document.series.iter().position(|series| series.name == name) {
            Some(at) => &mut self.document.series[at],
            None => {
                self.document.series.push(Series {
                    name: name.to_owned(),
                    quantity: quantity.to_owned(),
                    unit: unit.to_owned(),
                    x: Some(x.0),
                    baseline: None,
                    measurements: Vec::new(),
                });
                let last = self.document.series.len() - 1;
                &mut self.document.series[last]
            }
        };
        let measurements = &mut series.measurements;
        let at = measurements.partition_point(|one| one.x < Some(x.1));
        match measurements.get_mut(at).filter(|one| one.x == Some(x.1)) {
            Some(one) => {
                one.repetitions.push(value);
                if one.note.is_empty() {
                    note.clone_into(&mut one.note);
                }
            }
            None => measurements.insert(
                at,
                Measurement {
                    x: Some(x.1),
                    source: Source::Measured,
                    repetitions: vec![value],
                    note: note.to_owned(),
                },
            ),
        }
    }

    /// Has a device's series compared with that of the first.
    fn compare(&mut self, device: &str, rest: &str) {
        let (name, baseline) = (format!("{device}/{rest}"), format!("{}/{rest}", self.first));
        if device != self.first && self.document.series(&baseline).is_some() {
            let series = self.document.series.iter_mut().find(|series| series.name == name);
            series.into_iter().for_each(|series| series.baseline = Some(baseline.clone()));
        }
    }

    /// What the tester does by itself.
    pub fn self_test(&mut self, test: &SelfTest) {
        let load = || axis("offered load", "frames/s");
        for step in &test.steps {
            let note = if step.limited { LIMITED } else { "" };
            let rate = ("forwarding rate", "frames/s");
            self.add(
                "tester, received/self-test over a cable",
                rate,
                (load(), step.asked_fps),
                step.received_fps,
                note,
            );
            self.add(
                "tester, sent/self-test over a cable",
                rate,
                (load(), step.asked_fps),
                step.offered_fps,
                note,
            );
        }
        if let Some(bias_ns) = test.bias_ns {
            self.setting(
                "smallest delay of the tester and a cable, not subtracted",
                &format!("{bias_ns} ns"),
            );
        }
    }

    /// Bounds of loads.
    pub(super) fn bounds(&mut self, place: &Place<'_>, results: &[GoalResult], test: &SelfTest) {
        for result in results {
            let Some(lower) = result.lower_fps else { continue };
            let limited = result.upper_fps.is_none() || test.limits(lower as f64);
            let (rest, note) = (result.goal.as_str(), if limited { LIMITED } else { "" });
            let x = (axis("frame length", "bytes"), place.length);
            self.add(&format!("{}/{rest}", place.device), ("load", "frames/s"), x, lower as f64, note);
            self.compare(place.device, rest);
        }
    }

    /// All trials of a search, in order: load, loss ratio, whether the tester fell behind.
    pub(super) fn trace(&mut self, place: &Place<'_>, trials: &[(f64, f64, bool)]) {
        let name = format!("{}/{}/search {}", place.device, place.size, place.repetition + 1);
        for (n, &(load, loss, limited)) in trials.iter().enumerate() {
            let x = || (axis("trial", ""), (n + 1) as f64);
            let note = if limited { LIMITED } else { "" };
            self.add(&format!("{name}/load"), ("offered load", "frames/s"), x(), load, note);
            self.add(&format!("{name}/loss"), ("loss ratio", ""), x(), loss, note);
        }
    }

    /// Forwarding rate and loss against load; the first load is the highest.
    pub(super) fn curve(&mut self, place: &Place<'_>, loads: &[f64], outcomes: &[Outcome], test: &SelfTest) {
        for (&load, outcome) in loads.iter().zip(outcomes) {
            let note = if outcome.limited { LIMITED } else { "" };
            let x = || (axis("offered load", "frames/s"), load.round());
            let name = format!("{}/{}", place.device, place.size);
            let rate = outcome.forwarding_fps();
            self.add(&format!("{name}/forwarding rate"), ("forwarding rate", "frames/s"), x(), rate, note);
            self.add(&format!("{name}/loss"), ("loss ratio", ""), x(), outcome.loss_ratio(), note);
        }
        if let Some(highest) = outcomes.first() {
            let rate = highest.forwarding_fps();
            let note = if highest.limited || test.limits(rate) { LIMITED } else { "" };
            let (rest, x) = ("saturation forwarding rate", (axis("frame length", "bytes"), place.length));
            self.add(&format!("{}/{rest}", place.device), ("forwarding rate", "frames/s"), x, rate, note);
            self.compare(place.device, rest);
        }
    }

    /// Delay at a part of the PDR.
    pub(super) fn delay(&mut self, place: &Place<'_>, part: f64, outcomes: &[Outcome]) {
        let at = format!("delay at {:.0} % of its PDR", part * 100.0);
        for outcome in outcomes {
            let note = if outcome.limited { LIMITED } else { "" };
            for percentile in PERCENTILES {
                let Some(ns) = outcome.analysis.latency.percentile_ns(percentile / 100.0) else { continue };
                let rest = format!("{}/{at}", place.size);
                let x = (axis("percentile", "%"), percentile);
                self.add(&format!("{}/{rest}", place.device), ("delay", "us"), x, ns as f64 / 1e3, note);
                self.compare(place.device, &rest);
            }
        }
    }
}
