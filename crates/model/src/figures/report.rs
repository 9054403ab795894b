//! What was found, for people and for the common format. Everything says that it is modelled.

use super::drawn::{AVAILABILITY, DELAY, RATE, available};
use super::{Along, Curve, Figure, Found, Told, shown};
use crate::machine::Machine;
use crate::run::Outcome;
use crate::series::modelled;
use crate::software::linux::{Class, Drop};
use anyhow::{Context, Result};
use causeway_results::{Document, Run, csv, html};
use std::path::{Path, PathBuf};

/// What a resource is used from which on it counts as saturated.
const SATURATED: f64 = 0.97;

/// The table: paper, model, error.
pub fn lines(figure: &Figure, found: &Found) -> Vec<String> {
    let mut lines = vec![
        format!("{}, modelled: {}", figure.name, figure.about),
        format!("  the paper: {}", figure.paper),
    ];
    if !figure.numbers.is_empty() {
        lines.push(format!("  {:<28} {:>9} {:>9} {:>8}", "", "paper", "model", "error"));
    }
    for number in figure.numbers {
        let model = (number.of)(found);
        let error = if number.paper > 0.0 {
            format!("{:+.1} %", (model / number.paper - 1.0) * 100.0)
        } else {
            String::new()
        };
        let note = if number.told == Told::Calibrated { "  calibrated on it: no result" } else { "" };
        let what = format!("{}, {}", number.what, number.unit);
        let digits = if number.paper < 10.0 && number.paper > 0.0 { 2 } else { 0 };
        lines.push(format!("  {what:<28} {:>9.digits$} {model:>9.digits$} {error:>8}{note}", number.paper));
    }
    for (curve, outcomes) in &found.curves {
        let peak = outcomes.iter().map(Outcome::rate_fps).fold(0.0, f64::max) / 1e3;
        let last = outcomes.last().map_or(0.0, Outcome::rate_fps) / 1e3;
        lines.push(format!("  {:<28} at most {peak:.0} kpps, {last:.0} kpps at the last point", curve.name));
    }
    lines.extend(unsures(found).into_iter().map(|one| format!("  {one}")));
    if !figure.missed.is_empty() {
        lines.push(format!("  what it misses: {}", figure.missed));
    }
    lines
}

/// What is to be said of a point whose windows ran out before its rate was as sure as is promised.
fn unsure(outcome: &Outcome) -> Option<String> {
    let part = outcome.interval_fps / outcome.rate_fps() * 100.0;
    (!outcome.sure).then(|| {
        let windows = outcome.windows_fps.len();
        format!("less sure than others: after {windows} windows the 95 % interval is still {part:.2} % wide")
    })
}

/// The points that are less sure, each with its place.
fn unsures(found: &Found) -> Vec<String> {
    let of_curve = |(curve, outcomes): &(Curve, Vec<Outcome>)| {
        let one = |((x, _), outcome): (&(f64, _), _)| {
            Some(format!("{} at {}: {}", curve.name, place(curve, *x), unsure(outcome)?))
        };
        curve.points.iter().zip(outcomes).filter_map(one).collect::<Vec<_>>()
    };
    found.curves.iter().flat_map(of_curve).collect()
}

fn place(curve: &Curve, x: f64) -> String {
    match curve.along {
        Along::Load => format!("{:.0} kpps", x / 1e3),
        Along::Length => format!("{x:.0} bytes"),
        Along::Active => format!("{x:.0} active"),
    }
}

/// What is saturated at each point, where the processor's time goes, and where the losses are.
pub fn why(found: &Found) -> Vec<String> {
    let mut lines = Vec::new();
    for (curve, outcomes) in &found.curves {
        lines.push(format!("  why, {} (modelled; parts of the time in %, losses in kpps)", curve.name));
        for ((x, _), outcome) in curve.points.iter().zip(outcomes) {
            lines.push(format!("  {:>12}: {}", place(curve, *x), reasons(outcome)));
        }
    }
    lines
}

