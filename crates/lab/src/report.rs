//! Results: lines for people, and a document with every repetition.

use crate::Settings;
use anyhow::{Context, Result};
use causeway_results::chart::{Chart, Line, Plot, Scale};
use causeway_results::stats::{self, SEED};
use causeway_results::{Axis, Document, Machine, Measurement, Run, Series, Source, csv, markdown};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// One result.
#[derive(Clone, Debug)]
pub struct Row {
    /// What people read, such as `memory/1000 routes/fused`.
    name: String,
    /// What the document has of it: one measurement.
    series: Series,
    /// The rounds of what it is compared with in the same run, and its name for people.
    baseline: Option<(String, Vec<f64>)>,
}

impl Row {
    /// The result of several rounds; `None` without any.
    pub fn of(name: impl Into<String>, quantity: &str, unit: &str, rounds: &[f64]) -> Option<Row> {
        let name = name.into();
        let series = Series::single(name.trim_start(), quantity, unit, Measurement::measured(rounds));
        (!rounds.is_empty()).then_some(Row { name, series, baseline: None })
    }

    /// A point of a series instead of a series of its own: what is `x` there, and how much.
    #[must_use]
    pub fn at(mut self, series: &str, axis: Axis, x: f64) -> Row {
        series.clone_into(&mut self.series.name);
        self.series.x = Some(axis);
        self.series.measurements[0].x = Some(x);
        self
    }

    /// What else there is to say.
    #[must_use]
    pub fn note(mut self, note: String) -> Row {
        self.series.measurements[0].note = note;
        self
    }

    /// Compares the result with another of the same run.
    #[must_use]
    pub fn against(mut self, other: &Row) -> Row {
        self.series.baseline = Some(other.series.name.clone());
        self.baseline = Some((other.name.clone(), other.rounds().to_vec()));
        self
    }

    /// Median over the rounds.
    pub fn median(&self) -> f64 {
        stats::median(self.rounds()).unwrap_or(f64::NAN)
    }

    fn rounds(&self) -> &[f64] {
        &self.series.measurements[0].repetitions
    }

    /// Median, least and most over the rounds, and the ratio to the baseline.
    fn line(&self) -> String {
        let least = self.rounds().iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.rounds().iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let ratio = |(of, base): &(String, Vec<f64>)| {
            let ratio = stats::compare(self.rounds(), base, SEED).map_or(f64::NAN, |found| found.ratio);
            format!("  {ratio:.2} x {of}")
        };
        let ratio = self.baseline.as_ref().map_or(String::new(), ratio);
        let note = &self.series.measurements[0].note;
        let note = if note.is_empty() { String::new() } else { format!("  {note}") };
        let (name, value, unit) = (&self.name, self.median(), &self.series.unit);
        format!("{name:<44} {value:>9.2} {unit:<5} ({least:.2} to {most:.2}){ratio}{note}")
    }
}

/// The results of one run.
pub struct Report {
    document: Document,
    say: Say,
}

/// Takes lines for people, without their ends.
pub type Say = Box<dyn Fn(&str)>;

impl Report {
    /// A report without results, of a run that begins now.
    pub fn new(settings: &Settings, say: Say) -> Report {
        let values = [
            ("seconds of a round", settings.round.as_secs_f64().to_string()),
            ("rounds", settings.rounds.to_string()),
            ("processor of the worker", settings.processor.to_string()),
        ];
        let settings = values.map(|(name, value)| (name.to_owned(), value)).into();
        let run = Run { settings, ..begun() };
        Report { document: Document::new(run), say }
    }

    /// Adds a result and says it.
    pub fn add(&mut self, row: Row) {
        (self.say)(&row.line());
        let all = &mut self.document.series;
        match all.iter_mut().find(|series| series.x.is_some() && series.name == row.series.name) {
            Some(series) => series.measurements.extend(row.series.measurements),
            None => all.push(row.series),
        }
    }

    /// Says a heading.
    pub fn heading(&self, text: &str) {
        (self.say)(&format!("\n{text}"));
    }

    /// Writes the document, and beside it a table and a page of the same name.
    pub fn write(&self, file: &Path) -> Result<()> {
        // Whoever asks for a document in a file of that name gets a document.
        write(&file.with_extension("csv"), &csv::table(&self.document))?;
        write(&file.with_extension("md"), &markdown::page("Bench", &self.document))?;
        write(file, &self.document.to_json()?)
    }

