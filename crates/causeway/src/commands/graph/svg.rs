//! The picture as SVG: one file that needs nothing else, for light and for dark surroundings.

use super::layered::Point;
use super::picture::{Frame, Line, Picture, Shape};
use super::rates::Rates;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Packets are pushed along full lines with full arrowheads, pulled along dashed ones with open arrowheads. With rates,
/// the colours are from a dim one, for what is far below the most, to a bright one.
const STYLE: &str = "
    text { font: 11px 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1c2733 }
    .sheet { fill: #ffffff }
    .frame { fill: #5b7083; fill-opacity: .07; stroke: #8a9aa8 }
    .frame-name { font-style: italic; fill: #51616f }
    .element { fill: #f4f8fb; stroke: #4a6075 }
    .in-driver { fill: #d5f0e3; stroke: #2f9e78 }
    .name { font-weight: bold }
    .port { font-size: 8px; fill: #51616f }
    .edge { fill: none; stroke: #4a6075; stroke-width: 1.2 }
    .pull { stroke-dasharray: 5 3 }
    .head { fill: #4a6075; stroke: #4a6075 }
    .pull-head { fill: #ffffff; stroke: #4a6075 }
    .rate { font-size: 9px; text-anchor: middle; paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
    .r0 { stroke: #b9c3cc }
    .r1 { stroke: #6f9fd0; stroke-width: 1.6 }
    .r2 { stroke: #2f9e78; stroke-width: 2.2 }
    .r3 { stroke: #d98a12; stroke-width: 2.8 }
    .r4 { stroke: #d0342c; stroke-width: 3.4 }";

/// What is different where the surroundings are dark.
const DARK: &str = "
    text { fill: #dfe6ec }
    .sheet { fill: #14191e }
    .frame { fill: #9fb4c7; stroke: #5d6e7d }
    .frame-name, .port { fill: #9fb0be }
    .element { fill: #222c35; stroke: #8fa6ba }
    .in-driver { fill: #1d4436; stroke: #35b98c }
    .edge, .head { stroke: #8fa6ba }
    .head { fill: #8fa6ba }
    .pull-head { fill: #14191e; stroke: #8fa6ba }
    .rate { stroke: #14191e }
    .r0 { stroke: #46525d }
    .r1 { stroke: #6f9fd0 }
    .r2 { stroke: #35b98c }
    .r3 { stroke: #eda12f }
    .r4 { stroke: #f2564d }";

/// Draws the picture, with what passes its lines if that is known; elements `in_driver` have a colour of their own.
pub fn svg(picture: &Picture, rates: Option<&Rates>, in_driver: &BTreeSet<usize>) -> String {
    draw(picture, rates, in_driver, None)
}

/// Draws the picture with a link from each element.
pub fn linked(picture: &Picture, href: &dyn Fn(usize) -> String) -> String {
    draw(picture, None, &BTreeSet::new(), Some(href))
}

fn draw(
    picture: &Picture,
    rates: Option<&Rates>,
    in_driver: &BTreeSet<usize>,
    href: Option<&dyn Fn(usize) -> String>,
) -> String {
    let (width, height) = (picture.size.0.ceil(), picture.size.1.ceil());
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}\n    @media (prefers-color-scheme: dark) {{{DARK} }}\n</style>\n\
         <defs>{}{}</defs>\n<rect class=\"sheet\" width=\"{width}\" height=\"{height}\"/>\n",
        marker("push", "head"),
        marker("pull", "pull-head")
    );
    picture.frames.iter().for_each(|f| frame(&mut text, f));
    picture.lines.iter().for_each(|l| line(&mut text, l, rates));
    for (i, shape) in picture.shapes.iter().enumerate() {
        let class = if in_driver.contains(&i) { "element in-driver" } else { "element" };
        match href {
            Some(href) => {
                let _ = write!(text, "<a href=\"{}\">", escape(&href(i)));
                element(&mut text, shape, class);
                text += "</a>";
            }
            None => element(&mut text, shape, class),
        }
    }
    if let Some(rates) = rates {
        picture.lines.iter().for_each(|l| rate(&mut text, l, rates));
    }
    text + "</svg>\n"
}

fn marker(id: &str, class: &str) -> String {
    format!(
        "<marker id=\"{id}\" viewBox=\"-1 -1 12 12\" refX=\"10\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"{class}\" d=\"M0 1L10 5L0 9z\"/></marker>"
    )
}

fn frame(text: &mut String, Frame { corner: (x, y), size: (w, h), name, name_left }: &Frame) {
    let _ = writeln!(
        text,
        "<rect class=\"frame\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"7\"/>\
         <text class=\"frame-name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + name_left + 7.0,
        y + 14.0,
        escape(name)
    );
}

fn line(text: &mut String, line: &Line, rates: Option<&Rates>) {
    let mut points = line.path.iter();
    let mut way = points.next().map_or_else(String::new, |(x, y)| format!("M{x:.1} {y:.1}C"));
    points.for_each(|(x, y)| {
        let _ = write!(way, " {x:.1} {y:.1}");
    });
    let class = match rates {
        Some(rates) => format!("{} r{}", if line.pulled { "edge pull" } else { "edge" }, rates.grade(line)),
        None => if line.pulled { "edge pull" } else { "edge" }.to_owned(),
    };
    let kind = if line.pulled { "pull" } else { "push" };
    let head = if line.ends { format!(" marker-end=\"url(#{kind})\"") } else { String::new() };
    let _ = writeln!(text, "<path class=\"{class}\" d=\"{way}\"{head}/>");
}

/// What passes a line, at its middle.
fn rate(text: &mut String, line: &Line, rates: &Rates) {
    let Some(label) = rates.label(line) else { return };
    let curves = (line.path.len() - 1) / 3;
    let Some(&[a, b, c, d]) = line.path.get(curves / 2 * 3..).and_then(|p| p.first_chunk::<4>()) else {
        return;
    };
    // The middle of a cubic curve.
    let middle = |of: fn(Point) -> f64| (of(a) + 3.0 * of(b) + 3.0 * of(c) + of(d)) / 8.0;
    let (x, y) = (middle(|p| p.0), middle(|p| p.1) + 3.0);
    let _ = writeln!(text, "<text class=\"rate\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>");
}

fn element(text: &mut String, shape: &Shape, class: &str) {
    let ((x, y), (w, h)) = (shape.corner, shape.size);
    let _ = write!(
        text,
        "<g><title>{}</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"3\"/>",
        escape(&shape.full)
    );
    for (i, line) in shape.text.iter().enumerate() {
        let class = if i == 0 && shape.text.len() > 1 { " class=\"name\"" } else { "" };
        let (left, down) = (x + 8.0, y + 16.0 + i as f64 * 14.0);
        let _ = write!(text, "<text{class} x=\"{left:.1}\" y=\"{down:.1}\">{}</text>", escape(line));
    }
    // One port needs no number.
    for (ports, down) in [(&shape.inputs, y - 2.0), (&shape.outputs, y + h + 8.0)] {
        for (port, at) in ports.iter().enumerate().filter(|_| ports.len() > 1) {
            let left = x + at + 3.0;
            let _ = write!(text, "<text class=\"port\" x=\"{left:.1}\" y=\"{down:.1}\">{port}</text>");
        }
    }
    *text += "</g>\n";
}

/// Text as it may stand in XML and HTML, in attributes too.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
