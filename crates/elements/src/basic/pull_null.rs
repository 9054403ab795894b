//! PullNull.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "PullNull",
    category: "basic",
    summary: "passes packets that are pulled on unchanged",
    ports: "1/1",
    processing: "l/l",
    doc: "As Null, but its ports pull: agnostic elements beside it do, too.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> PullNull -> Discard;",
    see: &["Null", "PushNull"],
    build: configured::<PullNull>,
    ..Spec::DEFAULT
};

settings! {
    struct PullNull {}
}

impl Element for PullNull {}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn packets_pass() {
        let mut h = Harness::pulled(&SPEC, "").unwrap();
        h.feed(0, packet(b"x"));
        assert_eq!(h.pull(0, 8).len(), 1);
    }
}
