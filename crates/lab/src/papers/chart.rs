//! An experiment as a picture, with the points of the paper's curves beside what was measured.

use super::{Experiment, Shows};
use causeway_results::chart::{Chart, Line, Plot, Scale, Value};
use causeway_results::{Axis, Document, Series, Source};

const KPPS: f64 = 1e3;

/// The chart of an experiment; `None` if nothing was measured that it shows.
pub fn chart(experiment: &Experiment, document: &Document) -> Option<Chart> {
    let lines: Vec<Line> = document
        .series
        .iter()
        .filter_map(|series| Some(line(name(experiment.shows, series)?, series)))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let paper = experiment.points.iter().map(|(name, points)| Line {
        name: format!("{name} (the paper)"),
        points: points.iter().map(|&(x, y)| (x, Value::exact(y))).collect(),
    });
    let axis = |quantity: &str, unit: &str| Axis { quantity: quantity.to_owned(), unit: unit.to_owned() };
    Some(Chart {
        title: format!("{}: {}", experiment.name, experiment.about),
        source: Source::Measured,
        values: axis("forwarding rate", "kframes/s"),
        scale: Scale::Linear,
        plot: Plot::Lines {
            x: match experiment.shows {
                Shows::Lengths => axis("frame length", "bytes"),
                Shows::Loads | Shows::Flows => axis("offered load", "kframes/s"),
            },
            x_scale: Scale::Linear,
            lines: lines.into_iter().chain(paper).collect(),
        },
    })
}

/// What a series is called in the chart, if it belongs there.
fn name(shows: Shows, series: &Series) -> Option<&str> {
    let rate = series.quantity == "forwarding rate";
    let name = match shows {
        Shows::Loads => series.name.strip_suffix("/forwarding rate")?.split('/').next()?,
        Shows::Lengths => series.name.strip_suffix("/saturation forwarding rate")?,
        Shows::Flows => series.name.strip_suffix(": flows")?.split('/').next()?,
    };
    rate.then_some(name)
}

/// In thousands of frames a second, and of offered ones.
fn line(name: &str, series: &Series) -> Line {
    let by_load = series.x.as_ref().is_some_and(|x| x.quantity == "offered load");
    let point = |one: &causeway_results::Measurement| {
        let rates: Vec<f64> = one.repetitions.iter().map(|rate| rate / KPPS).collect();
        Some((one.x? / if by_load { KPPS } else { 1.0 }, Value::of(&rates)?))
    };
    Line { name: name.to_owned(), points: series.measurements.iter().filter_map(point).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::Measurement;

    fn measured(name: &str, x: &str, points: &[(f64, f64)]) -> Series {
        let at = |&(x, y): &(f64, f64)| Measurement { x: Some(x), ..Measurement::measured([y]) };
        let mut series = Series::single(name, "forwarding rate", "frames/s", Measurement::measured([0.0]));
        series.x = Some(Axis { quantity: x.to_owned(), unit: String::new() });
        series.measurements = points.iter().map(at).collect();
        series
    }

    fn lines(experiment: &str, series: Vec<Series>) -> Option<Vec<Line>> {
        let mut document = Document::new(crate::report::begun());
        document.series = series;
        match chart(Experiment::find(experiment).expect("known"), &document)?.plot {
            Plot::Lines { lines, .. } => Some(lines),
            Plot::Bars { .. } => panic!("lines were expected"),
        }
    }

    #[test]
    fn curves_stand_beside_the_papers_points() {
        let load = measured("napi/64 bytes/forwarding rate", "offered load", &[(5e5, 4e5), (1e6, 4.2e5)]);
        let other = measured("napi/saturation forwarding rate", "frame length", &[(64.0, 4.2e5)]);
        let drawn = lines("OSR-4", vec![load, other]).expect("a chart");
        assert_eq!(drawn[0].points, [(500.0, Value::exact(400.0)), (1000.0, Value::exact(420.0))]);
        let names: Vec<&str> = drawn.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["napi", "interrupt (the paper)", "moderated (the paper)", "napi (the paper)"]);
        assert_eq!(drawn[1].points[0], (230.0, Value::exact(230.0)));
    }

    #[test]
    fn lengths_and_flows_have_their_own_series() {
        let rate = || measured("napi/saturation forwarding rate", "frame length", &[(82.0, 4.2e5)]);
        assert_eq!(lines("OSR-5", vec![rate()]).expect("a chart")[0].points, [(82.0, Value::exact(420.0))]);
        let flow = measured("t0 to t1/napi, 64 bytes: flows", "offered load", &[(1e6, 1e5)]);
        let drawn = lines("OSR-8", vec![rate(), flow]).expect("a chart");
        assert_eq!((drawn.len(), drawn[0].name.as_str()), (1, "t0 to t1"));
        assert!(lines("OSR-8", vec![rate()]).is_none(), "nothing to show");
    }
}
