//! Whether every number of the papers is a point on a plot of its figure, and lies where the model's are.

use super::report::document;
use super::shown::{factor, on};
use super::{Figure, Found, Number};
use crate::event::{MICROSECOND, MILLISECOND};
use crate::machine::Machine;
use crate::run::Effort;
use causeway_results::html::{self, PAPER};
use causeway_results::{Document, Series, Source};

/// Long enough that something comes out at every point.
const GLANCE: Effort =
    Effort { warm_up_ps: MILLISECOND, window_ps: 500 * MICROSECOND, windows: 2, windows_most: 2 };

fn found(figure: &Figure) -> (Machine, Found) {
    let machine = figure.machine().expect("the machine of the paper");
    let found = figure.run(&machine, 1, GLANCE, None).expect("enough ports");
    (machine, found)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The model's series of a number and the paper's, which are of one quantity, unit and axis, and so on one chart.
fn pair<'a>(document: &'a Document, name: &str) -> (&'a Series, &'a Series) {
    let of = |name: &str| document.series(name).unwrap_or_else(|| panic!("there is no series '{name}'"));
    let (model, paper) = (of(name), of(&format!("{PAPER}{name}")));
    let head = |series: &'a Series| (&series.quantity, &series.unit, &series.x);
    assert_eq!(head(model), head(paper), "{name}");
    assert!(model.x.is_some(), "{name} has an axis");
    (model, paper)
}

/// The number is on the chart, and what the model has of it is a point of the model's series: at the same place, or the highest.
fn is_shown(number: &Number, found: &Found, document: &Document) {
    let (what, x) = (number.what, number.shown.1);
    let (model, paper) = pair(document, &on(number, found));
    let times = factor(number.unit, &model.unit).unwrap_or_else(|| panic!("{what}: {}", model.unit));
    let point = paper.measurements.iter().find(|one| one.x == Some(x)).expect(what);
    assert_eq!(
        (&point.repetitions[..], point.source),
        (&[number.paper * times][..], Source::Measured),
        "{what}"
    );
    assert!(point.note.starts_with(what), "{}", point.note);
    let places = || model.measurements.iter().filter_map(|one| one.x);
    let (least, most) = (places().fold(f64::MAX, f64::min), places().fold(0.0, f64::max));
    assert!((least - 1.0..=most + 1.0).contains(&x), "{what}: {x} is outside of {least} to {most}");
    let value = |one: &causeway_results::Measurement| mean(&one.repetitions);
    let far = |one: &&causeway_results::Measurement| (one.x.unwrap_or(f64::MAX) - x).abs();
    let near = model.measurements.iter().min_by(|a, b| far(a).total_cmp(&far(b))).map(value);
    let highest = model.measurements.iter().map(value).fold(0.0, f64::max);
    let own = (number.of)(found) * times;
    let is = |other: f64| (own - other).abs() <= 1e-6 * own.abs();
    assert!(near.is_some_and(is) || is(highest), "{what}: {own}, but the series has {near:?} or {highest}");
}

#[test]
fn every_number_of_the_papers_is_a_point_on_a_plot_of_its_figure() {
    for figure in Figure::all().filter(|figure| !figure.numbers.is_empty()) {
        let (machine, found) = found(figure);
        let document = document(figure, &found, &machine, 1);
        figure.numbers.iter().for_each(|number| is_shown(number, &found, &document));
        let of_paper = document.series.iter().filter(|series| series.name.starts_with(PAPER));
        assert_eq!(of_paper.map(|series| series.measurements.len()).sum::<usize>(), figure.numbers.len());
        // Rings are points that are not joined: one of each number, and one of each series in the legend.
        let page = html::page(figure.name, &document).expect("a page");
        let (charts, _) = page.split_once("What the numbers depend on").expect("a part");
        let (open, folded) = charts.split_once("Inside, while it was loaded").unwrap_or((charts, ""));
        let series = document.series.iter().filter(|series| series.name.starts_with(PAPER)).count();
        assert_eq!(open.matches("r=\"5\"").count(), figure.numbers.len() + series, "{}", figure.name);
        assert!(!folded.contains("r=\"5\""), "{}: none is folded away", figure.name);
    }
}

#[test]
fn what_is_drawn_beside_curves_is_made_of_them() {
    let (machine, found) = found(Figure::find("LUT-2").expect("a figure"));
    let document = document(Figure::find("LUT-2").expect("a figure"), &found, &machine, 1);
    let entries = |of: &str| {
        let series = document.series(&format!("{of}/entries of the route cache")).expect(of);
        series.measurements.iter().map(|one| (one.x, one.repetitions[0])).collect::<Vec<_>>()
    };
    // An entry for each source, as the paper's Fig. 4 has it: a straight line.
    let line = [1, 256, 1_024, 8_192, 16_384].map(|n| (Some(f64::from(n)), f64::from(n)));
    assert_eq!((&entries("active")[..], &entries("in all")[..]), (&line[..], &line[..]));
}

#[test]
fn points_that_are_less_sure_are_marked_wherever_they_are_told() {
    let figure = Figure::find("OSR-4").expect("a figure");
    let machine = figure.machine().expect("the machine of the paper");
    let hasty = Effort { window_ps: MILLISECOND / 50, windows: 3, windows_most: 3, ..GLANCE };
    let found = figure.run(&machine, 1, hasty, None).expect("enough ports");
    let document = document(figure, &found, &machine, 1);
    let outcomes = found.curve("napi");
    let series = document.series("napi/64 bytes/forwarding rate").expect("a curve");
    for (one, outcome) in series.measurements.iter().zip(outcomes) {
        assert_eq!(
            one.note.starts_with("less sure than others: after 3 windows"),
            !outcome.sure,
            "{}",
            one.note
        );
    }
    let count = outcomes.iter().filter(|outcome| !outcome.sure).count();
    assert!(count > 0, "some are");
    let told = |text: &str| text.matches("napi at ").count();
    assert_eq!(told(&document.run.settings["less sure"]), count);
    assert_eq!(told(&super::lines(figure, &found).join("\n")), count);
    let page = html::page("t", &document).expect("a page");
    assert_eq!(page.split("Everything").next().map(told), Some(count), "where the numbers depend on what");
}
