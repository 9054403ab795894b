//! PushNull.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "PushNull",
    category: "basic",
    summary: "passes packets that are pushed on unchanged",
    ports: "1/1",
    processing: "h/h",
    doc: "As Null, but its ports push: agnostic elements beside it do, too.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> PushNull -> Discard;",
    see: &["Null", "PullNull"],
    build: configured::<PushNull>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct PushNull {}
}

impl Element for PushNull {
    fn lower(&self) -> Option<Program> {
        Builder::pass()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn packets_pass() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push(0, packet(b"x"));
        assert_eq!(h.take(0).len(), 1);
    }
}
