//! An experiment as pictures, with the points of the paper's curves beside what was measured.

use super::Picture;
use crate::inside::IDLE_DIFFERENCE;
use causeway_results::chart::{Chart, Line, Plot, Scale, Value};
use causeway_results::{Axis, Document, Measurement, Series, Source};

const THOUSAND: f64 = 1e3;
/// How the line of what max-min fairness would give a flow is called, behind the flow's name.
const SHARE: &str = ", its max-min share";

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Each router's forwarding rate, against the offered load.
    Loads,
    /// Each router's forwarding rate at saturation, against the frame length.
    Lengths,
    /// The forwarding rate at saturation of a kind of router, against the number of flows that its name ends with.
    Numbers,
    /// What each device received or sent by itself, against the offered load.
    Alone,
    /// The same at the highest load, against the number of ports that its router's name ends in.
    Ports,
    /// Entries of each router's cache after the highest load, against the number of addresses that its name ends in.
    Entries,
    /// Each flow's forwarding rate and what max-min fairness would give it, against the offered load.
    Flows,
    /// How near each router is to max-min fairness, against the offered load.
    Fairness,
    /// Each router's median delay, against the offered load.
    Delay,
    /// How much of its time each processor has to spare, against the offered load.
    Availability,
    /// Interrupts that each router takes at each port, against the offered load.
    Interrupts,
    /// Polls of a received packet at each port, against the offered load.
    Polls,
    /// Processor time by class of function, against the offered load.
    Profile,
}

impl Shows {
    /// Quantity and unit of the values, and how many of the document's are one of them.
    fn values(self) -> (&'static str, &'static str, f64) {
        match self {
            Shows::Loads | Shows::Lengths | Shows::Numbers | Shows::Flows => {
                ("forwarding rate", "kframes/s", THOUSAND)
            }
            Shows::Alone | Shows::Ports => ("rate", "kframes/s", THOUSAND),
            Shows::Entries => ("entries of the cache", "", 1.0),
            Shows::Fairness => ("Jain's index", "", 1.0),
            Shows::Delay => ("median delay", "us", 1.0),
            Shows::Availability => ("availability", "%", 1.0),
            Shows::Interrupts => ("interrupts", "thousands a second", THOUSAND),
            Shows::Polls => ("polls of a packet", "", 1.0),
            Shows::Profile => ("processor time", "%", 1.0),
        }
    }

    /// What a series is called in the picture, if it belongs there.
    fn line_name(self, series: &Series) -> Option<String> {
        let name = series.name.as_str();
        // What is seen inside: `which/inside router, length: what`.
        let inside = |what: &str| {
            let (which, rest) = name.strip_suffix(&format!(": {what}"))?.split_once("/inside ")?;
            Some((which, rest.rsplit_once(", ")?.0))
        };
        let each = |which: &str, router: &str| format!("{router}: {which}");
        Some(match self {
            Shows::Loads | Shows::Alone => {
                name.strip_suffix("/forwarding rate")?.split('/').next()?.to_owned()
            }
            Shows::Lengths | Shows::Numbers | Shows::Ports => {
                name.strip_suffix("/saturation forwarding rate")?.to_owned()
            }
            Shows::Entries => {
                let (router, which) = name.split_once("/entries of the route cache, ")?;
                each(which, router)
            }
            Shows::Flows => match name.strip_suffix(": flows") {
                Some(rest) => rest.split('/').next()?.to_owned(),
                None => format!("{}{SHARE}", name.strip_suffix(": max-min shares")?.split('/').next()?),
            },
            Shows::Fairness => name.strip_suffix("/max-min fairness")?.split('/').next()?.to_owned(),
            Shows::Delay => name.strip_suffix("/median delay")?.split('/').next()?.to_owned(),
            Shows::Availability => inside("availability").map(|(which, router)| each(which, router))?,
            Shows::Interrupts => {
                let (which, router) = inside("taken interrupts")?;
                each(which.strip_suffix(", taken interrupts")?, router)
            }
            Shows::Polls => inside("polls of a packet").map(|(which, router)| each(which, router))?,
            Shows::Profile => {
                let (class, router) = inside("processor time")?;
                (class != IDLE_DIFFERENCE).then(|| each(class, router))?
            }
        })
    }
}

