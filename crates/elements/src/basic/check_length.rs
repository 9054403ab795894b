//! CheckLength.

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

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    fn packet(len: usize, extra: u32) -> Packet {
        let mut p = Packet::from_bytes(&vec![0; len]).unwrap();
        p.set_anno_u32(Anno::EXTRA_LENGTH.offset, extra);
        p
    }

    #[test]
    fn longer_ones_are_diverted_or_dropped() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "10", 1, outputs).unwrap();
            h.push_all(0, [packet(11, 0), packet(10, 9), packet(0, 0)]);
            assert_eq!((h.take(0).len(), h.take(1).len()), (2, outputs - 1));
            h.write("length", "11").unwrap();
            h.push(0, packet(11, 0));
            assert_eq!((h.take(0).len(), h.read("length").unwrap()), (1, "11".to_owned()));
            assert_eq!(h.drops().len(), 2 - outputs);
            h.assert_balanced();
        }
    }

    #[test]
    fn extra_length_counts_if_asked() {
        let mut h = Harness::pulled(&SPEC, "10, USE_EXTRA_LENGTH true").unwrap();
        [packet(10, 0), packet(9, 2), packet(0, u32::MAX)].into_iter().for_each(|p| h.feed(0, p));
        assert_eq!((h.pull(0, 9).len(), h.drops()), (1, vec![("too-long", 2)]));
    }
}
