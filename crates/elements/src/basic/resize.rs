//! Resize.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Resize",
    category: "basic",
    summary: "adds or removes bytes at both ends of packets",
    doc: "Adds HEAD bytes in front of a packet's data and TAIL bytes behind them; numbers below zero remove as many, up to \
          all. What the added bytes are is not said. A packet that does not fit its frame is dropped.",
    args: Resize::ARGS,
    handlers: handlers!(Resize::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Resize(-14, 4) -> Discard;",
    see: &["Strip", "Unstrip", "Truncate", "Pad"],
    build: configured::<Resize>,
    ..Spec::DEFAULT
};

settings! {
    struct Resize {
        head: i32 = optional("HEAD", "bytes", "how many are added in front; default 0"), or(0), live("head", "bytes added in front");
        tail: i32 = optional("TAIL", "bytes", "how many are added behind; default 0"), or(0), live("tail", "bytes added behind");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoRoom = "no-room", "its frame has no room for so many bytes";
    }
}

impl Element for Resize {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let size = |n: i32| n.unsigned_abs() as usize;
        let fits = match self.head {
            0.. => packet.push(size(self.head)).is_ok(),
            _ => packet.pull(size(self.head).min(packet.len())).is_ok(),
        };
        let fits = fits
            && match self.tail {
                0.. => packet.put(size(self.tail)).is_ok(),
                _ => packet.take(size(self.tail).min(packet.len())).is_ok(),
            };
        fits.or_drop(Reason::NoRoom)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn both_ends_move() {
        for (config, data) in
            [("", &b"abcde"[..]), ("-2", b"cde"), ("-1, -2", b"bc"), ("0, -9", b""), ("-9, -9", b"")]
        {
            assert_eq!(verdict(&SPEC, config, packet(b"abcde")).unwrap().data(), data, "{config}");
        }
        let out = verdict(&SPEC, "2, 3", packet(b"abc")).unwrap();
        assert_eq!((out.len(), &out.data()[2..5]), (8, &b"abc"[..]));
        for config in ["100000", "0, 100000", "2000000000"] {
            assert_eq!(verdict(&SPEC, config, packet(b"x")).err(), Some("no-room"), "{config}");
        }
    }
}
