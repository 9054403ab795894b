//! Which part of a trace is wanted, by its timestamps.

use causeway_engine::Conf;
use causeway_engine::value::Nanoseconds;

/// A point in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// Nanoseconds since the epoch.
    At(u64),
    /// Nanoseconds after the trace's first packet.
    AfterFirst(u64),
    /// Nanoseconds after the first packet of the part that is wanted.
    AfterStart(u64),
}

/// Where a packet lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the part that is wanted.
    Before,
    /// In it.
    Inside,
    /// Behind it, and so is all that follows.
    Behind,
}

/// The part of a trace between two points.
#[derive(Clone, Debug, Default)]
pub(super) struct Range {
    start: Option<Point>,
    end: Option<Point>,
    first_ns: Option<u64>,
    started_ns: Option<u64>,
}

impl Range {
    /// The part from `start` to before `end`; `None` = where the trace does.
    pub(super) fn new(start: Option<Point>, end: Option<Point>) -> Range {
        Range { start, end, ..Range::default() }
    }

    /// Lets the part end later by `more_ns`, if it ends.
    pub(super) fn extend(&mut self, more_ns: u64) {
        if let Some(Point::At(ns) | Point::AfterFirst(ns) | Point::AfterStart(ns)) = &mut self.end {
            *ns = ns.saturating_add(more_ns);
        }
    }

    /// Where the next packet of the trace lies, which was captured at `ns`.
    pub(super) fn place(&mut self, ns: u64) -> Place {
        let first_ns = *self.first_ns.get_or_insert(ns);
        let started_ns = self.started_ns;
        let point_ns = |point| match point {
            Point::At(at) => at,
            Point::AfterFirst(after) => first_ns.saturating_add(after),
            Point::AfterStart(after) => started_ns.map_or(u64::MAX, |s| s.saturating_add(after)),
        };
        if self.start.is_some_and(|start| ns < point_ns(start)) {
            return Place::Before;
        }
        if self.end.is_some_and(|end| ns >= point_ns(end)) {
            return Place::Behind;
        }
        self.started_ns.get_or_insert(ns);
        Place::Inside
    }
}

/// A keyword, the time that was given for it, and the point that this means.
pub(super) type Choice<'a> = (&'a str, Option<Nanoseconds>, fn(u64) -> Point);

/// The point that one of some keywords gives; an error if several do.
pub(super) fn one_of<const N: usize>(conf: &mut Conf<'_>, keywords: [Choice<'_>; N]) -> Option<Point> {
    let mut points = keywords.iter().filter_map(|(_, given, point)| Some(point(given.as_ref()?.0)));
    let first = points.next();
    if points.next().is_some() {
        let names = keywords.map(|(name, ..)| name);
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        let comma = if N > 2 { "," } else { "" };
        conf.error(format!("{}{comma} and {last} are mutually exclusive", others.join(", ")));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use Place::{Before, Behind, Inside};

    fn places(start: Option<Point>, end: Option<Point>) -> Vec<Place> {
        let mut range = Range::new(start, end);
        [10, 20, 30, 40, 50].map(|ns| range.place(ns)).to_vec()
    }

    #[test]
    fn points_are_absolute_or_relative() {
        assert_eq!(places(None, None), [Inside; 5]);
        assert_eq!(places(Some(Point::At(30)), None), [Before, Before, Inside, Inside, Inside]);
        assert_eq!(
            places(Some(Point::AfterFirst(5)), Some(Point::At(40))),
            [Before, Inside, Inside, Behind, Behind]
        );
        assert_eq!(places(None, Some(Point::AfterFirst(10))), [Inside, Behind, Behind, Behind, Behind]);
        assert_eq!(
            places(Some(Point::At(20)), Some(Point::AfterStart(20))),
            [Before, Inside, Inside, Behind, Behind]
        );
    }
}
