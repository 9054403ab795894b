//! AggregatePaint.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregatePaint",
    category: "analysis",
    summary: "sets the aggregate annotation to the paint of packets",
    doc: "The lowest BITS bits of the paint annotation become the aggregate, or with INCREMENTAL are appended to its bits.",
    args: &[
        optional("BITS", "1 to 8", "how many bits; default 8"),
        keyword("INCREMENTAL", "boolean", "whether they are appended; default false"),
    ],
    example: "InfiniteSource(LIMIT 5) -> Paint(3) -> AggregatePaint -> Discard;",
    see: &["AggregateIP", "Paint"],
    build,
    ..Spec::DEFAULT
};

struct AggregatePaint {
    bits: u32,
    incremental: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let bits = conf.optional("BITS", 8u32);
    let incremental = conf.keyword("INCREMENTAL", false);
    if !(1..=8).contains(&bits) {
        conf.error("bad number of bits");
    }
    conf.finish()?;
    Ok(Box::new(AggregatePaint { bits, incremental }))
}

impl Element for AggregatePaint {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let mut aggregate = u32::from(packet.paint()) & ((1 << self.bits) - 1);
        if self.incremental {
            let old = packet.anno_u32(Anno::AGGREGATE.offset);
            aggregate = (old << self.bits).wrapping_add(aggregate);
        }
        packet.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn paint_is_the_aggregate() {
        let of = |config: &str| {
            let mut p = packet(b"x");
            p.set_paint(0x2b);
            p.set_anno_u32(Anno::AGGREGATE.offset, 5);
            verdict(&SPEC, config, p).unwrap().anno_u32(Anno::AGGREGATE.offset)
        };
        assert_eq!((of(""), of("4"), of("4, INCREMENTAL true")), (0x2b, 0xb, 0x5b));
        assert_eq!(Harness::new(&SPEC, "9", 1, 1).err().unwrap(), ["bad number of bits"]);
    }
}
