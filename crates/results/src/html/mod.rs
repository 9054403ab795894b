//! A document as one page: nothing is loaded from elsewhere, and it opens without a network.
//!
//! What is shown follows from the document alone, whoever wrote it. Series whose names differ in the first part only,
//! up to the first `/`, are of one kind of thing: they share a chart, and a table where they have one point each. Where their
//! quantity is a part of something, the chart has them on top of each other, without those that are nothing throughout.
//! Frames that came [otherwise than they were sent](IRREGULAR) are in a table, if there were any; so is what a search says
//! [beside a load](UPPER). Traces, of which the x is a count of trials, are folded away; so are variations of delay, what was seen
//! inside of devices, unless [a paper](PAPER) has numbers of it, and the table of everything. The document itself is in the page.
//! A script shows numbers at the points, hides lines, sorts tables and changes between light and dark; without it all is there too.

mod table;
#[cfg(test)]
mod tests;

use crate::chart::{self, Chart, DrawError, Line, Plot, Scale};
use crate::document::{Axis, Document, Measurement, Series};
use crate::stats::{self, Interval, SEED};
use table::{some, table, with_rates};

/// Units whose values span powers of ten.
const LOGARITHMIC: [&str; 3] = ["ns", "us", "ms"];
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// How names of series begin, behind the first part, that say what was inside of a device.
const INSIDE: &str = "inside ";
/// Quantities of frames that came otherwise than they were sent, in the order in which they are told.
pub const IRREGULAR: [&str; 4] =
    ["duplicated frames", "reordered frames", "corrupt frames", "foreign frames"];
/// What is told beside a load that a search found: the least load that is too high.
pub const UPPER: &str = "upper bound";
/// What is told beside a load that a search found: the forwarding rate that can be expected there.
pub const CONDITIONAL: &str = "conditional throughput";
/// How settings begin that say what was not measured.
pub const NOT_MEASURED: &str = "not measured: ";
/// The quantity of how much delay varies.
pub const VARIATION: &str = "delay variation";
/// How names of series begin that are single numbers of a paper, for the series whose name follows: they lie on its chart.
pub const PAPER: &str = "the paper: ";
/// How quantities begin whose series are parts of one whole.
const PART: &str = "part of ";

/// The page.
///
/// # Errors
/// If a chart has no room for what it is to show, or the document contradicts itself.
pub fn page(title: &str, document: &Document) -> Result<String, crate::Error> {
    let json = document.to_json()?;
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page += "<meta name=\"viewport\" content=\"width=device-width\">\n";
    page +=
        &format!("<title>{}</title>\n<style>{STYLE}{}</style>\n</head>\n<body>\n", text(title), colours());
    page += "<button id=\"theme\" type=\"button\">Colours: as the system</button>\n<div id=\"tip\"></div>\n";
    page += &format!("<h1>{}</h1>\n", text(title));
    page += &format!("<p class=\"soft\"><code>{}</code></p>\n", text(&document.run.command.join(" ")));
    let kinds = kinds(document);
    let (traces, kinds): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|kind| kind.is_trace());
    let (inside, kinds): (Vec<_>, Vec<_>) =
        kinds.into_iter().partition(|kind| kind.name.starts_with(INSIDE) && !kind.has_paper());
    let (irregular, kinds): (Vec<_>, Vec<_>) = kinds.into_iter().partition(Kind::is_irregular);
    let (varied, kinds): (Vec<_>, Vec<_>) =
        kinds.into_iter().partition(|kind| kind.series[0].quantity == VARIATION);
    let (bounds, kinds): (Vec<_>, Vec<_>) = kinds.into_iter().partition(Kind::is_bound);
    page += "<h2>In numbers</h2>\n";
    page += &not_measured(document);
    let told = kinds.iter().filter(|kind| !kind.is_curve() || kind.is_by_length());
    page += &with_rates(document, told.flat_map(|kind| &kind.series).copied());
    for kind in kinds.iter().filter(|kind| kind.is_curve()) {
        page += &format!("<h2>{}</h2>\n{}", text(&kind.name), kind.chart().map_err(drawn)?);
    }
    if !bounds.is_empty() {
        page += "<h2>Beside the loads that were searched</h2>\n";
        page += &table(document, bounds.iter().flat_map(|kind| &kind.series).copied());
    }
    if !irregular.is_empty() {
        page += "<h2>Frames that came otherwise than they were sent</h2>\n";
        page += &some(document, irregular.iter().flat_map(|kind| &kind.series).copied());
    }
    if !varied.is_empty() {
        page += "<h2>How much delay varied</h2>\n";
        page += &folded(&varied)?;
    }
    if !inside.is_empty() {
        page += "<h2>Inside, while it was loaded</h2>\n";
        page += &folded(&inside)?;
    }
    page += "<h2>What the numbers depend on</h2>\n";
    page += &provenance(document);
    page += "<h2>Everything</h2>\n";
    page += &folded(&traces)?;
    page += "<details><summary>All measurements</summary>\n";
    page += &table(document, document.series.iter());
    page += "</details>\n<script type=\"application/json\" id=\"results\">\n";
    // Nothing in it may end the element.
    page += &json.replace('<', "\\u003c");
    page += &format!("</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    Ok(page)
}

