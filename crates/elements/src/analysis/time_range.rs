//! TimeRange.

use crate::traces::fields::text::print_time;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "TimeRange",
    category: "analysis",
    summary: "tells the range of packets' timestamps",
    doc: "Packets pass unchanged.",
    args: &[keyword("SIMPLE", "boolean", "whether timestamps only grow; default false")],
    handlers: &[
        reads("first", "the earliest timestamp; 0 if there was none"),
        reads("last", "the latest timestamp"),
        reads("range", "both"),
        reads("interval", "the time between them; with SIMPLE less than 0 if timestamps went back"),
        writes("reset", "forgets both"),
    ],
    example: "InfiniteSource(LIMIT 5) -> TimeRange -> Discard;",
    see: &["TimeFilter"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

struct TimeRange {
    simple: bool,
    first_ns: u64,
    last_ns: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let simple = conf.keyword("SIMPLE", false);
    conf.finish()?;
    Ok(Box::new(TimeRange { simple, first_ns: 0, last_ns: 0 }))
}

impl Element for TimeRange {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let ns = packet.timestamp_ns();
        if self.first_ns == 0 {
            (self.first_ns, self.last_ns) = (ns, ns);
        } else if self.simple {
            self.last_ns = ns;
        } else {
            (self.first_ns, self.last_ns) = (self.first_ns.min(ns), self.last_ns.max(ns));
        }
        Verdict::Pass
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let mut text = String::new();
        match handler {
            "first" => print_time(self.first_ns, &mut text),
            "last" => print_time(self.last_ns, &mut text),
            "interval" => {
                if self.last_ns < self.first_ns {
                    text.push('-');
                }
                print_time(self.last_ns.abs_diff(self.first_ns), &mut text);
            }
            _ => {
                print_time(self.first_ns, &mut text);
                text.push(' ');
                print_time(self.last_ns, &mut text);
            }
        }
        Ok(text)
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        (self.first_ns, self.last_ns) = (0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_range_is_told() {
        for (config, range) in [("", "2.000000 5.500000"), ("SIMPLE true", "3.000000 2.000000")] {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            for ms in [3_000, 5_500, 2_000] {
                let mut p = packet(b"x");
                p.set_timestamp_ns(ms * 1_000_000);
                h.push(0, p);
            }
            assert_eq!(h.read("range").unwrap(), range);
            assert_eq!(h.read("first").unwrap(), range.split(' ').next().unwrap());
            h.write("reset", "").unwrap();
            assert_eq!((h.read("interval").unwrap(), h.take(0).len()), ("0.000000".into(), 3));
        }
    }
}
