//! AverageCounter.

use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "AverageCounter",
    category: "counters",
    summary: "counts packets and bytes, and measures their average rate",
    ports: "1/1",
    processing: "a/a",
    doc: "Counts the packets and bytes that pass, and gives their rates averaged from the first packet to the \
          last one. Packets of the first IGNORE seconds are passed on but not counted, so that a measurement can \
          leave out the warm-up.",
    args: &[optional("IGNORE", "seconds", "how long after the first packet counting begins; default 0")],
    handlers: &[
        reads("count", "packets counted since the last reset").counts(Unit::Packets),
        reads("byte_count", "bytes counted since the last reset").counts(Unit::Bytes),
        reads("rate", "average rate in packets a second").measures(Unit::PacketsPerSecond),
        reads("bit_rate", "average rate in bits a second").measures(Unit::BitsPerSecond),
        reads("byte_rate", "average rate in bytes a second").measures(Unit::BytesPerSecond),
        writes("reset", "sets the counts to zero and waits for a first packet again"),
    ],
    example: "InfiniteSource(LIMIT 1000, STOP true) -> AverageCounter -> Discard;",
    see: &["Counter"],
    build,
    ..Spec::DEFAULT
};

struct AverageCounter {
    ignore_ns: u64,
    packets: Counter,
    bytes: Counter,
    /// Times of the first packet since the reset, counted or not, and of the last one.
    seen_ns: Option<(u64, u64)>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Nanoseconds(ignore_ns) = conf.optional("IGNORE", Nanoseconds(0));
    conf.finish()?;
    let (packets, bytes) = (conf.counter("count"), conf.counter("byte_count"));
    Ok(Box::new(AverageCounter { ignore_ns, packets, bytes, seen_ns: None }))
}

impl AverageCounter {
    /// `total` divided by the seconds between the start of counting and the last packet.
    fn per_s(&self, total: u64) -> f64 {
        let counted_ns =
            self.seen_ns.map_or(0, |(first, last)| (last - first).saturating_sub(self.ignore_ns));
        if counted_ns == 0 { 0.0 } else { total as f64 * 1e9 / counted_ns as f64 }
    }
}

impl Element for AverageCounter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        let (first_ns, last_ns) = self.seen_ns.get_or_insert((now_ns, now_ns));
        *last_ns = now_ns;
        if now_ns - *first_ns >= self.ignore_ns {
            self.packets.add(batch.len() as u64);
            self.bytes.add(batch.iter().map(|p| p.len() as u64).sum());
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.packets.get().to_string(),
            "byte_count" => self.bytes.get().to_string(),
            "rate" => self.per_s(self.packets.get()).to_string(),
            "bit_rate" => (self.per_s(self.bytes.get()) * 8.0).to_string(),
            _ => self.per_s(self.bytes.get()).to_string(),
        })
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), String> {
        self.packets.set(0);
        self.bytes.set(0);
        self.seen_ns = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    fn run(config: &str) -> Harness {
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        for _ in 0..101 {
            h.push(0, Packet::from_bytes(&[0; 50]).unwrap());
            h.advance(100_000_000);
        }
        h
    }

    fn number(h: &mut Harness, handler: &str) -> f64 {
        h.read(handler).unwrap().parse().unwrap()
    }

    #[test]
    fn averages_from_first_to_last_packet() {
        let mut h = run("");
        assert_eq!((h.read("count").unwrap(), h.read("byte_count").unwrap()), ("101".into(), "5050".into()));
        assert!((number(&mut h, "rate") - 10.1).abs() < 1e-3);
        assert!((number(&mut h, "byte_rate") - 505.0).abs() < 1e-2);
        assert!((number(&mut h, "bit_rate") - 4_040.0).abs() < 1e-1);
        h.advance(50_000_000_000);
        assert!((number(&mut h, "rate") - 10.1).abs() < 1e-3);
    }

    #[test]
    fn leaves_out_the_start() {
        let mut h = run("2");
        assert_eq!(h.read("count").unwrap(), "81");
        assert!((number(&mut h, "rate") - 81.0 / 8.0).abs() < 1e-3);
        assert_eq!(h.take(0).len(), 101);
    }

    #[test]
    fn nothing_has_no_rate() {
        let mut h = run("");
        h.write("reset", "").unwrap();
        assert_eq!((h.read("count").unwrap(), h.read("rate").unwrap()), ("0".into(), "0".into()));
        h.push(0, Packet::from_bytes(b"x").unwrap());
        assert_eq!((h.read("count").unwrap(), h.read("rate").unwrap()), ("1".into(), "0".into()));
    }
}
