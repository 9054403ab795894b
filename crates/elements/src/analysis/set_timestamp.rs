//! SetTimestamp.

use super::timestamps::set_time_ns;
use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "SetTimestamp",
    category: "analysis",
    summary: "gives packets a timestamp",
    doc: "Sets the timestamp of packets to TIMESTAMP, or to the present time. With FIRST it sets the first-timestamp \
          annotation instead.",
    args: SetTimestamp::ARGS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> SetTimestamp -> Discard;",
    see: &["AdjustTimestamp", "DelayShaper", "SetTimestampDelta", "StoreTimestamp"],
    build,
    stamps: true,
    ..Spec::DEFAULT
};

settings! {
    struct SetTimestamp {
        timestamp: Option<Nanoseconds> = optional("TIMESTAMP", "seconds", "time since the epoch; default the present"), or(None);
        first: bool = keyword("FIRST", "boolean", "whether to set the first-timestamp annotation; default false"), or(false);
        delta: bool = keyword("DELTA", "boolean", "what SetTimestampDelta does in its place"), or(false);
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let set = SetTimestamp::configure(conf);
    if set.delta {
        conf.error("SetTimestamp(DELTA) is deprecated, use SetTimestampDelta(TYPE FIRST)");
    }
    conf.finish()?;
    Ok(Box::new(set))
}

impl Element for SetTimestamp {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let ns = self.timestamp.map_or_else(|| cx.now_ns(), |time| time.0);
        set_time_ns(packet, self.first, ns);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::super::timestamps::time_ns;
    use super::*;
    use causeway_engine::clock::SIMULATED_START_NS;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn times_are_set() {
        let of = |config: &str| {
            let p = verdict(&SPEC, config, packet(b"x")).unwrap();
            [time_ns(&p, false), time_ns(&p, true)]
        };
        assert_eq!(of("1.5"), [1_500_000_000, 0]);
        assert_eq!(of("2, FIRST true"), [0, 2_000_000_000]);
        assert!(of("")[0] >= SIMULATED_START_NS);
        assert!(Harness::new(&SPEC, "DELTA true", 1, 1).is_err());
    }
}
