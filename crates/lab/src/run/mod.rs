//! A comparison of devices: the same trials of each, in turns, and one document.
//!
//! First the tester is tested by itself, over a cable. Then, in each repetition, each device is started, warmed
//! up by a trial that does not count, and asked at each frame length for its NDR and PDR, its forwarding rate and loss at loads
//! up to the highest, and its delay at parts of its PDR; at the first length also for its longest burst, its recovery from
//! overload, and how long it forwards nothing when it is reset, its routes change or its graph is swapped. Short runs have less of
//! it in later repetitions ([`Preset::once`]). What was found is in the [`Document`] at any time, so a run that is ended early
//! leaves what it had.

mod findings;
mod ground;
mod manner;
mod phases;
mod provenance;
mod task;
#[cfg(test)]
mod tests;

pub use findings::Findings;
pub use ground::{Side, check_rate};
pub use manner::Preset;
pub use task::{ENDED_EARLY, Task, compare_files, keep, verdict};

use crate::bed::{Bed, Kind};
use crate::inside::Inside;
use crate::tester::{Control, Manner, Ports, SelfTest, TIME_OF_DEPARTURE, self_test};
use crate::yardstick::Yardstick;
use anyhow::{Context, Result, ensure};
use causeway_results::Document;
use causeway_results::traffic::{Matrix, Plan, Sizes, Traffic, line_rate_fps};
use ground::Ground;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

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
    /// Devices in a row, where that is more than one.
    pub chain: usize,
    /// Interfaces of this machine that are the ports, instead of those of a bed.
    #[serde(rename = "interface")]
    pub interfaces: Vec<Side>,
    /// Devices by name, beside kernel, causeway and click.
    #[serde(rename = "device")]
    pub devices: BTreeMap<String, Kind>,
    /// What is offered; the streams' lengths are those that the run goes through.
    pub traffic: Option<Traffic>,
    /// The text that it was read from, for the results.
    #[serde(skip)]
    pub text: String,
}

impl Default for Description {
    fn default() -> Description {
        Description {
            ports: 2,
            method: "afxdp".to_owned(),
            tester_processors: Vec::new(),
            device_processors: Vec::new(),
            highest_fps: 2e6,
            chain: 1,
            interfaces: Vec::new(),
            devices: BTreeMap::new(),
            traffic: None,
            text: String::new(),
        }
    }
}

impl Description {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn read(text: &str) -> Result<Description> {
        let mut description: Description = toml::from_str(text)?;
        text.clone_into(&mut description.text);
        ensure!(description.highest_fps > 0.0, "highest_fps is above zero");
        if let Some(mut traffic) = description.traffic.clone() {
            // Frame lengths are those of the run, which looks at the streams with each of them. What is said here may not be
            // wrong, but where nothing is said it is 64, which is too short for IPv6.
            for stream in traffic.streams.iter_mut().filter(|s| s.size == Sizes::Fixed(64)) {
                stream.size = Sizes::Fixed(stream.family.shortest_frame());
            }
            traffic.check()?;
        }
        Ok(description)
    }

