//! CheckPaint.

use super::ANNO;
use causeway_engine::ir::{Field, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckPaint",
    category: "annotations",
    summary: "passes packets that have one paint",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Passes packets whose paint annotation is COLOR. The others go to output 1 if that is connected, and are \
          dropped otherwise.",
    args: CheckPaint::ARGS,
    handlers: CheckPaint::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Paint(1) -> c :: CheckPaint(1) -> Discard; c[1] -> Discard;",
    see: &["Paint", "PaintTee"],
    build: configured::<CheckPaint>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        OtherPaint = "other-paint", "the packet's paint is not COLOR, and output 1 is not connected";
    }
}

settings! {
    struct CheckPaint {
        value: u8 = required("COLOR", "byte", "the paint that passes"), live("color", "the paint that passes");
        anno: Anno = ANNO, or(Anno::PAINT);
    }
}

impl Element for CheckPaint {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        (packet.anno_u8(self.anno.offset) == self.value).or_divert(1, Reason::OtherPaint)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let color = b.get(Field::Anno(self.anno.offset, 1));
        b.require(Test::Equal(color.into(), u64::from(self.value).into()));
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

    fn painted(color: u8) -> Packet {
        let mut packet = Packet::from_bytes(b"x").unwrap();
        packet.set_paint(color);
        packet
    }

    #[test]
    fn sorts_by_paint() {
        let mut h = Harness::new(&SPEC, "3", 1, 2).unwrap();
        h.push_all(0, [3, 4, 3, 0].map(painted));
        assert_eq!((h.take(0).len(), h.take(1).len()), (2, 2));
        h.write("color", "4").unwrap();
        h.push_all(0, [3, 4, 3, 0].map(painted));
        assert_eq!((h.take(0).len(), h.read("color").unwrap()), (1, "4".to_owned()));
        h.assert_balanced();
    }

    #[test]
    fn drops_without_a_second_output_also_when_pulled() {
        let mut h = Harness::pulled(&SPEC, "COLOR 9").unwrap();
        [1, 9].into_iter().for_each(|c| h.feed(0, painted(c)));
        assert_eq!((h.pull(0, 5).len(), h.drops()), (1, vec![("other-paint", 1)]));
        h.assert_balanced();
    }

    #[test]
    fn looks_where_it_is_told() {
        let mut h = Harness::new(&SPEC, "7, 20", 1, 1).unwrap();
        let mut packet = painted(0);
        packet.set_anno_u8(20, 7);
        h.push(0, packet);
        assert_eq!(h.take(0).len(), 1);
    }
}
