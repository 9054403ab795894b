//! Paint.

use super::color::Color;
use crate::anew::{Anew, CONFIG};
use causeway_engine::ir::{Builder, Program};
use causeway_engine::spec::{Lowers, optional, reads_writes, required};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "Paint",
    category: "annotations",
    summary: "sets packets' paint annotation",
    ports: "1/1",
    processing: "a/a",
    doc: "Sets the paint annotation of each packet to COLOR, an integer from 0 to 255. Paint marks where a packet \
          came from, so that a later element (PaintTee, CheckPaint, PaintSwitch) can tell: the standard router \
          paints by input interface and sends an ICMP redirect for a packet that leaves where it came in.",
    args: &[
        required("COLOR", "byte", "the paint"),
        optional("ANNO", "annotation", "where to put it, one byte; default PAINT"),
    ],
    handlers: &[reads_writes("color", "the paint that is set"), CONFIG],
    example: "InfiniteSource(LIMIT 5) -> Paint(3) -> Print -> Discard;",
    see: &["CheckPaint", "PaintTee"],
    lowers: Lowers::Straight,
    build,
    ..Spec::DEFAULT
};

struct Paint {
    color: Color,
    anew: Anew,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    Ok(Box::new(Paint { color: Color::configured(conf)?, anew: Anew::new(conf) }))
}

impl Element for Paint {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        for packet in batch.iter_mut() {
            self.color.give(packet);
        }
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        self.color.lower_give(&mut b);
        b.leave(0);
        b.finish()
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(if handler == "config" { cx.config().to_owned() } else { self.color.read() })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        if handler == "config" {
            *self = *self.anew.element(value, cx)?;
            cx.set_config(value.to_owned());
            return Ok(());
        }
        self.color.write(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

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
