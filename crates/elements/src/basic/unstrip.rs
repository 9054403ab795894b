//! Unstrip.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Unstrip",
    category: "basic",
    summary: "puts bytes back on the front of packets",
    ports: "1/1",
    processing: "a/a",
    doc: "Grows each packet by LENGTH bytes at its front. They are the bytes that a Strip took off, if one did; \
          otherwise their content is not defined. Packets whose frame has no room are dropped.",
    args: Unstrip::ARGS,
    handlers: Unstrip::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Unstrip(14) -> Discard;",
    see: &["Strip"],
    build: configured::<Unstrip>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoRoom = "no-room", "the packet's frame has no room for LENGTH bytes more";
    }
}

settings! {
    struct Unstrip {
        length: u32 = required("LENGTH", "bytes", "how many to put back"), live("length", "bytes put back");
    }
}

impl Element for Unstrip {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.push(self.length as usize).or_drop(Reason::NoRoom)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.push(self.length);
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn what_was_stripped_comes_back_if_there_is_room() {
        let mut stripped = packet(b"abcdef");
        stripped.pull(4).unwrap();
        assert_eq!(verdict(&SPEC, "3", stripped).unwrap().data(), b"bcdef");
        assert_eq!(verdict(&SPEC, "4000000", packet(b"abc")).err(), Some("no-room"));
    }
}
