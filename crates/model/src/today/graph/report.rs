//! What a graph took of a machine, for people and in the common format.

use super::super::router::Outcome;
use crate::series::modelled;
use causeway_results::Series;

/// Elements that have a line of their own; the others take little.
const LINES: usize = 16;
/// Parts of what is offered below which nothing is said.
const LITTLE: f64 = 0.001;

/// For people: processor time by element, and what ended in the graph.
pub fn lines(outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    if outcome.elements.is_empty() {
        return lines;
    }
    lines.push("  processor time by element".to_owned());
    for one in outcome.elements.iter().take(LINES) {
        let (name, rate) = (format!("{} :: {}", one.name, one.class), one.rate_pps / 1e6);
        lines.push(format!(
            "    {name:<36} {:>6.1} % {rate:>8.2} Mpps, {:.1} ns each, {:.1} at a time",
            one.part * 100.0,
            one.packet_ns,
            one.batch
        ));
    }
    let rest: f64 = outcome.elements.iter().skip(LINES).map(|one| one.part).sum();
    if outcome.elements.len() > LINES {
        let name = format!("{} others", outcome.elements.len() - LINES);
        lines.push(format!("    {name:<36} {:>6.1} %", rest * 100.0));
    }
    let least = outcome.offered_fps * LITTLE;
    for (what, fps) in outcome.dropped_by.iter().filter(|(_, fps)| *fps > least) {
        lines.push(format!("  {:<32} {:>8.2} Mpps", format!("dropped by {what}"), fps / 1e6));
    }
    if outcome.kept_fps > least {
        lines.push(format!("  {:<32} {:>8.2} Mpps", "ended in the graph", outcome.kept_fps / 1e6));
    }
    lines
}

/// The same as series.
pub fn series(outcome: &Outcome) -> Vec<Series> {
    let along = ["", ""];
    let part = |one: &super::ElementTime| {
        let name = format!("{} :: {}/processor time", one.name, one.class);
        modelled(name, ["part", "%"], along, vec![(None, vec![one.part * 100.0])])
    };
    let dropped = |(what, fps): &(String, f64)| {
        modelled(format!("{what}/dropped"), ["rate", "frames/s"], along, vec![(None, vec![*fps])])
    };
    outcome.elements.iter().map(part).chain(outcome.dropped_by.iter().map(dropped)).collect()
}
