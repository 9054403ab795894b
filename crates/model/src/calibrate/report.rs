//! What was found of this machine: for people, in the common format, as pictures, as files.

use super::{Calibration, DELAY_WITHIN, Found, LOAD_MOST, Point, RATE_WITHIN};
use crate::figures::write;
use anyhow::{Context, Result};
use causeway_results::chart::{Chart, Line, Plot, Scale, Value};
use causeway_results::stats::median;
use causeway_results::{Axis, Document, Measurement, Run, Series, Source};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Quantities, their units, and how many of those one of a picture is.
const RATE: [&str; 2] = ["forwarding rate", "frames/s"];
const DELAY: [&str; 2] = ["median delay", "us"];
const THOUSAND: f64 = 1e3;
/// Lengths that a picture of delays shows: more would be confused.
const SHOWN: usize = 3;

impl Calibration {
    /// For people: a table of each device, and what it comes to.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: modelled / measured", self.about)];
        for one in &self.found {
            lines.extend(one.table());
            lines.push(one.summary());
            lines.extend(one.left_out.iter().map(|what| format!("  left out: {what}")));
        }
        lines.extend(self.refused.iter().map(|why| format!("  not calibrated: {why}")));
        lines
    }

    /// At each point: where the time of both processors goes.
    pub fn why(&self) -> Vec<String> {
        let line = |one: &Found, point: &Point| {
            let parts: Vec<String> = point
                .outcome
                .parts
                .iter()
                .map(|(what, part)| format!("{what} {:.0} %", part * 100.0))
                .collect();
            let measured = point
                .together
                .map(|frames| format!(" (half of those of the laboratory with {frames:.0} or more)"));
            format!(
                "  {}, {} bytes, {}: {}; a frame is handed over with {:.1}{}, {:.1} frames a turn, woken {:.0} times a second, \
                 {:.0} frames/s find no room",
                one.name,
                point.bytes,
                place(point),
                parts.join(", "),
                point.outcome.together,
                measured.unwrap_or_default(),
                point.outcome.turn,
                point.outcome.wakes,
                point.outcome.lost_fps
            )
        };
        self.found.iter().flat_map(|one| one.points.iter().map(move |point| line(one, point))).collect()
    }

    /// The way of the frame that was followed, at each point of the shortest frames.
    pub fn ways(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for one in &self.found {
            let shortest = one.points.first().map(|point| point.bytes);
            for point in one.points.iter().filter(|point| Some(point.bytes) == shortest) {
                lines.push(format!(
                    "  one frame, {}, {} bytes, {} (modelled)",
                    one.name,
                    point.bytes,
                    place(point)
                ));
                lines.extend(point.outcome.trace.iter().map(|step| format!("    {step}")));
            }
        }
        lines
    }

    /// Both curves of each device, and tails, in the common format.
    pub fn document(&self) -> Document {
        let command = ["causeway", "model", "calibrate"].map(str::to_owned);
        let mut document = Document::new(Run { command: command.into(), ..Run::default() });
        for one in &self.found {
            let rates: Vec<&Point> = one.rates().collect();
            document.series.extend(curves(&one.name, &rates, RATE, 0));
            for of_a_length in one.delays().chunk_by(|a, b| a.bytes == b.bytes) {
                let name = format!("{}, {} bytes", one.name, of_a_length[0].bytes);
                document.series.extend(curves(&name, of_a_length, DELAY, 0));
                // Shown, and not promised.
                document.series.extend(curves(&name, of_a_length, ["99 of 100 within", "us"], 1));
            }
        }
        document.series.retain(|series| !series.measurements.is_empty());
        document
    }

    /// The pictures: rates of all devices, and delays of each, by name.
    pub fn pictures(&self) -> Vec<(String, Chart)> {
        let mut rates = Vec::new();
        for one in &self.found {
            let points: Vec<&Point> = one.rates().collect();
            rates.extend(lines(&one.name, &points, |point| f64::from(point.bytes), 1.0 / THOUSAND));
        }
        let title = "Forwarding rate where more is offered, simulated and measured".to_owned();
        let mut all = vec![(
            "rates".to_owned(),
            chart(title, ["forwarding rate", "kframes/s"], ["frame length", "bytes"], rates),
        )];
        for one in &self.found {
            let delays = one.delays();
            let lengths: Vec<&[&Point]> = delays.chunk_by(|a, b| a.bytes == b.bytes).collect();
            // The shortest, one between, and the longest.
            let shown = (0..SHOWN).map(|n| n * lengths.len().saturating_sub(1) / (SHOWN - 1));
            let mut drawn = Vec::new();
            for points in shown.filter_map(|n| lengths.get(n)) {
                let name = format!("{} bytes", points[0].bytes);
                drawn.extend(lines(&name, points, |point| point.load_fps / THOUSAND, 1.0));
            }
            let title = format!("Median delay by {}, simulated and measured", one.name);
            all.push((
                format!("delays-{}", one.name),
                chart(title, DELAY, ["offered load", "kframes/s"], drawn),
            ));
        }
        all.retain(|(_, chart)| matches!(&chart.plot, Plot::Lines { lines, .. } if !lines.is_empty()));
        all
    }

    /// Writes the machine's file, the document with both curves and the pictures into a folder; says where machine and document are.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn keep(&self, folder: &Path) -> Result<[PathBuf; 2]> {
        let put = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
            Ok::<PathBuf, anyhow::Error>(file)
        };
        let machine = put("this-machine.toml", &self.text)?;
        for (name, chart) in self.pictures() {
            put(&format!("model-calibrate-{name}.svg"), &chart.svg()?)?;
        }
        Ok([machine, write(folder, "calibrate", &self.document())?])
    }
}