fn reasons(outcome: &Outcome) -> String {
    let busy = outcome.busy.iter().copied().fold(0.0, f64::max);
    let bus = outcome.buses.iter().copied().fold(0.0, f64::max);
    let resources = [("processor", busy), ("bus", bus), ("memory", outcome.memory)];
    let saturated: Vec<&str> =
        resources.iter().filter(|(_, part)| *part > SATURATED).map(|(name, _)| *name).collect();
    let first =
        if saturated.is_empty() { "nothing is saturated".to_owned() } else { saturated.join(" and ") };
    let of_class = |class: &Class| (class.name(), outcome.classes[*class as usize] * 100.0);
    let classes = Class::ALL.iter().map(of_class).filter(|(_, part)| *part >= 0.5);
    let classes: Vec<String> = classes.map(|(name, part)| format!("{name} {part:.0}")).collect();
    let of_drop = |drop: &Drop| (drop.name(), outcome.drops_fps[*drop as usize] / 1e3);
    let drops = Drop::ALL.iter().map(of_drop).filter(|(_, rate)| *rate >= 0.05);
    let drops: Vec<String> = drops.map(|(name, rate)| format!("{name} {rate:.1}")).collect();
    let [receiving, backlog, queued, sending] = outcome.fullness;
    format!(
        "{first}; {}; bus {:.0}, memory {:.0}; packets waiting {receiving:.0} to be received, {backlog:.0} on the backlog, \
         {queued:.0} queued, {sending:.0} to be sent; lost {}",
        classes.join(", "),
        bus * 100.0,
        outcome.memory * 100.0,
        if drops.is_empty() { "nothing".to_owned() } else { drops.join(", ") },
    )
}

/// The way of the packet that was followed, at the first and the last point of each curve.
pub fn ways(found: &Found) -> Vec<String> {
    let mut lines = Vec::new();
    for (curve, outcomes) in &found.curves {
        let ends = [0, outcomes.len() - 1];
        for n in ends.into_iter().take(outcomes.len()) {
            lines.push(format!(
                "  one packet, {} at {} (modelled)",
                curve.name,
                place(curve, curve.points[n].0)
            ));
            lines.extend(outcomes[n].trace.iter().map(|step| format!("    {step}")));
        }
    }
    lines
}

/// Writes the document into a folder, with a table and a page beside it; says which file it is.
///
/// # Errors
///
/// If it cannot be written.
pub fn keep(folder: &Path, figure: &Figure, found: &Found, machine: &Machine, seed: u64) -> Result<PathBuf> {
    write(folder, figure.name, &document(figure, found, machine, seed))
}

/// Writes a document of this name into a folder, with a table and a page beside it; says which file it is.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn write(folder: &Path, name: &str, document: &Document) -> Result<PathBuf> {
    let file = folder.join(format!("model-{name}.json"));
    let write = |extension: &str, text: &str| {
        let file = file.with_extension(extension);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    write("json", &document.to_json()?)?;
    write("csv", &csv::table(document))?;
    write("html", &html::page(&format!("{name}, modelled"), document)?)?;
    Ok(file)
}

/// What was run. No date and nothing of the machine it ran on: the same seed gives the same bytes anywhere.
fn run(figure: &Figure, machine: &Machine, seed: u64) -> Run {
    let command = ["causeway", "model", figure.name, "--seed", &seed.to_string()].map(str::to_owned);
    let bed = &machine.bed;
    let modelled = causeway_results::Machine {
        processor: format!("modelled: {}, {}", machine.name, bed.about),
        processors: 1,
        kernel: bed.kernel.clone(),
        load_average: String::new(),
    };
    let settings = [("tick", &bed.tick), ("routes", &bed.routes), ("wires", &bed.wires)];
    let settings = settings.map(|(name, text)| (name.to_owned(), text.clone())).into();
    Run { command: command.into(), machine: modelled, settings, ..Run::default() }
}

/// The document: curves, what is inside of them, and the paper's numbers beside them.
pub fn document(figure: &Figure, found: &Found, machine: &Machine, seed: u64) -> Document {
    let mut document = Document::new(run(figure, machine, seed));
    let settings = &mut document.run.settings;
    settings.insert("experiment".to_owned(), format!("{}, modelled: {}", figure.name, figure.about));
    settings.insert("the paper".to_owned(), figure.paper.to_owned());
    if !figure.missed.is_empty() {
        settings.insert("what the model misses".to_owned(), figure.missed.to_owned());
    }
    let less = unsures(found);
    if !less.is_empty() {
        settings.insert("less sure".to_owned(), less.join("; "));
    }
    for (curve, outcomes) in &found.curves {
        curve_series(&mut document, curve, outcomes);
    }
    for drawn in figure.drawn {
        let has_value = |(_, value): &(f64, f64)| value.is_finite();
        let values = (drawn.of)(found).into_iter().filter(has_value).map(|(x, value)| (Some(x), vec![value]));
        document.series.push(modelled(drawn.name, drawn.what, drawn.along, values.collect()));
    }
    shown::add(&mut document, figure, found);
    document
}

