//! The paper's numbers as points, each on the plot of what it is a number of.

use super::{Figure, Found, Number, Told};
use causeway_results::html::PAPER;
use causeway_results::{Document, Measurement, Series, Source};

/// Adds a series of the paper's numbers for each series that has any.
pub(super) fn add(document: &mut Document, figure: &Figure, found: &Found) {
    let of = |series: &Series| {
        let mut measurements: Vec<Measurement> = figure
            .numbers
            .iter()
            .filter(|number| on(number, found) == series.name)
            .filter_map(|number| point(number, found, &series.unit))
            .collect();
        measurements.sort_by(|a, b| a.x.partial_cmp(&b.x).unwrap_or(std::cmp::Ordering::Equal));
        let name = format!("{PAPER}{}", series.name);
        (!measurements.is_empty()).then(|| Series { name, measurements, ..series.clone() })
    };
    let papers: Vec<Series> = document.series.iter().filter_map(of).collect();
    document.series.extend(papers);
}

/// The series that a number is shown on.
pub(super) fn on(number: &Number, found: &Found) -> String {
    let name = number.shown.0;
    let curve = found.curves.iter().map(|(curve, _)| curve).find(|curve| curve.name == name);
    curve.map_or_else(|| name.to_owned(), |curve| format!("{name}/{}", curve.rest()))
}

/// A number as a series of this unit has it.
fn point(number: &Number, found: &Found, unit: &str) -> Option<Measurement> {
    let model = (number.of)(found);
    let digits = if model.abs() < 10.0 { 2 } else { 0 };
    let note = if number.told == Told::Calibrated { "; the model is calibrated on it" } else { "" };
    Some(Measurement {
        x: Some(number.shown.1),
        source: Source::Measured,
        repetitions: vec![number.paper * factor(number.unit, unit)?],
        note: format!(
            "{}, text of the paper; the model has {model:.digits$} {}{note}",
            number.what, number.unit
        ),
    })
}

/// How many of a series' unit one of a number's is; `None` if that is not known.
pub(super) fn factor(of_number: &str, of_series: &str) -> Option<f64> {
    match (of_number, of_series) {
        ("kpps" | "kpps offered", "frames/s") | ("ms", "us") => Some(1e3),
        // A ratio has no unit.
        ("times", "") => Some(1.0),
        (one, other) => (one == other).then_some(1.0),
    }
}
