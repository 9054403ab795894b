//! The model of this machine: the laboratory's numbers at a few points, and what follows from them at all others.
//!
//! A device between two veths handles a frame at a time, and what it takes for one is a part for the frame and a part for each
//! byte: two lengths give both, the shortest and the longest that were measured. The time inside is that of a frame which waits
//! for no other, and the mean wait of `M^[X]/D/1`, where frames come in bursts; two medians give both (`delay.rs`). All other
//! points are predicted and held against what was measured there.
//!
//! A result with two modes, as of a processor that sleeps in some repetitions and not in others, calibrates nothing, and one
//! that the tester limited neither. Where device and tester share their processors, or the device works in the tester's own calls
//! as the kernel does between veths, the tester limits every rate of the device alone; then the rates are those of the whole bed,
//! and it is said.

mod delay;

use crate::event::SECOND;
use crate::figures::write;
use crate::machine::{Span, Value, from_toml};
use anyhow::{Context, Result, bail, ensure};
use causeway_results::stats::median;
use causeway_results::{Axis, Document, Measurement, Run, Series, Source};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How far rates may be off, as a part, at points that were not used.
pub const RATE_WITHIN: f64 = 0.15;
/// And median times inside, up to [`LOAD_MOST`].
pub const DELAY_WITHIN: f64 = 0.25;
/// The highest part of what a device carries at which its times inside are promised.
pub const LOAD_MOST: f64 = 0.8;
/// Repetitions from which on two modes can be seen.
const REPETITIONS: usize = 5;
/// A gap of this part of the median parts two modes, if it is some times wider than any other.
const GAP: (f64, f64) = (0.15, 3.0);
/// What the laboratory says of a result that says nothing of the device.
const LIMITED: &str = "limited by the tester";
/// The load of which nothing is lost in half of the trials: throughput (RFC 1242).
const RATE: &str = "/NDR";
/// The load of which half a percent is lost: the laboratory looks at delays at parts of it.
const LOADED: &str = "/PDR";
/// What comes out at the highest load that is offered.
const BED_RATE: &str = "/saturation forwarding rate";
/// Lengths below which nothing is left to predict.
const LENGTHS: usize = 3;

/// A machine file: what was found of this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// What the machine is.
    pub about: String,
    /// What it takes for single things.
    #[serde(default)]
    pub takes: BTreeMap<String, Value<Span>>,
    /// What devices take for a frame.
    pub device: BTreeMap<String, Device>,
}

/// What a device takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// For a frame of no bytes.
    pub frame: Value<Span>,
    /// For each byte more.
    pub byte: Value<Span>,
    /// Inside, where none waits for another.
    pub inside: Option<Value<Span>>,
    /// How long at a time who sends the frames is held up.
    pub held_up: Option<Value<Span>>,
}

impl Measured {
    /// Reads a file that [`Calibration::text`] wrote.
    ///
    /// # Errors
    ///
    /// What is wrong, with file and line, and what is allowed.
    pub fn parse(text: &str, name: &str) -> Result<Measured> {
        from_toml(text, name)
    }
}

impl Device {
    /// Frames a second of this length that it forwards.
    pub fn rate_fps(&self, bytes: f64) -> f64 {
        SECOND as f64 / (self.frame.value as f64 + self.byte.value as f64 * bytes).max(1.0)
    }
}

/// A point that was measured, and what the model has there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Of a frame.
    pub bytes: f64,
    /// Bytes, or frames a second.
    pub x: f64,
    /// Measured, median of the repetitions.
    pub measured: f64,
    /// Modelled.
    pub modelled: f64,
    /// Whether it was calibrated on, or is beyond what is promised.
    pub counts: bool,
}

impl Point {
    /// How far the model is off, as a part.
    pub fn error(&self) -> f64 {
        self.modelled / self.measured - 1.0
    }
}

/// What was found of a device.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name in the laboratory.
    pub name: String,
    /// Whether its rates are those of the bed, since the tester limits its own.
    pub in_bed: bool,
    /// What it takes.
    pub device: Device,
    /// Rates by length of frames.
    pub rates: Vec<Point>,
    /// Median times inside in microseconds, by length and load.
    pub delays: Vec<Point>,
    /// Times inside that say nothing, and why.
    pub left_out: Vec<String>,
}

/// A machine that was calibrated.
#[derive(Clone, Debug)]
pub struct Calibration {
    about: String,
    /// Devices.
    pub found: Vec<Found>,
}

/// Whether values are of two kinds: two groups of at least two with a gap between them that is like no other.
pub fn has_two_modes(values: &[f64]) -> bool {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let Some(middle) = median(&values) else { return false };
    let gaps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let inner = 1..gaps.len().saturating_sub(1);
    let Some(widest) = inner.max_by(|&a, &b| gaps[a].total_cmp(&gaps[b])) else { return false };
    let others = gaps.iter().enumerate().filter(|(n, _)| *n != widest).map(|(_, gap)| *gap);
    gaps[widest] > GAP.0 * middle && gaps[widest] > GAP.1 * others.fold(0.0, f64::max)
}

