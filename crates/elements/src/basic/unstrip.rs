//! Unstrip.

use crate::sieve::pass_or_drop;
use causeway_engine::spec::{drops, reads_writes, required};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "Unstrip",
    category: "basic",
    summary: "puts bytes back on the front of packets",
    ports: "1/1",
    processing: "a/a",
    doc: "Grows each packet by LENGTH bytes at its front. They are the bytes that a Strip took off, if one did; \
          otherwise their content is not defined. Packets whose frame has no room are dropped.",
    args: &[required("LENGTH", "bytes", "how many to put back")],
    handlers: &[reads_writes("length", "bytes put back")],
    drops: &[drops("no-room", "the packet's frame has no room for LENGTH bytes more")],
    example: "InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Unstrip(14) -> Discard;",
    see: &["Strip"],
    build,
    ..Spec::DEFAULT
};

const NO_ROOM: usize = 0;

struct Unstrip {
    length: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let length: u32 = conf.required("LENGTH");
    conf.finish()?;
    Ok(Box::new(Unstrip { length: length as usize }))
}

impl Element for Unstrip {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let length = self.length;
        pass_or_drop(batch, cx, |packet| packet.push(length).map(drop).map_err(|_| NO_ROOM));
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.length.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, _cx: &mut Cx<'_>) -> Result<(), String> {
        self.length = crate::handlers::value::<u32>(handler, value)? as usize;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    #[test]
    fn gives_back_what_was_stripped() {
        let mut h = Harness::new(&SPEC, "3", 1, 1).unwrap();
        let mut packet = Packet::from_bytes(b"abcdef").unwrap();
        packet.pull(4).unwrap();
        h.push(0, packet);
        assert_eq!(h.take(0)[0].data(), b"bcdef");
    }

    #[test]
    fn what_does_not_fit_the_frame_is_dropped() {
        let mut h = Harness::new(&SPEC, "4000000", 1, 1).unwrap();
        h.push(0, Packet::from_bytes(b"abc").unwrap());
        assert_eq!((h.take(0).len(), h.drops()), (0, vec![("no-room", 1)]));
        h.write("length", "1").unwrap();
        h.push(0, Packet::from_bytes(b"abc").unwrap());
        assert_eq!((h.take(0)[0].len(), h.read("config").unwrap()), (4, "1".to_owned()));
        h.assert_balanced();
    }
}
