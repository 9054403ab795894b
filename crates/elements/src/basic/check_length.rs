//! CheckLength.

use super::truncate::host_order;
use causeway_engine::ir::{Alu, Field, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckLength",
    category: "basic",
    summary: "passes packets up to a length",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Passes packets of at most LENGTH bytes. Longer ones go to output 1 if that is connected, and are dropped \
          otherwise. With USE_EXTRA_LENGTH the bytes that the packet's extra-length annotation stands for count too.",
    args: CheckLength::ARGS,
    handlers: CheckLength::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> c :: CheckLength(1500) -> Discard; c[1] -> Discard;",
    see: &["IPFragmenter", "IPOutputCombo"],
    build: configured::<CheckLength>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        TooLong = "too-long", "the packet is longer than LENGTH, and output 1 is not connected";
    }
}

settings! {
    struct CheckLength {
        length: u32 = required("LENGTH", "bytes", "the longest packet that passes"),
            live("length", "the longest packet that passes, in bytes");
        use_extra: bool = keyword("USE_EXTRA_LENGTH", "boolean", "whether the extra-length annotation counts; default false"),
            or(false);
    }
}

impl Element for CheckLength {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let extra = if self.use_extra { packet.anno_u32(Anno::EXTRA_LENGTH.offset) } else { 0 };
        (packet.len() + extra as usize <= self.length as usize).or_divert(1, Reason::TooLong)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let mut len = b.get(Field::Length);
        if self.use_extra {
            let extra = host_order(&mut b, Anno::EXTRA_LENGTH);
            len = b.compute(Alu::Add, len, extra);
        }
        b.forbid(Test::Above(len.into(), u64::from(self.length).into()));
        b.leave(0);
        b.finish()
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
    fn longer_ones_are_diverted_or_dropped() {
        for (config, outputs, passed) in [("10", 1, 2), ("10", 2, 2), ("10, USE_EXTRA_LENGTH true", 2, 1)] {
            let mut h = Harness::new(&SPEC, config, 1, outputs).unwrap();
            for (len, extra) in [(11, 0), (10, 9), (0, 0)] {
                let mut p = packet(&vec![0; len]);
                p.set_anno_u32(Anno::EXTRA_LENGTH.offset, extra);
                h.push(0, p);
            }
            assert_eq!(
                (h.take(0).len(), h.take(1).len()),
                (passed, (outputs - 1) * (3 - passed)),
                "{config}"
            );
            assert_eq!(h.drops().len(), 2 - outputs);
        }
    }
}
