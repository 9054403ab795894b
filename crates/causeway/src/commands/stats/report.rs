//! Counters as a text: interfaces first, then elements, each counter once, and none that is zero.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Counters by element and name.
pub type Counted = BTreeMap<(String, String), u64>;

/// A counter, and how fast it grows, a second, if that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Number {
    value: u64,
    rate: Option<f64>,
}

impl Number {
    fn add(&mut self, other: Number) {
        self.value += other.value;
        self.rate = match (self.rate, other.rate) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>16}", grouped(self.value))?;
        match self.rate {
            Some(rate) => write!(f, "  {:>14}/s", grouped(rate.round() as u64)),
            None => Ok(()),
        }
    }
}

/// What a router counts.
pub struct Report {
    interfaces: BTreeMap<String, BTreeMap<String, Number>>,
    elements: BTreeMap<String, BTreeMap<String, Number>>,
}

impl Report {
    /// Of the counters `now`, of elements some of which open `interfaces`; with rates if some time `since` is known.
    pub fn new(
        now: &Counted,
        interfaces: &BTreeMap<String, String>,
        since: Option<(&Counted, Duration)>,
    ) -> Report {
        let mut report = Report { interfaces: BTreeMap::new(), elements: BTreeMap::new() };
        for ((element, name), &value) in now {
            let rate = since.map(|(before, time)| {
                let before = before.get(&(element.clone(), name.clone())).copied().unwrap_or(0);
                value.saturating_sub(before) as f64 / time.as_secs_f64().max(1e-9)
            });
            let number = Number { value, rate };
            let place = match (name.strip_prefix("port."), interfaces.get(element)) {
                (Some(name), Some(interface)) => {
                    let counters = report.interfaces.entry(interface.clone()).or_default();
                    // What the device counts is told by each element that uses it.
                    match name.starts_with("device_") && counters.contains_key(name) {
                        true => continue,
                        false => counters.entry(name.to_owned()).or_default(),
                    }
                }
                _ => {
                    let element = if element.is_empty() { "the workers" } else { element };
                    report.elements.entry(element.to_owned()).or_default().entry(name.clone()).or_default()
                }
            };
            place.add(number);
        }
        for counters in report.interfaces.values_mut().chain(report.elements.values_mut()) {
            counters.retain(|_, number| number.value > 0);
        }
        report.elements.retain(|_, counters| !counters.is_empty());
        report
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        let number = |n: &Number| match n.rate {
            Some(rate) => json!({ "value": n.value, "rate_per_s": rate }),
            None => json!({ "value": n.value }),
        };
        let part = |of: &BTreeMap<String, BTreeMap<String, Number>>| -> Value {
            let counters = |c: &BTreeMap<String, Number>| {
                c.iter().map(|(k, n)| (k.clone(), number(n))).collect::<Value>()
            };
            of.iter().map(|(name, c)| (name.clone(), counters(c))).collect()
        };
        json!({ "interfaces": part(&self.interfaces), "elements": part(&self.elements) })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (heading, of) in [("interface", &self.interfaces), ("element", &self.elements)] {
            for (name, counters) in of {
                writeln!(f, "{heading} {name}")?;
                if counters.is_empty() {
                    writeln!(f, "  nothing yet")?;
                }
                let drops = |name: &str| name.starts_with("drop.") || name.contains("_drop_");
                // What was lost stands last, where it is seen.
                for lost in [false, true] {
                    for (name, number) in counters.iter().filter(|(name, _)| drops(name) == lost) {
                        writeln!(f, "  {name:<32} {number}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(list: &[(&str, &str, u64)]) -> Counted {
        list.iter().map(|(element, name, n)| (((*element).to_owned(), (*name).to_owned()), *n)).collect()
    }

    #[test]
    fn counters_stand_by_interface_without_zeros_and_what_was_lost_last() {
        let now = counted(&[
            ("in0", "port.rx_drop_ring_full", 3),
            ("in0", "port.rx_packets", 1_234_567),
            ("in0", "port.rx_bytes", 0),
            ("in0", "port.device_rx_dropped", 7),
            ("in0", "count", 5),
            ("out0", "port.tx_packets", 12),
            ("out0", "port.device_rx_dropped", 7),
            ("f", "drop.looped", 0),
        ]);
        let interfaces = [("in0", "ra"), ("out0", "ra")].map(|(e, i)| (e.to_owned(), i.to_owned()));
        let report = Report::new(&now, &interfaces.into(), None);
        let lines: Vec<String> =
            report.to_string().lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "interface ra",
                "device_rx_dropped 7",
                "rx_packets 1 234 567",
                "tx_packets 12",
                "rx_drop_ring_full 3",
                "element in0",
                "count 5"
            ]
        );
        assert_eq!(report.to_json()["interfaces"]["ra"]["tx_packets"]["value"], 12);
    }

    #[test]
    fn rates_are_of_the_time_between() {
        let (before, now) =
            (counted(&[("f", "count", 100)]), counted(&[("f", "count", 400), ("g", "count", 8)]));
        let report = Report::new(&now, &BTreeMap::new(), Some((&before, Duration::from_secs(2))));
        let rate = |element: &str| report.elements[element]["count"].rate;
        assert_eq!((rate("f"), rate("g")), (Some(150.0), Some(4.0)));
        let swapped = Report::new(&before, &BTreeMap::new(), Some((&now, Duration::from_secs(2))));
        assert_eq!(swapped.elements["f"]["count"].rate, Some(0.0), "a counter that began anew");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
    }
}
