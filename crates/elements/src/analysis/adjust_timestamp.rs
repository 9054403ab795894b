//! AdjustTimestamp.

use super::timestamps::{Signed, set_time_ns, time_ns};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "AdjustTimestamp",
    category: "analysis",
    summary: "adds a time to timestamps of packets",
    doc: "TIME may be negative. Timestamps that are not set stay so, unless ALL says otherwise.",
    args: AdjustTimestamp::ARGS,
    handlers: AdjustTimestamp::HANDLERS,
    example: "InfiniteSource(LIMIT 5) -> SetTimestamp -> AdjustTimestamp(-1h) -> Discard;",
    see: &["SetTimestamp", "SetTimestampDelta"],
    build: configured::<AdjustTimestamp>,
    ..Spec::DEFAULT
};

settings! {
    struct AdjustTimestamp {
        time: Signed = optional("TIME", "seconds", "what is added; default 0"), or(Signed(0)), live("time", "TIME");
        first: bool = keyword("FIRST", "boolean", "whether the first timestamp is meant; default false"), or(false);
        all: bool = keyword("ALL", "boolean", "whether those that are not set change too; default false"), or(false);
    }
}

impl Element for AdjustTimestamp {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let ns = time_ns(packet, self.first);
        if ns > 0 || self.all {
            set_time_ns(packet, self.first, ns.saturating_add_signed(self.time.0));
        }
        Verdict::Pass
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn times_move() {
        let mut h = Harness::new(&SPEC, "-1ms", 1, 1).unwrap();
        let moved = |ns: u64, h: &mut Harness| {
            let mut p = packet(b"x");
            p.set_timestamp_ns(ns);
            h.push(0, p);
            h.take(0)[0].timestamp_ns()
        };
        assert_eq!((moved(5_000_000, &mut h), moved(0, &mut h), moved(5, &mut h)), (4_000_000, 0, 0));
        assert_eq!(h.read("time").unwrap(), "-1ms");
        h.write("time", "2").unwrap();
        assert_eq!(moved(1, &mut h), 2_000_000_001);
        let mut h = Harness::new(&SPEC, "1, ALL true", 1, 1).unwrap();
        assert_eq!(moved(0, &mut h), 1_000_000_000);
    }
}
