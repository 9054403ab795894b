//! Two documents of the same measurements, an older and a newer: what became better or worse.

use causeway_results::stats::{self, SEED};
use causeway_results::{Document, Measurement, Series};

/// Which way a quantity is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The more of it the better.
    More,
    /// The less of it the better.
    Less,
    /// It says how a device works and not how well.
    Neither,
}

/// Quantities of which more is better.
const MORE: [&str; 10] = [
    "load",
    "conditional throughput",
    "forwarding rate",
    "forwarding rate of a flood",
    "packets a second of processor time",
    "ratio of rates",
    "Jain's index",
    "frames of a burst",
    "corrected buffer time",
    "updates",
];

/// Quantities of which less is better; "rate" and "processor time" alone mean several things.
const LESS: [&str; 20] = [
    "delay",
    "delay variation",
    "loss ratio",
    "duplicated frames",
    "reordered frames",
    "corrupt frames",
    "time",
    "effective blocked time",
    "processor time a packet",
    "processor time to fill",
    "time of an update",
    "memory",
    "median",
    "frames lost",
    "frames lost of the node's flows",
    "frames lost of other flows",
    "frames reordered",
    "flows moved of other nodes",
    "time until nothing is lost",
    "time until the front knows",
];

/// How the quantities of benches begin that have more behind it, such as a percentile; less of them is better.
const LESS_BEGIN: [&str; 2] = ["round trip, ", "processor time a lookup, "];

impl Better {
    /// Of a series: by its quantity. Interrupts, packets of a run and the classes of processor time are neither, and so is
    /// what is not known here; what the tester does by itself and what links carry is no device's.
    fn of(series: &Series) -> Better {
        let (quantity, unit) = (series.quantity.as_str(), series.unit.as_str());
        if ["tester, ", "line rate/"].iter().any(|begin| series.name.starts_with(begin)) {
            return Better::Neither;
        }
        match (quantity, unit) {
            ("rate", "Mpps" | "frames/s") => Better::More,
            ("processor time", "ns") => Better::Less,
            _ if MORE.contains(&quantity) => Better::More,
            _ if LESS.contains(&quantity) => Better::Less,
            _ if LESS_BEGIN.iter().any(|begin| quantity.starts_with(begin)) => Better::Less,
            _ => Better::Neither,
        }
    }
}

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
    /// The newer as a multiple of the older; `None` if the older is nothing and the newer is not.
    pub ratio: Option<f64>,
    /// Whether the two differ for certain, by the 95 % interval of the ratio, or of the difference where there is no ratio;
    /// not known without repetitions.
    pub differs: Option<bool>,
    /// How much better the newer is, as a part of the older; negative if it is worse, without end where the older is nothing;
    /// `None` if neither would be better.
    pub gain: Option<f64>,
}

impl Change {
    /// Whether it is worse by more than `part`, and not by chance as far as that is known.
    pub fn is_worse_by(&self, part: f64) -> bool {
        self.gain.is_some_and(|gain| gain < -part) && self.differs != Some(false)
    }

    /// By how many percent the newer is more, for people.
    pub fn percent(&self) -> String {
        self.ratio.map_or_else(
            || "it was 0, of which there is no percentage".to_owned(),
            |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0),
        )
    }
}

/// What both documents have, in the order of the newer, without traces of searches and what is told step by step in time.
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
    // Which loads a search tried says nothing of the device, and a step of a timeline too little.
    let told = |series: &&Series| {
        series.x.as_ref().is_none_or(|axis| !["trial", "time"].contains(&axis.quantity.as_str()))
    };
    new.series.iter().filter(told).flat_map(of).collect()
}

fn change(series: &Series, new: &Measurement, old: &Measurement) -> Option<Change> {
    let (before, after) = (stats::median(&old.repetitions)?, stats::median(&new.repetitions)?);
    let ratio = match (before == 0.0, after == 0.0) {
        (true, true) => Some(1.0),
        (true, false) => None,
        (false, _) => Some(after / before),
    };
    // More, as a part of the older.
    let more = ratio.map_or(f64::INFINITY.copysign(after), |ratio| ratio - 1.0);
    let gain = match Better::of(series) {
        Better::More => Some(more),
        Better::Less => Some(-more),
        Better::Neither => None,
    };
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
        differs: differs(&new.repetitions, &old.repetitions),
        gain,
    })
}

