//! PaintTee.

use super::ANNO;
use causeway_engine::DropReason;
use causeway_engine::ir::{Field, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "PaintTee",
    category: "annotations",
    summary: "sends a copy of packets that have one paint to a second output",
    ports: "1/2",
    processing: "a/ah",
    doc: "Passes every packet by output 0, and sends a copy of those whose paint annotation is COLOR to output 1. \
          The standard router has one in front of each interface, with the paint that packets got when they came \
          in there: what leaves where it came from deserves an ICMP redirect, which output 1 leads to.",
    args: PaintTee::ARGS,
    handlers: PaintTee::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Paint(1) -> t :: PaintTee(1) -> Discard; t[1] -> Discard;",
    see: &["Paint", "CheckPaint", "Tee"],
    build: configured::<PaintTee>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoBuffer = "no-buffer", "there was no frame for a copy";
    }
}

settings! {
    struct PaintTee {
        color: u8 = required("COLOR", "byte", "the paint whose packets are copied"),
            live("color", "the paint whose packets are copied");
        anno: Anno = ANNO, or(Anno::PAINT);
    }
}

/// Sends a copy of `packet` to output 1, or counts a drop for `no_buffer` if there is no frame.
pub(crate) fn emit_copy(packet: &Packet, no_buffer: impl Into<DropReason>, cx: &mut Cx<'_>) {
    match packet.copy() {
        Some(copy) => cx.emit(1, copy),
        None => cx.count_drops(no_buffer, 1),
    }
}

impl Element for PaintTee {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if packet.anno_u8(self.anno.offset) == self.color {
            // The copy goes first: an answer to it leaves before what it is about.
            cx.last_output_first();
            emit_copy(packet, Reason::NoBuffer, cx);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        // What is copied is the element's own.
        let mut b = Builder::new();
        let color = b.get(Field::Anno(self.anno.offset, 1));
        b.forbid(Test::Equal(color.into(), u64::from(self.color).into()));
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
    use causeway_engine::harness::{Harness, Output, Ports};

    fn painted(color: u8) -> Packet {
        let mut packet = Packet::from_bytes(&[color]).unwrap();
        packet.set_paint(color);
        packet
    }

    #[test]
    fn copies_the_painted_ones() {
        let mut h = Harness::new(&SPEC, "2", 1, 2).unwrap();
        h.push_all(0, [1, 2, 3, 2].map(painted));
        let copies = h.take(1);
        assert_eq!((h.take(0).len(), copies.len()), (4, 2));
        assert!(copies.iter().all(|p| p.data() == [2] && p.paint() == 2));
        h.write("color", "3").unwrap();
        h.push_all(0, [1, 2, 3, 2].map(painted));
        assert_eq!((h.take(1).len(), h.read("color").unwrap()), (1, "3".to_owned()));
    }

    #[test]
    fn a_copy_goes_before_the_packet() {
        let text = "InfiniteSource(LIMIT 1, STOP true) -> Paint(1) -> t :: PaintTee(1) -> s :: Switch; \
                    s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard; \
                    t[1] -> Counter(COUNT_CALL 1 s.switch 1) -> Discard;";
        let library = crate::library();
        let lang =
            causeway_lang::compile("t", text.as_bytes(), &causeway_lang::NoLibraries, &library, &[]).unwrap();
        let plan = causeway_engine::Plan::new(&lang);
        let router =
            causeway_engine::Router::start(library, plan, causeway_engine::Options::default()).unwrap();
        router.resume();
        assert!(router.wait(Some(std::time::Duration::from_secs(60))).is_some());
        let count = |element: &str| router.read(element, "count", "").unwrap();
        assert_eq!((count("a").as_str(), count("b").as_str()), ("0", "1"));
    }

    #[test]
    fn copies_are_pushed_while_packets_are_pulled() {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pulled, Output::Pushed] };
        let mut h = Harness::with_ports(&SPEC, "2", &ports).unwrap();
        [1, 2].into_iter().for_each(|c| h.feed(0, painted(c)));
        assert_eq!((h.pull(0, 5).len(), h.take(1).len()), (2, 1));
    }
}