/// Where a point stands, in words.
fn place(point: &Point) -> String {
    point.part.map_or_else(|| "more than is sent".to_owned(), |part| format!("at {part} %"))
}

impl Found {
    fn rates(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| point.part.is_none())
    }

    fn delays(&self) -> Vec<&Point> {
        self.points.iter().filter(|point| point.part.is_some()).collect()
    }

    /// A row for each length: its rate, and its delays by load.
    fn table(&self) -> Vec<String> {
        let delays = self.delays();
        let mut parts: Vec<u32> = delays.iter().filter_map(|point| point.part).collect();
        parts.sort_unstable();
        parts.dedup();
        let head: Vec<String> = parts.iter().map(|part| format!("at {part} %, us")).collect();
        let mut lines = vec![
            String::new(),
            format!("| {}, bytes | more than is sent, kpps | {} |", self.name, head.join(" | ")),
            format!("| --- |{}", " --- |".repeat(parts.len() + 1)),
        ];
        for rate in self.rates() {
            let of = |part: &u32| {
                let found =
                    delays.iter().find(|point| point.bytes == rate.bytes && point.part == Some(*part));
                found.map_or_else(String::new, |point| cell(point, 1.0))
            };
            let delays: Vec<String> = parts.iter().map(of).collect();
            lines.push(format!("| {} | {} | {} |", rate.bytes, cell(rate, THOUSAND), delays.join(" | ")));
        }
        lines
    }

    /// How far off the points are that count.
    fn summary(&self) -> String {
        let worst = |points: &mut dyn Iterator<Item = &Point>| {
            let counted: Vec<f64> =
                points.filter(|point| point.counts).map(|point| point.error() * 100.0).collect();
            let most = counted.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
            most.map_or_else(|| "none".to_owned(), |most| format!("{most:+.0} % of {}", counted.len()))
        };
        let missed = self.points.iter().filter(|point| point.is_missed()).count();
        format!(
            "  farthest off where nothing was calibrated: rates {} (promised {:.0} %), delays to {LOAD_MOST} % {} (promised \
             {:.0} %); missed: {missed}",
            worst(&mut self.rates()),
            RATE_WITHIN * 100.0,
            worst(&mut self.delays().into_iter()),
            DELAY_WITHIN * 100.0
        )
    }
}