/// Charts that are shown when they are asked for.
fn folded(kinds: &[Kind<'_>]) -> Result<String, crate::Error> {
    let mut all = String::new();
    for kind in kinds {
        let (name, chart) = (text(&kind.name), kind.chart().map_err(drawn)?);
        all += &format!("<details><summary>{name}</summary>\n{chart}</details>\n");
    }
    Ok(all)
}

/// Colours of charts in dark, where the system prefers it and where it was asked for.
fn colours() -> String {
    let dark = |before: &str| chart::style::rules(&format!("{before} svg "));
    format!(
        "@media (prefers-color-scheme: dark) {{\n{}}}\n{}",
        dark(":root:not([data-theme=light])"),
        dark(":root[data-theme=dark]")
    )
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

fn is_paper(series: &Series) -> bool {
    series.name.starts_with(PAPER)
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

    fn is_irregular(&self) -> bool {
        IRREGULAR.contains(&self.series[0].quantity.as_str())
    }

    fn is_bound(&self) -> bool {
        [UPPER, CONDITIONAL].contains(&self.series[0].quantity.as_str())
    }

    /// Whether it is a result for each length of frames.
    fn is_by_length(&self) -> bool {
        self.series[0].x.as_ref().is_some_and(|axis| axis.quantity == "frame length")
    }

    fn has_paper(&self) -> bool {
        self.series.iter().any(|series| is_paper(series))
    }

    fn is_curve(&self) -> bool {
        let has_place = self.series[0].x.is_some();
        self.series.iter().any(|series| series.measurements.len() > 1) || has_place && self.has_paper()
    }

    fn chart(&self) -> Result<String, DrawError> {
        let first = self.series[0];
        let Some(source) = first.measurements.first().map(|one| one.source) else { return Ok(String::new()) };
        let scale =
            if LOGARITHMIC.contains(&first.unit.as_str()) { Scale::Logarithmic(10) } else { Scale::Linear };
        let is_part = first.quantity.starts_with(PART);
        let is_shown = |series: &&&Series| {
            let all = || series.measurements.iter().flat_map(|one| &one.repetitions);
            !is_part || all().any(|value| *value > 0.0)
        };
        let shown: Vec<&Series> = self.series.iter().filter(is_shown).copied().collect();
        let line = |series: &&Series| {
            let of = Some(parts(series).0).filter(|of| !of.is_empty()).unwrap_or("values");
            Line { joined: !is_paper(series), ..Line::of(of, series) }
        };
        let x = first.x.clone().unwrap_or(Axis { quantity: String::new(), unit: String::new() });
        let lines = shown.iter().map(line).collect();
        let plot = if is_part {
            Plot::Stack { x, parts: lines }
        } else {
            Plot::Lines { x, x_scale: Scale::Linear, lines }
        };
        let values = Axis { quantity: first.quantity.clone(), unit: first.unit.clone() };
        let chart = Chart { title: self.name.clone(), source, values, scale, plot };
        let svg = chart.svg()?;
        let lines: Vec<_> = shown.iter().map(|series| (line(series), points(series))).collect();
        Ok(figure(&svg, &lines))
    }
}

/// A chart inside of a page, and what there is to say of its points.
fn figure(svg: &str, lines: &[(Line, Vec<String>)]) -> String {
    // What an SVG file begins with has no place there, and the page has the colours.
    let svg = svg.find("<svg").map_or("", |at| &svg[at..]);
    let (head, rest) = svg.split_once("<style>").unwrap_or((svg, ""));
    let shapes = rest.split_once("</style>\n").map_or("", |(_, shapes)| shapes);
    let entry = |(line, points): &(Line, Vec<String>)| serde_json::json!({ "name": line.name, "joined": line.joined, "points": points });
    let lines: Vec<_> = lines.iter().map(entry).collect();
    let json = serde_json::Value::from(lines).to_string().replace('<', "\\u003c");
    format!("<figure>\n{head}{shapes}<script type=\"application/json\">{json}</script>\n</figure>\n")
}

/// A text for each point of a series.
fn points(series: &Series) -> Vec<String> {
    let axis = series.x.as_ref();
    let point = |one: &Measurement| {
        let (x, median) = (one.x?, stats::median(&one.repetitions)?);
        let (quantity, unit) = axis.map_or(("", ""), |axis| (axis.quantity.as_str(), axis.unit.as_str()));
        let interval = ends(stats::median_interval(&one.repetitions, SEED));
        let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
        let note = if one.note.is_empty() { String::new() } else { format!("\n{}", one.note) };
        let place = format!("{quantity} {} {unit}", number(x));
        Some(format!("{}\n{} {}{interval}{note}", place.trim(), number(median), series.unit))
    };
    series.measurements.iter().filter_map(point).collect()
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

/// What there are no numbers of, and why.
fn not_measured(document: &Document) -> String {
    let told = document.run.settings.iter().filter(|(name, _)| name.starts_with(NOT_MEASURED));
    told.map(|(name, why)| format!("<p>{}: {}.</p>\n", text(name), text(why))).collect()
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
        format!("<tr><th>{}</th><td class=\"kept\">{}</td></tr>\n", text(&name), text(&value))
    };
    let rows: String = machine.chain(versions).chain(settings).map(row).collect();
    format!("<div class=\"wide\"><table>\n{rows}</table></div>\n")
}
