//! What a run has found, put into the document as it comes.

mod arrivals;
mod fairness;
mod reported;
mod searched;

use super::Place;
use crate::analyser::STEP_NS;
use crate::inside::{IDLE_DIFFERENCE, Seen};
use crate::search::rfc2544::{BurstLengths, blocked_ns, recovery_ns};
use crate::search::{Event, Outcome, Request};
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

pub(super) fn axis(quantity: &str, unit: &str) -> Axis {
    Axis { quantity: quantity.to_owned(), unit: unit.to_owned() }
}

/// Quantity and unit.
pub(super) type What<'a> = (&'a str, &'a str);

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
    pub(super) fn add(
        &mut self,
        name: &str,
        (quantity, unit): What<'_>,
        x: (Axis, f64),
        value: f64,
        note: &str,
    ) {
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
                } else if !one.note.contains(note) {
                    one.note += &format!("; {note}");
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

    /// Forwarding rate and loss against load; the first load is the highest.
    pub(super) fn curve(&mut self, place: &Place<'_>, loads: &[f64], outcomes: &[Outcome], test: &SelfTest) {
        for (&load, outcome) in loads.iter().zip(outcomes) {
            let note = if outcome.limited { LIMITED } else { "" };
            let x = || (axis("offered load", "frames/s"), load.round());
            let name = format!("{}/{}", place.device, place.size);
            let rate = outcome.forwarding_fps();
            self.add(&format!("{name}/forwarding rate"), ("forwarding rate", "frames/s"), x(), rate, note);
            self.add(&format!("{name}/loss"), ("loss ratio", ""), x(), outcome.loss_ratio(), note);
            if let Some(ns) = outcome.analysis.latency.percentile_ns(0.5) {
                self.add(&format!("{name}/median delay"), ("delay", "us"), x(), ns as f64 / 1e3, note);
            }
            self.arrivals(place, load, outcome);
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
            self.arrivals_of_delay(place, part, outcome);
        }
    }

    /// The longest burst, and what it says of the device's buffer.
    pub(super) fn bursts(&mut self, place: &Place<'_>, lengths: &BurstLengths) {
        let note = if lengths.at_least { "at least: no longer one was sent" } else { "" };
        let x = || (axis("frame length", "bytes"), place.length);
        for (rest, what, value) in [
            ("longest burst", ("frames of a burst", "frames"), lengths.mean),
            ("buffer time", ("corrected buffer time", "us"), lengths.corrected_buffer_ns / 1e3),
        ] {
            self.add(&format!("{}/{rest}", place.device), what, x(), value, note);
            self.compare(place.device, rest);
        }
    }

    /// How long the device lost frames after an overload.
    pub(super) fn recovery(&mut self, place: &Place<'_>, request: &Request, outcome: &Outcome) {
        let note = if outcome.limited { LIMITED } else { "" };
        let (x, ms) =
            ((axis("frame length", "bytes"), place.length), recovery_ns(request, outcome) as f64 / 1e6);
        self.add(&format!("{}/recovery time", place.device), ("time", "ms"), x, ms, note);
        self.compare(place.device, "recovery time");
        self.timeline(place, "recovery from overload", outcome);
    }

    /// For how long the device forwarded nothing, effectively, when something happened to it.
    pub(super) fn blocked(&mut self, place: &Place<'_>, event: Event, outcome: &Outcome) {
        let note = if outcome.limited { LIMITED } else { "" };
        let (rest, x) =
            (format!("blocked by a {}", event.name()), (axis("frame length", "bytes"), place.length));
        let what = ("effective blocked time", "ms");
        self.add(&format!("{}/{rest}", place.device), what, x, blocked_ns(outcome) / 1e6, note);
        self.compare(place.device, &rest);
        self.timeline(place, event.name(), outcome);
    }

    fn timeline(&mut self, place: &Place<'_>, what: &str, outcome: &Outcome) {
        let name = format!("{}/{}/{what}, as it went", place.device, place.size);
        let step_s = STEP_NS as f64 / 1e9;
        for (n, &frames) in outcome.analysis.timeline.iter().enumerate() {
            let x = (axis("time", "ms"), n as f64 * step_s * 1e3);
            self.add(&name, ("forwarding rate", "frames/s"), x, frames as f64 / step_s, "");
        }
    }

    /// Processor time of the device in a trial at a load, for each packet that it forwarded.
    pub(super) fn processor_time(&mut self, place: &Place<'_>, load: f64, took_ns: u64, outcome: &Outcome) {
        if outcome.received() > 0 {
            let (what, x) = ("processor time a packet", (axis("offered load", "frames/s"), load.round()));
            let (name, ns) = (
                format!("{}/{}/{what}", place.device, place.size),
                took_ns as f64 / outcome.received() as f64,
            );
            self.add(&name, (what, "ns"), x, ns, if outcome.limited { LIMITED } else { "" });
        }
    }

    /// Entries of the device's route cache after a trial at a load: those in use, and all.
    pub(super) fn cache_entries(&mut self, place: &Place<'_>, load: f64, [active, total]: [u64; 2]) {
        for (which, entries) in [("active", active), ("total", total)] {
            let name = format!("{}/entries of the route cache, {which}", place.device);
            let x = (axis("offered load", "frames/s"), load.round());
            self.add(&name, ("entries", ""), x, entries as f64, "");
        }
    }

    /// What was seen inside at a load.
    pub(super) fn inside(&mut self, place: &Place<'_>, load: f64, seen: &Seen) {
        let x = || (axis("offered load", "frames/s"), load.round());
        let of = |what: &str| format!("inside {}, {}: {what}", place.device, place.size);
        let (time, percent) = (of("processor time"), ("processor time", "%"));
        self.setting("samples of processor time", seen.sampled_by());
        for (class, share) in &seen.shares {
            self.add(&format!("{class}/{time}"), percent, x(), share * 100.0, "");
        }
        self.add(&format!("{IDLE_DIFFERENCE}/{time}"), percent, x(), seen.idle_difference() * 100.0, "");
        for (n, idle) in seen.load.availability.iter().enumerate() {
            let name = format!("processor {n}/{}", of("availability"));
            self.add(&name, ("availability", "%"), x(), idle * 100.0, "");
        }
        let seconds = seen.time.as_secs_f64();
        for (what, count) in [
            ("interrupts", seen.load.interrupts),
            ("soft interrupts, reception", seen.load.receptions),
            ("soft interrupts, transmission", seen.load.transmissions),
            ("changes of thread", seen.load.switches),
        ] {
            let name = format!("{what}/{}", of("interrupts"));
            self.add(&name, ("rate", "a second"), x(), count as f64 / seconds, "");
        }
        // Those of the tester's ends say nothing of the device.
        for ((device, at), runs) in seen.runs.iter().filter(|((device, _), _)| device.starts_with('r')) {
            let what = format!("{device}, {}s", at.name());
            let rate = runs.runs as f64 / seconds;
            self.add(&format!("{what}/{}", of("runs")), ("rate", "runs a second"), x(), rate, "");
            let name = format!("{what}/{}", of("packets of a run"));
            self.ratio(&name, "packets of a run", x(), (runs.packets, runs.runs));
        }
    }

    /// The most that the links carry, beside what the devices do.
    pub(super) fn line_rate(&mut self, place: &Place<'_>, quantity: &str, rest: &str, most_fps: f64) {
        let name = format!("line rate/{rest}");
        let (x, what) = ((axis("frame length", "bytes"), place.length), (quantity, "frames/s"));
        let known =
            self.document.series(&name).is_some_and(|s| s.measurements.iter().any(|one| one.x == Some(x.1)));
        if !known {
            self.add(&name, what, x, most_fps, "");
            let series = self.document.series.iter_mut().find(|series| series.name == name);
            let measurements = series.into_iter().flat_map(|series| &mut series.measurements);
            measurements.for_each(|one| one.source = Source::Modelled);
        }
    }
}
