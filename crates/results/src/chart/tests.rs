use super::*;
use crate::document::Measurement;

fn lines() -> Chart {
    let point =
        |x: f64| (x, Value { value: x * 10.0, interval: Some(Interval { low: x * 9.0, high: x * 12.0 }) });
    let line =
        |name: &str| Line { name: name.to_owned(), points: [1.0, 4.0, 16.0].map(point).into(), joined: true };
    Chart {
        title: "a < b & c".to_owned(),
        source: Source::Modelled,
        values: Axis { quantity: "time".to_owned(), unit: "ns".to_owned() },
        scale: Scale::Logarithmic(10),
        plot: Plot::Lines {
            x: Axis { quantity: "routes".to_owned(), unit: String::new() },
            x_scale: Scale::Logarithmic(4),
            lines: (0..12).map(|n| line(&format!("line {n}"))).collect(),
        },
    }
}

fn bars(values: Vec<Option<Value>>) -> Chart {
    let groups = (0..values.len()).map(|n| format!("group {n}")).collect();
    let plot = Plot::Bars { groups, bars: vec![Bar { name: "bar".to_owned(), values }] };
    Chart { scale: Scale::Linear, plot, ..lines() }
}

/// The first of its lines.
fn few(count: usize) -> Chart {
    let mut chart = lines();
    if let Plot::Lines { lines, .. } = &mut chart.plot {
        lines.truncate(count);
    }
    chart
}

/// The values of an attribute, in order.
fn all<'s>(svg: &'s str, attribute: &str) -> Vec<&'s str> {
    let shapes = svg.split_once("</style>").unwrap().1;
    let before = format!(" {attribute}=\"");
    shapes.split(&before).skip(1).map(|part| part.split('"').next().unwrap()).collect()
}

#[test]
fn single_points_are_rings_without_a_line() {
    let shapes = |joined: bool| {
        let mut chart = few(1);
        if let Plot::Lines { lines, .. } = &mut chart.plot {
            lines[0].joined = joined;
        }
        let svg = chart.svg().unwrap();
        (svg.matches("<polyline").count(), svg.matches("r=\"5\"").count(), svg.matches("r=\"3\"").count())
    };
    let (joined, single) = (shapes(true), shapes(false));
    assert_eq!((joined.1, joined.2), (0, 3));
    // The legend has one too.
    assert_eq!((single.0, single.1, single.2), (joined.0 - 1, 4, 0));
}

#[test]
fn every_colour_has_one_for_the_dark() {
    for svg in [lines().svg().unwrap(), bars(vec![Some(Value::exact(3.0))]).svg().unwrap()] {
        let style = svg.split_once("</style>").unwrap().0;
        assert!(style.contains("<style>\n@media (prefers-color-scheme: dark) {\n"), "{style}");
        let mut found = 0;
        for property in ["fill", "stroke"] {
            for colour in all(&svg, property).into_iter().filter(|colour| *colour != "none") {
                assert!(style.contains(&format!("[{property}=\"{colour}\"]")), "{property} {colour}");
                found += 1;
            }
        }
        assert!(found > 10);
    }
}

