//! A comparison of devices: the same trials of each, in turns, and one document.
//!
//! First the tester is tested by itself, over a cable. Then, in each repetition, each device is started, warmed
//! up by a trial that does not count, and asked at each frame length for its NDR and PDR, its forwarding rate and loss at loads
//! up to the highest, and its delay at parts of its PDR; at the first length also for its longest burst, its recovery from
//! overload, and how long it forwards nothing when it is reset, its routes change or its graph is swapped. Short runs have less of
//! it in later repetitions ([`Preset::once`]). What was found is in the [`Document`] at any time, so a run that is ended early
//! leaves what it had.

mod description;
mod findings;
mod ground;
mod manner;
mod phases;
mod provenance;
mod rounds;
mod sizes;
mod task;
#[cfg(test)]
mod tests;

pub use description::Description;
pub use findings::Findings;
pub use ground::{Side, check_rate};
pub use manner::Preset;
pub use rounds::Rounds;
pub use task::{ENDED_EARLY, Task, compare_files, keep, verdict};

use crate::bed::{Bed, Kind};
use crate::inside::Inside;
use crate::tester::{Control, Manner, Ports, SelfTest, TIME_OF_DEPARTURE, self_test};
use crate::yardstick::Yardstick;
use anyhow::{Context, Result, bail, ensure};
use causeway_results::Document;
use causeway_results::traffic::{Matrix, Plan, Sizes, Traffic, line_rate_fps};
use ground::Ground;
use sizes::OWN;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A comparison that is asked for.
pub struct Comparison {
    /// The bed.
    pub description: Description,
    /// Names of devices; the first is what the others are compared with.
    pub devices: Vec<String>,
    /// Lengths of frames: a name for people and what is offered. Without any they are those of the description's streams, if
    /// these have lengths.
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
    /// Lengths of frames, one after the other; `None`: those that the streams have.
    fn lengths(&self) -> Vec<(&str, Option<&Sizes>)> {
        if self.sizes.is_empty() && self.description.has_lengths {
            return vec![(OWN, None)];
        }
        self.sizes.iter().map(|(name, sizes)| (name.as_str(), Some(sizes))).collect()
    }

    fn traffic(&self, sizes: Option<&Sizes>) -> Traffic {
        let mut traffic = self
            .description
            .traffic
            .clone()
            .unwrap_or_else(|| Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) });
        if let Some(sizes) = sizes {
            traffic.streams.iter_mut().for_each(|stream| stream.size = sizes.clone());
        }
        traffic
    }

    /// Whether all lengths can be offered, and told apart in results, which go by the mean length.
    fn check_lengths(&self) -> Result<()> {
        let mut means: Vec<(&str, f64)> = Vec::new();
        for (name, sizes) in self.lengths() {
            let traffic = self.traffic(sizes);
            traffic.check().with_context(|| format!("frames of {name}"))?;
            let mean = traffic.mean_length().unwrap_or_default();
            if let Some((other, _)) = means.iter().find(|(_, other)| *other == mean) {
                bail!("'{name}' and '{other}' have the same mean length, by which results are told apart");
            }
            means.push((name, mean));
        }
        Ok(())
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
        ensure!(!kinds.is_empty() && !self.lengths().is_empty(), "there is nothing to compare");
        self.check_lengths()?;
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
                for (number, (size, sizes)) in self.lengths().into_iter().enumerate() {
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
        let first = self.lengths().first().map(|(_, sizes)| self.traffic(*sizes));
        let plan = first.and_then(|traffic| Plan::new(&traffic, ports).ok());
        plan.map_or(1.0, |plan| (0..ports).filter(|&port| !plan.order(port).is_empty()).count() as f64)
    }

    /// The highest rate is one that interfaces of this machine carry at the shortest frames; that of virtual ones has no
    /// meaning.
    fn check_rate(&self, bits_per_s: Option<f64>) -> Result<()> {
        let Some(bits_per_s) = bits_per_s.filter(|_| !self.description.interfaces.is_empty()) else {
            return Ok(());
        };
        let lengths = self.lengths().into_iter();
        let means = lengths.filter_map(|(_, sizes)| self.traffic(sizes).mean_length());
        let shortest = means.fold(f64::INFINITY, f64::min);
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
                all.extend((0..self.lengths().len()).map(|number| of(repetition, kind, number)));
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
        let first = self.lengths().first().and_then(|(_, sizes)| *sizes);
        let traffic = Traffic { matrix: Matrix::Unidirectional, ..self.traffic(first) };
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