fn curve_series(document: &mut Document, curve: &Curve, outcomes: &[Outcome]) {
    let (name, frames) = (&curve.name, curve.frames());
    let all = |value: fn(&Outcome) -> Vec<f64>| outcomes.iter().map(value).collect::<Vec<_>>();
    let rates = all(|outcome| outcome.windows_fps.clone());
    add(document, curve, format!("{name}/{}", curve.rest()), RATE, rates);
    let measurements = document.series.last_mut().into_iter().flat_map(|rates| &mut rates.measurements);
    measurements.zip(outcomes).for_each(|(one, outcome)| one.note = unsure(outcome).unwrap_or_default());
    for &(port, flow) in &curve.flows {
        let values = outcomes.iter().map(|outcome| vec![outcome.flows_fps[port]]).collect();
        add(document, curve, format!("{flow}/{name}, {frames}: flows"), RATE, values);
    }
    picture(document, curve, outcomes);
    // Where several work, each by itself.
    let several = outcomes.first().map_or(0, |outcome| outcome.busy.len());
    for port in (0..several).filter(|_| several > 1) {
        let values = outcomes.iter().map(|outcome| vec![available(outcome, port)]).collect();
        let whole = format!("processor of port {port}/inside {name}, {frames}: availability");
        add(document, curve, whole, AVAILABILITY, values);
    }
    let delay = outcomes.iter().map(|outcome| vec![outcome.delay_ns / 1e3]).collect();
    add(document, curve, format!("{name}/inside, {frames}: mean delay"), DELAY, delay);
    let interrupts = format!("inside {name}, {frames}: interrupts");
    for port in 0..outcomes.first().map_or(0, |outcome| outcome.interrupts.len()) {
        let values = outcomes.iter().map(|outcome| vec![outcome.interrupts[port]]).collect();
        add(document, curve, format!("port {port}/{interrupts}"), ["interrupts", "1/s"], values);
    }
}

/// A part of a whole: its name, and how much of an outcome it is.
type Part<'a> = (&'a str, &'a dyn Fn(&Outcome) -> f64);

/// Why: the whole of each resource, of what is offered, and of what waits, in parts that the page stacks.
fn picture(document: &mut Document, curve: &Curve, outcomes: &[Outcome]) {
    let mut whole = |of: &str, what: [&str; 2], parts: &[Part<'_>]| {
        for (part, value) in parts {
            let values = outcomes.iter().map(|outcome| vec![value(outcome)]).collect();
            add(
                document,
                curve,
                format!("{part}/inside {}, {}: {of}", curve.name, curve.frames()),
                what,
                values,
            );
        }
    };
    let of_class = |class: Class| move |outcome: &Outcome| outcome.classes[class as usize] * 100.0;
    let classes = Class::ALL.map(|class| (class.name(), of_class(class)));
    // Work is booked when it begins, so that the last piece may be too much.
    let idle = |outcome: &Outcome| (100.0 - outcome.classes.iter().sum::<f64>() * 100.0).max(0.0);
    let mut parts: Vec<Part<'_>> = classes.iter().map(|(name, value)| (*name, value as _)).collect();
    parts.push(("idle", &idle));
    whole("processor time", ["part of processor time", "%"], &parts);
    for bus in 0..outcomes.first().map_or(0, |outcome| outcome.buses.len()) {
        let held = move |outcome: &Outcome| outcome.buses[bus] * 100.0;
        let free = move |outcome: &Outcome| 100.0 - held(outcome);
        whole(&format!("bus {bus}"), ["part of the bus's time", "%"], &[("held", &held), ("free", &free)]);
    }
    let moves = |outcome: &Outcome| outcome.memory * 100.0;
    let rests = |outcome: &Outcome| 100.0 - moves(outcome);
    whole("memory", ["part of memory's time", "%"], &[("moves data", &moves), ("rests", &rests)]);
    let waits = |place: usize| move |outcome: &Outcome| outcome.fullness[place];
    let [receiving, backlog, queued, sending] = [0, 1, 2, 3].map(waits);
    let places: [Part<'_>; 4] = [
        ("cards and rings that receive", &receiving),
        ("backlog", &backlog),
        ("queues on the way out", &queued),
        ("rings and cards that send", &sending),
    ];
    whole("rings and queues", ["part of the packets inside", "packets"], &places);
    let of_drop = |drop: Drop| move |outcome: &Outcome| outcome.drops_fps[drop as usize];
    let drops = Drop::ALL.map(|drop| (drop.name(), of_drop(drop)));
    let mut parts: Vec<Part<'_>> = vec![("forwarded", &Outcome::rate_fps)];
    parts.extend(drops.iter().map(|(name, value)| (*name, value as _)));
    whole("losses", ["part of what is offered", "frames/s"], &parts);
}

fn add(document: &mut Document, curve: &Curve, name: String, what: [&str; 2], values: Vec<Vec<f64>>) {
    let values = curve.points.iter().map(|(x, _)| Some(*x)).zip(values).collect();
    document.series.push(modelled(name, what, curve.along.axis(), values));
}
