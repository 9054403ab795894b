//! StoreTimestamp.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "StoreTimestamp",
    category: "analysis",
    summary: "writes packets' timestamps into them",
    doc: "Eight bytes: the time in nanoseconds since the epoch in the machine's byte order, as Click's timestamps are. A packet that is too short for OFFSET is made longer. OFFSET or TAIL must be given, not both.",
    args: &[
        optional("OFFSET", "bytes", "where the timestamp is written"),
        keyword("TAIL", "boolean", "whether it is appended; default false"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> SetTimestamp -> StoreTimestamp(TAIL true) -> Discard;",
    see: &["SetTimestamp"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoRoom = "no-room", "the packet's frame has no room for it";
    }
}

struct StoreTimestamp {
    /// `None` = behind the data.
    offset: Option<u32>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let offset = conf.optional("OFFSET", None::<u32>);
    let tail = conf.keyword("TAIL", false);
    if offset.is_some() == tail {
        conf.error("supply exactly one of 'OFFSET' and 'TAIL'");
    }
    conf.finish()?;
    Ok(Box::new(StoreTimestamp { offset }))
}

impl Element for StoreTimestamp {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let at = self.offset.map_or(packet.len(), |offset| offset as usize);
        let missing = (at + 8).saturating_sub(packet.len());
        let ns = packet.timestamp_ns();
        match packet.put(missing) {
            Ok(new) => new.fill(0),
            Err(_) => return Verdict::drop(Reason::NoRoom),
        }
        packet.data_mut()[at..at + 8].copy_from_slice(&ns.to_ne_bytes());
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn times_are_written() {
        let of = |config: &str| {
            let mut p = packet(b"abcd");
            p.set_timestamp_ns(7);
            verdict(&SPEC, config, p).map(|p| p.data().to_vec())
        };
        let time = 7u64.to_ne_bytes();
        assert_eq!(of("TAIL true"), Ok([&b"abcd"[..], &time].concat()));
        assert_eq!(of("2"), Ok([&b"ab"[..], &time].concat()));
        assert_eq!(of("6"), Ok([&b"abcd\0\0"[..], &time].concat()));
        assert_eq!(of("4000"), Err("no-room"));
        assert!(Harness::new(&SPEC, "", 1, 1).is_err() && Harness::new(&SPEC, "1, TAIL true", 1, 1).is_err());
    }
}
