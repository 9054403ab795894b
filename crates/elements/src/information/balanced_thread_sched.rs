//! BalancedThreadSched.

use super::Settled;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "BalancedThreadSched",
    aliases: &["SortedTaskSched"],
    category: "information",
    summary: "would balance tasks between workers; they stay where they are",
    ports: "0/0",
    doc: "Elements stay on the workers where StaticThreadSched, or the router by itself, has put them, since what they know is there. \
          The arguments are read and have no effect.",
    args: &[
        optional("INTERVAL", "milliseconds", "without effect"),
        optional("INCREASING", "boolean", "without effect"),
    ],
    example: "BalancedThreadSched(100); InfiniteSource(LIMIT 9, STOP true) -> Discard;",
    see: &["StaticThreadSched"],
    build: |conf| {
        conf.optional("INTERVAL", 1_000u32);
        conf.optional("INCREASING", true);
        conf.finish()?;
        Ok(Box::new(Settled))
    },
    ..Spec::DEFAULT
};
