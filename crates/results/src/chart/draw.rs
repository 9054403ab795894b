//! Drawing with plotters.

use super::scale::Scaled;
use super::style::{self, BACKGROUND, GRID, INK};
use super::{Axis, Bar, Chart, DrawError, Line, Plot, Scale, Value};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Display;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scaled, Scaled>>;

/// Pixels of the part with the axes.
const WIDTH: u32 = 680;
/// Pixels of the height of a chart of lines, without its title.
const HEIGHT: u32 = 400;
/// Pixels of a bar, and of the room between two groups.
const BAR: u32 = 13;
const GAP: u32 = 10;
const TITLE: u32 = 34;
const MARGIN: u32 = 12;
/// Pixels below the plot, for the axis.
const BELOW: u32 = 46;
/// Pixels of a line of the legend.
const ENTRY: i32 = 20;
/// Radius of a point that is not joined to others, in pixels.
const RING: i32 = 5;
/// Radius of a dot on an area's edge, in pixels.
const DOT: i32 = 2;
/// Pixels a letter, about: the viewer's font is not known here.
const LETTER: u32 = 7;
/// Pixels of a dash, and between two.
const DASH: u32 = 7;
const DASH_GAP: u32 = 5;
/// The library's unit of text; the document has 12 and 15 pixels.
const TEXT: f64 = 12.0 * 1.24;
const HEADING: f64 = 15.0 * 1.24;

impl DrawError {
    fn of(error: impl Display) -> DrawError {
        DrawError(error.to_string())
    }
}

/// The whole document.
pub fn svg(chart: &Chart) -> Result<String, DrawError> {
    let legend = width(chart.names().map(str::len)) + 40;
    let height = TITLE + chart.height().max(chart.names().count() as u32 * ENTRY as u32 + GAP);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH + legend, height)).into_drawing_area();
        root.fill(&BACKGROUND.light).map_err(DrawError::of)?;
        let heading = ("sans-serif", HEADING).into_font().color(&INK.light);
        root.draw_text(&chart.title, &heading, (12, 10)).map_err(DrawError::of)?;
        let (_, below) = root.split_vertically(TITLE);
        let (left, right) = below.split_horizontally(WIDTH);
        draw_legend(chart, &right)?;
        match &chart.plot {
            Plot::Lines { x, x_scale, lines } => {
                let points = || lines.iter().flat_map(|line| &line.points);
                let across = Scaled::over(*x_scale, false, points().map(|point| point.0));
                let up = Scaled::over(chart.scale, true, points().flat_map(|point| point.1.ends()));
                draw_lines(chart, x, lines, &left, across, up)?;
            }
            Plot::Stack { x, parts } => {
                let areas = areas(parts);
                let all = || areas.iter().flatten();
                let across = Scaled::over(Scale::Linear, false, all().map(|edge| edge.x));
                let up = Scaled::over(Scale::Linear, true, all().map(|edge| edge.high));
                draw_stack(chart, x, &areas, &left, across, up)?;
            }
            Plot::Bars { groups, bars } => {
                let values = bars.iter().flat_map(|bar| bar.values.iter().flatten());
                let along = Scaled::over(chart.scale, true, values.flat_map(|value| value.ends()));
                draw_bars(chart, groups, bars, &left, along)?;
            }
        }
        root.present().map_err(DrawError::of)?;
    }
    // The library writes shapes only: the style block goes behind the first tag.
    let (head, shapes) = text.split_once(">\n").unwrap_or(("", &text));
    Ok(format!("{head}>\n{}{shapes}", style::block()))
}

/// Pixels that the longest of some texts needs.
fn width(letters: impl Iterator<Item = usize>) -> u32 {
    letters.max().unwrap_or(0).min(60) as u32 * LETTER
}

fn ink() -> TextStyle<'static> {
    ("sans-serif", TEXT).into_font().color(&INK.light)
}

fn description(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.quantity.clone() } else { format!("{} ({})", axis.quantity, axis.unit) }
}

impl Chart {
    fn names(&self) -> impl Iterator<Item = &str> {
        let (lines, bars) = match &self.plot {
            Plot::Lines { lines, .. } | Plot::Stack { parts: lines, .. } => (&lines[..], &[][..]),
            Plot::Bars { bars, .. } => (&[][..], &bars[..]),
        };
        lines.iter().map(|line| line.name.as_str()).chain(bars.iter().map(|bar| bar.name.as_str()))
    }

