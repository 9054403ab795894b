//! SetTimestamp.

use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "SetTimestamp",
    category: "annotations",
    summary: "gives packets a timestamp",
    doc: "Sets the timestamp of packets to TIMESTAMP, or to the present time. With FIRST it sets the first-timestamp \
          annotation instead.",
    args: SetTimestamp::ARGS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> SetTimestamp -> Discard;",
    see: &["CoDel", "DelayShaper"],
    build,
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
        if self.first {
            packet.set_anno_bytes(super::FIRST_TIMESTAMP, ns.to_ne_bytes());
        } else {
            packet.set_timestamp_ns(ns);
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::clock::SIMULATED_START_NS;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn packets_get_the_time() {
        assert_eq!(verdict(&SPEC, "5.5", packet(b"x")).unwrap().timestamp_ns(), 5_500_000_000);
        assert!(verdict(&SPEC, "", packet(b"x")).unwrap().timestamp_ns() >= SIMULATED_START_NS);
        let out = verdict(&SPEC, "7, FIRST true", packet(b"x")).unwrap();
        let first = u64::from_ne_bytes(out.anno_bytes(super::super::FIRST_TIMESTAMP));
        assert_eq!((out.timestamp_ns(), first), (0, 7_000_000_000));
        assert!(Harness::new(&SPEC, "DELTA true", 1, 1).is_err());
    }
}
