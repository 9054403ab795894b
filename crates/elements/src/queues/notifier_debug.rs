//! NotifierDebug.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "NotifierDebug",
    category: "queues",
    summary: "shows what the notifiers next to it say",
    ports: "1/1",
    processing: "a/a",
    doc: "Packets pass. The handler `signal` says what notifiers a puller finds above it (`empty`), or a pusher below it \
          (`full`): `empty.0/3:1*` are those with the bits 3, of which those of 1 are on, and `*` that one is on at all. `busy*` \
          is one that is always on, `idle` one that never is. The bits count from one in the order in which elements ask.",
    handlers: &[reads("signal", "the notifiers that it finds")],
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> NotifierDebug -> Unqueue -> Discard;",
    see: &["Queue", "NotifierQueue"],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(NotifierDebug))
    },
    ..Spec::DEFAULT
};

struct NotifierDebug;

impl Element for NotifierDebug {
    fn packet(&mut self, _port: usize, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        Verdict::Pass
    }

    fn read(&mut self, _handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(cx.notifiers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn where_nobody_notifies_there_are_always_packets() {
        assert_eq!(Harness::pulled(&SPEC, "").unwrap().read("signal").unwrap(), "busy*");
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push(0, Packet::from_bytes(b"x").unwrap());
        assert_eq!((h.take(0).len(), h.read("signal").unwrap()), (1, "busy*".to_owned()));
    }
}
