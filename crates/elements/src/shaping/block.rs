//! Block.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Block",
    category: "shaping",
    summary: "sorts out packets of addresses that send much",
    ports: "1/2",
    processing: "h/h",
    doc: "Goes by the annotation FWD_RATE that IPRateMonitor sets: packets for which it is THRESH or less leave by output 0, and \
          others by output 1. With a THRESH of 0 all leave by output 0.",
    args: Block::ARGS,
    handlers: Block::HANDLERS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7) -> IPRateMonitor(PACKETS, 1, 100) \
              -> b :: Block(500); b[0] -> Discard; b[1] -> Discard;",
    see: &["IPRateMonitor", "CompareBlock", "Meter"],
    build: configured::<Block>,
    ..Spec::DEFAULT
};

settings! {
    struct Block {
        threshold: i32 = required("THRESH", "per second", "the highest rate that passes; 0 means any"), live("thresh", "THRESH");
    }
}

impl Element for Block {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let rate = packet.anno_u32(Anno::AGGREGATE.offset) as i32;
        if self.threshold == 0 || rate <= self.threshold { Verdict::Pass } else { Verdict::Out(1) }
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
    fn the_rate_decides() {
        for (config, rate, output) in [("100", 100, 0), ("100", 101, 1), ("0", 101, 0)] {
            let mut h = Harness::new(&SPEC, config, 1, 2).unwrap();
            let mut p = packet(b"x");
            p.set_anno_u32(Anno::AGGREGATE.offset, rate);
            h.push(0, p);
            assert_eq!(h.take(output).len(), 1, "{config} {rate}");
        }
    }
}