    /// Whether the entry of this number in the legend is no set of single points.
    fn is_joined(&self, number: usize) -> bool {
        match &self.plot {
            Plot::Lines { lines, .. } => lines.get(number).is_none_or(|line| line.joined),
            Plot::Stack { .. } | Plot::Bars { .. } => true,
        }
    }

    /// Whether the entry of this number in the legend is a line.
    fn is_line(&self, number: usize) -> bool {
        matches!(self.plot, Plot::Lines { .. }) && self.is_joined(number)
    }

    fn height(&self) -> u32 {
        match &self.plot {
            Plot::Lines { .. } | Plot::Stack { .. } => HEIGHT,
            Plot::Bars { groups, bars } => {
                groups.len() as u32 * (bars.len() as u32 * BAR + GAP) + BELOW + GAP
            }
        }
    }

    /// The values' quantity, unit and source.
    fn description(&self) -> String {
        format!("{}, {}", description(&self.values), self.source.name())
    }
}

fn draw_legend(chart: &Chart, area: &Area<'_>) -> Result<(), DrawError> {
    let style = ink().pos(Pos::new(HPos::Left, VPos::Center));
    for (number, name) in chart.names().enumerate() {
        let y = ENTRY / 2 + number as i32 * ENTRY;
        let colour = style::series(number).light;
        if chart.is_line(number) && style::is_dashed(number) {
            let path = DashedPathElement::new([(4, y), (22, y)], DASH, DASH_GAP, colour.stroke_width(4));
            area.draw(&path).map_err(DrawError::of)?;
        } else if chart.is_joined(number) {
            area.draw(&Rectangle::new([(4, y - 2), (22, y + 2)], colour.filled())).map_err(DrawError::of)?;
        } else {
            area.draw(&Circle::new((13, y), RING, colour.stroke_width(2))).map_err(DrawError::of)?;
        }
        area.draw(&Text::new(name.to_owned(), (28, y), style.clone())).map_err(DrawError::of)?;
    }
    Ok(())
}

/// Axes with names and numbers.
fn axes<'a, 'b>(
    area: &'a Area<'b>,
    (x, across): (&str, Scaled),
    (y, up): (&str, Scaled),
    left: u32,
) -> Result<Context<'a, 'b>, DrawError> {
    let mut context = ChartBuilder::on(area)
        .margin_left(MARGIN)
        .margin_right(2 * MARGIN)
        .margin_top(GAP)
        .x_label_area_size(BELOW)
        .y_label_area_size(left)
        .build_cartesian_2d(across, up)
        .map_err(DrawError::of)?;
    context
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .axis_desc_style(ink())
        .label_style(ink())
        .axis_style(INK.light)
        .bold_line_style(GRID.light)
        .draw()
        .map_err(DrawError::of)?;
    Ok(context)
}

fn draw_lines(
    chart: &Chart,
    x: &Axis,
    lines: &[Line],
    area: &Area<'_>,
    across: Scaled,
    up: Scaled,
) -> Result<(), DrawError> {
    let left = width(up.labels().map(|label| label.len())) + 26;
    let shown = |&(x, value): &(f64, Value)| {
        let in_range = across.shows(x) && value.ends().iter().all(|end| up.shows(*end));
        in_range && up.shows(value.value)
    };
    let shown: Vec<Vec<(f64, Value)>> =
        lines.iter().map(|line| line.points.iter().copied().filter(shown).collect()).collect();
    let mut context = axes(area, (&description(x), across), (&chart.description(), up), left)?;
    for (number, points) in shown.into_iter().enumerate() {
        let colour = style::series(number).light;
        let path = points.iter().map(|(x, value)| (*x, value.value)).collect::<Vec<_>>();
        if lines[number].joined {
            let dots = path.clone().into_iter().map(|at| Circle::new(at, 3, colour.filled()));
            context.draw_series(dots).map_err(DrawError::of)?;
            let stroke = colour.stroke_width(2);
            if style::is_dashed(number) {
                let path = DashedPathElement::new(path, DASH, DASH_GAP, stroke);
                context.draw_series([path]).map_err(DrawError::of)?;
            } else {
                context.draw_series([PathElement::new(path, stroke)]).map_err(DrawError::of)?;
            }
        } else {
            let rings = path.into_iter().map(|at| Circle::new(at, RING, colour.stroke_width(2)));
            context.draw_series(rings).map_err(DrawError::of)?;
        }
        let intervals = points.iter().filter_map(|(x, value)| {
            let interval = value.interval?;
            Some(PathElement::new(vec![(*x, interval.low), (*x, interval.high)], colour.stroke_width(1)))
        });
        context.draw_series(intervals).map_err(DrawError::of)?;
    }
    Ok(())
}