    /// Draws all series whose names begin with `prefix`, both axes logarithmic.
    pub fn plot(&self, prefix: &str, title: &str, file: &Path) -> Result<()> {
        let mine = || self.document.series.iter().filter(|series| series.name.starts_with(prefix));
        let Some((first, x)) = mine().find_map(|series| Some((series, series.x.clone()?))) else {
            return Ok(());
        };
        let chart = Chart {
            title: title.to_owned(),
            source: Source::Measured,
            values: Axis { quantity: first.quantity.clone(), unit: first.unit.clone() },
            scale: Scale::Logarithmic(10),
            plot: Plot::Lines {
                x,
                x_scale: Scale::Logarithmic(4),
                lines: mine().map(|series| Line::of(&series.name[prefix.len()..], series)).collect(),
            },
        };
        write(file, &chart.svg()?)
    }
}

/// Of this program: with the commit that it was built of, where that is known.
pub fn version() -> String {
    let commit = option_env!("CAUSEWAY_COMMIT").map_or(String::new(), |commit| format!(" (commit {commit})"));
    format!("{}{commit}", env!("CARGO_PKG_VERSION"))
}

/// A run of this program that begins now, without settings.
pub fn begun() -> Run {
    let mut command: Vec<String> = std::env::args().collect();
    // Where the program lay matters to nobody.
    if let Some(program) = command.first_mut()
        && let Some(name) = Path::new(program).file_name()
    {
        *program = name.to_string_lossy().into_owned();
    }
    let began = SystemTime::now().duration_since(UNIX_EPOCH);
    Run {
        command,
        began_unix_s: began.map_or(0, |time| time.as_secs()),
        machine: Machine::here(),
        versions: [("causeway".to_owned(), version())].into(),
        settings: Default::default(),
    }
}

/// Writes a file, whole or not at all: what was there stays if there is no room for the new one.
pub fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".part");
    let unfinished = Path::new(&unfinished);
    let written = std::fs::write(unfinished, text).and_then(|()| std::fs::rename(unfinished, file));
    if written.is_err() {
        // What is there of it is of no use; that it was there at all is not certain.
        let _ = std::fs::remove_file(unfinished);
    }
    written.with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    fn report() -> Report {
        let (parts, round, output) = (Vec::new(), Duration::from_millis(400), PathBuf::from("bench.json"));
        Report::new(
            &Settings { parts, round, rounds: 5, processor: 0, click: None, output },
            Box::new(|_| ()),
        )
    }

    #[test]
    fn lines_have_medians_spreads_ratios_and_notes() {
        let a = Row::of("a", "rate", "Mpps", &[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(a.line(), format!("{:<44} {:>9} Mpps  (1.00 to 3.00)", "a", "2.00"));
        let b = Row::of("  b", "rate", "Mpps", &[6.0, 4.0, 4.0]).unwrap().against(&a).note("why".to_owned());
        assert_eq!(b.line(), format!("{:<44} {:>9} Mpps  (4.00 to 6.00)  2.00 x a  why", "  b", "4.00"));
        assert!(Row::of("c", "rate", "Mpps", &[]).is_none());
    }

    #[test]
    fn the_document_keeps_the_rounds_and_what_they_are_compared_with() {
        let mut report = report();
        let a = Row::of("a", "rate", "Mpps", &[3.0, 1.0]).unwrap();
        report.add(a.clone());
        report.add(Row::of("  b", "rate", "Mpps", &[4.0, 5.0]).unwrap().against(&a));
        let folder = std::env::temp_dir().join(format!("causeway-bench-{}", std::process::id()));
        report.write(&folder.join("bench.json")).unwrap();
        let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
        let document = Document::from_json(&read("bench.json")).unwrap();
        let b = document.series("b").unwrap();
        assert_eq!(b.measurements, [Measurement::measured([4.0, 5.0])]);
        assert_eq!(b.baseline.as_deref(), Some("a"));
        assert_eq!(read("bench.csv").lines().count(), 3);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn points_gather_in_a_series_and_are_drawn() {
        let mut report = report();
        let axis = || Axis { quantity: "routes".to_owned(), unit: String::new() };
        for routes in [16.0, 64.0] {
            let row = Row::of(format!("lut/{routes} routes/radix"), "time", "ns", &[routes]).unwrap();
            report.add(row.at("lut/tables/radix", axis(), routes));
        }
        let series = report.document.series("lut/tables/radix").unwrap();
        assert_eq!(series.measurements.iter().filter_map(|one| one.x).collect::<Vec<_>>(), [16.0, 64.0]);
        let file = std::env::temp_dir().join(format!("causeway-bench-{}.svg", std::process::id()));
        report.plot("lut/tables/", "title", &file).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.contains("\nradix\n") && svg.contains("time (ns), measured"), "{svg}");
        std::fs::remove_file(file).unwrap();
    }
}
