//! The model of this machine: a few of the laboratory's numbers, and what the simulation makes of them at all other points.
//!
//! The laboratory measures a device between veths in rounds (`causeway_lab::run::Rounds`). The bed is a machine of the simulation
//! ([`veth`](crate::veth)): four of its values are fitted to rates of two lengths and four median delays, what can be measured by
//! itself is, and all is written to a file, `this-machine.toml`. Predictions are made from that file, and held against what was
//! measured; a file of an earlier day predicts as well, and nothing is calibrated then.
//!
//! A result with two modes, as of a machine that was slow in some repetitions and not in others, calibrates nothing and is
//! promised nothing.

mod measured;
mod report;
#[cfg(test)]
mod tests;

pub use measured::has_two_modes;

use crate::event::{MILLISECOND, NANOSECOND, SECOND, Time};
use crate::machine::{Origin, Span, Value, quoted};
use crate::run::parallel;
use crate::veth::machine::{BedValues, ThisMachine};
use crate::veth::{FULL_FPS, Outcome, Trial, fit, paid, run};
use anyhow::{Context, Result};
use causeway_results::Document;
use causeway_results::stats::median;
use measured::{Chosen, Measured};
use std::path::Path;

/// How far rates may be off, as a part, at points that were not used.
pub const RATE_WITHIN: f64 = 0.15;
/// And median times inside, up to [`LOAD_MOST`].
pub const DELAY_WITHIN: f64 = 0.25;
/// The highest load at which times inside are promised, in percent of what a device carries. What that is is known as well as rates
/// are promised.
pub const LOAD_MOST: u32 = 80;
/// How long the simulation runs for a prediction.
const RUN_PS: Time = 100 * MILLISECOND;
/// How often it does so, each time with other chance: the median counts, as of the laboratory's repetitions.
const RUNS: u64 = 5;
/// The part of the time from one frame that is forwarded to the next with which a device is first taken to forward it.
const QUICKER: f64 = 0.7;

/// What a simulation is to do beside predicting.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// What is random follows from it.
    pub seed: u64,
    /// The frame that is followed, from 0.
    pub followed: Option<u64>,
}

/// A point that was measured, and what the model has there.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Length of frames.
    pub bytes: u32,
    /// Percent of what the device carries; `None`: more than the tester sends.
    pub part: Option<u32>,
    /// What was measured, frames a second or microseconds, of each repetition.
    pub measured: Vec<f64>,
    /// Within which 99 of 100 frames are, microseconds.
    pub late_us: Vec<f64>,
    /// Whether it has one value, was not calibrated on, and is not beyond what is promised.
    pub counts: bool,
    /// Whether it was calibrated on.
    pub used: bool,
    /// How many frames the tester handed over together there: half of all went with so many at least.
    pub together: Option<f64>,
    /// What the simulation gave there, as [`Point::measured`], of each of its runs.
    pub simulated: Vec<f64>,
    /// All of the run in the middle.
    pub outcome: Outcome,
    /// Frames a second that it was given.
    pub load_fps: f64,
}

impl Point {
    /// What the model has.
    pub fn modelled(&self) -> f64 {
        median(&self.simulated).unwrap_or_default()
    }

    /// What is compared, of a run.
    fn value(&self, outcome: &Outcome) -> f64 {
        if self.part.is_some() { outcome.inside_us[0] } else { outcome.forwarded_fps }
    }

    fn ran(&mut self, outcomes: &[Outcome]) {
        self.simulated = outcomes.iter().map(|outcome| self.value(outcome)).collect();
        let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
        sorted.sort_by(|a, b| self.value(a).total_cmp(&self.value(b)));
        self.outcome = sorted[sorted.len() / 2].clone();
    }

    /// The one value that repetitions say and the one that runs do.
    fn one(&self) -> Result<()> {
        let what = match self.part {
            None => format!("the rate of {} bytes", self.bytes),
            Some(part) => format!("the delay of {} bytes at {part} %", self.bytes),
        };
        measured::steady(&self.measured, &what)?;
        measured::steady(&self.simulated, &format!("{what}, simulated,"))?;
        Ok(())
    }

    /// How far that is off, as a part.
    pub fn error(&self) -> f64 {
        self.modelled() / median(&self.measured).unwrap_or_default().max(f64::MIN_POSITIVE) - 1.0
    }

    /// How far it may be.
    pub fn within(&self) -> f64 {
        if self.part.is_some() { DELAY_WITHIN } else { RATE_WITHIN }
    }

    /// Whether it breaks the promise.
    pub fn is_missed(&self) -> bool {
        self.counts && self.error().abs() > self.within()
    }
}

/// What was found of a device.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name in the laboratory.
    pub name: String,
    /// Rates by length of frames, and then times inside by length and load.
    pub points: Vec<Point>,
    /// What says nothing, and why.
    pub left_out: Vec<String>,
}

