//! Results: a table for people and one JSON file a run.

use crate::output;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of the result format.
const VERSION: u32 = 1;

/// One result.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was measured, such as `memory/1000 routes/fused`.
    pub name: String,
    /// Unit of the values.
    pub unit: &'static str,
    /// Median over the rounds.
    pub value: f64,
    /// Least and most over the rounds.
    pub spread: (f64, f64),
    /// What it is compared with in the same run, and how many times that it is.
    pub baseline: Option<(String, f64)>,
    /// What else there is to say.
    pub note: String,
}

impl Row {
    /// The result of several rounds; `None` without any.
    pub fn of(name: impl Into<String>, unit: &'static str, rounds: &[f64]) -> Option<Row> {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let value = sorted[sorted.len() / 2];
        Some(Row {
            name: name.into(),
            unit,
            value,
            spread: (first, last),
            baseline: None,
            note: String::new(),
        })
    }

    /// Compares the result with another of the same run.
    #[must_use]
    pub fn against(mut self, other: &Row) -> Row {
        self.baseline = Some((other.name.clone(), self.value / other.value));
        self
    }
}

/// The results of one run.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a result and prints it.
    pub fn add(&mut self, row: Row) {
        let ratio = row.baseline.as_ref().map_or(String::new(), |(of, r)| format!("  {r:.2} x {of}"));
        let Row { name, unit, value, spread: (low, high), .. } = &row;
        let note = if row.note.is_empty() { String::new() } else { format!("  {}", row.note) };
        let line = format_args!("{name:<44} {value:>9.2} {unit:<5} ({low:.2} to {high:.2}){ratio}{note}");
        // The file will have it even if nobody reads along.
        let _ = output::print_line(line);
        self.rows.push(row);
    }

    /// Prints a heading.
    pub fn heading(&self, text: &str) {
        let _ = output::print_line(format_args!("\n{text}"));
    }

    /// Writes the JSON file. The numbers are those of this machine in this run, which is what `measured` says.
    pub fn write(&self, file: &Path) -> Result<()> {
        let row = |r: &Row| {
            json!({
                "name": r.name,
                "unit": r.unit,
                "value": r.value,
                "baseline": r.baseline.as_ref().map(|(of, _)| of),
                "ratio": r.baseline.as_ref().map(|(_, ratio)| ratio),
                "spread": [r.spread.0, r.spread.1],
                "note": r.note,
                "kind": "measured",
            })
        };
        let results: Vec<Value> = self.rows.iter().map(row).collect();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let model =
            text("/proc/cpuinfo").lines().find_map(|l| l.strip_prefix("model name").map(str::to_owned));
        let run = json!({
            "version": VERSION,
            "unix_time_s": seconds,
            "causeway": env!("CARGO_PKG_VERSION"),
            "kernel": text("/proc/sys/kernel/osrelease").trim(),
            "processor": model.unwrap_or_default().trim_start_matches([':', ' ', '\t']),
            "load_average_1_min": text("/proc/loadavg").split(' ').next().unwrap_or_default(),
            "results": results,
        });
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        std::fs::write(file, format!("{run:#}\n")).with_context(|| format!("cannot write {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_spreads_and_ratios() {
        let a = Row::of("a", "Mpps", &[3.0, 1.0, 2.0]).unwrap();
        let b = Row::of("b", "Mpps", &[4.0]).unwrap().against(&a);
        assert_eq!((a.value, a.spread), (2.0, (1.0, 3.0)));
        assert_eq!(b.baseline, Some(("a".to_owned(), 2.0)));
        assert!(Row::of("c", "Mpps", &[]).is_none());
    }
}
