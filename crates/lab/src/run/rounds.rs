//! Points in rounds: in each every device at every length and load once, in turns, so that what makes the machine slow for a while
//! does so at all points alike.
//!
//! First rounds, which do not count, find what a device forwards when far more is offered, each time started anew; the loads are
//! parts of the median. In one round they rise, in the next one they fall. Trials in which the machine was slow or a processor stood still are made
//! again ([`Yardstick`]). For a model of the bed there is also what the tester offers at most, what it takes to receive, and
//! what the machine takes for single things, each round once ([`primitives`]).

use super::findings::axis;
use super::{Comparison, Description, Findings, Ground, Preset, Progress, keep};
use crate::bed::Kind;
use crate::primitives::primitives;
use crate::report::begun;
use crate::search::{Outcome, Request, Tester};
use crate::tester::Ports;
use crate::yardstick::{Calm, Yardstick};
use anyhow::{Context, Result, ensure};
use causeway_results::Document;
use causeway_results::stats::median;
use causeway_results::traffic::Sizes;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How much shorter than others a trial is in which caches, tables and memory become warm, at the highest load: of the first
/// trial after the start else a part goes into memory that was never touched.
const WARM_PART: u64 = 4;
/// First rounds, of which the median says what a device carries.
const FIRST: usize = 3;
/// Frames of hand-overs whose time is told: by the ring of a port, and by live runs.
const HANDED_OVER: [u16; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// How names begin of what single things take.
const SINGLE: &str = "machine/";
/// The percentile of delay beside the median.
const LATE: f64 = 0.99;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Names of devices.
    pub devices: Vec<String>,
    /// The test bed.
    pub description: Description,
    /// Lengths of frames, bytes.
    pub lengths: Vec<u32>,
    /// Loads, in percent of what a device carries.
    pub parts: Vec<u32>,
    /// Rounds that count.
    pub rounds: usize,
    /// How long a trial takes.
    pub trial: Duration,
    /// Where the document goes; a table and a page go beside it.
    pub output: PathBuf,
}

/// Where a trial was made.
struct At<'a> {
    device: &'a str,
    bytes: u32,
}

impl Rounds {
    fn comparison(&self) -> Comparison {
        let mut description = self.description.clone();
        description.share(&causeway_engine::usable_processors());
        let mut preset = Preset::quick();
        preset.trial_ns = self.trial.as_nanos() as u64;
        Comparison {
            description,
            devices: self.devices.clone(),
            sizes: self.lengths.iter().map(|bytes| (bytes.to_string(), Sizes::Fixed(*bytes))).collect(),
            preset,
            repetitions: self.rounds,
            only_curve: true,
            yes: false,
        }
    }

    /// Runs them, and writes what was found.
    ///
    /// # Errors
    /// What cannot be set up, a device that dies, an interrupt, or that the files cannot be written.
    pub fn run(&self, interrupted: &Arc<AtomicBool>, progress: &mut Progress<'_>) -> Result<()> {
        let comparison = self.comparison();
        ensure!(!self.devices.is_empty() && !self.lengths.is_empty(), "there is nothing to measure");
        comparison.check_lengths()?;
        let mut document = Document::new(begun());
        self.measure(&comparison, &mut document, interrupted, progress)?;
        keep(&self.output, "Points in rounds", &document)
    }