/// A machine that was calibrated, or predicts from its file.
#[derive(Clone, Debug)]
pub struct Calibration {
    about: String,
    /// The machine's file.
    pub text: String,
    /// Devices.
    pub found: Vec<Found>,
    /// Devices that were not calibrated, and why.
    pub refused: Vec<String>,
}

/// A file of results.
///
/// # Errors
///
/// If it cannot be read.
pub fn read(file: &Path) -> Result<Document> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Document::from_json(&text).with_context(|| file.display().to_string())
}

impl Calibration {
    /// By what the laboratory measured.
    ///
    /// # Errors
    ///
    /// If nothing was measured in rounds.
    pub fn of(document: &Document, how: How) -> Result<Calibration> {
        let devices = measured::devices(document)?;
        let takes = &measured::single_things(document)[..];
        let machine = &document.run.machine;
        let mut text = head(&format!("{}, kernel {}", machine.processor, machine.kernel), takes);
        let (mut chosen, mut refused) = (Vec::new(), Vec::new());
        for device in &devices {
            match device.chosen() {
                Ok(of_it) => {
                    let start = start(device, &of_it, takes)?;
                    text += &bed(&device.name, &fit::fit(&start, &of_it.targets, &of_it.words(), how.seed));
                    chosen.push(Some(of_it));
                }
                Err(why) => {
                    refused.push(format!("{why:#}"));
                    chosen.push(None);
                }
            }
        }
        let calibrated = devices.iter().zip(&chosen).filter(|(_, chosen)| chosen.is_some());
        Calibration::predicted(text, "this-machine.toml", calibrated, refused, how)
    }

    /// What a machine's file predicts of what the laboratory measured.
    ///
    /// # Errors
    ///
    /// If the file is wrong, or nothing was measured in rounds.
    pub fn by_file(document: &Document, text: &str, name: &str, how: How) -> Result<Calibration> {
        let devices = measured::devices(document)?;
        let nothing = None;
        let all = devices.iter().map(|device| (device, &nothing));
        Calibration::predicted(text.to_owned(), name, all, Vec::new(), how)
    }

    /// From the text of a file, and from nothing else.
    fn predicted<'a>(
        text: String,
        name: &str,
        devices: impl Iterator<Item = (&'a Measured, &'a Option<Chosen>)>,
        mut refused: Vec<String>,
        how: How,
    ) -> Result<Calibration> {
        let empty = !text.contains("[bed.");
        let mut calibration =
            Calibration { about: String::new(), text, found: Vec::new(), refused: Vec::new() };
        if !empty {
            let machine = ThisMachine::parse(&calibration.text, name)?;
            for (device, chosen) in devices {
                match machine.bed.get(&device.name) {
                    Some(bed) => calibration.found.push(Found::of(device, bed, chosen.as_ref(), how)),
                    None => refused.push(format!("{name} has no bed with {}", device.name)),
                }
            }
            calibration.about = machine.about;
        }
        Ok(Calibration { refused, ..calibration })
    }

    /// Whether all that is promised was kept.
    pub fn holds(&self) -> bool {
        let missed = self.found.iter().flat_map(|one| &one.points).any(Point::is_missed);
        self.refused.is_empty() && !missed
    }
}

/// The begin of a machine's file.
fn head(about: &str, takes: &[(&str, f64)]) -> String {
    let mut text = format!("about = {}\n", quoted(about));
    if !takes.is_empty() {
        text += "\n[takes]\n";
    }
    for (what, ps) in takes {
        let value = measured_by_itself(*ps, "by itself, median of the rounds");
        text += &format!("{} = {}\n", quoted(what), value.text());
    }
    text
}

fn measured_by_itself(ps: f64, what: &str) -> Value<Span> {
    Value::new(ps.max(0.0).round() as u64, Origin::Given(format!("measured {what}")))
}

/// The bed with a device, as a file has it.
fn bed(device: &str, values: &BedValues) -> String {
    let mut text = String::new();
    for (part, lines) in [("tester", &values.tester.lines()[..]), ("device", &values.device.lines()[..])] {
        text += &format!("\n[bed.{}.{part}]\n", quoted(device));
        lines.iter().for_each(|(key, value)| text += &format!("{key} = {value}\n"));
    }
    text
}