/// What a measurement says, if it says something of the device.
fn value(one: &Measurement, what: &str) -> Result<f64> {
    ensure!(one.note != LIMITED, "{what} was {LIMITED}, and calibrates nothing");
    steady(one, what)
}

/// What a measurement says, if it is one value.
fn steady(one: &Measurement, what: &str) -> Result<f64> {
    let n = one.repetitions.len();
    ensure!(n >= REPETITIONS, "{what}: {n} repetitions; from {REPETITIONS} on two modes can be told apart");
    ensure!(
        !has_two_modes(&one.repetitions),
        "{what} has two modes, and calibrates nothing: {:?}",
        one.repetitions
    );
    median(&one.repetitions).filter(|value| *value > 0.0).with_context(|| format!("{what} is nothing"))
}

/// A span as the file has it; the smallest that it can say.
fn span(ps: f64, points: &str) -> Result<Value<Span>> {
    let text = format!("value = \"{} ps\"\ncalibrated = \"{points}\"", ps.max(0.0).round());
    Ok(toml::from_str(&text)?)
}

impl Calibration {
    /// From a file of `causeway lab run`.
    ///
    /// # Errors
    ///
    /// If it cannot be read, and as [`Calibration::of`].
    pub fn read(file: &Path) -> Result<Calibration> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let document = Document::from_json(&text).with_context(|| file.display().to_string())?;
        Calibration::of(&document).with_context(|| file.display().to_string())
    }

    /// From a document of `causeway lab run`.
    ///
    /// # Errors
    ///
    /// If it has no device with enough lengths, or one whose numbers calibrate nothing.
    pub fn of(document: &Document) -> Result<Calibration> {
        let devices = document.series.iter().filter_map(|series| {
            let name = series.name.strip_suffix(RATE)?;
            series.measurements.iter().any(|one| one.source == Source::Measured).then_some((name, series))
        });
        let found: Vec<Found> =
            devices.map(|(name, series)| Found::of(document, name, series)).collect::<Result<_>>()?;
        ensure!(!found.is_empty(), "no device of these results has an NDR");
        let machine = &document.run.machine;
        Ok(Calibration { about: format!("{}, kernel {}", machine.processor, machine.kernel), found })
    }

    /// The machine file. `takes` are single things and picoseconds.
    pub fn text(&self, takes: &[(&str, f64)]) -> String {
        let mut text = format!("about = {}\n", quoted(&self.about));
        if !takes.is_empty() {
            text += "\n[takes]\n";
        }
        for (what, ps) in takes {
            text += &format!("{} = {{ value = \"{ps:.0} ps\", given = \"measured\" }}\n", quoted(what));
        }
        for found in &self.found {
            text += &format!("\n[device.{}]\n", quoted(&found.name));
            let Device { frame, byte, inside, held_up } = &found.device;
            let (inside, held_up) = (inside.as_ref(), held_up.as_ref());
            let all =
                [("frame", Some(frame)), ("byte", Some(byte)), ("inside", inside), ("held_up", held_up)];
            for (key, value) in all {
                let Some(Value { value, origin, .. }) = value else { continue };
                let points = origin.to_string().replace("calibrated: ", "");
                text += &format!("{key} = {{ value = \"{value} ps\", calibrated = {} }}\n", quoted(&points));
            }
        }
        text
    }

    /// Whether all that is promised was kept.
    pub fn holds(&self) -> bool {
        let within =
            |points: &[Point], most: f64| points.iter().all(|p| !p.counts || p.error().abs() <= most);
        self.found.iter().all(|one| within(&one.rates, RATE_WITHIN) && within(&one.delays, DELAY_WITHIN))
    }

    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: what the model has at points that were not used", self.about)];
        for one in &self.found {
            if one.in_bed {
                let name = &one.name;
                lines.push(format!("  {name}: the tester limits its NDR, so rates are those of the whole bed when more is offered"));
            }
            lines.extend(one.left_out.iter().map(|what| format!("  left out: {what}")));
            let rates = one.rates.iter().map(|point| (point, String::new(), "kpps", 1e-3, RATE_WITHIN));
            let delays = one
                .delays
                .iter()
                .map(|point| (point, format!(" {:>5.0} kpps", point.x * 1e-3), "us", 1.0, DELAY_WITHIN));
            for (point, load, unit, factor, most) in rates.chain(delays) {
                let note = match (point.counts, point.error().abs() <= most) {
                    (false, _) => "calibrated on it, or beyond what is promised",
                    (true, true) => "",
                    (true, false) => "missed",
                };
                lines.push(format!(
                    "  {:<12} {:>5.0} bytes{load:<11} measured {:>9.1} {unit:<4} modelled {:>9.1} {:>+6.1} %  {note}",
                    one.name,
                    point.bytes,
                    point.measured * factor,
                    point.modelled * factor,
                    point.error() * 100.0
                ));
            }
        }
        lines
    }

    /// Both curves of each device, in the common format.
    pub fn document(&self) -> Document {
        let command = ["causeway", "model", "calibrate"].map(str::to_owned);
        let mut document = Document::new(Run { command: command.into(), ..Run::default() });
        for one in &self.found {
            let what = ["forwarding rate", "frames/s"];
            document.series.extend(curves(&one.name, &one.rates, ["frame length", "bytes"], what));
            for of_a_length in one.delays.chunk_by(|a, b| a.bytes == b.bytes) {
                let name = format!("{}, {:.0} bytes", one.name, of_a_length[0].bytes);
                let what = ["median delay", "us"];
                document.series.extend(curves(&name, of_a_length, ["offered load", "frames/s"], what));
            }
        }
        document.series.retain(|series| !series.measurements.is_empty());
        document
    }

    /// Writes the machine file and the document with both curves into a folder; says which files they are.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn keep(&self, folder: &Path, takes: &[(&str, f64)]) -> Result<[PathBuf; 2]> {
        let file = folder.join("this-machine.toml");
        std::fs::write(&file, self.text(takes))
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok([file, write(folder, "calibrate", &self.document())?])
    }
}

