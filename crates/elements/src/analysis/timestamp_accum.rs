//! TimestampAccum.

use crate::real;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "TimestampAccum",
    category: "analysis",
    summary: "adds up the time since packets' timestamps",
    doc: "Packets pass unchanged.",
    handlers: &[
        reads("count", "packets").counts(Unit::Packets),
        reads("time", "the sum of the times from packets' timestamps until now, in seconds")
            .measures(Unit::None),
        reads("average_time", "the same for each packet; of several workers' the longest")
            .measures(Unit::None)
            .across(Across::Max),
        writes("reset_counts", "sets both to zero"),
    ],
    example: "InfiniteSource(LIMIT 5) -> SetTimestamp -> TimestampAccum -> Discard;",
    see: &["SetTimestamp"],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(TimestampAccum { count: 0, sum_ns: 0 }))
    },
    stamps: true,
    ..Spec::DEFAULT
};

struct TimestampAccum {
    count: u64,
    sum_ns: i128,
}

impl Element for TimestampAccum {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.count += 1;
        self.sum_ns += i128::from(cx.now_ns()) - i128::from(packet.timestamp_ns());
        Verdict::Pass
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let seconds = self.sum_ns as f64 / 1e9;
        Ok(match handler {
            "count" => self.count.to_string(),
            "time" => real::shown(seconds),
            _ => real::shown(seconds / self.count as f64),
        })
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        (self.count, self.sum_ns) = (0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::clock::SIMULATED_START_NS;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn times_add_up() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        for before_s in [1, 3] {
            let mut p = packet(b"x");
            p.set_timestamp_ns(SIMULATED_START_NS - before_s * 1_000_000_000);
            h.push(0, p);
        }
        let mut number = |handler: &str| h.read(handler).unwrap().parse::<f64>().unwrap();
        let told = [number("count"), number("time").round(), number("average_time").round()];
        assert_eq!(told, [2.0, 4.0, 2.0]);
        h.write("reset_counts", "").unwrap();
        assert_eq!(h.read("count").unwrap(), "0");
    }
}