/// A part's lower and upper edge at a place.
struct Edge {
    x: f64,
    low: f64,
    high: f64,
}

/// The parts on top of each other. What is below nothing or no number has no place.
fn areas(parts: &[Line]) -> Vec<Vec<Edge>> {
    let mut tops: Vec<(f64, f64)> = Vec::new();
    let mut edges = |line: &Line| {
        let usable =
            |(x, value): &&(f64, Value)| x.is_finite() && value.value.is_finite() && value.value >= 0.0;
        let mut on_top = |&(x, value): &(f64, Value)| {
            let at = tops.iter().position(|(known, _)| *known == x).unwrap_or(tops.len());
            if at == tops.len() {
                tops.push((x, 0.0));
            }
            let low = tops[at].1;
            tops[at].1 += value.value;
            Edge { x, low, high: tops[at].1 }
        };
        line.points.iter().filter(usable).map(&mut on_top).collect()
    };
    parts.iter().map(&mut edges).collect()
}

/// All areas, then a dot at the upper edge of each point, so that no area hides one.
fn draw_stack(
    chart: &Chart,
    x: &Axis,
    areas: &[Vec<Edge>],
    area: &Area<'_>,
    across: Scaled,
    up: Scaled,
) -> Result<(), DrawError> {
    let left = width(up.labels().map(|label| label.len())) + 26;
    let mut context = axes(area, (&description(x), across), (&chart.description(), up), left)?;
    for (number, edges) in areas.iter().enumerate() {
        let upper = edges.iter().map(|edge| (edge.x, edge.high));
        let outline: Vec<_> = upper.chain(edges.iter().rev().map(|edge| (edge.x, edge.low))).collect();
        let shape = Polygon::new(outline, style::series(number).light.filled());
        context.draw_series([shape]).map_err(DrawError::of)?;
    }
    for edges in areas {
        let dots = edges.iter().map(|edge| Circle::new((edge.x, edge.high), DOT, INK.light.filled()));
        context.draw_series(dots).map_err(DrawError::of)?;
    }
    Ok(())
}

fn draw_bars(
    chart: &Chart,
    groups: &[String],
    bars: &[Bar],
    area: &Area<'_>,
    along: Scaled,
) -> Result<(), DrawError> {
    let names = Scaled::names(groups);
    let left = width(groups.iter().map(String::len)) + 10;
    let start = along.start();
    // Of a group's stretch, which is 1 long.
    let thick = f64::from(BAR) / (bars.len().max(1) as f64 * f64::from(BAR) + f64::from(GAP));
    let shown: Vec<Vec<(f64, Value)>> = bars
        .iter()
        .enumerate()
        .map(|(number, bar)| {
            let above = (1.0 - thick * bars.len() as f64) / 2.0 + thick * number as f64;
            let places = bar.values.iter().take(groups.len()).enumerate();
            let placed = places.filter_map(|(group, value)| Some((group as f64 + above, (*value)?)));
            placed
                .filter(|(_, value)| value.is_finite() && value.ends().iter().all(|e| along.shows(*e)))
                .collect()
        })
        .collect();
    let mut context = axes(area, (&chart.description(), along), ("", names), left)?;
    let style = ink().pos(Pos::new(HPos::Left, VPos::Center));
    for (number, bars) in shown.into_iter().enumerate() {
        let colour = style::series(number).light;
        for (above, value) in bars {
            let (middle, below) = (above + thick / 2.0, above + thick * 0.9);
            let bar = Rectangle::new([(start, above), (value.value, below)], colour.filled());
            context.draw_series([bar]).map_err(DrawError::of)?;
            let [low, high] = value.ends();
            let interval = PathElement::new(vec![(low, middle), (high, middle)], INK.light);
            context.draw_series(value.interval.map(|_| interval)).map_err(DrawError::of)?;
            let number =
                EmptyElement::at((high, middle)) + Text::new(short(value.value), (5, 0), style.clone());
            context.draw_series([number]).map_err(DrawError::of)?;
        }
    }
    Ok(())
}

/// Three digits that count.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
