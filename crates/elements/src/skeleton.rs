//! Skeleton.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Skeleton",
    category: "skeleton",
    summary: "passes packets of some length",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Passes packets of LENGTH bytes and more. Shorter ones go to output 1 if that is connected, and are dropped \
          otherwise.",
    args: Skeleton::ARGS,
    handlers: Skeleton::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Skeleton(14) -> Discard;",
    see: &["CheckLength"],
    build: configured::<Skeleton>,
    ..Spec::DEFAULT
};

settings! {
    struct Skeleton {
        length: u32 = required("LENGTH", "bytes", "the shortest packet that passes"),
            live("length", "the shortest packet that passes, in bytes");
    }
    counts {
        short: u64 = reads("drops", "packets that were too short, dropped or not").counts(Unit::Packets);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "the packet is shorter than LENGTH, and output 1 is not connected";
    }
}

impl Element for Skeleton {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let fits = packet.len() >= self.length as usize;
        self.short += u64::from(!fits);
        fits.or_divert(1, Reason::Short)
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
    fn short_packets_are_diverted_or_dropped() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "3", 1, outputs).unwrap();
            h.push_all(0, [packet(b"ab"), packet(b"abc")]);
            assert_eq!((h.take(0).len(), h.take(1).len(), h.drops().len()), (1, outputs - 1, 2 - outputs));
            assert_eq!(h.read("drops").unwrap(), "1");
            h.assert_balanced();
        }
    }
}
