//! Strip.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Strip",
    category: "basic",
    summary: "cuts bytes off the front of packets",
    ports: "1/1",
    processing: "a/a",
    doc: "Takes the first LENGTH bytes off each packet, such as the 14 of an Ethernet header. They stay in the \
          packet's headroom, where Unstrip finds them. Packets shorter than that are dropped.",
    args: Strip::ARGS,
    handlers: Strip::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Discard;",
    see: &["Unstrip"],
    build: configured::<Strip>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "the packet was shorter than LENGTH";
    }
}

settings! {
    struct Strip {
        length: u32 = required("LENGTH", "bytes", "how many to take off"), live("length", "bytes taken off");
    }
}

impl Element for Strip {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.pull(self.length as usize).or_drop(Reason::Short)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.pull(self.length);
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
    fn the_front_is_taken_off_if_it_is_there() {
        for (length, left) in [("0", Ok(&b"abc"[..])), ("2", Ok(b"c")), ("3", Ok(b"")), ("4", Err("short"))] {
            let out = verdict(&SPEC, length, packet(b"abc"));
            assert_eq!(out.as_ref().map(|p| p.data()).map_err(|why| *why), left, "{length}");
        }
    }
}
