//! Series of the common format that are modelled.

use causeway_results::{Axis, Measurement, Series, Source};

/// A series with quantity and unit, and what varies along it where points have a place: the places and the repetitions there.
pub(crate) fn modelled(
    name: impl Into<String>,
    [quantity, unit]: [&str; 2],
    along: [&str; 2],
    values: Vec<(Option<f64>, Vec<f64>)>,
) -> Series {
    let axis = || Axis { quantity: along[0].to_owned(), unit: along[1].to_owned() };
    let measurement =
        |(x, repetitions)| Measurement { x, source: Source::Modelled, repetitions, note: String::new() };
    Series {
        name: name.into(),
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        x: values.iter().any(|(x, _)| x.is_some()).then(axis),
        baseline: None,
        measurements: values.into_iter().map(measurement).collect(),
    }
}