    fn measure(
        &self,
        comparison: &Comparison,
        document: &mut Document,
        interrupted: &Arc<AtomicBool>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let Comparison { description, devices, .. } = comparison;
        let kinds: Vec<Kind> = devices.iter().map(|name| description.device(name)).collect::<Result<_>>()?;
        let ground = Ground::new(description, comparison.yes)?;
        let mut findings = Findings::new(document, devices);
        findings.setting("test bed", ground.note());
        findings.setting("processors of the tester", &format!("{:?}", description.tester_processors));
        findings.setting("processors of the device", &format!("{:?}", description.device_processors));
        findings.setting("trials", &format!("{} ms", self.trial.as_millis()));
        let mut yardstick = Yardstick::new(&comparison.processors());
        // What each device carries at each length, as the first rounds found it.
        let mut carried: Vec<Vec<f64>> = vec![Vec::new(); devices.len() * self.lengths.len()];
        let began = Instant::now();
        for turn in 0..FIRST + self.rounds {
            // First rounds are far shorter than others.
            let round = (turn + 1).saturating_sub(FIRST);
            let left = match round {
                0 | 1 => self.estimate(),
                _ => began.elapsed().mul_f64((self.rounds + 1 - round) as f64 / round as f64),
            };
            progress(&format!("round {round} of {}", self.rounds), left);
            let mut places = carried.iter_mut();
            for (device, kind) in devices.iter().zip(&kinds) {
                let started = ground.start(kind, &description.device_processors);
                let started = started.with_context(|| format!("device '{device}'"))?;
                if turn == 0 {
                    comparison.started(device, &ground, &started, &mut findings);
                }
                for (bytes, (_, sizes)) in self.lengths.iter().zip(&comparison.sizes) {
                    let traffic = comparison.traffic(Some(sizes));
                    let control = started.control(interrupted.clone());
                    let mut tester = Ports::new(ground.open()?, traffic, comparison.manner(), control)?;
                    let warm_ns = comparison.preset.trial_ns / WARM_PART;
                    tester.trial(&Request::new(self.description.highest_fps, warm_ns))?;
                    let mut trials = Trials { rounds: self, tester, yardstick: &mut yardstick };
                    let at = At { device, bytes: *bytes };
                    let Some(carried) = places.next() else { continue };
                    match median(carried).filter(|_| round > 0) {
                        Some(carried) => trials.round(round, &at, carried, &mut findings)?,
                        None => carried.push(trials.first()?),
                    }
                }
            }
            if round > 0 {
                self.single_things(&mut findings)?;
            }
            for (name, value) in yardstick.summary() {
                findings.setting(name, &value);
            }
        }
        Ok(())
    }

    /// What the machine takes for single things, on the device's processor and beside it.
    fn single_things(&self, findings: &mut Findings<'_>) -> Result<()> {
        let processor = self.description.device_processors.first().copied().unwrap_or_default();
        for (thing, ps) in primitives(processor)? {
            let x = (axis("processor", ""), processor as f64);
            findings.add(&format!("{SINGLE}{thing}"), ("time", "ps"), x, ps, "");
        }
        Ok(())
    }

    /// About how long it takes.
    fn estimate(&self) -> Duration {
        let places = (self.devices.len() * self.lengths.len()) as u32;
        let trials = self.rounds * (self.parts.len() + 1) + FIRST;
        (self.trial + Duration::from_millis(100)) * places * trials as u32
    }
}

/// Trials of a device at a length.
struct Trials<'a, 'y> {
    rounds: &'a Rounds,
    tester: Ports,
    yardstick: &'a mut Yardstick<'y>,
}

impl Trials<'_, '_> {
    fn trial(&mut self, load_fps: f64) -> Result<Outcome> {
        let Trials { rounds, tester, yardstick } = self;
        Calm { tester, yardstick }.trial(&Request::new(load_fps, rounds.trial.as_nanos() as u64))
    }

    fn highest_fps(&self) -> f64 {
        self.rounds.description.highest_fps
    }

    /// What the device carries: what it forwards of the highest load.
    fn first(&mut self) -> Result<f64> {
        let rate = self.trial(self.highest_fps())?.forwarding_fps();
        ensure!(rate > 0.0, "the device forwards nothing");
        Ok(rate)
    }

    /// The highest load, and all others, in this round.
    fn round(&mut self, round: usize, at: &At<'_>, carried: f64, findings: &mut Findings<'_>) -> Result<()> {
        let outcome = self.trial(self.highest_fps())?;
        let received = outcome.received().max(1) as f64;
        for (rest, what, value) in [
            ("saturation forwarding rate", ("forwarding rate", "frames/s"), outcome.forwarding_fps()),
            ("rate of the tester", ("offered rate", "frames/s"), outcome.offered_fps()),
            ("time to receive", ("time", "ns"), self.tester.receiving_ns() as f64 / received),
        ] {
            let x = (axis("frame length", "bytes"), f64::from(at.bytes));
            findings.add(&format!("{}/{rest}", at.device), what, x, value, "");
        }
        self.handed_over(at, findings);
        let mut parts = self.rounds.parts.clone();
        if round.is_multiple_of(2) {
            parts.reverse();
        }
        for part in parts {
            let outcome = self.trial(carried * f64::from(part) / 100.0)?;
            found(at, part, &outcome, findings);
            if let Some(together) = self.tester.hand_overs().together() {
                let x = (axis("part of what it carries", "%"), f64::from(part));
                let name = format!("{}/{} bytes/handed over together", at.device, at.bytes);
                findings.add(&name, ("frames", ""), x, together, "");
            }
            self.handed_over(at, findings);
        }
        Ok(())
    }

