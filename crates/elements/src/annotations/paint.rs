//! Paint.

use causeway_engine::ir::Field;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Paint",
    category: "annotations",
    summary: "sets packets' paint annotation",
    ports: "1/1",
    processing: "a/a",
    doc: "Sets the paint annotation of each packet to COLOR, an integer from 0 to 255. Paint marks where a packet \
          came from, so that a later element (PaintTee, CheckPaint, PaintSwitch) can tell: the standard router \
          paints by input interface and sends an ICMP redirect for a packet that leaves where it came in.",
    args: Paint::ARGS,
    handlers: handlers!(Paint::HANDLERS, &[CONFIG]),
    example: "InfiniteSource(LIMIT 5) -> Paint(3) -> Print -> Discard;",
    see: &["CheckPaint", "PaintTee"],
    build: configured::<Paint>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct Paint {
        color: u8 = required("COLOR", "byte", "the paint"), live("color", "the paint that is set");
        anno: Anno = optional("ANNO", "annotation", "where to put it, one byte; default PAINT"), or(Anno::PAINT);
    }
}

impl Element for Paint {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.set_anno_u8(self.anno.offset, self.color);
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.put(Field::Anno(self.anno.offset, 1), u64::from(self.color));
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
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn paints_in_place_pushed_or_pulled() {
        assert_eq!(verdict(&SPEC, "3", packet(b"x")).unwrap().paint(), 3);
        let mut h = Harness::pulled(&SPEC, "COLOR 9, ANNO 20").unwrap();
        h.feed(0, packet(b"x"));
        assert_eq!(h.pull(0, 5)[0].anno_u8(20), 9);
    }
}
