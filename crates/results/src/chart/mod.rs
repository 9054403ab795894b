//! Charts: what is shown, apart from how it is drawn.
//!
//! A [`Chart`] holds values with their quantity and unit, never colours or places. [`Chart::svg`] draws it: axes end at
//! round numbers and say quantity and unit, what has repetitions has its interval as a bar, and the colours follow
//! the reader's choice of light or dark.

mod draw;
mod scale;
pub(crate) mod style;

use crate::document::{Axis, Series, Source};
use crate::stats::{self, Interval, SEED};
use std::fmt;

/// A picture of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Where the numbers come from; the axis of the values says it.
    pub source: Source,
    /// Quantity and unit of the values.
    pub values: Axis,
    /// How the values are laid out.
    pub scale: Scale,
    /// The values.
    pub plot: Plot,
}

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Each step multiplies by as much, the ticks by this base. Values that are not above zero are left out.
    Logarithmic(u32),
}

/// The values of a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Lines over an axis.
    Lines {
        /// What varies along the lines.
        x: Axis,
        /// How it is laid out.
        x_scale: Scale,
        /// The lines.
        lines: Vec<Line>,
    },
    /// Parts of a whole over an axis: areas on top of each other, the first at the bottom. Points of one place have one x.
    Stack {
        /// What varies along the areas.
        x: Axis,
        /// The parts.
        parts: Vec<Line>,
    },
    /// Lying bars in groups: one under the other, since their names are long.
    Bars {
        /// The names of the groups.
        groups: Vec<String>,
        /// The bars that each group has.
        bars: Vec<Bar>,
    },
}

/// A line through points, or the points alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// The points by rising x.
    pub points: Vec<(f64, Value)>,
    /// Whether they are joined: single numbers, such as those of a paper's text, are no curve.
    pub joined: bool,
}

/// A bar in each group.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// In the legend.
    pub name: String,
    /// The value of each group, if it has one.
    pub values: Vec<Option<Value>>,
}

/// A value and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// What is drawn.
    pub value: f64,
    /// Where it lies, if that is known.
    pub interval: Option<Interval>,
}

/// A chart that could not be drawn: it has no room for what it is to show.
#[derive(Debug)]
pub struct DrawError(String);

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot draw the chart: {}", self.0)
    }
}

impl std::error::Error for DrawError {}

impl Value {
    /// The median of repetitions and its 95 % interval; a single one has none. `None` without repetitions.
    pub fn of(repetitions: &[f64]) -> Option<Value> {
        let value = stats::median(repetitions)?;
        Some(Value { value, interval: stats::median_interval(repetitions, SEED) })
    }

    /// A value without repetitions.
    pub fn exact(value: f64) -> Value {
        Value { value, interval: None }
    }

    /// The ends of the interval, or the value.
    fn ends(self) -> [f64; 2] {
        self.interval.map_or([self.value; 2], |interval| [interval.low, interval.high])
    }

    fn is_finite(self) -> bool {
        self.value.is_finite() && self.ends().iter().all(|end| end.is_finite())
    }
}

impl Line {
    /// The line through a series' medians.
    pub fn of(name: &str, series: &Series) -> Line {
        let point = |one: &crate::document::Measurement| Some((one.x?, Value::of(&one.repetitions)?));
        let points = series.measurements.iter().filter_map(point).collect();
        Line { name: name.to_owned(), points, joined: true }
    }
}

impl Chart {
    /// The chart as an SVG document.
    ///
    /// # Errors
    /// If there is no room, as for thousands of lines in a legend.
    pub fn svg(&self) -> Result<String, DrawError> {
        draw::svg(self)
    }
}

#[cfg(test)]
mod tests;
