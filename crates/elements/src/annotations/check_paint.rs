//! CheckPaint.

use super::color::{ANNO_ARG, Color};
use causeway_engine::ir::{Builder, Program};
use causeway_engine::spec::{Lowers, drops, reads_writes, required};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckPaint",
    category: "annotations",
    summary: "passes packets that have one paint",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Passes packets whose paint annotation is COLOR. The others go to output 1 if that is connected, and are \
          dropped otherwise.",
    args: &[required("COLOR", "byte", "the paint that passes"), ANNO_ARG],
    handlers: &[reads_writes("color", "the paint that passes")],
    drops: &[drops("other-paint", "the packet's paint is not COLOR, and output 1 is not connected")],
    example: "InfiniteSource(LIMIT 5, STOP true) -> Paint(1) -> c :: CheckPaint(1) -> Discard; c[1] -> Discard;",
    see: &["Paint", "PaintTee"],
    lowers: Lowers::Straight,
    build,
    ..Spec::DEFAULT
};

const OTHER_PAINT: usize = 0;

struct CheckPaint {
    color: Color,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    Ok(Box::new(CheckPaint { color: Color::configured(conf)? }))
}

impl Element for CheckPaint {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let color = &self.color;
        batch.filter_map(|packet| {
            if color.is_of(&packet) {
                return Some(packet);
            }
            cx.divert(1, OTHER_PAINT, packet);
            None
        });
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let color = self.color.lower_test(&mut b);
        b.require(color);
        b.leave(0);
        b.finish()
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.color.read())
    }

    fn write(&mut self, _handler: &str, value: &str, _cx: &mut Cx<'_>) -> Result<(), String> {
        self.color.write(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

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
