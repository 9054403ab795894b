//! What a router counts and measures, for monitoring systems: families of samples, made from the declarations of the
//! elements' handlers alone, as a text ([`mod@text`]) and over HTTP ([`http`]).
//!
//! A handler that counts or measures is a family; its name is `causeway_`, the handler, the unit, and `_total` where
//! something is counted. The elements are told apart by the labels `element` and `class`, and the lines of a list by
//! what the handler says that its names are (`reason`). What interfaces count has the label `interface`.

pub mod http;
mod text;

pub use text::Format;

use crate::output;
use causeway_elements::devices::interface;
use causeway_engine::measure::{Kind, Unit, numbers};
use causeway_engine::{Measure, NoAnswer, Plan, Router};
use std::collections::BTreeMap;

/// Samples of one kind.
#[derive(Clone, Debug, PartialEq)]
struct Family {
    /// Without `_total`.
    name: String,
    help: String,
    kind: Kind,
    unit: Option<&'static str>,
    samples: Vec<Sample>,
}

/// A value and what it is the value of.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// All that `router` counts and measures, as a text.
///
/// # Errors
/// If a worker does not answer.
pub fn text(router: &Router, format: Format) -> Result<String, NoAnswer> {
    let mut families = router_families(router)?;
    families.extend(element_families(&router.measures()?));
    families.extend(port_families(router));
    Ok(text::write(&families, format))
}

/// What is told of the router as a whole.
fn router_families(router: &Router) -> Result<Vec<Family>, NoAnswer> {
    let gauge = |name: &str, help: &str, unit, labels, value| Family {
        name: format!("causeway_{name}"),
        help: help.to_owned(),
        kind: Kind::Gauge,
        unit,
        samples: vec![Sample { labels, value }],
    };
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    let lost = |name: &str| -> f64 {
        router.counters().filter(|(l, _)| l.element.is_empty() && l.name == name).map(|(_, n)| n as f64).sum()
    };
    let drops = ["loop", "swap"].map(|reason| Sample {
        labels: vec![("reason", reason.to_owned())],
        value: lost(&format!("drop.{reason}")),
    });
    Ok(vec![
        gauge("build_info", "The version of the router.", None, version, 1.0),
        gauge("workers", "Threads that forward packets.", None, vec![], router.pulses().len() as f64),
        gauge(
            "held_packets",
            "Packets in queues, in rings between workers, and between interrupt and forwarding.",
            Some("packets"),
            vec![],
            router.held()? as f64,
        ),
        Family {
            name: "causeway_worker_drops_packets".to_owned(),
            help: "Packets that the workers dropped themselves: in a loop of the graph, at a hot swap."
                .to_owned(),
            kind: Kind::Counter,
            unit: Some("packets"),
            samples: drops.to_vec(),
        },
    ])
}

/// What the elements' handlers tell.
fn element_families(measures: &[Measure]) -> Vec<Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    // Bits are the same in another unit than Prometheus wants.
    for m in measures.iter().filter(|m| m.handler.unit != Unit::BitsPerSecond) {
        let unit = m.handler.unit.name();
        let mut name = family_name(&m.name, m.handler.unit);
        // Classes may mean different things by one name: such as a count of packets and the entries of a table.
        if families.get(&name).is_some_and(|f| f.kind != m.handler.kind) {
            name = format!("{name}_{}", m.handler.kind.name());
        }
        let family = families.entry(name.clone()).or_insert_with(|| Family {
            name,
            help: format!("{}.", output::capital(m.handler.doc)),
            kind: m.handler.kind,
            unit,
            samples: Vec::new(),
        });
        let own = format!("{}.", output::capital(m.handler.doc));
        if family.help != own {
            family.help = format!("What elements tell by their handlers {}, each class in its way.", m.name);
        }
        for (what, value) in numbers(&m.value) {
            let labels = [("element", m.element.to_string()), ("class", m.class.to_owned())];
            let by = m.handler.by.map(|by| (by, what.to_owned()));
            // Every element has this reason; it is of interest once it has happened.
            if by.is_none() || what != "unconnected" || value > 0.0 {
                family.samples.push(Sample { labels: labels.into_iter().chain(by).collect(), value });
            }
        }
    }
    families.into_values().filter(|f| !f.samples.is_empty()).collect()
}

