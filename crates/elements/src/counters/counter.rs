//! Counter.

use super::rate::Rate;
use causeway_engine::spec::{reads, writes};
use causeway_engine::{Conf, Counter as Count, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "Counter",
    category: "counters",
    summary: "counts packets and bytes, and measures their rate",
    ports: "1/1",
    processing: "a/a",
    doc: "Counts the packets and bytes that pass. The counts are words in the router's shared counter file, which \
          anyone may read without asking the router. The rates are exponentially weighted moving averages that \
          remember about a second. A hot swap starts all of them anew.",
    handlers: &[
        reads("count", "packets since the last reset"),
        reads("byte_count", "bytes since the last reset"),
        reads("rate", "recent rate in packets a second"),
        reads("bit_rate", "recent rate in bits a second"),
        reads("byte_rate", "recent rate in bytes a second"),
        writes("reset", "sets counts and rates to zero"),
        writes("reset_counts", "the same as `reset`"),
    ],
    example: "InfiniteSource(LIMIT 1000, STOP true) -> Counter -> Discard;",
    see: &["AverageCounter"],
    build,
    ..Spec::DEFAULT
};

struct Counter {
    packets: Count,
    bytes: Count,
    packet_rate: Rate,
    byte_rate: Rate,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(Counter {
        packets: conf.counter("count"),
        bytes: conf.counter("byte_count"),
        packet_rate: Rate::default(),
        byte_rate: Rate::default(),
    }))
}

impl Element for Counter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let packets = batch.len() as u64;
        let bytes = batch.iter().map(|p| p.len() as u64).sum();
        self.packets.add(packets);
        self.bytes.add(bytes);
        let now_ns = cx.now_ns();
        self.packet_rate.add(packets, now_ns);
        self.byte_rate.add(bytes, now_ns);
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.packets.get().to_string(),
            "byte_count" => self.bytes.get().to_string(),
            "rate" => self.packet_rate.per_s(cx.now_ns()).to_string(),
            "bit_rate" => (self.byte_rate.per_s(cx.now_ns()) * 8.0).to_string(),
            _ => self.byte_rate.per_s(cx.now_ns()).to_string(),
        })
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), String> {
        self.packets.set(0);
        self.bytes.set(0);
        self.packet_rate = Rate::default();
        self.byte_rate = Rate::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    fn number(h: &mut Harness, handler: &str) -> f64 {
        h.read(handler).unwrap().parse().unwrap()
    }

    #[test]
    fn counts_packets_and_bytes() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push_all(0, [&b"abc"[..], b"", b"de"].map(|b| Packet::from_bytes(b).unwrap()));
        assert_eq!((h.read("count").unwrap(), h.read("byte_count").unwrap()), ("3".into(), "5".into()));
        h.write("reset", "").unwrap();
        assert_eq!((h.read("count").unwrap(), h.read("byte_count").unwrap()), ("0".into(), "0".into()));
        h.assert_balanced();
    }

    #[test]
    fn rates_follow_the_traffic() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        assert_eq!(h.read("rate").unwrap(), "0");
        for _ in 0..5_000 {
            h.push_all(0, (0..2).map(|_| Packet::from_bytes(&[0; 100]).unwrap()));
            h.take(0);
            h.advance(2_000_000);
        }
        // 2 packets of 100 bytes every 2 ms; five time constants leave 1 % of the start.
        assert!((number(&mut h, "rate") - 1_000.0).abs() < 20.0);
        assert!((number(&mut h, "byte_rate") - 100_000.0).abs() < 2_000.0);
        assert!((number(&mut h, "bit_rate") - 800_000.0).abs() < 16_000.0);
        h.write("reset_counts", "").unwrap();
        assert_eq!(number(&mut h, "rate"), 0.0);
    }
}
