//! The experiments' charts, from the document.

use causeway_results::chart::{Chart, DrawError, Line, Plot, Scale};
use causeway_results::{Axis, Document, Source};

use super::experiments::Experiment;

/// What the experiment shows, against its x.
///
/// # Errors
/// Those of drawing.
pub fn svg(experiment: &Experiment, document: &Document) -> Result<String, DrawError> {
    let mut lines = Vec::new();
    let mut values = None;
    for series in experiment.series_names() {
        for quantity in experiment.plotted {
            let found = document.series(&format!("{}/{series}/{quantity}", experiment.name));
            let Some(found) = found else { continue };
            let class = quantity.split_once(' ').map_or(String::new(), |(_, class)| format!(", {class}"));
            lines.push(Line::of(&format!("{series}{class}"), found));
            values = Some(Axis { quantity: found.quantity.clone(), unit: found.unit.clone() });
        }
    }
    let chart = Chart {
        title: experiment.name.into(),
        source: Source::Modelled,
        values: values.unwrap_or(Axis { quantity: String::new(), unit: String::new() }),
        scale: Scale::Linear,
        plot: Plot::Lines {
            x: experiment.axis().unwrap_or(Axis { quantity: String::new(), unit: String::new() }),
            x_scale: Scale::Linear,
            lines,
        },
    };
    chart.svg()
}
