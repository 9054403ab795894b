//! Idle.

use causeway_engine::spec::drops;
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "Idle",
    category: "basic",
    summary: "emits nothing and discards what it is pushed",
    ports: "-/-",
    processing: "a/a",
    flow: "x/y",
    doc: "Never pushes a packet, answers every pull with nothing, never pulls, and drops the packets that are \
          pushed to it. It closes ports that a configuration does not use, of any kind and number.",
    drops: &[drops("idle", "it was pushed to an Idle")],
    example: "Idle -> Discard; InfiniteSource(LIMIT 5, STOP true) -> Idle;",
    see: &["Null", "Discard"],
    build,
    ..Spec::DEFAULT
};

const IDLE: usize = 0;

struct Idle;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(Idle))
}

impl Element for Idle {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.count_drops(IDLE, batch.len() as u64);
        batch.clear();
    }

    fn pull(&mut self, _port: usize, _max: usize, _batch: &mut Batch, _cx: &mut Cx<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    #[test]
    fn drops_what_it_is_pushed() {
        let mut h = Harness::new(&SPEC, "", 2, 1).unwrap();
        h.push(0, Packet::from_bytes(b"x").unwrap());
        h.push(1, Packet::from_bytes(b"y").unwrap());
        assert_eq!((h.take(0).len(), h.drops()), (0, vec![("idle", 2)]));
        h.assert_balanced();
    }

    #[test]
    fn gives_nothing_and_takes_nothing() {
        let mut h = Harness::pulled(&SPEC, "").unwrap();
        h.feed(0, Packet::from_bytes(b"x").unwrap());
        assert!(h.pull(0, 8).is_empty());
        h.assert_balanced();
    }
}