/// What was measured and what is modelled, with unit.
fn curves(name: &str, points: &[Point], x: [&str; 2], what: [&str; 2]) -> [Series; 2] {
    [Source::Measured, Source::Modelled].map(|source| {
        let value = |p: &Point| if source == Source::Measured { p.measured } else { p.modelled };
        let at = |p: &Point| Measurement {
            x: Some(p.x),
            source,
            repetitions: vec![value(p)],
            note: String::new(),
        };
        Series {
            name: format!("{name}, {}/{}", source.name(), what[0]),
            quantity: what[0].to_owned(),
            unit: what[1].to_owned(),
            x: Some(Axis { quantity: x[0].to_owned(), unit: x[1].to_owned() }),
            baseline: None,
            measurements: points.iter().map(at).collect(),
        }
    })
}

/// A string of TOML; what cannot be printed is left out.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Found {
    fn of(document: &Document, name: &str, series: &Series) -> Result<Found> {
        let (rates, in_bed) = carried(document, name, series)?;
        let ([first, .., last], true) = (&rates[..], rates.len() >= LENGTHS) else {
            bail!("{name}: {} lengths; two calibrate, and others are to be predicted", rates.len())
        };
        let ps = |rate: f64| SECOND as f64 / rate;
        let byte = ((ps(last.1) - ps(first.1)) / (last.0 - first.0)).max(0.0);
        let of_bed = if in_bed { ", of the bed" } else { "" };
        let points = format!("{:.0} and {:.0} bytes{of_bed}", first.0, last.0);
        let frame = ps(first.1) - byte * first.0;
        let (frame, byte) = (span(frame, &points)?, span(byte, &points)?);
        let mut device = Device { frame, byte, inside: None, held_up: None };
        let at = |&(x, measured): &(f64, f64)| Point {
            bytes: x,
            x,
            measured,
            modelled: device.rate_fps(x),
            counts: x != first.0 && x != last.0,
        };
        let rates = rates.iter().map(at).collect();
        let mut left_out = Vec::new();
        // The laboratory looks at parts of what it found the device to carry, whoever limited that.
        let loaded = document.series(&format!("{name}{LOADED}")).unwrap_or(series);
        let delays = delay::delays(document, name, loaded, &mut device, &mut left_out)?;
        Ok(Found { name: name.to_owned(), in_bed, device, rates, delays, left_out })
    }
}

/// Rates by length, the shortest first, and whether they are those of the bed: the device's own, or where the tester limited those.
fn carried(document: &Document, name: &str, own: &Series) -> Result<(Vec<(f64, f64)>, bool)> {
    let limited = own.measurements.iter().filter(|one| one.note == LIMITED).count();
    let bed = document.series(&format!("{name}{BED_RATE}"));
    let (series, in_bed) = match bed {
        Some(bed) if own.measurements.len() - limited < LENGTHS => (bed, true),
        _ => (own, false),
    };
    let mut rates = Vec::new();
    for one in &series.measurements {
        let Some(bytes) = one.x else { continue };
        let what = format!("{name} at {bytes:.0} bytes");
        match (in_bed, one.note == LIMITED) {
            (true, _) => rates.push((bytes, steady(one, &what)?)),
            (false, false) => rates.push((bytes, value(one, &what)?)),
            // It says nothing, and others may say enough.
            (false, true) => {}
        }
    }
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok((rates, in_bed))
}

#[cfg(test)]
mod tests;
