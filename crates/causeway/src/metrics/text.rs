//! The two text formats that Prometheus and others read: its own, version 0.0.4, and OpenMetrics 1.0.0. They differ in
//! where a counter's `_total` stands, in the line for the unit, and in the end.

use super::Family;
use causeway_engine::measure::Kind;
use std::fmt::Write;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Media type of the format.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Name of the format as an argument of the handler `metrics`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Prometheus => "prometheus",
            Format::OpenMetrics => "openmetrics",
        }
    }

    /// The format of that name; without one that of Prometheus.
    pub fn by_name(name: &str) -> Option<Format> {
        if name.is_empty() {
            return Some(Format::Prometheus);
        }
        [Format::Prometheus, Format::OpenMetrics].into_iter().find(|f| f.name() == name)
    }

    /// The format that a client wants who sends this header `Accept` (RFC 9110, 12.5.1): OpenMetrics if it is asked for
    /// by name and nothing else is liked better.
    pub fn accepted(accept: &str) -> Format {
        let weight = |media: &str| {
            let ranges = accept.split(',').map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let name = parts.next().unwrap_or_default().to_ascii_lowercase();
                let q = parts.find_map(|p| p.strip_prefix("q=")?.parse::<f32>().ok());
                (name, q.unwrap_or(1.0))
            });
            ranges.filter(|(name, _)| name == media).map(|(_, q)| q).fold(0.0, f32::max)
        };
        let open = weight("application/openmetrics-text");
        let plain = weight("text/plain");
        if open > 0.0 && open >= plain { Format::OpenMetrics } else { Format::Prometheus }
    }
}

/// `families` in that format.
pub(super) fn write(families: &[Family], format: Format) -> String {
    let mut text = String::new();
    for family in families {
        let counter = family.kind == Kind::Counter;
        let sample = if counter { format!("{}_total", family.name) } else { family.name.clone() };
        let name = if format == Format::OpenMetrics { &family.name } else { &sample };
        let kind = if counter { "counter" } else { "gauge" };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# HELP {name} {}", escaped(&family.help, format == Format::OpenMetrics));
        let _ = writeln!(text, "# TYPE {name} {kind}");
        if let (Format::OpenMetrics, Some(unit)) = (format, family.unit) {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        for s in &family.samples {
            let labels: Vec<String> =
                s.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "{sample}{labels} {}", s.value);
        }
    }
    if format == Format::OpenMetrics {
        text += "# EOF\n";
    }
    text
}

fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;

    fn families() -> [Family; 2] {
        let element = |name: &str| vec![("element", name.to_owned())];
        [
            Family {
                name: "causeway_count_packets".to_owned(),
                help: "Packets with \"quotes\" and a \\.".to_owned(),
                kind: Kind::Counter,
                unit: Some("packets"),
                samples: vec![Sample { labels: element("a/b\"c\\d\ne"), value: 1e15 }],
            },
            Family {
                name: "causeway_workers".to_owned(),
                help: "Threads.".to_owned(),
                kind: Kind::Gauge,
                unit: None,
                samples: vec![Sample { labels: vec![], value: 2.5 }],
            },
        ]
    }

    #[test]
    fn the_format_of_prometheus_has_total_in_the_name() {
        assert_eq!(
            write(&families(), Format::Prometheus),
            "# HELP causeway_count_packets_total Packets with \"quotes\" and a \\\\.\n\
             # TYPE causeway_count_packets_total counter\n\
             causeway_count_packets_total{element=\"a/b\\\"c\\\\d\\ne\"} 1000000000000000\n\
             # HELP causeway_workers Threads.\n\
             # TYPE causeway_workers gauge\n\
             causeway_workers 2.5\n"
        );
    }

    #[test]
    fn openmetrics_has_a_unit_and_an_end() {
        assert_eq!(
            write(&families(), Format::OpenMetrics),
            "# HELP causeway_count_packets Packets with \\\"quotes\\\" and a \\\\.\n\
             # TYPE causeway_count_packets counter\n\
             # UNIT causeway_count_packets packets\n\
             causeway_count_packets_total{element=\"a/b\\\"c\\\\d\\ne\"} 1000000000000000\n\
             # HELP causeway_workers Threads.\n\
             # TYPE causeway_workers gauge\n\
             causeway_workers 2.5\n\
             # EOF\n"
        );
    }

    #[test]
    fn clients_get_the_format_that_they_like_best() {
        let of_prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        for (accept, format) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/html", Format::Prometheus),
            (of_prometheus, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("Application/OpenMetrics-Text; q=0.3, text/plain;q=0.8", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
