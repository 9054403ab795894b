//! SetTestPayload.

use causeway_engine::prelude::*;
use causeway_packet::wire::tester::{Tag, stamp};

pub(crate) static SPEC: Spec = Spec {
    name: "SetTestPayload",
    category: "sources",
    summary: "makes packets those of a router tester: numbers them and says when they were sent",
    doc: "Writes the number of the packet and the time into the first 18 bytes of the payload of UDP packets in Ethernet \
          frames, and makes their checksum right. Behind a source of such packets it is a traffic generator: TestCounter \
          and `causeway lab receive` tell at the other end what was lost, doubled, reordered or broken, and how late the \
          rest came. The numbers are those of one flow; several flows have an element each, with numbers of their own. What is no \
          UDP packet with so much payload is dropped.",
    args: SetTestPayload::ARGS,
    handlers: SetTestPayload::HANDLERS,
    drops: Reason::DOCS,
    example: "FastUDPSource(1000, 100, 60, 2:0:0:0:0:1, 10.0.0.1, 1, 2:0:0:0:0:2, 10.0.0.2, 1) \
              -> SetTestPayload -> Unqueue -> TestCounter -> Discard;",
    see: &["FastUDPSource", "RatedSource", "TestCounter"],
    build: configured::<SetTestPayload>,
    stamps: true,
    ..Spec::DEFAULT
};

settings! {
    struct SetTestPayload {
        flow: u16 = keyword("FLOW", "number", "the flow; default 0"), or(0);
        trial: u16 = keyword("TRIAL", "number", "the trial, by which a tester knows what is not of this one; default 1"), or(1);
    }
    counts {
        count: u64 = reads("count", "packets numbered since the last reset").counts(Unit::Packets);
    }
    resets {
        "reset", "sets the count to zero, and begins with number 0 again";
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoRoom = "no-room", "it is no UDP packet in an Ethernet frame with a payload of 18 bytes";
    }
}

impl Element for SetTestPayload {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let sequence = self.count as u32;
        let tag = Tag { trial: self.trial, flow: self.flow, sequence, sent_ns: cx.now_ns() };
        let stamped = stamp(packet.data_mut(), tag);
        self.count += u64::from(stamped);
        stamped.or_drop(Reason::NoRoom)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_packet::wire::tester::{Seen, look};

    fn frame() -> Packet {
        let ip = b"\x45\0\0\x2e\0\0\0\0\x40\x11\x66\xbd\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02\0\x1a\0\0";
        packet(&[&b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"[..], ip, &[0; 18]].concat())
    }

    #[test]
    fn packets_are_numbered_one_after_the_other() {
        let mut h = Harness::new(&SPEC, "FLOW 4, TRIAL 7", 1, 1).unwrap();
        let tag = |h: &mut Harness| {
            h.push(0, frame());
            match look(h.take(0)[0].data()) {
                Seen::Test(tag) => (tag.trial, tag.flow, tag.sequence),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([tag(&mut h), tag(&mut h)], [(7, 4, 0), (7, 4, 1)]);
        h.push(0, packet(b"no frame"));
        assert_eq!((h.drops(), h.read("count").unwrap()), (vec![("no-room", 1)], "2".to_owned()));
        h.write("reset", "").unwrap();
        assert_eq!(tag(&mut h), (7, 4, 0));
        h.assert_balanced();
    }
}
