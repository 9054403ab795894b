//! What the papers found, as something that measurements show, do not show, or cannot tell.

use super::chart::{Points, Shows, curves};
use causeway_results::Document;
use causeway_results::stats::{Comparison, SEED, compare, median};
use std::fmt;

/// A finding: a ratio of two points of curves, or a point alone, and where it lies if it is as in the paper.
#[derive(Debug)]
pub struct Claim {
    /// The finding in words.
    pub says: &'static str,
    /// Whose curves they are.
    pub shows: Shows,
    /// A curve's name, and where on it.
    pub of: (&'static str, At),
    /// That of which the first is a part; [`ITSELF`] if the value of the first is what the paper has.
    pub to: (&'static str, At),
    /// The lowest and the highest ratio.
    pub between: (f64, f64),
}

/// Repetitions without which nothing is told: all that four say of a median is that it is between their ends, in 7 of 8 cases.
const LEAST: usize = 5;

/// In the place of a second point: the value of the first is no ratio.
pub const ITSELF: (&str, At) = ("", At::One);

/// A place on a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// At the lowest load, or the shortest frames.
    First,
    /// At the highest load, or the longest frames.
    Last,
    /// Where it is highest.
    Peak,
    /// At this load in thousands, or frame length.
    X(f64),
    /// Nowhere: 1.
    One,
}

/// What a finding measured here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The ratio with its interval, of repetitions that were made in turns; `None` if there is none, such as of a zero.
    pub seen: Option<Comparison>,
    /// Where it lies if it is as in the paper.
    pub between: (f64, f64),
}

/// Whether a finding is seen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of the interval is where the paper has it.
    Seen,
    /// None of it is.
    NotSeen,
    /// A part of it is, or there are too few repetitions for one.
    Unknown,
}

/// The curve of a router ends at no more than this part of its peak.
pub const fn fall(says: &'static str, router: &'static str, part: f64) -> Claim {
    let (of, to) = ((router, At::Last), (router, At::Peak));
    Claim { says, shows: Shows::Loads, of, to, between: (0.0, part) }
}

/// The curve of a router ends where its peak is. No upper bound: the repetitions of a flat curve are above its peak as often
/// as below.
pub const fn stay(says: &'static str, router: &'static str) -> Claim {
    Claim { between: (0.9, f64::INFINITY), ..fall(says, router, 1.0) }
}

/// So many times as much is forwarded by the first router as by the second, of the highest load.
pub const fn more(says: &'static str, routers: [&'static str; 2], between: (f64, f64)) -> Claim {
    last(says, Shows::Loads, routers, between)
}

/// So many times as much has the first curve of the second where both end.
pub const fn last(says: &'static str, shows: Shows, curves: [&'static str; 2], between: (f64, f64)) -> Claim {
    let [of, to] = curves;
    Claim { says, shows, of: (of, At::Last), to: (to, At::Last), between }
}

impl Claim {
    /// What a document says of it; `None` if it does not have both points.
    pub fn found(&self, document: &Document) -> Option<Found> {
        let point = |(name, at)| {
            curves(self.shows, document)
                .find(|(line, _)| line == name)
                .and_then(|(_, curve)| point(&curve, at))
        };
        let of = point(self.of)?;
        let to = if self.to == ITSELF { vec![1.0; of.len()] } else { point(self.to)? };
        let interval = |seen: Comparison| seen.interval.filter(|_| of.len() >= LEAST);
        let seen = compare(&of, &to, SEED).map(|seen| Comparison { interval: interval(seen), ..seen });
        Some(Found { seen, between: self.between })
    }
}

impl Found {
    /// Whether it is seen.
    pub fn verdict(&self) -> Verdict {
        let (lowest, highest) = self.between;
        match self.seen.and_then(|seen| seen.interval) {
            Some(it) if it.low >= lowest && it.high <= highest => Verdict::Seen,
            Some(it) if it.high < lowest || it.low > highest => Verdict::NotSeen,
            _ => Verdict::Unknown,
        }
    }

    /// The ratio for people.
    pub fn ratio(&self) -> String {
        self.seen.map_or("-".to_owned(), |seen| number(seen.ratio))
    }

    /// Where the ratio lies with a confidence of 95 %, for people.
    pub fn interval(&self) -> String {
        let interval = self.seen.and_then(|seen| seen.interval);
        interval.map_or("-".to_owned(), |it| format!("{} to {}", number(it.low), number(it.high)))
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Seen => "yes",
            Verdict::NotSeen => "no",
            Verdict::Unknown => "cannot be told",
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verdict, ratio, interval) = (self.verdict(), self.ratio(), self.interval());
        write!(f, "{verdict}, {ratio} [{interval}] ({})", self.bounds())
    }
}

/// With two places, or as many as two digits of a small number take.
fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !size.is_finite() {
        return value.to_string();
    }
    let places = if size < 0.1 { 1 - size.log10().floor() as i32 } else { 2 };
    format!("{value:.*}", places.clamp(2, 12) as usize)
}