/// What interfaces and their sockets count.
fn port_families(router: &Router) -> Vec<Family> {
    let plan: &Plan = router.plan();
    let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (line, value) in router.port_counters() {
        let config = plan.find(&line.element).map_or("", |i| &plan.elements[i].config);
        let name = line.name.strip_prefix("port.").unwrap_or(&line.name);
        let sum = sums.entry((name.to_owned(), interface(config).unwrap_or_default())).or_default();
        // What the device counts is told by each element that uses it.
        *sum = if name.starts_with("device_") { value.max(*sum) } else { *sum + value };
    }
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for ((name, interface), value) in sums {
        let unit =
            [Unit::Packets, Unit::Bytes].into_iter().filter_map(Unit::name).find(|u| name.ends_with(u));
        let family = families.entry(name.clone()).or_insert_with(|| Family {
            name: format!("causeway_port_{name}"),
            help: format!("What the interface and its sockets counted as {name}."),
            kind: Kind::Counter,
            unit,
            samples: Vec::new(),
        });
        family.samples.push(Sample { labels: vec![("interface", interface)], value: value as f64 });
    }
    families.into_values().collect()
}

/// The name of the family of a handler.
fn family_name(handler: &str, unit: Unit) -> String {
    match unit.name() {
        Some(unit) => format!("causeway_{}_{unit}", snake(handler)),
        None => format!("causeway_{}", snake(handler)),
    }
}

/// A name of lower case letters, digits and underscores.
fn snake(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::spec::{HandlerDoc, reads};

    static COUNT: HandlerDoc = reads("count", "packets since the start").counts(Unit::Packets);
    static ENTRIES: HandlerDoc = reads("count", "entries").measures(Unit::Entries);
    static SIZE: HandlerDoc = reads("size", "entries").measures(Unit::None);
    static SIZES: HandlerDoc = reads("size", "sizes seen").counts(Unit::None);
    static DROPS: HandlerDoc = reads("drop_reasons", "packets dropped").counts(Unit::Packets).by("reason");

    fn measure(element: &str, handler: &'static HandlerDoc, value: &str) -> Measure {
        let (element, name) = (element.into(), handler.name.to_owned());
        Measure { element, class: "Class", name, handler, value: value.to_owned() }
    }

    fn told(families: &[Family]) -> Vec<String> {
        let line = |f: &Family, s: &Sample| {
            let labels: Vec<_> = s.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{} {} {}", f.name, labels.join(" "), s.value)
        };
        families.iter().flat_map(|f| f.samples.iter().map(move |s| line(f, s))).collect()
    }

    #[test]
    fn handlers_that_count_and_measure_are_families() {
        let families = element_families(&[
            measure("a", &COUNT, "7"),
            measure("b", &COUNT, "8"),
            measure("c", &ENTRIES, "9"),
            measure("a", &DROPS, "bad-sum 3\ntoo-short 0\nunconnected 0\n"),
            measure("b", &DROPS, "unconnected 5\n"),
        ]);
        assert_eq!(
            told(&families),
            [
                "causeway_count_entries element=c class=Class 9",
                "causeway_count_packets element=a class=Class 7",
                "causeway_count_packets element=b class=Class 8",
                "causeway_drop_reasons_packets element=a class=Class reason=bad-sum 3",
                "causeway_drop_reasons_packets element=a class=Class reason=too-short 0",
                "causeway_drop_reasons_packets element=b class=Class reason=unconnected 5",
            ]
        );
        assert_eq!(families[1].help, "Packets since the start.");
    }

    #[test]
    fn one_name_with_two_meanings_is_two_families() {
        let families = element_families(&[measure("a", &SIZE, "1"), measure("b", &SIZES, "2")]);
        assert_eq!(
            told(&families),
            ["causeway_size element=a class=Class 1", "causeway_size_counter element=b class=Class 2"]
        );
    }

    #[test]
    fn the_names_of_all_families_are_as_monitoring_systems_want_them() {
        for spec in causeway_elements::library().iter() {
            for h in spec.handlers.iter().filter(|h| matches!(h.kind, Kind::Counter | Kind::Gauge)) {
                let name = family_name(h.name, h.unit);
                let reserved = ["_count", "_sum", "_bucket", "_total", "_info", "_created"];
                assert!(!reserved.iter().any(|end| name.ends_with(end)), "{}: {name}", spec.name);
                assert!(
                    name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                    "{name}"
                );
            }
        }
    }
}