/// The chart of a picture; `None` if nothing was measured that it shows.
pub fn chart(picture: &Picture, about: &str, document: &Document) -> Option<Chart> {
    let (quantity, unit, _) = picture.shows.values();
    // A line that is zero everywhere says nothing, such as the interrupts of a port that only sends.
    let says = |line: &Line| line.points.iter().any(|(_, y)| y.value != 0.0);
    let drawn = curves(picture.shows, document).map(|(name, curve)| line(name, &curve));
    let by_number = matches!(picture.shows, Shows::Numbers | Shows::Ports | Shows::Entries);
    let drawn = if by_number { self::by_number(drawn) } else { drawn.collect() };
    let lines: Vec<Line> =
        drawn.into_iter().filter(|line| line.name.starts_with(picture.of)).filter(says).collect();
    if lines.is_empty() {
        return None;
    }
    let paper = picture.points.iter().map(|(name, points)| Line {
        name: format!("{name} (the paper)"),
        points: points.iter().map(|&(x, y)| (x, Value::exact(y))).collect(),
        joined: false,
    });
    let axis = |quantity: &str, unit: &str| Axis { quantity: quantity.to_owned(), unit: unit.to_owned() };
    Some(Chart {
        title: format!("{}: {about}", picture.figure),
        source: Source::Measured,
        values: axis(quantity, unit),
        scale: Scale::Linear,
        plot: Plot::Lines {
            x: match picture.shows {
                Shows::Lengths => axis("frame length", "bytes"),
                Shows::Numbers => axis("flows", ""),
                Shows::Ports => axis("ports", ""),
                Shows::Entries => axis("addresses", ""),
                _ => axis("offered load", "kframes/s"),
            },
            x_scale: Scale::Linear,
            lines: lines.into_iter().chain(paper).collect(),
        },
    })
}

/// Places of a curve, loads in thousands, each with the repetitions there in the unit of what it shows.
pub type Points = Vec<(f64, Vec<f64>)>;

/// All that is shown of a document, by name.
pub fn curves(shows: Shows, document: &Document) -> impl Iterator<Item = (String, Points)> {
    let (_, _, scale) = shows.values();
    let curve = move |series: &Series| {
        let by_load = series.x.as_ref().is_some_and(|x| x.quantity == "offered load");
        let point = |one: &Measurement| {
            let repetitions = one.repetitions.iter().map(|value| value / scale).collect();
            Some((one.x? / if by_load { THOUSAND } else { 1.0 }, repetitions))
        };
        Some((shows.line_name(series)?, series.measurements.iter().filter_map(point).collect()))
    };
    document.series.iter().filter_map(curve)
}

fn line(name: String, curve: &Points) -> Line {
    let point = |(x, repetitions): &(f64, Vec<f64>)| Some((*x, Value::of(repetitions)?));
    Line { name, points: curve.iter().filter_map(point).collect(), joined: true }
}

/// The lines whose names end in a number of something, `name, 3 ports` or `name, 3 sources: which`, as one line for each name, to
/// which each gives its last point.
fn by_number(lines: impl Iterator<Item = Line>) -> Vec<Line> {
    let mut together: Vec<Line> = Vec::new();
    for line in lines {
        let Some((name, number)) = numbered(&line.name) else { continue };
        let last = line.points.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let Some(point) = last.map(|&(_, value)| (number, value)) else { continue };
        match together.iter_mut().find(|other| other.name == name) {
            Some(other) => other.points.push(point),
            None => together.push(Line { name, points: vec![point], joined: true }),
        }
    }
    together.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    together
}