/// Whether two differ for certain: by the ratio of their repetitions, or their difference where one of the older is nothing.
fn differs(new: &[f64], old: &[f64]) -> Option<bool> {
    if !old.contains(&0.0) {
        let found = stats::compare(new, old, SEED)?;
        return found.interval.map(|_| found.differs());
    }
    if new.len() != old.len() {
        return None;
    }
    let differences: Vec<f64> = new.iter().zip(old).map(|(new, old)| new - old).collect();
    stats::median_interval(&differences, SEED).map(|found| found.low > 0.0 || found.high < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::{Axis, Run};

    fn document(series: &[(&str, &str, &str, &[f64])]) -> Document {
        let mut document = Document::new(Run::default());
        for (name, quantity, unit, values) in series {
            document.series.push(Series::single(name, quantity, unit, Measurement::measured(*values)));
        }
        document
    }

    fn rate<'a>(name: &'a str, values: &'a [f64]) -> (&'a str, &'a str, &'a str, &'a [f64]) {
        (name, "forwarding rate", "frames/s", values)
    }

    /// What is said of a quantity that was 10 and is 12.
    fn more(name: &str, quantity: &str, unit: &str) -> Option<f64> {
        let of = |value| document(&[(name, quantity, unit, &[value])]);
        changes(&of(10.0), &of(12.0))[0].gain.map(|gain| (gain * 100.0).round())
    }

    #[test]
    fn what_is_better_is_said_by_the_quantity_and_not_by_the_unit() {
        for (quantity, unit) in [
            ("corrected buffer time", "us"),
            ("Jain's index", ""),
            ("frames of a burst", "frames"),
            ("load", "frames/s"),
            ("rate", "Mpps"),
            ("ratio of rates", ""),
        ] {
            assert_eq!(more("a", quantity, unit), Some(20.0), "more {quantity} is better");
        }
        for (quantity, unit) in [
            ("delay", "us"),
            ("loss ratio", ""),
            ("time", "ms"),
            ("effective blocked time", "ms"),
            ("processor time a packet", "ns"),
            ("processor time", "ns"),
            ("round trip, 99 %", "us"),
            ("frames lost of other flows", "frames"),
        ] {
            assert_eq!(more("a", quantity, unit), Some(-20.0), "less {quantity} is better");
        }
        for (quantity, unit) in [
            ("processor time", "%"),
            ("rate", "a second"),
            ("packets of a run", ""),
            ("availability", "%"),
            ("what nobody knows", "ns"),
        ] {
            assert_eq!(more("a", quantity, unit), None, "{quantity} is neither");
        }
        assert_eq!(more("tester, sent/self-test over a cable", "forwarding rate", "frames/s"), None);
    }

    #[test]
    fn rates_should_rise_and_times_should_fall() {
        let delay = |name, value: &'static [f64]| (name, "delay", "us", value);
        let old = document(&[rate("rate", &[100.0]), delay("delay", &[10.0]), delay("gone", &[1.0])]);
        let new = document(&[rate("rate", &[96.0]), delay("delay", &[9.0]), delay("fresh", &[1.0])]);
        let found = changes(&old, &new);
        let gains: Vec<_> =
            found.iter().map(|c| (c.name.as_str(), c.gain.map(|gain| (gain * 100.0).round()))).collect();
        assert_eq!(gains, [("rate", Some(-4.0)), ("delay", Some(10.0))]);
        assert!(found[0].is_worse_by(0.03) && !found[0].is_worse_by(0.05) && !found[1].is_worse_by(0.03));
        assert_eq!(found[0].percent(), "-4.0 %");
    }

    #[test]
    fn what_was_nothing_and_is_something_is_compared() {
        let of = |loss: &[f64]| document(&[("loss", "loss ratio", "", loss), rate("rate", loss)]);
        let found = changes(&of(&[0.0; 5]), &of(&[0.1, 0.2, 0.1, 0.1, 0.2]));
        assert_eq!((found[0].ratio, found[0].differs), (None, Some(true)));
        assert!(found[0].is_worse_by(1_000.0) && !found[1].is_worse_by(0.0), "a rate rises");
        assert!(found[0].percent().contains("no percentage"));
        // Lost once in five times, which may be chance; and nothing as before.
        let chance = &changes(&of(&[0.0, 0.0, 0.1, 0.0, 0.0]), &of(&[0.1, 0.0, 0.1, 0.2, 0.0]))[0];
        assert_eq!((chance.differs, chance.is_worse_by(0.03)), (Some(false), false));
        let same = &changes(&of(&[0.0]), &of(&[0.0]))[0];
        assert_eq!((same.ratio, same.is_worse_by(0.0)), (Some(1.0), false));
        assert!(!changes(&of(&[0.1]), &of(&[0.0]))[0].is_worse_by(0.0), "it went");
    }

    #[test]
    fn what_may_be_chance_is_no_loss() {
        let old = document(&[rate("rate", &[100.0, 120.0, 80.0, 110.0, 90.0])]);
        let noisy = document(&[rate("rate", &[95.0, 70.0, 130.0, 95.0, 100.0])]);
        let found = &changes(&old, &noisy)[0];
        assert_eq!((found.differs, found.is_worse_by(0.03)), (Some(false), false));
        let slower = document(&[rate("rate", &[90.0, 108.0, 72.0, 99.0, 81.0])]);
        let found = &changes(&old, &slower)[0];
        assert_eq!((found.differs, found.is_worse_by(0.03)), (Some(true), true));
    }

    #[test]
    fn points_are_compared_where_they_lie_and_traces_are_not() {
        let mut old = document(&[rate("curve", &[1.0]), rate("trace", &[1.0]), rate("as it went", &[1.0])]);
        for (series, quantity) in old.series.iter_mut().zip(["frame length", "trial", "time"]) {
            series.x = Some(Axis { quantity: quantity.to_owned(), unit: "bytes".to_owned() });
            series.measurements[0].x = Some(64.0);
        }
        let mut new = old.clone();
        new.series[0].measurements[0].repetitions = vec![2.0];
        let found = changes(&old, &new);
        assert_eq!(
            found.iter().map(|c| (c.name.as_str(), c.ratio)).collect::<Vec<_>>(),
            [("curve at 64 bytes", Some(2.0))]
        );
        new.series[0].measurements[0].x = Some(65.0);
        assert!(changes(&old, &new).is_empty());
    }
}
