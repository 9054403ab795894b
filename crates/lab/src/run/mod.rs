//! A comparison of devices: the same trials of each, in turns, and one document.
//!
//! First the tester is tested by itself, over a cable. Then, in each repetition, each device is started, warmed
//! up by a trial that does not count, and asked at each frame length for its NDR and PDR, its forwarding rate and loss at loads up to the highest,
//! and its delay at parts of its PDR. What was found is in the [`Document`] at any time, so a run that is ended early
//! leaves what it had.

mod findings;
mod manner;
mod task;
#[cfg(test)]
mod tests;

pub use findings::Findings;
pub use manner::Preset;
pub use task::{Task, compare_files, verdict};

use crate::bed::{Bed, Device, Kind, VETH_NOTE};
use crate::search::mlr::{GoalResult, Search};
use crate::search::rfc2544::Repeat;
use crate::search::{Outcome, Request, Tester, run as make};
use crate::tester::{Control, Manner, Ports, SelfTest, TIME_OF_DEPARTURE, self_test};
use anyhow::{Context, Result, ensure};
use causeway_results::Document;
use causeway_results::traffic::{Matrix, Sizes, Traffic};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Parts of the PDR at which delay is measured.
const DELAY_LOADS: [f64; 3] = [0.1, 0.5, 0.9];
/// Loads at which forwarding rate and loss are measured, as parts of the highest.
const CURVE: [f64; 10] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
/// The lowest load of a search, as a part of the highest.
const LOWEST: f64 = 0.001;

/// What stands between which ports, as a file says it (TOML).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Description {
    /// Ports of the bed.
    pub ports: usize,
    /// How the tester opens its ports: `afxdp` or `packet`.
    pub method: String,
    /// Processors of the tester; any if empty.
    pub tester_processors: Vec<usize>,
    /// Processors of the device; any if empty.
    pub device_processors: Vec<usize>,
    /// The most frames a second that are offered, by all ports together.
    pub highest_fps: f64,
    /// Devices by name, beside kernel, causeway and click.
    #[serde(rename = "device")]
    pub devices: BTreeMap<String, Kind>,
    /// What is offered; the streams' lengths are those that the run goes through.
    pub traffic: Option<Traffic>,
}

impl Default for Description {
    fn default() -> Description {
        Description {
            ports: 2,
            method: "afxdp".to_owned(),
            tester_processors: Vec::new(),
            device_processors: Vec::new(),
            highest_fps: 2e6,
            devices: BTreeMap::new(),
            traffic: None,
        }
    }
}

impl Description {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn read(text: &str) -> Result<Description> {
        let description: Description = toml::from_str(text)?;
        ensure!(description.highest_fps > 0.0, "highest_fps is above zero");
        if let Some(traffic) = &description.traffic {
            traffic.check()?;
        }
        Ok(description)
    }

    /// The device of a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn device(&self, name: &str) -> Result<Kind> {
        self.devices.get(name).cloned().map_or_else(|| Kind::by_name(name), Ok)
    }
}

/// A comparison that is asked for.
pub struct Comparison {
    /// The bed.
    pub description: Description,
    /// Names of devices; the first is what the others are compared with.
    pub devices: Vec<String>,
    /// Lengths of frames: a name for people and what is offered.
    pub sizes: Vec<(String, Sizes)>,
    /// How long trials take.
    pub preset: Preset,
    /// How often all is measured.
    pub repetitions: usize,
}

/// Told of a step: what it is, and an estimate of the time that is left.
pub type Progress<'a> = dyn FnMut(&str, Duration) + 'a;

/// What is measured, once: a device at a frame length.
struct Place<'a> {
    device: &'a str,
    size: &'a str,
    /// Mean length of a frame in bytes.
    length: f64,
    repetition: usize,
}

