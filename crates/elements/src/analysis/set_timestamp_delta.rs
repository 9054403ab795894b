//! SetTimestampDelta.

use super::timestamps::time_ns;
use crate::traces::fields::text::print_time;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SetTimestampDelta",
    category: "analysis",
    summary: "makes timestamps of packets differences",
    doc: "The timestamp becomes the time since the first packet's timestamp (TYPE RANGE), until now (NOW), or since the packet's first timestamp (FIRST). Timestamps that are not set stay so; one before \
          the first becomes 0.",
    args: &[keyword("TYPE", "word", "RANGE, NOW or FIRST; default RANGE")],
    handlers: &[reads("first", "the first packet's timestamp"), writes("reset", "forgets it")],
    example: "InfiniteSource(LIMIT 5) -> SetTimestamp -> SetTimestampDelta -> Discard;",
    see: &["SetTimestamp", "AdjustTimestamp"],
    copies: Copies::One,
    build,
    stamps: true,
    ..Spec::DEFAULT
};

#[derive(Clone, Copy)]
enum Since {
    FirstPacket,
    Now,
    FirstTimestamp,
}

struct SetTimestampDelta {
    since: Since,
    first_ns: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let since = match conf.keyword("TYPE", "RANGE".to_owned()).as_str() {
        "NOW" => Since::Now,
        "FIRST" => Since::FirstTimestamp,
        "RANGE" => Since::FirstPacket,
        _ => {
            conf.error("bad TYPE");
            Since::Now
        }
    };
    conf.finish()?;
    Ok(Box::new(SetTimestampDelta { since, first_ns: 0 }))
}

impl Element for SetTimestampDelta {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let ns = packet.timestamp_ns();
        if ns == 0 {
            return Verdict::Pass;
        }
        let delta_ns = match self.since {
            Since::FirstPacket => {
                if self.first_ns == 0 {
                    self.first_ns = ns;
                }
                ns.saturating_sub(self.first_ns)
            }
            Since::Now => cx.now_ns().saturating_sub(ns),
            Since::FirstTimestamp => ns.saturating_sub(time_ns(packet, true)),
        };
        packet.set_timestamp_ns(delta_ns);
        Verdict::Pass
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let mut text = String::new();
        print_time(self.first_ns, &mut text);
        Ok(text + "\n")
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        self.first_ns = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::timestamps::set_time_ns;
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn differences_are_taken() {
        for (config, expected) in [("", [0, 4, 0]), ("TYPE FIRST", [2, 6, 0])] {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            for ns in [5, 9, 0] {
                let mut p = packet(b"x");
                p.set_timestamp_ns(ns);
                set_time_ns(&mut p, true, 3);
                h.push(0, p);
            }
            assert_eq!(h.take(0).iter().map(|p| p.timestamp_ns()).collect::<Vec<_>>(), expected, "{config}");
        }
        let mut h = Harness::new(&SPEC, "TYPE NOW", 1, 1).unwrap();
        let mut p = packet(b"x");
        p.set_timestamp_ns(causeway_engine::clock::SIMULATED_START_NS);
        h.push(0, p);
        assert!(h.take(0)[0].timestamp_ns() < 1_000);
        assert_eq!(h.read("first").unwrap(), "0.000000\n");
        assert!(Harness::new(&SPEC, "TYPE X", 1, 1).is_err());
    }
}
