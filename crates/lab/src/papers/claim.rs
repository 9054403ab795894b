//! What the papers found, as something that measurements show or do not.

use super::chart::{Shows, lines};
use causeway_results::Document;
use causeway_results::chart::Line;
use std::fmt;

/// A finding: a ratio of two points of curves, and where it lies if it is as in the paper.
#[derive(Debug)]
pub struct Claim {
    /// The finding in words.
    pub says: &'static str,
    /// Whose curves they are.
    pub shows: Shows,
    /// A curve's name, and where on it.
    pub of: (&'static str, At),
    /// That of which the first is a part.
    pub to: (&'static str, At),
    /// The lowest and the highest ratio.
    pub between: (f64, f64),
}

/// A place on a curve.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// At the lowest load, or the shortest frames.
    First,
    /// At the highest load, or the longest frames.
    Last,
    /// Where it is highest.
    Peak,
    /// At this load in thousands, or frame length.
    X(f64),
}

/// Whether a finding is seen, and by what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The ratio.
    pub ratio: f64,
    /// Where it lies if it is as in the paper.
    pub between: (f64, f64),
}

/// The curve of a router ends at no more than this part of its peak.
pub const fn fall(says: &'static str, router: &'static str, part: f64) -> Claim {
    let (of, to) = ((router, At::Last), (router, At::Peak));
    Claim { says, shows: Shows::Loads, of, to, between: (0.0, part) }
}

/// The curve of a router ends where its peak is.
pub const fn stay(says: &'static str, router: &'static str) -> Claim {
    Claim { between: (0.9, 1.0), ..fall(says, router, 1.0) }
}

/// So many times as much is forwarded by the first router as by the second, of the highest load.
pub const fn more(says: &'static str, routers: [&'static str; 2], between: (f64, f64)) -> Claim {
    let [of, to] = routers;
    Claim { says, shows: Shows::Loads, of: (of, At::Last), to: (to, At::Last), between }
}

impl Claim {
    /// What a document says of it; `None` if it does not have both points.
    pub fn found(&self, document: &Document) -> Option<Found> {
        let value = |(name, at)| {
            lines(self.shows, document).find(|line| line.name == name).and_then(|line| point(&line, at))
        };
        let (of, to) = (value(self.of)?, value(self.to)?);
        (to > 0.0).then(|| Found { ratio: of / to, between: self.between })
    }
}

impl Found {
    /// Whether it is as in the paper.
    pub fn holds(&self) -> bool {
        (self.between.0..=self.between.1).contains(&self.ratio)
    }

    /// Where the ratio lies if it is as in the paper, for people.
    pub fn bounds(&self) -> String {
        match self.between {
            (low, f64::INFINITY) => format!("at least {low}"),
            (0.0, high) => format!("at most {high}"),
            (low, high) => format!("{low} to {high}"),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = if self.holds() { "yes" } else { "no" };
        write!(f, "{seen}, {:.2} ({})", self.ratio, self.bounds())
    }
}

fn point(line: &Line, at: At) -> Option<f64> {
    let by_x = |a: &&(f64, _), b: &&(f64, _)| a.0.total_cmp(&b.0);
    let points = line.points.iter();
    let found = match at {
        At::First => points.min_by(by_x),
        At::Last => points.max_by(by_x),
        At::Peak => points.max_by(|a, b| a.1.value.total_cmp(&b.1.value)),
        At::X(x) => points.into_iter().find(|point| point.0 == x),
    };
    found.map(|(_, value)| value.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::{Axis, Measurement, Run, Series};

    fn document(curves: &[(&str, &[(f64, f64)])]) -> Document {
        let mut document = Document::new(Run::default());
        for (router, points) in curves {
            let name = format!("{router}/64 bytes/forwarding rate");
            let mut series =
                Series::single(&name, "forwarding rate", "frames/s", Measurement::measured([0.0]));
            series.x = Some(Axis { quantity: "offered load".to_owned(), unit: "frames/s".to_owned() });
            let measured =
                |&(x, y): &(f64, f64)| Measurement { x: Some(x), ..Measurement::measured(vec![y]) };
            series.measurements = points.iter().map(measured).collect();
            document.series.push(series);
        }
        document
    }

    #[test]
    fn a_curve_that_falls_does_not_stay() {
        let seen =
            document(&[("a", &[(1e5, 1e5), (2e5, 2e5), (3e5, 0.5e5)]), ("b", &[(1e5, 1e5), (3e5, 1e5)])]);
        let found = |claim: Claim| claim.found(&seen).map(|found| (found.ratio, found.holds()));
        assert_eq!(found(fall("", "a", 0.5)), Some((0.25, true)));
        assert_eq!(found(stay("", "a")), Some((0.25, false)));
        assert_eq!(found(fall("", "b", 0.5)), Some((1.0, false)));
        assert_eq!(found(stay("", "b")), Some((1.0, true)));
        assert_eq!(found(more("", ["b", "a"], (1.5, 2.5))), Some((2.0, true)));
        assert_eq!(found(more("", ["b", "c"], (1.5, 2.5))), None, "nobody knows c");
        let at = |x| Claim { of: ("a", At::X(x)), to: ("a", At::First), ..stay("", "a") };
        assert_eq!(found(at(200.0)), Some((2.0, false)), "loads are in thousands");
        assert_eq!(found(at(250.0)), None);
    }

    #[test]
    fn what_is_found_says_what_the_paper_has() {
        let text = |ratio, between| Found { ratio, between }.to_string();
        assert_eq!(text(0.254, (0.0, 0.5)), "yes, 0.25 (at most 0.5)");
        assert_eq!(text(2.0, (0.9, 1.1)), "no, 2.00 (0.9 to 1.1)");
        assert_eq!(text(1.5, (1.03, f64::INFINITY)), "yes, 1.50 (at least 1.03)");
    }
}
