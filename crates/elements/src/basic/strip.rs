//! Strip.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Strip",
    category: "basic",
    summary: "cuts bytes off the front of packets",
    ports: "1/1",
    processing: "a/a",
    doc: "Takes the first LENGTH bytes off each packet, such as the 14 of an Ethernet header. They stay in the \
          packet's headroom, where Unstrip finds them. Packets shorter than that are dropped.",
    args: Strip::ARGS,
    handlers: Strip::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Strip(14) -> Discard;",
    see: &["Unstrip"],
    build: configured::<Strip>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "the packet was shorter than LENGTH";
    }
}

settings! {
    struct Strip {
        length: u32 = required("LENGTH", "bytes", "how many to take off"), live("length", "bytes taken off");
    }
}

impl Element for Strip {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.pull(self.length as usize).or_drop(Reason::Short)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.pull(self.length);
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
    use causeway_engine::harness::Harness;
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
