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
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn sorts_by_paint_where_it_is_told_to_look() {
        for (config, outputs, offset) in [("3", 2, Anno::PAINT.offset), ("3, 20", 2, 20), ("3, 20", 1, 20)] {
            let mut h = Harness::new(&SPEC, config, 1, outputs).unwrap();
            for color in [3, 4, 3, 0, 0] {
                let mut p = packet(b"x");
                p.set_anno_u8(offset, color);
                h.push(0, p);
            }
            assert_eq!(
                (h.take(0).len(), h.take(1).len(), h.drops().len()),
                (2, 3 * (outputs - 1), 2 - outputs)
            );
            h.assert_balanced();
        }
    }
}