    /// Reads a file of one.
    ///
    /// # Errors
    /// That it cannot be read, and those of [`Self::read`].
    pub fn open(file: &Path) -> Result<Description> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Description::read(&text).with_context(|| file.display().to_string())
    }

    /// Gives tester and device processors of their own, half of `usable` each, where a bed has them run on any: a thread that
    /// waits for the other's turn is late by far more than a router takes.
    pub fn share(&mut self, usable: &[usize]) {
        let any = self.tester_processors.is_empty() && self.device_processors.is_empty();
        if any && self.interfaces.is_empty() && usable.len() > 1 {
            let (tester, device) = usable.split_at(usable.len() / 2);
            (self.tester_processors, self.device_processors) = (tester.to_vec(), device.to_vec());
        }
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
    /// Whether only rates and losses at loads are measured.
    pub only_curve: bool,
    /// Also on an interface that carries the default route.
    pub yes: bool,
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

    /// Runs it. `document` has at any time what was found, and `tested` what the tester can do: comparisons that share it
    /// offer the same loads.
    ///
    /// # Errors
    /// What cannot be set up, a device that dies, or an interrupt. What was found before stays in the document.
    pub fn run(
        &self,
        document: &mut Document,
        tested: &mut Option<SelfTest>,
        interrupted: &Arc<AtomicBool>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let kinds =
            self.devices.iter().map(|name| self.description.device(name)).collect::<Result<Vec<_>>>()?;
        ensure!(!kinds.is_empty() && !self.sizes.is_empty(), "there is nothing to compare");
        for (size, sizes) in &self.sizes {
            self.traffic(sizes).check().with_context(|| format!("frames of {size}"))?;
        }
        let ground = Ground::new(&self.description, self.yes)?;
        let bits_per_s = ground.bits_per_s();
        self.check_rate(bits_per_s)?;
        let mut findings = Findings::new(document, &self.devices);
        self.settings(&ground, bits_per_s, &kinds, &mut findings);
        let mut left = self.estimates(&kinds);
        let test = match tested {
            Some(test) => test,
            None => {
                progress("self-test of the tester, over a cable", left.iter().sum());
                tested.insert(self.self_test(ground.bed(), interrupted, &mut findings)?)
            }
        };
        let mut yardstick = Yardstick::new(&self.processors());
        let inside = Inside::open();
        if let Err(error) = &inside {
            findings.setting("inside of the device", &format!("not seen: {error:#}"));
        }
        let began = Instant::now();
        let expected: Duration = left.iter().sum();
        for repetition in 0..self.repetitions {
            for (name, kind) in self.devices.iter().zip(&kinds) {
                let device = ground
                    .start(kind, &self.description.device_processors)
                    .with_context(|| format!("device '{name}'"))?;
                if repetition == 0 {
                    self.started(name, &ground, &device, &mut findings);
                }
                for (number, (size, sizes)) in self.sizes.iter().enumerate() {
                    let still: Duration = left.iter().sum();
                    // As the estimate was wrong so far.
                    let so_far = (expected - still).as_secs_f64();
                    let wrong = if so_far > 0.0 { began.elapsed().as_secs_f64() / so_far } else { 1.0 };
                    let what =
                        format!("{name}, {size}, repetition {} of {}", repetition + 1, self.repetitions);
                    progress(&what, still.mul_f64(wrong));
                    left.pop();
                    let traffic = self.traffic(sizes);
                    let length = traffic.mean_length().unwrap_or(0.0);
                    let mut tester = Ports::new(
                        ground.open()?,
                        traffic,
                        self.manner(),
                        device.control(interrupted.clone()),
                    )?;
                    let place = Place { device: name, size, length, repetition };
                    let line_fps = bits_per_s.map(|bits| line_rate_fps(bits, length) * self.senders());
                    let events = if number == 0 { kind.events() } else { &[] };
                    let how = phases::How {
                        preset: &self.preset,
                        delays: self.preset.delays_of(self.repetitions),
                        test,
                        line_fps,
                        events,
                        only_curve: self.only_curve,
                        inside: inside.as_ref().ok(),
                        device: &device,
                        meter: device.meter(&self.description.device_processors),
                    };
                    phases::measure(&how, (&mut tester, &mut yardstick), &place, number == 0, &mut findings)
                        .with_context(|| format!("device '{name}', {size}"))?;
                    for (name, value) in yardstick.summary() {
                        findings.setting(name, &value);
                    }
                }
            }
        }
        Ok(())
    }

    /// Processors that tester and device run on; none if one of them may run on any.
    fn processors(&self) -> Vec<usize> {
        let (tester, device) = (&self.description.tester_processors, &self.description.device_processors);
        if tester.is_empty() || device.is_empty() { Vec::new() } else { [&tester[..], device].concat() }
    }

    /// Ports that send.
    fn senders(&self) -> f64 {
        let ports = if self.description.interfaces.is_empty() {
            self.description.ports
        } else {
            self.description.interfaces.len()
        };
        let plan = self.sizes.first().and_then(|(_, sizes)| Plan::new(&self.traffic(sizes), ports).ok());
        plan.map_or(1.0, |plan| (0..ports).filter(|&port| !plan.order(port).is_empty()).count() as f64)
    }

    /// The highest rate is one that interfaces of this machine carry at the shortest frames; that of virtual ones has no
    /// meaning.
    fn check_rate(&self, bits_per_s: Option<f64>) -> Result<()> {
        let Some(bits_per_s) = bits_per_s.filter(|_| !self.description.interfaces.is_empty()) else {
            return Ok(());
        };
        let lengths = self.sizes.iter().filter_map(|(_, sizes)| self.traffic(sizes).mean_length());
        let shortest = lengths.fold(f64::INFINITY, f64::min);
        let most = line_rate_fps(bits_per_s, shortest) * self.senders();
        let highest = self.description.highest_fps;
        ensure!(
            highest <= most,
            "highest_fps is {highest:.0}, and the interfaces carry {most:.0} frames/s of {shortest:.0} bytes"
        );
        Ok(())
    }

    /// How long the measurements take, by rough estimate, the last first.
    fn estimates(&self, kinds: &[Kind]) -> Vec<Duration> {
        let delays = self.preset.delays_of(self.repetitions);
        let of = |repetition: usize, kind: &Kind, number: usize| {
            let whole = self.only_curve || self.preset.is_whole(repetition);
            let loads = if whole { phases::CURVE.len() } else { 1 };
            let disturbed = self.preset.estimate_disturbed(kind.events().len());
            let disturbed = if number == 0 && whole { disturbed } else { Duration::ZERO };
            self.preset.estimate(loads, delays) + disturbed
        };
        let mut all = Vec::new();
        for repetition in 0..self.repetitions {
            for kind in kinds {
                all.extend((0..self.sizes.len()).map(|number| of(repetition, kind, number)));
            }
        }
        all.reverse();
        all
    }

    fn self_test(
        &self,
        bed: &Bed,
        interrupted: &Arc<AtomicBool>,
        findings: &mut Findings<'_>,
    ) -> Result<SelfTest> {
        let control = Control::new(interrupted.clone());
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
}
