//! SetTimestamp.

use super::timestamps::set_time_ns;
use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "SetTimestamp",
    category: "analysis",
    summary: "sets the timestamp of packets",
    doc: "Without TIMESTAMP it is the present time.",
    args: &[
        optional("TIMESTAMP", "seconds", "since the epoch; default the present time"),
        keyword("FIRST", "boolean", "whether to set the first timestamp instead; default false"),
    ],
    example: "InfiniteSource(LIMIT 5) -> SetTimestamp -> Discard;",
    see: &["AdjustTimestamp", "SetTimestampDelta", "StoreTimestamp"],
    build,
    ..Spec::DEFAULT
};

struct SetTimestamp {
    ns: Option<u64>,
    first: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let ns = conf.optional("TIMESTAMP", None::<Nanoseconds>).map(|t| t.0);
    let first = conf.keyword("FIRST", false);
    if conf.keyword("DELTA", false) {
        conf.error("SetTimestamp(DELTA) is deprecated, use SetTimestampDelta(TYPE FIRST)");
    }
    conf.finish()?;
    Ok(Box::new(SetTimestamp { ns, first }))
}

impl Element for SetTimestamp {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let ns = self.ns.unwrap_or_else(|| cx.now_ns());
        set_time_ns(packet, self.first, ns);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::super::timestamps::time_ns;
    use super::*;
    use causeway_engine::clock::SIMULATED_START_NS;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn times_are_set() {
        let of = |config: &str| {
            let p = verdict(&SPEC, config, packet(b"x")).unwrap();
            [time_ns(&p, false), time_ns(&p, true)]
        };
        assert_eq!(of("1.5"), [1_500_000_000, 0]);
        assert_eq!(of("2, FIRST true"), [0, 2_000_000_000]);
        assert!(of("")[0] >= SIMULATED_START_NS);
    }
}
