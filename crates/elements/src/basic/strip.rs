//! Strip.

use crate::sieve::pass_or_drop;
use causeway_engine::ir::{Builder, Program};
use causeway_engine::spec::{Lowers, drops, reads_writes, required};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "Strip",
    category: "basic",
    summary: "cuts bytes off the front of packets",
    ports: "1/1",
    processing: "a/a",
    doc: "Takes the first LENGTH bytes off each packet, such as the 14 of an Ethernet header. They stay in the \
          packet's headroom, where Unstrip finds them. Packets shorter than that are dropped.",
    args: &[required("LENGTH", "bytes", "how many to take off")],
    handlers: &[reads_writes("length", "bytes taken off")],
    drops: &[drops("short", "the packet was shorter than LENGTH")],
    example: "InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Discard;",
    see: &["Unstrip"],
    lowers: Lowers::Straight,
    build,
    ..Spec::DEFAULT
};

const SHORT: usize = 0;

struct Strip {
    length: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let length: u32 = conf.required("LENGTH");
    conf.finish()?;
    Ok(Box::new(Strip { length: length as usize }))
}

impl Element for Strip {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let length = self.length;
        pass_or_drop(batch, cx, |packet| packet.pull(length).map_err(|_| SHORT));
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.pull(self.length.try_into().ok()?);
        b.leave(0);
        b.finish()
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.length.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, _cx: &mut Cx<'_>) -> Result<(), String> {
        self.length = crate::handlers::value::<u32>(handler, value)? as usize;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;
    use proptest::prelude::*;

    #[test]
    fn takes_the_front_off() {
        let mut h = Harness::new(&SPEC, "14", 1, 1).unwrap();
        h.push(0, Packet::from_bytes(b"0123456789abcdXYZ").unwrap());
        assert_eq!(h.take(0)[0].data(), b"XYZ");
        h.write("length", "16").unwrap();
        h.push(0, Packet::from_bytes(b"0123456789abcdXYZ").unwrap());
        assert_eq!((h.take(0)[0].data(), h.read("length").unwrap()), (&b"Z"[..], "16".to_owned()));
        assert!(h.write("length", "-1").is_err());
    }

    #[test]
    fn bad_configurations_are_named() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors(""), ["LENGTH: required argument missing"]);
        assert_eq!(errors("many"), ["LENGTH: invalid number"]);
    }

    proptest! {
        #[test]
        fn short_packets_are_dropped(bytes in proptest::collection::vec(any::<u8>(), 0..40), length in 0usize..40) {
            let mut h = Harness::new(&SPEC, &length.to_string(), 1, 1).unwrap();
            h.push(0, Packet::from_bytes(&bytes).unwrap());
            let out = h.take(0);
            prop_assert_eq!(out.first().map(|p| p.data()), bytes.get(length..));
            h.assert_balanced();
        }
    }
}
