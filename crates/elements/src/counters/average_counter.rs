//! AverageCounter.

use crate::real;
use causeway_engine::prelude::*;
use causeway_engine::spec::HandlerDoc;
use causeway_engine::value::Nanoseconds;

const NS_PER_MS: u64 = 1_000_000;

pub(crate) static SPEC: Spec = Spec {
    name: "AverageCounter",
    category: "counters",
    summary: "counts packets and bytes, and measures their average rate",
    ports: "1/1",
    processing: "a/a",
    doc: "Counts the packets and bytes that pass, and gives their rates averaged from the first packet to the \
          last one, in whole milliseconds and at least one. Packets of the first IGNORE seconds are passed on but not \
          counted, so that a measurement can leave out the warm-up.",
    args: Counts::ARGS,
    handlers: handlers!(Counts::HANDLERS, RATES),
    example: "InfiniteSource(LIMIT 1000, STOP true) -> AverageCounter -> Discard;",
    see: &["Counter"],
    build,
    ..Spec::DEFAULT
};

const RATES: &[HandlerDoc] = &[
    reads("rate", "average rate in packets a second").measures(Unit::PacketsPerSecond),
    reads("bit_rate", "average rate in bits a second").measures(Unit::BitsPerSecond),
    reads("byte_rate", "average rate in bytes a second").measures(Unit::BytesPerSecond),
];

settings! {
    struct Counts {
        ignore: Nanoseconds = optional("IGNORE", "seconds", "how long after the first packet counting begins; default 0"), or(Nanoseconds(0));
    }
    counts {
        packets: Counter = reads("count", "packets counted since the last reset").counts(Unit::Packets);
        bytes: Counter = reads("byte_count", "bytes counted since the last reset").counts(Unit::Bytes);
    }
    resets {
        "reset", "sets the counts to zero and waits for a first packet again";
    }
}

struct AverageCounter {
    counts: Counts,
    /// Times of the first packet since the reset, counted or not, and of the last one.
    seen_ns: Option<(u64, u64)>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let counts = Counts::configure(conf);
    conf.finish()?;
    Ok(Box::new(AverageCounter { counts, seen_ns: None }))
}

impl AverageCounter {
    /// `total` divided by the seconds between the start of counting and the last packet.
    fn per_s(&self, total: u64) -> f64 {
        let (first_ns, last_ns) = self.seen_ns.unwrap_or_default();
        let ignored_ms = self.counts.ignore.0 / NS_PER_MS;
        let counted_ms = (last_ns / NS_PER_MS - first_ns / NS_PER_MS).saturating_sub(ignored_ms);
        total as f64 * 1e3 / counted_ms.max(1) as f64
    }
}

impl Element for AverageCounter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        let (first_ns, last_ns) = self.seen_ns.get_or_insert((now_ns, now_ns));
        *last_ns = now_ns;
        if now_ns - *first_ns >= self.counts.ignore.0 {
            self.counts.packets.add(batch.len() as u64);
            self.counts.bytes.add(batch.iter().map(|p| p.len() as u64).sum());
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.counts)
    }

    /// Only a reset changes anything.
    fn settings_changed(&mut self, _cx: &mut Cx<'_>) {
        self.seen_ns = None;
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let (packets, bytes) = (self.counts.packets.get(), self.counts.bytes.get());
        let rate = match handler {
            "rate" => self.per_s(packets),
            "bit_rate" => self.per_s(bytes) * 8.0,
            _ => self.per_s(bytes),
        };
        Ok(real::shown(rate))
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
    fn a_single_packet_took_a_millisecond() {
        let mut h = run("");
        h.write("reset", "").unwrap();
        assert_eq!((h.read("count").unwrap(), h.read("rate").unwrap()), ("0".into(), "0".into()));
        h.push(0, Packet::from_bytes(b"x").unwrap());
        assert_eq!((h.read("count").unwrap(), h.read("rate").unwrap()), ("1".into(), "1000".into()));
    }
}