/// A point in a table: what is modelled and measured, and how far the one is from the other.
fn cell(point: &Point, divisor: f64) -> String {
    let number = |value: f64| if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    let note = match (point.used, point.is_missed(), point.counts) {
        (true, ..) => ", calibrated",
        (_, true, _) => ", **missed**",
        (_, _, true) => "",
        _ => ", left out",
    };
    let measured = median(&point.measured).unwrap_or_default();
    format!(
        "{} / {} ({:+.0} %{note})",
        number(point.modelled() / divisor),
        number(measured / divisor),
        point.error() * 100.0
    )
}

/// What was measured and what is modelled, of a percentile where there are several.
fn curves(name: &str, points: &[&Point], [quantity, unit]: [&str; 2], which: usize) -> [Series; 2] {
    let axis = |[quantity, unit]: [&str; 2]| Axis { quantity: quantity.to_owned(), unit: unit.to_owned() };
    let by_load = points.first().is_some_and(|point| point.part.is_some());
    let along = if by_load { ["offered load", "frames/s"] } else { ["frame length", "bytes"] };
    [Source::Measured, Source::Modelled].map(|source| {
        let values = |point: &Point| match (source, which) {
            (Source::Measured, 0) => point.measured.clone(),
            (Source::Measured, _) => point.late_us.clone(),
            (Source::Modelled, 0) => vec![point.modelled()],
            (Source::Modelled, which) => vec![point.outcome.inside_us[which]],
        };
        let x = |point: &Point| if by_load { point.load_fps.round() } else { f64::from(point.bytes) };
        let note = |point: &Point| if point.used { "calibrated on it" } else { "" };
        let at = |point: &&Point| Measurement {
            x: Some(x(point)),
            source,
            repetitions: values(point),
            note: note(point).to_owned(),
        };
        let mut measurements: Vec<Measurement> =
            points.iter().map(at).filter(|one| !one.repetitions.is_empty()).collect();
        // Where the tester is what limits it, a higher load than it sends is no higher one.
        measurements.sort_by(|a, b| a.x.partial_cmp(&b.x).unwrap_or(Ordering::Equal));
        // A document has one value at each; of loads that round alike one says enough.
        measurements.dedup_by(|a, b| a.x == b.x);
        Series {
            name: format!("{name}, {}/{quantity}", source.name()),
            quantity: quantity.to_owned(),
            unit: unit.to_owned(),
            x: Some(axis(along)),
            baseline: None,
            measurements,
        }
    })
}

/// What is modelled as a line, and what was measured as points.
fn lines(name: &str, points: &[&Point], x: fn(&Point) -> f64, factor: f64) -> [Line; 2] {
    let values = |of: &dyn Fn(&Point) -> Vec<f64>| {
        let point = |point: &&Point| {
            let scaled: Vec<f64> = of(point).iter().map(|value| value * factor).collect();
            Some((x(point), Value::of(&scaled)?))
        };
        points.iter().filter_map(point).collect()
    };
    [
        Line {
            name: format!("{name}, simulated"),
            points: values(&|one| vec![one.modelled()]),
            joined: true,
        },
        Line {
            name: format!("{name}, measured"),
            points: values(&|one| one.measured.clone()),
            joined: false,
        },
    ]
}

fn chart(title: String, [quantity, unit]: [&str; 2], along: [&str; 2], lines: Vec<Line>) -> Chart {
    let axis = |quantity: &str, unit: &str| Axis { quantity: quantity.to_owned(), unit: unit.to_owned() };
    Chart {
        title,
        source: Source::Modelled,
        values: axis(quantity, unit),
        scale: Scale::Linear,
        plot: Plot::Lines { x: axis(along[0], along[1]), x_scale: Scale::Linear, lines },
    }
}
