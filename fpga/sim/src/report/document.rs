//! Outcomes as a document: a series for each quantity, a repetition for each seed.
//!
//! The numbers are modelled and the same wherever they are computed, so the document names no machine and no date: what
//! describes the same card gives the same file.

use std::collections::BTreeSet;

use causeway_results::{Axis, Document, Measurement, Run, Series, Source};

use crate::scenario::Outcome;

/// Outcomes that belong on one line: those of the same x differ by their seeds alone.
pub struct Curve<'a> {
    /// The first part of its series' names.
    pub name: String,
    /// What varies along it, if anything does.
    pub x: Option<Axis>,
    /// By rising x.
    pub points: Vec<(f64, Vec<&'a Outcome>)>,
    /// The name of the curve that it is compared with, seed by seed.
    pub baseline: Option<String>,
}

/// The value of an outcome; nothing where there is nothing to tell, such as the latency of no frame.
type Value = Box<dyn Fn(&Outcome) -> Option<f64>>;

/// One quantity of an outcome.
struct Quantity {
    /// The last part of a series' name.
    name: String,
    quantity: &'static str,
    unit: &'static str,
    value: Value,
}

impl Quantity {
    fn new(
        name: impl Into<String>,
        quantity: &'static str,
        unit: &'static str,
        value: impl Fn(&Outcome) -> f64 + 'static,
    ) -> Self {
        Self { name: name.into(), quantity, unit, value: Box::new(move |outcome| Some(value(outcome))) }
    }
}

/// What is compared with the baseline.
pub const COMPARED: &str = "delivered high";

/// The document of some curves.
pub fn document(command: &[&str], curves: &[Curve<'_>]) -> Document {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let mut document = Document::new(Run { command, ..Run::default() });
    document.series = curves.iter().flat_map(series).collect();
    document
}

fn series(curve: &Curve<'_>) -> Vec<Series> {
    let outcomes: Vec<&Outcome> = curve.points.iter().flat_map(|point| &point.1).copied().collect();
    let mut all = Vec::new();
    for quantity in quantities(&outcomes) {
        let measurements: Vec<Measurement> =
            curve.points.iter().filter_map(|point| measurement(curve, point, &quantity)).collect();
        if measurements.is_empty() {
            continue;
        }
        let baseline = curve.baseline.as_ref().filter(|_| quantity.name == COMPARED);
        all.push(Series {
            name: format!("{}/{}", curve.name, quantity.name),
            quantity: quantity.quantity.into(),
            unit: quantity.unit.into(),
            x: curve.x.clone(),
            baseline: baseline.map(|name| format!("{name}/{COMPARED}")),
            measurements,
        });
    }
    all
}

fn measurement(
    curve: &Curve<'_>,
    (x, outcomes): &(f64, Vec<&Outcome>),
    quantity: &Quantity,
) -> Option<Measurement> {
    // The settings once, at what is asked for first.
    let first = outcomes.first().filter(|_| quantity.name == "delivered");
    Some(Measurement {
        x: curve.x.is_some().then_some(*x),
        source: Source::Modelled,
        repetitions: outcomes.iter().map(|outcome| (quantity.value)(outcome)).collect::<Option<_>>()?,
        note: first.map_or(String::new(), |outcome| outcome.scenario.to_string()),
    })
}

/// What there is to tell of any of the outcomes.
fn quantities(outcomes: &[&Outcome]) -> Vec<Quantity> {
    let mut all = vec![
        Quantity::new("delivered", "delivered load", "Gbit/s", |o| o.delivered_bps() / 1e9),
        Quantity::new("offered", "offered load", "Gbit/s", |o| o.offered_bps() / 1e9),
        Quantity::new("bus busy", "share of the bus", "", Outcome::bus_busy),
        Quantity::new("bus data", "share of the bus", "", Outcome::bus_data),
        Quantity::new("packets a burst", "packets", "", Outcome::packets_a_burst),
    ];
    let keys: BTreeSet<_> = outcomes.iter().flat_map(|o| &o.flows).map(|flow| flow.key).collect();
    for (high, class) in [(true, "high"), (false, "low")] {
        if keys.iter().any(|key| key.2 == high) {
            all.extend(of_class(high, class));
        }
    }
    for (port, high) in keys.iter().map(|key| (key.0, key.2)).collect::<BTreeSet<_>>() {
        let class = if high { "high" } else { "low" };
        all.push(Quantity::new(format!("lost {class} of port {port}"), "lost", "frames", move |o| {
            o.lost_of(|key| key.0 == port && key.2 == high) as f64
        }));
    }
    all.extend(counters(outcomes));
    all
}

fn of_class(high: bool, class: &str) -> Vec<Quantity> {
    let latency = |name: &str, which: usize| Quantity {
        name: format!("{name} latency {class}"),
        quantity: "latency",
        unit: "ns",
        value: Box::new(move |o: &Outcome| {
            let latency_ns = o.latency_by_class_ns[usize::from(high)];
            (latency_ns[3] > 0).then(|| latency_ns[which].into())
        }),
    };
    vec![
        Quantity::new(format!("delivered {class}"), "delivered load", "Gbit/s", move |o| {
            o.delivered_bps_of(|key| key.2 == high) / 1e9
        }),
        Quantity::new(format!("offered {class}"), "packet rate", "pps", move |o| {
            o.offered_pps(|key| key.2 == high)
        }),
        Quantity::new(format!("lost {class}"), "lost", "frames", move |o| {
            o.lost_of(|key| key.2 == high) as f64
        }),
        latency("smallest", 0),
        latency("median", 1),
        latency("99th percentile", 2),
        latency("largest", 3),
    ]
}

/// The cards' counters that counted, of all cards together, and the host's.
fn counters(outcomes: &[&Outcome]) -> Vec<Quantity> {
    let counted = outcomes.iter().flat_map(|o| o.counters.iter().flatten()).filter(|counter| counter.1 != 0);
    let names: BTreeSet<&str> = counted.map(|counter| counter.0.as_str()).collect();
    let of_cards = names.into_iter().map(|name| {
        let counter = name.to_owned();
        Quantity::new(format!("cards/{name}"), "counter", "", move |o: &Outcome| {
            let all = o.counters.iter().flatten().filter(|c| c.0 == counter);
            all.map(|c| c.1).sum::<u64>() as f64
        })
    });
    let of_host = [
        Quantity::new("host/received", "counter", "", |o| o.host.received as f64),
        Quantity::new("host/forwarded", "counter", "", |o| o.host.forwarded as f64),
        Quantity::new("host/not_routed", "counter", "", |o| o.host.not_routed as f64),
        Quantity::new("host/tx_full", "counter", "", |o| o.host.tx_full as f64),
        Quantity::new("host/interrupts", "counter", "", |o| o.host.interrupts as f64),
    ];
    let used = outcomes.iter().any(|o| o.host.received + o.host.interrupts > 0);
    of_cards.chain(of_host.into_iter().filter(move |_| used)).collect()
}
