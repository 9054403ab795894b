//! CompareBlock.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "CompareBlock",
    category: "shaping",
    summary: "sorts out packets of addresses that send much more than they get",
    ports: "1/2",
    processing: "h/h",
    doc: "Goes by the annotations FWD_RATE and REV_RATE that IPRateMonitor sets: where one of them is above THRESH, and \
          FWD_WEIGHT times the first is more than REV_WEIGHT times the second, the packet leaves by output 1; else by output 0.",
    args: CompareBlock::ARGS,
    handlers: CompareBlock::HANDLERS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7) -> IPRateMonitor(PACKETS, 1, 100) \
              -> b :: CompareBlock(5, 2, 100); b[0] -> Discard; b[1] -> Discard;",
    see: &["IPRateMonitor", "Block", "Meter"],
    build: configured::<CompareBlock>,
    ..Spec::DEFAULT
};

settings! {
    struct CompareBlock {
        forward: i32 = required("FWD_WEIGHT", "number", "weight of the rate from the address"), live("fwd_weight", "FWD_WEIGHT");
        reverse: i32 = required("REV_WEIGHT", "number", "weight of the rate to it"), live("rev_weight", "REV_WEIGHT");
        threshold: i32 = required("THRESH", "per second", "rate below which all pass"), live("thresh", "THRESH");
    }
}

impl Element for CompareBlock {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let [forward, reverse] =
            [Anno::AGGREGATE, Anno::EXTRA_PACKETS].map(|anno| packet.anno_u32(anno.offset) as i32);
        let much = forward > self.threshold || reverse > self.threshold;
        let more =
            i64::from(self.forward) * i64::from(forward) > i64::from(self.reverse) * i64::from(reverse);
        if much && more { Verdict::Out(1) } else { Verdict::Pass }
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
    fn weights_and_threshold_decide() {
        let mut h = Harness::new(&SPEC, "5, 2, 100", 1, 2).unwrap();
        for (forward, reverse, output) in
            [(100, 100, 0), (101, 10, 1), (50, 101, 1), (40, 101, 0), (41, 101, 1), (0, 0, 0)]
        {
            let mut p = packet(b"x");
            p.set_anno_u32(Anno::AGGREGATE.offset, forward);
            p.set_anno_u32(Anno::EXTRA_PACKETS.offset, reverse);
            h.push(0, p);
            assert_eq!(h.take(output).len(), 1, "{forward} {reverse}");
        }
    }
}