impl Comparison {
    fn traffic(&self, sizes: &Sizes) -> Traffic {
        let mut traffic = self
            .description
            .traffic
            .clone()
            .unwrap_or_else(|| Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) });
        traffic.streams.iter_mut().for_each(|stream| stream.size = sizes.clone());
        traffic
    }

    fn manner(&self) -> Manner {
        Manner {
            processors: self.description.tester_processors.clone(),
            settle: self.preset.settle,
            pause: self.preset.pause,
        }
    }

    /// Runs it. `document` has at any time what was found.
    ///
    /// # Errors
    /// What cannot be set up, a device that dies, or an interrupt. What was found before stays in the document.
    pub fn run(
        &self,
        document: &mut Document,
        interrupted: &Arc<AtomicBool>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let kinds =
            self.devices.iter().map(|name| self.description.device(name)).collect::<Result<Vec<_>>>()?;
        ensure!(!kinds.is_empty() && !self.sizes.is_empty(), "there is nothing to compare");
        for (size, sizes) in &self.sizes {
            self.traffic(sizes).check().with_context(|| format!("frames of {size}"))?;
        }
        let mut findings = Findings::new(document, &self.devices);
        findings.setting("test bed", VETH_NOTE);
        findings.setting("ports of the tester", &self.description.method);
        self.preset
            .deviations()
            .iter()
            .for_each(|(name, text)| findings.setting(&format!("deviation: {name}"), text));
        for (name, kind) in self.devices.iter().zip(&kinds) {
            findings.version(name, &kind.version());
        }
        let (began, steps) = (Instant::now(), self.repetitions * kinds.len() * self.sizes.len());
        let bed = Bed::new("cwl", self.description.ports)?;
        progress("self-test of the tester, over a cable", self.preset.estimate(steps));
        let test = self.self_test(&bed, interrupted, &mut findings)?;
        let mut done = 0;
        for repetition in 0..self.repetitions {
            for (name, kind) in self.devices.iter().zip(&kinds) {
                let device = Device::start(kind, &bed, &self.description.device_processors)
                    .with_context(|| format!("device '{name}'"))?;
                for (size, sizes) in &self.sizes {
                    let left = match done {
                        0 => self.preset.estimate(steps),
                        _ => began.elapsed().mul_f64((steps - done) as f64 / f64::from(done as u32)),
                    };
                    progress(
                        &format!("{name}, {size}, repetition {} of {}", repetition + 1, self.repetitions),
                        left,
                    );
                    let traffic = self.traffic(sizes);
                    let length = traffic.mean_length().unwrap_or(0.0);
                    let control = Control { interrupted: interrupted.clone(), alive: device.alive() };
                    let ports = bed.open(&self.description.method)?;
                    let mut tester = Ports::new(ports, traffic, self.manner(), control)?;
                    let place = Place { device: name, size, length, repetition };
                    self.measure(&mut tester, &place, &test, &mut findings)
                        .with_context(|| format!("device '{name}', {size}"))?;
                    done += 1;
                }
            }
        }
        Ok(())
    }

    fn self_test(
        &self,
        bed: &Bed,
        interrupted: &Arc<AtomicBool>,
        findings: &mut Findings<'_>,
    ) -> Result<SelfTest> {
        let control = Control { interrupted: interrupted.clone(), alive: Box::new(|| Ok(())) };
        let ports = bed.cable(&self.description.method)?;
        let traffic = Traffic { matrix: Matrix::Unidirectional, ..self.traffic(&self.sizes[0].1) };
        let mut tester = Ports::new(ports, traffic, self.manner(), control)?;
        let highest = self.description.highest_fps;
        let loads: Vec<f64> = (0..8).rev().map(|halves| highest / f64::from(1 << halves)).collect();
        let test = self_test(&mut tester, &loads, self.preset.trial_ns, || bed.cable_received())?;
        findings.self_test(&test);
        findings.setting("time of departure", TIME_OF_DEPARTURE);
        findings.setting("time of arrival", tester.time_of_arrival());
        drop(tester);
        bed.cut()?;
        ensure!(
            test.most_fps() > 0.0,
            "the tester loses frames over a cable at every rate: the machine is too busy"
        );
        Ok(test)
    }

    fn measure(
        &self,
        tester: &mut Ports,
        place: &Place<'_>,
        test: &SelfTest,
        findings: &mut Findings<'_>,
    ) -> Result<()> {
        let (preset, highest) = (&self.preset, test.most_fps());
        tester.trial(&Request::new(highest * LOWEST, preset.trial_ns))?;
        let mut trace = Vec::new();
        let mut search = Search::new(preset.goals(), (highest * LOWEST) as u64, highest as u64);
        make(&mut search, tester, |request, outcome, _| {
            trace.push((request.load_fps(), outcome.loss_ratio(), outcome.limited));
            Ok(())
        })?;
        let results = search.results();
        findings.bounds(place, &results, test);
        findings.trace(place, &trace);
        let loads = CURVE.map(|part| highest * part);
        findings.curve(place, &loads, &repeat(tester, Repeat::rates(&loads, preset.trial_ns, 1))?, test);
        let pdr = results.iter().filter_map(|result: &GoalResult| result.lower_fps).max();
        for (part, load) in DELAY_LOADS.iter().filter_map(|part| Some((part, pdr? as f64 * part))) {
            let outcomes = repeat(tester, Repeat::latency(load, preset.delay_ns, 1))?;
            findings.delay(place, *part, &outcomes);
        }
        Ok(())
    }
}

fn repeat(tester: &mut Ports, mut repeat: Repeat) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    make(&mut repeat, tester, |_, outcome, _| {
        outcomes.push(outcome.clone());
        Ok(())
    })?;
    Ok(outcomes)
}