/// A name without the number that it ends in, and the number.
fn numbered(name: &str) -> Option<(String, f64)> {
    let (base, rest) = name.rsplit_once(", ")?;
    let (number, what) = rest.split_once(' ')?;
    let which = what.split_once(": ").map_or(String::new(), |(_, which)| format!(": {which}"));
    Some((format!("{base}{which}"), number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::experiments;

    fn measured(name: &str, x: &str, points: &[(f64, f64)]) -> Series {
        let at = |&(x, y): &(f64, f64)| Measurement { x: Some(x), ..Measurement::measured([y]) };
        let mut series = Series::single(name, "forwarding rate", "frames/s", Measurement::measured([0.0]));
        series.x = Some(Axis { quantity: x.to_owned(), unit: String::new() });
        series.measurements = points.iter().map(at).collect();
        series
    }

    fn lines(figure: &str, series: Vec<Series>) -> Option<Vec<Line>> {
        let mut document = Document::new(crate::report::begun());
        document.series = series;
        let mut pictures = experiments().flat_map(|one| one.pictures);
        let picture = pictures.find(|one| one.figure == figure).expect("known");
        match chart(picture, "", &document)?.plot {
            Plot::Lines { lines, .. } => Some(lines),
            Plot::Bars { .. } | Plot::Stack { .. } => panic!("lines were expected"),
        }
    }

    fn names(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.name.as_str()).collect()
    }

    #[test]
    fn curves_stand_beside_the_papers_points() {
        let load = measured("napi/64 bytes/forwarding rate", "offered load", &[(5e5, 4e5), (1e6, 4.2e5)]);
        let other = measured("napi/saturation forwarding rate", "frame length", &[(64.0, 4.2e5)]);
        let drawn = lines("OSR-4", vec![load, other]).expect("a chart");
        assert_eq!(drawn[0].points, [(500.0, Value::exact(400.0)), (1000.0, Value::exact(420.0))]);
        let all = ["napi", "interrupt (the paper)", "moderated (the paper)", "napi (the paper)"];
        assert_eq!(names(&drawn), all);
        assert_eq!(drawn[1].points[0], (230.0, Value::exact(230.0)));
    }

    #[test]
    fn lengths_and_flows_have_their_own_series() {
        let rate = || measured("napi/saturation forwarding rate", "frame length", &[(82.0, 4.2e5)]);
        assert_eq!(lines("OSR-5", vec![rate()]).expect("a chart")[0].points, [(82.0, Value::exact(420.0))]);
        let flow = measured("t0 to t1/napi, 64 bytes: flows", "offered load", &[(1e6, 1e5)]);
        assert_eq!(names(&lines("OSR-8", vec![rate(), flow]).expect("a chart"))[0], "t0 to t1");
        assert!(lines("OSR-8", vec![rate()]).is_none(), "nothing to show");
        let flow =
            |what: &str| measured(&format!("t2 to t3/napi, 64 bytes: {what}"), "offered load", &[(1e6, 1e5)]);
        let both = lines("OSR-8", vec![flow("flows"), flow("max-min shares")]).expect("a chart");
        assert_eq!(names(&both)[..2], ["t2 to t3", "t2 to t3, its max-min share"]);
    }

    #[test]
    fn routers_that_differ_in_the_number_of_flows_are_one_line() {
        let of = |router: &str, y| {
            measured(&format!("{router}/saturation forwarding rate"), "frame length", &[(64.0, y)])
        };
        let all = vec![of("kernel, 3 flows", 3e5), of("graph, 1 flow", 1e5), of("kernel, 1 flow", 2e5)];
        let drawn = lines("CvL-6a", all).expect("a chart");
        assert_eq!(names(&drawn)[..2], ["kernel", "graph"]);
        assert_eq!(drawn[0].points, [(1.0, Value::exact(200.0)), (3.0, Value::exact(300.0))]);
    }

    #[test]
    fn what_is_seen_inside_is_by_router_and_place() {
        let inside = |which: &str, what: &str, y| {
            let name = format!("{which}/inside napi, Q 2, 64 bytes: {what}");
            measured(&name, "offered load", &[(1e6, y)])
        };
        let all = || {
            let silent = inside("in2, taken interrupts", "taken interrupts", 0.0);
            let polls = inside("in0", "polls of a packet", 0.5);
            vec![inside("in0, taken interrupts", "taken interrupts", 3e3), silent, polls]
        };
        let drawn = lines("AFF-9", all()).expect("a chart");
        assert_eq!(names(&drawn), ["napi, Q 2: in0"]);
        assert_eq!(drawn[0].points, [(1000.0, Value::exact(3.0))]);
        assert_eq!(names(&lines("LUT-7", all()).expect("a chart"))[0], "napi, Q 2: in0");
        let class = |class: &str| {
            let name = format!("{class}/inside by flow, 1 source, 64 bytes: processor time");
            measured(&name, "offered load", &[(1e6, 20.0)])
        };
        let drawn = lines("LUT-5", vec![class("IP"), class(IDLE_DIFFERENCE)]).expect("a chart");
        assert_eq!(names(&drawn), ["by flow, 1 source: IP"]);
        let delay = measured("napi, Q 2/64 bytes/median delay", "offered load", &[(1e6, 20.0)]);
        assert_eq!(lines("AFF-6", vec![delay]).expect("a chart")[0].points, [(1000.0, Value::exact(20.0))]);
    }

    #[test]
    fn numbers_at_the_ends_of_names_are_the_places_of_a_curve() {
        let of = |router: &str, y| {
            measured(&format!("{router}/saturation forwarding rate"), "frame length", &[(64.0, y)])
        };
        let all = vec![of("graph, 8 ports", 3e5), of("kernel, looks, 1 port", 2e5), of("graph, 1 port", 1e5)];
        let drawn = lines("CvL-4", [all, vec![of("napi, Q 300", 1e5)]].concat()).expect("a chart");
        assert_eq!(names(&drawn)[..3], ["graph", "kernel, looks", "Linux, looks (the paper)"]);
        assert_eq!(drawn[0].points, [(1.0, Value::exact(100.0)), (8.0, Value::exact(300.0))]);
        let entries = |sources: &str, which: &str, y| {
            let name = format!("by flow, {sources}/entries of the route cache, {which}");
            measured(&name, "offered load", &[(1e5, y / 2.0), (1e6, y)])
        };
        let all = vec![
            entries("256 sources", "active", 256.0),
            entries("256 sources", "total", 300.0),
            entries("1 source", "active", 1.0),
        ];
        let drawn = lines("LUT-4", all).expect("a chart");
        assert_eq!(names(&drawn), ["by flow: active", "by flow: total"]);
        assert_eq!(drawn[0].points, [(1.0, Value::exact(1.0)), (256.0, Value::exact(256.0))]);
    }

    #[test]
    fn a_picture_may_be_of_some_routers_only() {
        let of = |router: &str| {
            measured(&format!("{router}/64 bytes/forwarding rate"), "offered load", &[(1e6, 4e5)])
        };
        let both = || vec![of("radix, 256 routes"), of("lc-trie, 256 routes")];
        assert_eq!(names(&lines("LUT-11", both()).expect("a chart")), ["radix, 256 routes"]);
        assert_eq!(names(&lines("LUT-13", both()).expect("a chart")), ["lc-trie, 256 routes"]);
    }
}
