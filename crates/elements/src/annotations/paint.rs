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
    use causeway_engine::harness::Harness;

    #[test]
    fn paints_in_place_and_by_handler() {
        let mut h = Harness::new(&SPEC, "3", 1, 1).unwrap();
        h.push(0, Packet::from_bytes(b"x").unwrap());
        assert_eq!(h.take(0)[0].paint(), 3);
        h.write("color", "7").unwrap();
        h.push(0, Packet::from_bytes(b"x").unwrap());
        assert_eq!((h.take(0)[0].paint(), h.read("color").unwrap()), (7, "7".to_owned()));
        assert!(h.write("color", "300").is_err());
    }

    #[test]
    fn pulls_as_it_pushes() {
        let mut h = Harness::pulled(&SPEC, "COLOR 9, ANNO 20").unwrap();
        h.feed(0, Packet::from_bytes(b"x").unwrap());
        assert_eq!(h.pull(0, 5)[0].anno_u8(20), 9);
    }

    #[test]
    fn bad_configurations_are_named() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors(""), ["COLOR: required argument missing"]);
        assert_eq!(errors("256"), ["COLOR: out of range, bound 255"]);
        assert_eq!(errors("1, PAINT, FOO 3, 4"), ["FOO: unknown argument", "too many arguments"]);
    }
}
