//! Strip.

use crate::printing::contents::to_stderr;
use causeway_engine::Defaults;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Strip",
    category: "basic",
    summary: "cuts bytes off the front of packets",
    ports: "1/1",
    processing: "a/a",
    doc: "Takes the first LENGTH bytes off each packet, such as the 14 of an Ethernet header. They stay in the \
          packet's headroom, where Unstrip finds them. Packets shorter than that pass with nothing left, and are counted; where it is run \
          as Click, standard error is told of each.",
    args: Strip::ARGS,
    handlers: Strip::HANDLERS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Discard;",
    see: &["Unstrip"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct Strip {
        length: u32 = required("LENGTH", "bytes", "how many to take off"), live("length", "bytes taken off");
    }
    counts {
        short: u64 = reads("short", "packets that were shorter than that").counts(Unit::Packets);
    }
}

struct Stripper {
    own: Strip,
    /// Whether standard error is told of packets that are too short.
    tells: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let stripper = Stripper { own: Strip::configure(conf), tells: conf.env.defaults == Defaults::Click };
    conf.finish()?;
    Ok(Box::new(stripper))
}

impl Stripper {
    /// Takes all there is, since there is less than was to be taken.
    #[cold]
    fn take_all(&mut self, packet: &mut Packet) {
        let (wanted, there) = (self.own.length, packet.len());
        self.own.short += 1;
        if self.tells {
            to_stderr(&format!("Packet::pull {wanted} > length {there}\n"));
        }
        // No more than there is.
        let _ = packet.pull(there);
    }
}

impl Element for Stripper {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if packet.pull(self.own.length as usize).is_err() {
            self.take_all(packet);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.pull(self.own.length);
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn the_front_is_taken_off_if_it_is_there() {
        for (length, left) in [("0", &b"abc"[..]), ("2", b"c"), ("3", b""), ("4", b"")] {
            let out = verdict(&SPEC, length, packet(b"abc")).unwrap();
            assert_eq!(out.data(), left, "{length}");
        }
        let mut h = Harness::new(&SPEC, "2", 1, 1).unwrap();
        [&b"abc"[..], b"ab", b"a"].into_iter().for_each(|bytes| h.push(0, packet(bytes)));
        assert_eq!((h.take(0).len(), h.read("short").unwrap()), (3, "1".to_owned()));
        h.assert_balanced();
    }
}
