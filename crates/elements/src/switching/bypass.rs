//! Bypass.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Bypass",
    category: "switching",
    summary: "leads packets by another way while it is active",
    ports: "1-2/1-2",
    processing: "a/a",
    flow: "xy/[xy]x",
    doc: "Passes packets like Null. While it is ACTIVE, packets that are pushed to input 0 leave by output 1, and pulls \
          from output 0 are answered from input 1, if there is such a port. Input 1 and output 1 lead back: packets that \
          are pushed to input 1 leave by output 0, and pulls from output 1 are answered from input 0.",
    args: Bypass::ARGS,
    handlers: Bypass::HANDLERS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> b :: Bypass -> Discard; b[1] -> Print -> [1] b;",
    see: &["Switch", "PullSwitch", "Null"],
    build: configured::<Bypass>,
    ..Spec::DEFAULT
};

settings! {
    struct Bypass {
        active: bool = optional("ACTIVE", "boolean", "whether packets take the other way; default false"), or(false),
            live("active", "whether packets take the other way");
        inline: bool = keyword("INLINE", "boolean", "accepted for compatibility"), or(false);
    }
}

impl Element for Bypass {
    fn packet(&mut self, port: usize, _packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        Verdict::Out(usize::from(self.active && port == 0 && cx.n_outputs() > 1))
    }

    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let input = usize::from(self.active && port == 0 && cx.n_inputs() > 1);
        cx.pull(input, max, batch);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    #[test]
    fn pushed_packets_take_one_way_or_the_other() {
        let mut h = Harness::new(&SPEC, "", 2, 2).unwrap();
        let ways = |h: &mut Harness| {
            h.push(0, packet(b"x"));
            h.push_all(1, [packet(b"y"), packet(b"z")]);
            h.assert_balanced();
            [0, 1].map(|port| h.take(port).len())
        };
        assert_eq!(ways(&mut h), [3, 0]);
        h.write("active", "true").unwrap();
        assert_eq!((ways(&mut h), h.read("active").unwrap()), ([2, 1], "true".to_owned()));
        let mut h = Harness::new(&SPEC, "true", 1, 1).unwrap();
        h.push(0, packet(b"x"));
        assert_eq!(h.take(0).len(), 1);
    }

    #[test]
    fn pulls_are_answered_from_one_way_or_the_other() {
        let ports = Ports { pulled_inputs: vec![true; 2], outputs: vec![Output::Pulled; 2] };
        let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
        (0..3).for_each(|_| (0..2).for_each(|input| h.feed(input, packet(&[input as u8]))));
        let from = |h: &mut Harness, port| h.pull(port, 1)[0].data()[0];
        assert_eq!((from(&mut h, 0), from(&mut h, 1)), (0, 0));
        h.write("active", "true").unwrap();
        assert_eq!((from(&mut h, 0), from(&mut h, 1)), (1, 0));
    }
}
