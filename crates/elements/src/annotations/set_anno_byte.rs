//! SetAnnoByte.

use causeway_engine::ir::Field;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SetAnnoByte",
    category: "annotations",
    summary: "sets a byte of packets' annotations",
    doc: "Sets the byte ANNO of the annotation area to VALUE. It is an older name for Paint, whose arguments are the other way round.",
    args: SetAnnoByte::ARGS,
    handlers: handlers!(SetAnnoByte::HANDLERS, &[reads("anno", "ANNO, as an offset")]),
    example: "InfiniteSource(LIMIT 5) -> SetAnnoByte(PAINT, 7) -> CheckPaint(7) -> Discard;",
    see: &["Paint"],
    build,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct SetAnnoByte {
        anno: Anno = required("ANNO", "annotation", "where, one byte");
        value: u8 = required("VALUE", "byte", "what"), live("value", "VALUE");
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.warn("SetAnnoByte(ANNO, VALUE) is obsolete, use Paint(VALUE, ANNO) instead");
    configured::<SetAnnoByte>(conf)
}

impl Element for SetAnnoByte {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.set_anno_u8(self.anno.offset, self.value);
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.put(Field::Anno(self.anno.offset, 1), u64::from(self.value));
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.anno.offset.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_byte_is_set() {
        let mut h = Harness::new(&SPEC, "PAINT, 7", 1, 1).unwrap();
        h.push(0, packet(b"x"));
        assert_eq!((h.take(0)[0].paint(), h.read("anno").unwrap()), (7, Anno::PAINT.offset.to_string()));
        assert_eq!(h.warnings().len(), 1);
    }
}
