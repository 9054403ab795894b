//! A document as one page: nothing is loaded from elsewhere, and it opens without a network.
//!
//! What is shown follows from the document alone, whoever wrote it. Series whose names differ in the first part only,
//! up to the first `/`, are of one kind of thing: they share a chart, and a table where they have one point each.
//! Traces, of which the x is a count of trials, are folded away; so is the table of everything. The document itself is in
//! the page.

#[cfg(test)]
mod tests;

use crate::chart::{Chart, DrawError, Line, Plot, Scale};
use crate::document::{Axis, Document, Measurement, Series};
use crate::stats::{self, Comparison, Interval, SEED};
use std::fmt::Write;

/// Units whose values span powers of ten.
const LOGARITHMIC: [&str; 3] = ["ns", "us", "ms"];
const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1f2328; --ground: #ffffff; --line: #d8dee4; --soft: #59636e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --ground: #0d1117; --line: #30363d; --soft: #9198a1 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line) }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums } div.wide { overflow-x: auto }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top }
td.n { text-align: right } td.soft, p.soft { color: var(--soft) } code { overflow-wrap: anywhere }
svg { max-width: 100%; height: auto } summary { cursor: pointer; margin: .6rem 0 }
";

/// The page.
///
/// # Errors
/// If a chart has no room for what it is to show, or the document contradicts itself.
pub fn page(title: &str, document: &Document) -> Result<String, crate::Error> {
    let json = document.to_json()?;
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page += "<meta name=\"viewport\" content=\"width=device-width\">\n";
    page +=
        &format!("<title>{0}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n", text(title));
    page += &format!("<p class=\"soft\"><code>{}</code></p>\n", text(&document.run.command.join(" ")));
    let kinds = kinds(document);
    let (traces, kinds): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|kind| kind.is_trace());
    page += "<h2>In numbers</h2>\n";
    page +=
        &table(document, kinds.iter().filter(|kind| !kind.is_curve()).flat_map(|kind| &kind.series).copied());
    for kind in kinds.iter().filter(|kind| kind.is_curve()) {
        page += &format!("<h2>{}</h2>\n{}", text(&kind.name), kind.chart().map_err(drawn)?);
    }
    page += "<h2>What the numbers depend on</h2>\n";
    page += &provenance(document);
    page += "<h2>Everything</h2>\n";
    for kind in &traces {
        page += &format!(
            "<details><summary>{}</summary>\n{}</details>\n",
            text(&kind.name),
            kind.chart().map_err(drawn)?
        );
    }
    page += "<details><summary>All measurements</summary>\n";
    page += &table(document, document.series.iter());
    page += "</details>\n<script type=\"application/json\" id=\"results\">\n";
    // Nothing in it may end the element.
    page += &json.replace('<', "\\u003c");
    page += "</script>\n</body>\n</html>\n";
    Ok(page)
}

fn drawn(error: DrawError) -> crate::Error {
    crate::Error::Invalid(error.to_string())
}

/// Text, so that nothing of it is markup.
fn text(plain: &str) -> String {
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Series of the same quantity of several things.
struct Kind<'a> {
    name: String,
    series: Vec<&'a Series>,
}

/// The thing that a series is of, and what it says of it.
fn parts(series: &Series) -> (&str, &str) {
    series.name.split_once('/').unwrap_or(("", &series.name))
}

fn kinds(document: &Document) -> Vec<Kind<'_>> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for series in &document.series {
        let (_, name) = parts(series);
        let like = |other: &Series| {
            (&other.unit, &other.x, &other.quantity) == (&series.unit, &series.x, &series.quantity)
        };
        match kinds.iter_mut().find(|kind| kind.name == name && kind.series.iter().all(|other| like(other))) {
            Some(kind) => kind.series.push(series),
            None => kinds.push(Kind { name: name.to_owned(), series: vec![series] }),
        }
    }
    kinds
}

impl Kind<'_> {
    fn is_trace(&self) -> bool {
        self.series[0].x.as_ref().is_some_and(|axis| axis.quantity == "trial")
    }

    fn is_curve(&self) -> bool {
        self.series.iter().any(|series| series.measurements.len() > 1)
    }

    fn chart(&self) -> Result<String, DrawError> {
        let first = self.series[0];
        let Some(source) = first.measurements.first().map(|one| one.source) else { return Ok(String::new()) };
        let scale =
            if LOGARITHMIC.contains(&first.unit.as_str()) { Scale::Logarithmic(10) } else { Scale::Linear };
        let line = |series: &&Series| {
            Line::of(Some(parts(series).0).filter(|of| !of.is_empty()).unwrap_or("values"), series)
        };
        let chart = Chart {
            title: self.name.clone(),
            source,
            values: Axis { quantity: first.quantity.clone(), unit: first.unit.clone() },
            scale,
            plot: Plot::Lines {
                x: first.x.clone().unwrap_or(Axis { quantity: String::new(), unit: String::new() }),
                x_scale: Scale::Linear,
                lines: self.series.iter().map(line).collect(),
            },
        };
        // What an SVG file begins with has no place inside of a page.
        let svg = chart.svg()?;
        Ok(svg.find("<svg").map_or(String::new(), |at| svg[at..].to_owned()))
    }
}

fn number(value: f64) -> String {
    let digits = if value.abs() >= 1_000.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        4
    };
    format!("{value:.digits$}")
}

fn ends(interval: Option<Interval>) -> String {
    interval.map_or(String::new(), |i| format!("{} to {}", number(i.low), number(i.high)))
}

fn compare(document: &Document, series: &Series, one: &Measurement) -> Option<Comparison> {
    let baseline = document.series(series.baseline.as_deref()?)?;
    let other = baseline.measurements.iter().find(|other| other.x == one.x)?;
    stats::compare(&one.repetitions, &other.repetitions, SEED)
}

fn table<'a>(document: &Document, series: impl Iterator<Item = &'a Series>) -> String {
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
                 <td class=\"n\">{}</td><td>{}</td><td class=\"soft\">{}</td></tr>",
                text(&series.name),
                text(&x),
                number(median),
                text(&series.unit),
                ends(stats::median_interval(&one.repetitions, SEED)),
                ratio,
                one.source.name(),
                text(&one.note),
            );
        }
    }
    format!(
        "<div class=\"wide\"><table>\n<tr><th>what</th><th>at</th><th>median</th><th>95 % interval</th>\
         <th>times its baseline</th><th></th><th>note</th></tr>\n{rows}</table></div>\n"
    )
}

fn provenance(document: &Document) -> String {
    let run = &document.run;
    let machine = [
        ("processor", format!("{} ({} of them)", run.machine.processor, run.machine.processors)),
        ("kernel", run.machine.kernel.clone()),
        ("load average before", run.machine.load_average.clone()),
        ("began, in seconds since 1970 UTC", run.began_unix_s.to_string()),
    ];
    let machine = machine.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let versions = run.versions.iter().map(|(name, value)| (format!("version of {name}"), value.clone()));
    let settings = run.settings.iter().map(|(name, value)| (name.clone(), value.clone()));
    let row = |(name, value): (String, String)| {
        format!("<tr><th>{}</th><td>{}</td></tr>\n", text(&name), text(&value))
    };
    let rows: String = machine.chain(versions).chain(settings).map(row).collect();
    format!("<div class=\"wide\"><table>\n{rows}</table></div>\n")
}