/// The repetitions at a place of a curve.
fn point(curve: &Points, at: At) -> Option<Vec<f64>> {
    let by_x = |a: &&(f64, _), b: &&(f64, _)| a.0.total_cmp(&b.0);
    let height = |point: &(f64, Vec<f64>)| median(&point.1).unwrap_or(f64::NEG_INFINITY);
    let mut points = curve.iter();
    let found = match at {
        At::First => points.min_by(by_x),
        At::Last => points.max_by(by_x),
        At::Peak => points.max_by(|a, b| height(a).total_cmp(&height(b))),
        At::X(x) => points.find(|point| point.0 == x),
        At::One => None,
    };
    found.map(|(_, repetitions)| repetitions.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::stats::Interval;
    use causeway_results::{Axis, Measurement, Run, Series};

    /// A router's name, and at each load the repetitions.
    type Measured<'a> = (&'a str, &'a [(f64, &'a [f64])]);

    fn document(curves: &[Measured<'_>]) -> Document {
        let mut document = Document::new(Run::default());
        for (router, points) in curves {
            let name = format!("{router}/64 bytes/forwarding rate");
            let mut series =
                Series::single(&name, "forwarding rate", "frames/s", Measurement::measured([0.0]));
            series.x = Some(Axis { quantity: "offered load".to_owned(), unit: "frames/s".to_owned() });
            let measured =
                |&(x, y): &(f64, &[f64])| Measurement { x: Some(x), ..Measurement::measured(y.to_vec()) };
            series.measurements = points.iter().map(measured).collect();
            document.series.push(series);
        }
        document
    }

    #[test]
    fn a_curve_that_falls_does_not_stay() {
        use Verdict::{NotSeen, Seen};
        let a: &[(f64, &[f64])] = &[(1e5, &[1e5; 5]), (2e5, &[2e5; 5]), (3e5, &[0.5e5; 5])];
        let seen = document(&[("a", a), ("b", &[(1e5, &[1e5; 5]), (3e5, &[1e5; 5])])]);
        let found = |claim: Claim| {
            claim.found(&seen).map(|found| (found.seen.expect("a ratio").ratio, found.verdict()))
        };
        assert_eq!(found(fall("", "a", 0.5)), Some((0.25, Seen)));
        assert_eq!(found(stay("", "a")), Some((0.25, NotSeen)));
        assert_eq!(found(fall("", "b", 0.5)), Some((1.0, NotSeen)));
        assert_eq!(found(stay("", "b")), Some((1.0, Seen)));
        assert_eq!(found(more("", ["b", "a"], (1.5, 2.5))), Some((2.0, Seen)));
        assert_eq!(found(more("", ["b", "c"], (1.5, 2.5))), None, "nobody knows c");
        let at = |x| Claim { of: ("a", At::X(x)), to: ("a", At::First), ..stay("", "a") };
        assert_eq!(found(at(200.0)), Some((2.0, Seen)), "loads are in thousands");
        assert_eq!(found(at(250.0)), None);
        let itself = Claim { of: ("a", At::Last), to: ITSELF, between: (40.0, 60.0), ..stay("", "a") };
        assert_eq!(found(itself), Some((50.0, Seen)), "rates are in thousands");
    }

    #[test]
    fn what_repetitions_do_not_agree_on_cannot_be_told() {
        let verdict = |of: &[f64], to: &[f64], between| {
            let seen = document(&[("a", &[(1e5, of)]), ("b", &[(1e5, to)])]);
            more("", ["a", "b"], between).found(&seen).expect("both points").verdict()
        };
        let (slow, fast): (&[f64], &[f64]) = (&[1e5, 2e5, 4e5, 1e5, 1e5], &[2e5, 4e5, 8e5, 2e5, 2e5]);
        // Far apart, but always by the same factor, because both were measured in turns.
        assert_eq!(verdict(fast, slow, (1.8, 2.2)), Verdict::Seen);
        assert_eq!(verdict(fast, slow, (0.0, 1.0)), Verdict::NotSeen);
        let other: &[f64] = &[3e5, 4e5, 5e5, 1.5e5, 2e5];
        assert_eq!(verdict(other, slow, (1.8, 2.2)), Verdict::Unknown, "from 1.25 to 3 times");
        assert_eq!(verdict(other, slow, (0.0, 2.0)), Verdict::Unknown, "the median is a bound");
        for few in [1, 4] {
            assert_eq!(verdict(&fast[..few], &slow[..few], (1.8, 2.2)), Verdict::Unknown, "{few} say little");
        }
        assert_eq!(verdict(other, &[1e5; 2], (1.8, 2.2)), Verdict::Unknown, "these are no pairs");
        assert_eq!(verdict(other, &[0.0; 5], (1.8, 2.2)), Verdict::Unknown, "nothing is a part of zero");
    }

    #[test]
    fn what_is_found_says_what_the_paper_has() {
        let text = |ratio, by: f64, between| {
            let interval = Interval { low: ratio - by, high: ratio + by };
            let seen = Some(Comparison { ratio, interval: Some(interval) });
            Found { seen, between }.to_string()
        };
        assert_eq!(text(0.254, 0.01, (0.0, 0.5)), "yes, 0.25 [0.24 to 0.26] (at most 0.5)");
        assert_eq!(text(2.0, 0.5, (0.9, 1.1)), "no, 2.00 [1.50 to 2.50] (0.9 to 1.1)");
        assert_eq!(
            text(1.0, 0.25, (1.03, f64::INFINITY)),
            "cannot be told, 1.00 [0.75 to 1.25] (at least 1.03)"
        );
        assert_eq!(
            Found { seen: None, between: (0.0, 1.0) }.to_string(),
            "cannot be told, - [-] (at most 1)"
        );
        let numbers = [0.0, 0.000_234, 0.0196, 0.099_6, 0.1, 12.0].map(number);
        assert_eq!(numbers, ["0", "0.00023", "0.020", "0.100", "0.10", "12.00"]);
    }
}