#[test]
fn titles_units_sources_and_names_are_told_and_quoted() {
    let svg = lines().svg().unwrap();
    for text in ["a &lt; b &amp; c", "time (ns), modelled", "\nroutes\n", "line 11", "\n1000\n", "\n16\n"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
}

#[test]
fn lines_go_from_edge_to_edge_with_an_interval_at_each_point() {
    let svg = few(10).svg().unwrap();
    let paths: Vec<Vec<&str>> =
        all(&svg, "points").into_iter().map(|points| points.split_whitespace().collect()).collect();
    let thick = paths.iter().filter(|path| path.len() == 3).count();
    assert_eq!(thick, 10, "a path a line: {paths:?}");
    assert_eq!(all(&svg, "r").len(), 30, "a dot a point");
}

#[test]
fn lines_of_one_colour_differ_by_their_dashes() {
    let paths = |count: usize| few(count).svg().unwrap().matches("<polyline").count();
    // A line's path, and its three intervals.
    assert_eq!(paths(10) - paths(9), 4);
    assert!(paths(11) - paths(10) > 20, "{} and {}", paths(10), paths(11));
}

#[test]
fn what_has_no_place_is_left_out() {
    let mut chart = lines();
    let Plot::Lines { lines, .. } = &mut chart.plot else { unreachable!() };
    let bad = [(f64::NAN, 1.0), (2.0, f64::INFINITY), (2.0, 0.0), (-1.0, 3.0)];
    lines[0].points.extend(bad.map(|(x, value)| (x, Value::exact(value))));
    let svg = chart.svg().unwrap();
    assert_eq!(all(&svg, "r").len(), 36);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let svg = bars(vec![None, Some(Value::exact(f64::NAN)), Some(Value::exact(2.0))]).svg().unwrap();
    assert!(svg.contains("\n2.00\n") && !svg.contains("NaN"), "{svg}");
}

#[test]
fn charts_of_nothing_are_drawn() {
    assert!(bars(Vec::new()).svg().is_ok());
    assert!(few(0).svg().is_ok());
}

#[test]
fn bars_are_as_long_as_their_values() {
    let svg = bars(vec![Some(Value::exact(10.0)), Some(Value::exact(5.0))]).svg().unwrap();
    let widths: Vec<f64> = all(&svg, "width").iter().filter_map(|width| width.parse().ok()).collect();
    // The background, the legend, and the bars.
    let [long, short] = widths[widths.len() - 2..] else { panic!("{widths:?}") };
    assert!((long / short - 2.0).abs() < 0.02, "{widths:?}");
}

#[test]
fn parts_lie_on_top_of_each_other() {
    let part = |name: &str, values: [f64; 2]| {
        let points = [1.0, 2.0].into_iter().zip(values.map(Value::exact)).collect();
        Line { name: name.to_owned(), points, joined: true }
    };
    let x = || Axis { quantity: "load".to_owned(), unit: "frames/s".to_owned() };
    let stack = |parts| Chart { scale: Scale::Linear, plot: Plot::Stack { x: x(), parts }, ..lines() };
    let svg = stack(vec![part("first", [10.0, 30.0]), part("second", [90.0, 70.0])]).svg().unwrap();
    let shapes: Vec<Vec<(f64, f64)>> = svg
        .split("<polygon ")
        .skip(1)
        .map(|shape| {
            let points = shape.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            let corner = |pair: &str| {
                let (x, y) = pair.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            };
            points.split_whitespace().map(corner).collect()
        })
        .collect();
    let [first, second] = &shapes[..] else { panic!("{svg}") };
    let [top_1, top_2, low_2, low_1] = first[..4] else { panic!("{first:?}") };
    assert_eq!([second[3], second[2]], [top_1, top_2], "the second begins where the first ends");
    let high = |top: (f64, f64), low: (f64, f64)| low.1 - top.1;
    assert!((high(top_2, low_2) / high(top_1, low_1) - 3.0).abs() < 0.1, "{first:?}");
    assert!((high(second[0], second[3]) / high(top_1, low_1) - 9.0).abs() < 0.3, "{second:?}");
    assert_eq!(second[0].1, second[1].1, "the whole is level");
    assert_eq!(all(&svg, "r"), ["2"; 4], "a dot a point");
    let nothing = stack(vec![part("bad", [f64::NAN, -1.0])]).svg().unwrap();
    assert!(!nothing.contains("NaN") && all(&nothing, "r").is_empty());
}

#[test]
fn a_line_of_a_series_has_its_medians_and_intervals() {
    let measurement =
        |x, repetitions: &[f64]| Measurement { x: Some(x), ..Measurement::measured(repetitions) };
    let mut series = Series::single("s", "q", "u", measurement(1.0, &[1.0, 9.0, 2.0]));
    series.measurements.push(measurement(2.0, &[4.0]));
    let line = Line::of("a", &series);
    assert_eq!(line.points[0].1, Value { value: 2.0, interval: Some(Interval { low: 1.0, high: 9.0 }) });
    assert_eq!(line.points[1], (2.0, Value::exact(4.0)), "a single repetition has no interval");
}
