//! Null.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Null",
    aliases: &["Null1", "Null2", "Null3", "Null4", "Null5", "Null6", "Null7", "Null8"],
    category: "basic",
    summary: "passes packets on unchanged",
    ports: "1/1",
    processing: "a/a",
    doc: "Does nothing with its packets. It holds a place in a graph: a name to connect to, or the cost of one \
          element more in a measurement.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> Null -> Discard;",
    see: &["PushNull", "PullNull", "Idle", "Discard"],
    build: configured::<Null>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct Null {}
}

impl Element for Null {
    fn lower(&self) -> Option<Program> {
        Builder::pass()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn pushed_or_pulled_packets_pass() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push_all(0, (0..3u8).map(|n| packet(&[n])));
        assert_eq!(h.take(0).iter().map(|p| p.data()[0]).collect::<Vec<_>>(), [0, 1, 2]);
        let mut h = Harness::pulled(&SPEC, "").unwrap();
        h.feed(0, packet(b"x"));
        assert_eq!(h.pull(0, 8).len(), 1);
    }
}