/// Where fitting begins: with what was measured by itself, and what follows from rates where nothing else takes time.
fn start(device: &Measured, chosen: &Chosen, takes: &[(&str, f64)]) -> Result<BedValues> {
    let mut bed = ThisMachine::ready(&device.name)?;
    let take = |what: &str| takes.iter().find(|(name, _)| name.starts_with(what)).map(|(_, ps)| *ps);
    let first = |value: &mut Value<Span>, ps: f64| value.value = ps.max(1.0).round() as u64;
    if let (Some(interrupt_ps), Some(pause_ps)) = (take("interrupt of the clock"), take("pause of a thread"))
    {
        let what = "by itself: how long another thread stands still because of one that sleeps and wakes";
        let value = measured_by_itself(interrupt_ps + pause_ps, what);
        (bed.tester.watched, bed.device.watched) = (value.clone(), value);
    }
    receive(&mut bed, chosen);
    hand_over(&mut bed, chosen);
    if let Some(wake) = take("wake-up") {
        first(&mut bed.device.wake, wake);
    }
    if let Some(call) = take("call of a wake-up") {
        bed.tester.wakes =
            measured_by_itself(call, "by itself: the call that wakes a thread on another processor");
    }
    // What a frame of each of the two lengths takes the device, if it is a little quicker than what it forwards.
    let frame_ps = [0, 1].map(|n| QUICKER * SECOND as f64 / chosen.targets[n].measured);
    let [of_none_ps, byte_ps] = line(frame_ps, chosen.rates);
    first(&mut bed.device.byte, byte_ps);
    first(&mut bed.device.frame, of_none_ps);
    Ok(bed)
}

/// What a line through times of two lengths, picoseconds, has of no bytes, and of each.
fn line(times_ps: [f64; 2], lengths: [u32; 2]) -> [f64; 2] {
    let [short, long] = lengths.map(|bytes| paid(bytes) as f64);
    let byte_ps = ((times_ps[1] - times_ps[0]) / (long - short)).max(0.0);
    [times_ps[0] - byte_ps * short, byte_ps]
}

/// What receiving a frame takes.
fn receive(bed: &mut BedValues, chosen: &Chosen) {
    let all = chosen.receiving;
    let of = line(all.map(|one| one.frame_ns * NANOSECOND as f64), all.map(|one| one.bytes));
    let what = "by the tester at full load: what taking frames out took";
    let [receive, byte] = of.map(|ps| measured_by_itself(ps, what));
    (bed.tester.receive, bed.tester.receive_byte) = (receive, byte);
}

/// What handing frames over takes, by itself and together, as the tester found it. A device in user space sends by the same ways.
fn hand_over(bed: &mut BedValues, chosen: &Chosen) {
    let (all, ps) = (chosen.hand_overs, NANOSECOND as f64);
    let lengths = all.map(|one| one.bytes);
    let what = "by the tester: what hand-overs mostly take that find the device awake";
    let call_ps = all.map(|one| one.call_ns() * ps).iter().sum::<f64>() / 2.0;
    let many_call_ps = bed.tester.many_call.value as f64;
    let single_ps = all.map(|one| one.alone_ns * ps - call_ps);
    let send_ps = all.map(|one| (one.many_ns * ps - call_ps - many_call_ps) / measured::MANY);
    let [single, single_byte] = line(single_ps, lengths).map(|ps| measured_by_itself(ps, what));
    let [send, byte] = line(send_ps, lengths).map(|ps| measured_by_itself(ps, what));
    bed.tester.call = measured_by_itself(call_ps, what);
    (bed.tester.single, bed.tester.single_byte) = (single, single_byte);
    (bed.tester.send, bed.tester.byte) = (send, byte);
    if bed.device.many.value > 1 {
        let what = "as the tester's, where few go together less where many do";
        bed.device.single = measured_by_itself(single_ps[0] - send_ps[0], what);
    }
}

impl Found {
    fn of(device: &Measured, bed: &BedValues, chosen: Option<&Chosen>, how: How) -> Found {
        let rates = device.full.iter().map(|full| Point {
            bytes: full.bytes,
            measured: full.forwarded.clone(),
            used: chosen.is_some_and(|chosen| chosen.rates.contains(&full.bytes)),
            load_fps: FULL_FPS,
            ..Point::default()
        });
        let delays = device.looks.iter().map(|look| Point {
            bytes: look.bytes,
            part: Some(look.part),
            measured: look.inside_us.clone(),
            late_us: look.late_us.clone(),
            used: chosen.is_some_and(|chosen| chosen.delays.contains(&(look.bytes, look.part))),
            together: look.together,
            load_fps: look.load_fps,
            ..Point::default()
        });
        let mut points: Vec<Point> = rates.chain(delays).collect();
        let runs: Vec<(u32, f64, u64)> = points
            .iter()
            .flat_map(|point| (0..RUNS).map(|run| (point.bytes, point.load_fps, how.seed + run)))
            .collect();
        let outcomes = parallel(&runs, |&(bytes, load_fps, seed)| {
            run(bed, &Trial { followed: how.followed, ..Trial::new(bytes, load_fps, RUN_PS, seed) })
        });
        let mut left_out = Vec::new();
        for (point, outcomes) in points.iter_mut().zip(outcomes.chunks(RUNS as usize)) {
            point.ran(outcomes);
            let look =
                device.looks.iter().find(|look| Some(look.part) == point.part && look.bytes == point.bytes);
            let promised = look.map_or(Ok(()), |look| device.is_promised(look));
            let one = promised.and_then(|()| point.one());
            point.counts = one.is_ok() && !point.used;
            left_out.extend(one.err().map(|why| format!("{why:#}")));
        }
        Found { name: device.name.clone(), points, left_out }
    }
}
