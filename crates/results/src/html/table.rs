//! Tables of measurements, a row each.

use super::{IRREGULAR, ends, number, parts, text};
use crate::document::{Document, Measurement, Series};
use crate::stats::{self, Comparison, SEED};
use crate::traffic::WIRE_OVERHEAD;
use std::fmt::Write;

/// A table of what is not zero, or that nothing is.
pub fn some<'a>(document: &Document, all: impl Iterator<Item = &'a Series>) -> String {
    let is_some = |one: &Measurement| one.repetitions.iter().any(|value| *value != 0.0);
    let some: Vec<Series> = all
        .map(|series| Series {
            measurements: series.measurements.iter().filter(|one| is_some(one)).cloned().collect(),
            ..series.clone()
        })
        .filter(|series| !series.measurements.is_empty())
        .collect();
    if some.is_empty() {
        return format!("<p>None: no {}.</p>\n", IRREGULAR.join(", no "));
    }
    table(document, some.iter())
}

fn compare(document: &Document, series: &Series, one: &Measurement) -> Option<Comparison> {
    let baseline = document.series(series.baseline.as_deref()?)?;
    let other = baseline.measurements.iter().find(|other| other.x == one.x)?;
    stats::compare(&one.repetitions, &other.repetitions, SEED)
}

/// All measurements of these series.
pub fn table<'a>(document: &Document, series: impl Iterator<Item = &'a Series>) -> String {
    rows(document, series, false)
}

/// The same; what is frames a second at a length is also told as a part of the line rate, and in bits with what a frame takes
/// beside itself on the wire (layer 1) and without (layer 2).
pub fn with_rates<'a>(document: &Document, series: impl Iterator<Item = &'a Series>) -> String {
    rows(document, series, true)
}

/// Cells of a median that is frames a second at a length in bytes; empty ones of others.
fn rates(document: &Document, series: &Series, one: &Measurement, median: f64) -> String {
    let by_length = series.x.as_ref().is_some_and(|axis| axis.quantity == "frame length");
    let length = one.x.filter(|_| by_length && series.unit == "frames/s");
    let gigabits = |beside: u32| {
        length.map(|length| number(median * 8.0 * (length + f64::from(beside)) / 1e9)).unwrap_or_default()
    };
    let line = length.and_then(|_| {
        let line = document.series(&format!("line rate/{}", parts(series).1))?;
        let most = line.measurements.iter().find(|most| most.x == one.x)?;
        stats::median(&most.repetitions).filter(|&most| most > 0.0)
    });
    let part = line.map(|most| format!("{:.1}", median / most * 100.0)).unwrap_or_default();
    let cell = |value: String| format!("<td class=\"n\">{value}</td>");
    [part, gigabits(WIRE_OVERHEAD), gigabits(0)].map(cell).concat()
}

fn rows<'a>(document: &Document, series: impl Iterator<Item = &'a Series>, with_rates: bool) -> String {
    let mut rows = String::new();
    for series in series {
        for one in &series.measurements {
            let Some(median) = stats::median(&one.repetitions) else { continue };
            let x = match (&series.x, one.x) {
                (Some(axis), Some(x)) => format!("{} {}", number(x), axis.unit),
                _ => String::new(),
            };
            let ratio = compare(document, series, one).map_or(String::new(), |found| {
                let interval = ends(found.interval);
                let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
                format!("{:.2}{interval}", found.ratio)
            });
            // Writing to a string cannot fail.
            let _ = writeln!(
                rows,
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{} {}</td><td class=\"n soft\">{}</td>\
                 <td class=\"n\">{}</td>{}<td>{}</td><td class=\"soft\">{}</td></tr>",
                text(&series.name),
                text(&x),
                number(median),
                text(&series.unit),
                ends(stats::median_interval(&one.repetitions, SEED)),
                ratio,
                if with_rates { rates(document, series, one, median) } else { String::new() },
                one.source.name(),
                text(&one.note),
            );
        }
    }
    let told = match with_rates {
        true => {
            ["% of line rate", "Gbit/s, L1", "Gbit/s, L2"].map(|what| format!("<th>{what}</th>")).concat()
        }
        false => String::new(),
    };
    format!(
        "<div class=\"wide\"><table>\n<tr><th class=\"sorts\">what</th><th class=\"sorts\">at</th>\
         <th class=\"sorts\">median</th><th>95 % interval</th><th class=\"sorts\">times its baseline</th>{told}<th></th>\
         <th class=\"sorts\">note</th></tr>\n{rows}</table></div>\n"
    )
}
