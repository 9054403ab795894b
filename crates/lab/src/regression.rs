//! Two documents of the same measurements, an older and a newer: what became better or worse.

use causeway_results::stats::{self, Comparison, SEED};
use causeway_results::{Document, Measurement, Series};

/// Units of which less is better; of all others, more is.
const LESS_IS_BETTER: [&str; 7] = ["ns", "us", "ms", "s", "cycles", "bytes", ""];

/// One measurement in both.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The series, with the place in it if it has several.
    pub name: String,
    /// The unit of both.
    pub unit: String,
    /// The older median.
    pub old: f64,
    /// The newer one.
    pub new: f64,
    /// The newer as a multiple of the older.
    pub ratio: f64,
    /// Whether the two differ for certain, by the 95 % interval of the ratio; not known without repetitions.
    pub differs: Option<bool>,
    /// How much better the newer is, as a part of the older; negative if it is worse.
    pub gain: f64,
}

impl Change {
    /// Whether it is worse by more than `part`, and not by chance as far as that is known.
    pub fn is_worse_by(&self, part: f64) -> bool {
        self.gain < -part && self.differs != Some(false)
    }
}

/// What both documents have and is not a trace of a search, in the order of the newer.
pub fn changes(old: &Document, new: &Document) -> Vec<Change> {
    let of = |series: &Series| -> Vec<Change> {
        let Some(before) = old.series(&series.name).filter(|before| before.unit == series.unit) else {
            return Vec::new();
        };
        let pair = |one: &Measurement| {
            let other = before.measurements.iter().find(|other| other.x == one.x)?;
            change(series, one, other)
        };
        series.measurements.iter().filter_map(pair).collect()
    };
    // Which loads a search tried says nothing of the device.
    let told = |series: &&Series| series.x.as_ref().is_none_or(|axis| axis.quantity != "trial");
    new.series.iter().filter(told).flat_map(of).collect()
}

fn change(series: &Series, new: &Measurement, old: &Measurement) -> Option<Change> {
    let (before, after) = (stats::median(&old.repetitions)?, stats::median(&new.repetitions)?);
    if before == 0.0 {
        // Nothing is a multiple of it.
        return None;
    }
    let paired: Option<Comparison> = stats::compare(&new.repetitions, &old.repetitions, SEED);
    let ratio = after / before;
    let gain = if LESS_IS_BETTER.contains(&series.unit.as_str()) { 1.0 - ratio } else { ratio - 1.0 };
    let place = match (new.x, &series.x) {
        (Some(x), Some(axis)) => format!(" at {x} {}", axis.unit),
        _ => String::new(),
    };
    Some(Change {
        name: format!("{}{}", series.name, place.trim_end()),
        unit: series.unit.clone(),
        old: before,
        new: after,
        ratio,
        differs: paired.and_then(|c| c.interval.map(|_| c.differs())),
        gain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::{Axis, Run};

    fn document(series: &[(&str, &str, &[f64])]) -> Document {
        let mut document = Document::new(Run::default());
        for (name, unit, values) in series {
            document.series.push(Series::single(name, "quantity", unit, Measurement::measured(*values)));
        }
        document
    }

    #[test]
    fn rates_should_rise_and_times_should_fall() {
        let old =
            document(&[("rate", "frames/s", &[100.0]), ("delay", "us", &[10.0]), ("gone", "us", &[1.0])]);
        let new =
            document(&[("rate", "frames/s", &[96.0]), ("delay", "us", &[9.0]), ("fresh", "us", &[1.0])]);
        let found = changes(&old, &new);
        let gains: Vec<_> = found.iter().map(|c| (c.name.as_str(), (c.gain * 100.0).round())).collect();
        assert_eq!(gains, [("rate", -4.0), ("delay", 10.0)]);
        assert!(found[0].is_worse_by(0.03) && !found[0].is_worse_by(0.05) && !found[1].is_worse_by(0.03));
    }

    #[test]
    fn what_may_be_chance_is_no_loss() {
        let old = document(&[("rate", "frames/s", &[100.0, 120.0, 80.0, 110.0, 90.0])]);
        let noisy = document(&[("rate", "frames/s", &[95.0, 70.0, 130.0, 95.0, 100.0])]);
        let found = &changes(&old, &noisy)[0];
        assert_eq!((found.differs, found.is_worse_by(0.03)), (Some(false), false));
        let slower = document(&[("rate", "frames/s", &[90.0, 108.0, 72.0, 99.0, 81.0])]);
        let found = &changes(&old, &slower)[0];
        assert_eq!((found.differs, found.is_worse_by(0.03)), (Some(true), true));
    }

    #[test]
    fn points_are_compared_where_they_lie_and_traces_are_not() {
        let mut old = document(&[("curve", "frames/s", &[1.0]), ("trace", "frames/s", &[1.0])]);
        for (series, quantity) in old.series.iter_mut().zip(["frame length", "trial"]) {
            series.x = Some(Axis { quantity: quantity.to_owned(), unit: "bytes".to_owned() });
            series.measurements[0].x = Some(64.0);
        }
        let mut new = old.clone();
        new.series[0].measurements[0].repetitions = vec![2.0];
        let found = changes(&old, &new);
        assert_eq!(
            found.iter().map(|c| (c.name.as_str(), c.ratio)).collect::<Vec<_>>(),
            [("curve at 64 bytes", 2.0)]
        );
        new.series[0].measurements[0].x = Some(65.0);
        assert!(changes(&old, &new).is_empty());
    }
}
