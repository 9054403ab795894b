//! Line plots with both axes logarithmic, as SVG.

use std::fmt::Write;

/// A named line through points.
pub struct Curve {
    /// Name, for the legend.
    pub name: String,
    /// Points, left to right; both coordinates above zero.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
/// Room for the legend.
const RIGHT: f64 = 190.0;
const COLOURS: [&str; 9] =
    ["#4477aa", "#ee6677", "#228833", "#66ccee", "#aa3377", "#ccbb44", "#222255", "#bb5500", "#999999"];

/// Where values lie between two powers of a base.
struct Axis {
    base: f64,
    first: f64,
    last: f64,
}

impl Axis {
    fn of(base: f64, values: impl Iterator<Item = f64>) -> Axis {
        let logs = values.filter(|v| *v > 0.0).map(|v| v.log(base));
        let (first, last) = logs.fold((f64::MAX, f64::MIN), |(a, b), log| (a.min(log), b.max(log)));
        if first > last {
            return Axis { base, first: 0.0, last: 1.0 };
        }
        let (first, last) = ((first + 1e-9).floor(), (last - 1e-9).ceil());
        Axis { base, first, last: last.max(first + 1.0) }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        (value.max(f64::MIN_POSITIVE).log(self.base) - self.first) / (self.last - self.first)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (base, first) = (self.base, self.first);
        (0..=(self.last - first) as i32).map(move |n| base.powf(first + f64::from(n)))
    }
}

/// The plot as a document.
pub fn svg(title: &str, curves: &[Curve]) -> String {
    let all = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let (across, up) = (Axis::of(4.0, all().map(|p| p.0)), Axis::of(10.0, all().map(|p| p.1)));
    let x = |value| LEFT + across.place(value) * WIDTH;
    let y = |value| TOP + (1.0 - up.place(value)) * HEIGHT;
    let (width, height) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + 30.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"14\">{title}</text>\n"
    );
    // Writing to a string cannot fail.
    for tick in across.ticks() {
        let (x, bottom) = (x(tick), TOP + HEIGHT);
        let _ = writeln!(text, "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>");
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{tick:.0}</text>",
            bottom + 18.0
        );
    }
    for tick in up.ticks() {
        let y = y(tick);
        let _ = writeln!(text, "<path d=\"M{LEFT} {y:.1}h{WIDTH}\" stroke=\"#ddd\"/>");
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (n, curve) in curves.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let points: Vec<String> =
            curve.points.iter().map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
        let _ = writeln!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            points.join(" ")
        );
        let (left, row) = (LEFT + WIDTH + 12.0, TOP + 18.0 * n as f64);
        let _ = writeln!(text, "<path d=\"M{left} {row}h20\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        let _ = writeln!(text, "<text x=\"{}\" y=\"{}\">{}</text>", left + 26.0, row + 4.0, curve.name);
    }
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_lie_inside_the_axes_and_nothing_is_no_plot() {
        let curve = Curve { name: "a".to_owned(), points: vec![(1.0, 3.0), (16.0, 250.0)] };
        let text = svg("t", &[curve]);
        assert!(text.contains("points=\"60.0,"), "the least x is at the left edge: {text}");
        let far = text.split("points=\"").nth(1).unwrap().split(['"', ' ', ',']).nth(2).unwrap();
        assert_eq!(far, "700.0", "the greatest x is at the right edge");
        assert!(text.contains(">1000</text>") && text.contains(">1</text>"), "ticks enclose the values");
        assert!(!svg("t", &[]).contains("NaN"));
    }
}
