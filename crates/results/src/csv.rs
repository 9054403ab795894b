//! Tables for spreadsheets (RFC 4180): a line for each measurement, with what follows from its repetitions.

use crate::document::{Document, Measurement, Series};
use crate::stats::{self, Comparison, Interval, SEED};

/// The names of the columns.
const HEAD: [&str; 15] = [
    "series",
    "quantity",
    "unit",
    "x quantity",
    "x unit",
    "x",
    "source",
    "repetitions",
    "median",
    "median low",
    "median high",
    "baseline",
    "ratio",
    "ratio low",
    "ratio high",
];

/// A document as a table. Intervals are those of 95 % confidence; ratios are to the baseline, by pairs of repetitions.
pub fn table(document: &Document) -> String {
    let mut text = line(HEAD.map(str::to_owned));
    for series in &document.series {
        let baseline = series.baseline.as_deref().and_then(|name| document.series(name));
        for measurement in &series.measurements {
            text += &line(cells(series, measurement, baseline));
        }
    }
    text
}

fn cells(series: &Series, one: &Measurement, baseline: Option<&Series>) -> [String; 15] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let ends = |interval: Option<Interval>| [interval.map(|i| i.low), interval.map(|i| i.high)].map(number);
    let [low, high] = ends(stats::median_interval(&one.repetitions, SEED));
    let comparison = compare(one, baseline);
    let [ratio_low, ratio_high] = ends(comparison.and_then(|c| c.interval));
    let axis = series.x.as_ref();
    [
        series.name.clone(),
        series.quantity.clone(),
        series.unit.clone(),
        axis.map_or(String::new(), |axis| axis.quantity.clone()),
        axis.map_or(String::new(), |axis| axis.unit.clone()),
        number(one.x),
        one.source.name().to_owned(),
        one.repetitions.len().to_string(),
        number(stats::median(&one.repetitions)),
        low,
        high,
        baseline.map_or(String::new(), |series| series.name.clone()),
        number(comparison.map(|c| c.ratio)),
        ratio_low,
        ratio_high,
    ]
}

/// With the baseline's measurement at the same place.
fn compare(one: &Measurement, baseline: Option<&Series>) -> Option<Comparison> {
    let other = baseline?.measurements.iter().find(|other| other.x == one.x)?;
    stats::compare(&one.repetitions, &other.repetitions, SEED)
}

fn line(cells: [String; 15]) -> String {
    cells.map(|cell| quoted(&cell)).join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Run;

    #[test]
    fn a_line_a_measurement_with_median_interval_and_ratio() {
        let mut document = Document::new(Run::default());
        let kernel = Series::single("a, \"b\"", "rate", "Mpps", Measurement::measured([2.0, 2.0, 2.0]));
        let mut ours = Series::single("ours", "rate", "Mpps", Measurement::measured([4.0, 4.0, 4.0]));
        ours.baseline = Some("a, \"b\"".to_owned());
        document.series = vec![kernel, ours];
        let table = table(&document);
        let lines: Vec<&str> = table.split("\r\n").collect();
        assert_eq!(lines[0].split(',').count(), 15);
        assert_eq!(lines[1], "\"a, \"\"b\"\"\",rate,Mpps,,,,measured,3,2,2,2,,,,");
        assert_eq!(lines[2], "ours,rate,Mpps,,,,measured,3,4,4,4,\"a, \"\"b\"\"\",2,2,2");
        assert_eq!(lines[3..], [""], "the last line ends too");
    }
}
