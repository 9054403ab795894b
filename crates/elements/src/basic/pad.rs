//! Pad.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Pad",
    category: "basic",
    summary: "lengthens packets to a length",
    doc: "Appends zeros to packets that have less than LENGTH bytes; without LENGTH, as many as their EXTRA_LENGTH annotation \
          says. The annotation is 0 afterwards. A packet that does not fit its frame is dropped.",
    args: Pad::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Pad(100) -> Discard;",
    see: &["Truncate", "Resize"],
    build: configured::<Pad>,
    ..Spec::DEFAULT
};

settings! {
    struct Pad {
        length: u32 = optional("LENGTH", "bytes", "least bytes of a packet; 0 means as the annotation says; default 0"), or(0);
        zero: bool = keyword("ZERO", "boolean", "accepted for compatibility: what is appended is always zero"), or(true);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoRoom = "no-room", "its frame has no room for so many bytes";
    }
}

impl Element for Pad {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let missing = match self.length {
            0 => packet.anno_u32(Anno::EXTRA_LENGTH.offset) as usize,
            length => (length as usize).saturating_sub(packet.len()),
        };
        packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, 0);
        packet.put(missing).map(|appended| appended.fill(0)).or_drop(Reason::NoRoom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn what_is_missing_is_zero() {
        for (config, extra, data) in [
            ("5", 9, &b"abc\0\0"[..]),
            ("2", 9, b"abc"),
            ("", 1, b"abc\0"),
            ("", 0, b"abc"),
            ("0, ZERO false", 2, b"abc\0\0"),
        ] {
            let mut packet = packet(b"abc??");
            packet.take(2).unwrap();
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, extra);
            let out = verdict(&SPEC, config, packet).unwrap();
            assert_eq!((out.data(), out.anno_u32(Anno::EXTRA_LENGTH.offset)), (data, 0), "{config}");
        }
        assert_eq!(verdict(&SPEC, "4000000000", packet(b"x")).err(), Some("no-room"));
    }
}
