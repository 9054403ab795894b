//! Truncate.

use causeway_engine::ir::{Alu, Field, Reg, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Truncate",
    category: "basic",
    summary: "shortens packets to a length",
    doc: "Cuts what packets have beyond LENGTH bytes from their end, and adds it to the EXTRA_LENGTH annotation.",
    args: Truncate::ARGS,
    handlers: handlers!(Truncate::HANDLERS, &[CONFIG]),
    example: "InfiniteSource(LIMIT 5, STOP true) -> Truncate(40) -> Discard;",
    see: &["Pad", "Resize", "Strip"],
    build: configured::<Truncate>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct Truncate {
        length: u32 = required("LENGTH", "bytes", "most bytes of a packet"), live("nbytes", "most bytes of a packet");
        extra: bool = keyword("EXTRA_LENGTH", "boolean", "whether what is cut is added to the annotation; default true"), or(true);
    }
}

/// An annotation of four bytes in host order, as a program reads it.
pub(super) fn host_order(b: &mut Builder, anno: Anno) -> Reg {
    let bytes: [Reg; 4] = std::array::from_fn(|i| b.get(Field::Anno(anno.offset + i as u8, 1)));
    let mut number = b.compute(Alu::Add, 0, 0);
    for (byte, shift) in bytes.into_iter().zip(shifts()) {
        let part = b.compute(Alu::Shl, byte, shift);
        number = b.compute(Alu::Or, number, part);
    }
    number
}

/// By how many bits the bytes of a number of four bytes are shifted in host order.
fn shifts() -> [u64; 4] {
    0x1810_0800_u32.to_ne_bytes().map(u64::from)
}

impl Element for Truncate {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let beyond = packet.len().saturating_sub(self.length as usize);
        if packet.take(beyond).is_ok() && self.extra {
            let before = packet.anno_u32(Anno::EXTRA_LENGTH.offset);
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, before.saturating_add(beyond as u32));
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let length = u64::from(self.length);
        if self.extra {
            let (long, short) = (b.block(), b.block());
            let len = b.get(Field::Length);
            b.branch(Test::Above(len.into(), length.into()), long, short);
            b.at(short);
            b.leave(0);
            b.at(long);
            let before = host_order(&mut b, Anno::EXTRA_LENGTH);
            let beyond = b.compute(Alu::Sub, len, length);
            let extra = b.compute(Alu::Add, before, beyond);
            b.forbid(Test::Above(extra.into(), u64::from(u32::MAX).into()));
            for (i, shift) in (0..).zip(shifts()) {
                let byte = b.compute(Alu::Shr, extra, shift);
                b.put(Field::Anno(Anno::EXTRA_LENGTH.offset + i, 1), byte);
            }
        }
        b.put(Field::Length, length);
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
    fn what_is_beyond_is_cut() {
        for (config, data, extra) in [
            ("3", &b"abc"[..], 2),
            ("5", b"abcde", 0),
            ("9", b"abcde", 0),
            ("0", b"", 5),
            ("3, EXTRA_LENGTH false", b"abc", 0),
        ] {
            let out = verdict(&SPEC, config, packet(b"abcde")).unwrap();
            assert_eq!((out.data(), out.anno_u32(Anno::EXTRA_LENGTH.offset)), (data, extra), "{config}");
        }
        let mut h = Harness::new(&SPEC, "3", 1, 1).unwrap();
        h.write("nbytes", "1").unwrap();
        h.push(0, packet(b"abc"));
        assert_eq!((h.take(0)[0].data(), h.read("nbytes").unwrap()), (&b"a"[..], "1".to_owned()));
    }
}
