//! Line plots as SVG.

use std::fmt::Write as _;

use super::Results;
use crate::scenario::Outcome;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 8] =
    ["#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b8860b", "#2a9d8f", "#6c757d", "#d1495b"];

struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Delivered Gbit/s against the experiment's x axis; classes apart where there are two.
pub fn svg(results: &Results) -> String {
    let series = series(results);
    let points = || series.iter().flat_map(|s| &s.points);
    let x_min = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let x_max = points().map(|p| p.0).fold(0.0, f64::max);
    let y_max = points().map(|p| p.1).fold(0.0, f64::max) * 1.05;
    let x = |v: f64| LEFT + (v - x_min) / (x_max - x_min) * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - v / y_max * (HEIGHT - TOP - BOTTOM);
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for i in 0..=5 {
        let value = y_max * f64::from(i) / 5.0;
        let at = y(value);
        let _ = writeln!(s, "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/>", WIDTH - RIGHT);
        let _ = writeln!(
            s,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>",
            LEFT - 6.0,
            at + 4.0
        );
        let value = x_min + (x_max - x_min) * f64::from(i) / 5.0;
        let label = if x_max > 20.0 { format!("{value:.0}") } else { format!("{value:.1}") };
        let _ = writeln!(
            s,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            x(value),
            HEIGHT - BOTTOM + 18.0
        );
    }
    for (i, line) in series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let points: Vec<String> =
            line.points.iter().map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
        let _ = writeln!(
            s,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        let at = TOP + 16.0 * (i as f64 + 1.0);
        let _ = writeln!(
            s,
            "<text x=\"{}\" y=\"{at}\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT + 10.0,
            line.name
        );
    }
    let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
    let _ = writeln!(
        s,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n<text transform=\"translate(14 {}) \
         rotate(-90)\" text-anchor=\"middle\">delivered (Gbit/s, modelled)</text>\n</svg>",
        HEIGHT - 10.0,
        results.experiment.x_axis,
        HEIGHT / 2.0
    );
    s
}

fn series(results: &Results) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut add = |name: String, point| match all.iter_mut().find(|s| s.name == name) {
        Some(series) => series.points.push(point),
        None => all.push(Series { name, points: vec![point] }),
    };
    for (run, outcome) in results.experiment.runs.iter().zip(&results.outcomes) {
        if outcome.scenario.sources.iter().any(|s| s.high_share > 0.0) {
            for (high, label) in [(true, "high"), (false, "low")] {
                add(format!("{}, {label}", run.series), (run.x, class_gbps(outcome, high)));
            }
        } else {
            add(run.series.clone(), (run.x, outcome.delivered_bps() / 1e9));
        }
    }
    all
}

fn class_gbps(outcome: &Outcome, high: bool) -> f64 {
    outcome.delivered_bps_of(|key| key.2 == high) / 1e9
}
