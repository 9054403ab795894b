//! PaintSwitch.

use super::ANNO;
use causeway_engine::ir::{Field, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "PaintSwitch",
    category: "annotations",
    summary: "sends packets to the output that their paint says",
    ports: "1/-",
    processing: "h/h",
    doc: "Sends each packet to the output whose number is its paint, and copies of one whose paint is 255 to all outputs. \
          A packet for an output that there is not is dropped.",
    args: PaintSwitch::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> Paint(1) -> p :: PaintSwitch -> Discard; p[1] -> Discard;",
    see: &["Paint", "PaintTee", "CheckPaint", "Switch"],
    build,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

/// The paint of packets for all outputs.
const ALL: usize = 255;

settings! {
    struct PaintSwitch {
        anno: Anno = ANNO, or(Anno::PAINT);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoOutput = "no-output", "there is no output with the number of its paint";
        NoBuffer = "no-buffer", "there was no frame for a copy";
    }
}

struct Switch {
    own: PaintSwitch,
    outputs: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = PaintSwitch::configure(conf);
    conf.finish()?;
    Ok(Box::new(Switch { own, outputs: conf.n_outputs() }))
}

impl Element for Switch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let outputs = self.outputs;
        // Each is emitted at once, so that copies and packets are in order.
        for packet in batch.drain() {
            match usize::from(packet.anno_u8(self.own.anno.offset)) {
                output if output < outputs => cx.emit(output, packet),
                ALL if outputs > 0 => emit_to_all(packet, cx),
                _ => cx.drop(Reason::NoOutput, packet),
            }
        }
    }

    /// What is copied, and what has no output, is the element's own.
    fn lower(&self) -> Option<Program> {
        let last = u64::try_from(self.outputs).ok()?.checked_sub(1)?;
        let mut b = Builder::new();
        let color = b.get(Field::Anno(self.own.anno.offset, 1));
        b.forbid(Test::Above(color.into(), last.into()));
        b.leave_by(color);
        b.finish()
    }
}

/// Sends the packet to the last output, and copies to the others.
fn emit_to_all(packet: Packet, cx: &mut Cx<'_>) {
    let last = cx.n_outputs() - 1;
    for port in 0..last {
        match packet.copy() {
            Some(copy) => cx.emit(port, copy),
            None => cx.count_drops(Reason::NoBuffer, 1),
        }
    }
    cx.emit(last, packet);
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_paint_says_where_to() {
        let mut h = Harness::new(&SPEC, "", 1, 3).unwrap();
        h.push_all(
            0,
            [0, 2, 1, 3, 255].map(|paint| {
                let mut packet = packet(&[paint]);
                packet.set_paint(paint);
                packet
            }),
        );
        let bytes = |h: &mut Harness, port| -> Vec<u8> { h.take(port).iter().map(|p| p.data()[0]).collect() };
        assert_eq!([0, 1, 2].map(|port| bytes(&mut h, port)), [vec![0, 255], vec![1, 255], vec![2, 255]]);
        assert_eq!(h.drops(), [("no-output", 1)]);
        let mut h = Harness::new(&SPEC, "20", 1, 2).unwrap();
        let mut other = packet(b"x");
        other.set_anno_u8(20, 1);
        h.push(0, other);
        assert_eq!(h.take(1).len(), 1);
    }
}
