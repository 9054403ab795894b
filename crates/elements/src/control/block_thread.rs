//! BlockThread.

use causeway_engine::prelude::*;
use causeway_lang::values::{SECOND_NS, time_ns};
use std::time::Duration;

pub(crate) static SPEC: Spec = Spec {
    name: "BlockThread",
    category: "control",
    summary: "blocks its worker for a time, to see what comes of that",
    ports: "0/0",
    doc: "Its handler `block` lets the worker that it lives on do nothing for so many seconds, 4 at most, so that nobody \
          takes the worker for stuck. That is good for tests of what other workers do meanwhile, and for nothing else.",
    handlers: &[writes("block", "blocks for a time, such as `20ms`").private()],
    example: "b :: BlockThread; Script(write b.block 1ms, stop);",
    see: &["Script", "StaticThreadSched"],
    copies: Copies::One,
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(BlockThread))
    },
    ..Spec::DEFAULT
};

/// A worker that is silent for longer is taken for one that is stuck.
const LONGEST: Duration = Duration::from_secs(4);

struct BlockThread;

impl Element for BlockThread {
    #[expect(clippy::disallowed_methods, reason = "to block is what it is for")]
    fn write(&mut self, _handler: &str, value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        let ns = time_ns(value.trim(), SECOND_NS).map_err(|_| "bad TIME")?;
        std::thread::sleep(Duration::from_nanos(ns).min(LONGEST));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn it_takes_times() {
        let mut h = Harness::new(&SPEC, "", 0, 0).unwrap();
        assert_eq!((h.write("block", "1us"), h.write("block", "x")), (Ok(()), Err("bad TIME".to_owned())));
    }
}