    /// What it took in the last trial to give so many frames to the kernel.
    fn handed_over(&self, at: &At<'_>, findings: &mut Findings<'_>) {
        for frames in HANDED_OVER {
            if let Some(ns) = self.tester.hand_overs().takes_ns(frames) {
                let x = (axis("frames", ""), f64::from(frames));
                let name = format!("{}/{} bytes/time to hand over", at.device, at.bytes);
                findings.add(&name, ("time", "ns"), x, ns, "");
            }
        }
    }
}

/// Delays, loss and what was offered, at a part of what a device carries.
fn found(at: &At<'_>, part: u32, outcome: &Outcome, findings: &mut Findings<'_>) {
    let us = |share| outcome.analysis.latency.percentile_ns(share).map(|ns| ns as f64 / 1e3);
    for (rest, what, value) in [
        ("offered load", ("offered load", "frames/s"), Some(outcome.offered_fps())),
        ("median delay", ("delay", "us"), us(0.5)),
        ("99 of 100 within", ("delay", "us"), us(LATE)),
        ("loss", ("loss ratio", ""), Some(outcome.loss_ratio())),
        // Whether the tester fell behind: one such trial of many says nothing.
        ("limited by the tester", ("limited trials", ""), Some(f64::from(u8::from(outcome.limited)))),
    ] {
        let x = (axis("part of what it carries", "%"), f64::from(part));
        let name = format!("{}/{} bytes/{rest}", at.device, at.bytes);
        if let Some(value) = value {
            findings.add(&name, what, x, value, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rounds of the kernel in a bed: each point has a value of each.
    #[test]
    fn each_round_has_each_point_once() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root to make network namespaces");
        }
        let output = std::env::temp_dir().join(format!("causeway-rounds-{}.json", std::process::id()));
        let rounds = Rounds {
            devices: vec!["kernel".to_owned()],
            description: Description { highest_fps: 100e3, ..Description::default() },
            lengths: vec![64, 1_518],
            parts: vec![20, 80],
            rounds: 2,
            trial: Duration::from_millis(20),
            output: output.clone(),
        };
        let mut told = Vec::new();
        rounds.run(&Arc::default(), &mut |what, _| told.push(what.to_owned())).expect("possible");
        assert_eq!(told, ["round 0 of 2", "round 0 of 2", "round 0 of 2", "round 1 of 2", "round 2 of 2"]);
        let text = std::fs::read_to_string(&output).expect("written");
        let document = Document::from_json(&text).expect("right");
        for (name, places) in [
            ("kernel/saturation forwarding rate", [64.0, 1_518.0]),
            ("kernel/rate of the tester", [64.0, 1_518.0]),
            ("kernel/time to receive", [64.0, 1_518.0]),
            ("kernel/64 bytes/handed over together", [20.0, 80.0]),
            ("kernel/64 bytes/offered load", [20.0, 80.0]),
            ("kernel/1518 bytes/median delay", [20.0, 80.0]),
        ] {
            let series = document.series(name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(series.measurements.iter().filter_map(|one| one.x).collect::<Vec<_>>(), places);
            let whole = |values: &[f64]| values.len() == 2 && values.iter().all(|value| *value > 0.0);
            assert!(series.measurements.iter().all(|one| whole(&one.repetitions)), "{series:?}");
        }
        let call = document.series("machine/system call").expect("measured");
        assert!(call.measurements[0].repetitions.len() == 2 && call.measurements[0].repetitions[0] > 0.0);
        for extension in ["json", "csv", "html"] {
            std::fs::remove_file(output.with_extension(extension)).expect("removed");
        }
    }
}
