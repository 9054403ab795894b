//! Idle.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Idle",
    aliases: &["SimpleIdle"],
    category: "basic",
    summary: "emits nothing and discards what it is pushed",
    ports: "-/-",
    processing: "a/a",
    flow: "x/y",
    doc: "Never pushes a packet, answers every pull with nothing, never pulls, and drops the packets that are \
          pushed to it. It closes ports that a configuration does not use, of any kind and number.",
    drops: Reason::DOCS,
    example: "Idle -> Discard; InfiniteSource(LIMIT 5, STOP true) -> Idle;",
    see: &["Null", "Discard"],
    build: configured::<Idle>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Idle = "idle", "it was pushed to an Idle";
    }
}

settings! {
    struct Idle {}
}

impl Element for Idle {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        Verdict::drop(Reason::Idle)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.drop(Reason::Idle as u16);
        b.finish()
    }

    fn pull(&mut self, _port: usize, _max: usize, _batch: &mut Batch, _cx: &mut Cx<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn drops_what_it_is_pushed_and_gives_nothing() {
        let mut h = Harness::new(&SPEC, "", 2, 1).unwrap();
        (0..2).for_each(|port| h.push(port, packet(b"x")));
        assert_eq!((h.take(0).len(), h.drops()), (0, vec![("idle", 2)]));
        let mut h = Harness::pulled(&SPEC, "").unwrap();
        h.feed(0, packet(b"x"));
        assert!(h.pull(0, 8).is_empty());
        h.assert_balanced();
    }
}
