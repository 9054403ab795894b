//! Counter.

use crate::handlers::Call;
use crate::rate::Rate;
use causeway_engine::ir::Field;
use causeway_engine::prelude::*;
use causeway_engine::value::{Raw, Value};
use causeway_engine::{Counter as Count, Scope};

pub(crate) static SPEC: Spec = Spec {
    name: "Counter",
    category: "counters",
    summary: "counts packets and bytes, and measures their rate",
    ports: "1/1",
    processing: "a/a",
    doc: "Counts the packets and bytes that pass. The counts are words in the router's shared counter file, which \
          anyone may read without asking the router. The rates are exponentially weighted moving averages: each \
          millisecond weighs a sixteenth, and after a tenth of a second without packets they are 0. A hot swap starts \
          all of them anew.",
    args: &[
        keyword(
            "COUNT_CALL",
            "packets, handler and value",
            "write handler to call when the count reaches a number",
        ),
        keyword("BYTE_COUNT_CALL", "bytes, handler and value", "the same for the byte count"),
    ],
    handlers: &[
        reads("count", "packets since the last reset").counts(Unit::Packets),
        reads("byte_count", "bytes since the last reset").counts(Unit::Bytes),
        reads("rate", "recent rate in packets a second").measures(Unit::PacketsPerSecond),
        reads("bit_rate", "recent rate in bits a second").measures(Unit::BitsPerSecond),
        reads("byte_rate", "recent rate in bytes a second").measures(Unit::BytesPerSecond),
        writes("reset", "sets counts and rates to zero"),
        writes("reset_counts", "the same as `reset`"),
        reads_writes("count_call", "COUNT_CALL; writing a number alone keeps the handler"),
        reads_writes("byte_count_call", "BYTE_COUNT_CALL; writing a number alone keeps the handler"),
    ],
    example: "InfiniteSource(LIMIT 1000, STOP true) -> Counter -> Discard;",
    see: &["AverageCounter"],
    copies: Copies::OneWith(&["COUNT_CALL", "BYTE_COUNT_CALL"]),
    acts_with: &["COUNT_CALL", "BYTE_COUNT_CALL"],
    build,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

/// A handler to be called when a count reaches a number.
#[derive(Clone, Debug, Default)]
struct Trigger {
    at: u64,
    call: Option<Call>,
    /// Whether it was called since the last reset.
    called: bool,
    /// Whether a number was given and no handler.
    nameless: bool,
}

struct Counter {
    on_packets: Trigger,
    on_bytes: Trigger,
    packets: Count,
    bytes: Count,
    packet_rate: Rate<10>,
    byte_rate: Rate<4>,
    /// When packets and bytes were counted last for this element by something else.
    counted_ns: [u64; 2],
}

/// So long at most what something else has counted was on its way.
const ON_THE_WAY_NS: u64 = 100_000_000;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let on_packets = trigger(conf, "COUNT_CALL");
    let on_bytes = trigger(conf, "BYTE_COUNT_CALL");
    conf.finish()?;
    Ok(Box::new(Counter {
        on_packets,
        on_bytes,
        packets: conf.counter("count"),
        bytes: conf.counter("byte_count"),
        packet_rate: Rate::default(),
        byte_rate: Rate::default(),
        counted_ns: [0; 2],
    }))
}

/// The call that the argument `name` says, which must name a handler.
fn trigger(conf: &mut Conf<'_>, name: &str) -> Trigger {
    let text = conf.keyword(name, Raw::default()).0;
    if text.is_empty() {
        return Trigger::default();
    }
    let mut trigger = Trigger::parse(&text, &conf.scope()).unwrap_or_else(|_| {
        conf.error(format!("{name} type mismatch"));
        Trigger::default()
    });
    trigger.nameless = trigger.call.is_none();
    trigger
}

/// `N HANDLER [VALUE]`, or `N` alone.
impl Value for Trigger {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let (at, call) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let call = match call.trim() {
            "" => None,
            call => Some(Call::parse(call, scope)?),
        };
        Ok(Trigger { at: u64::parse(at, scope)?, call, called: false, nameless: false })
    }

    fn placeholder() -> Self {
        Trigger::default()
    }
}

impl Trigger {
    /// Makes the call if `count` has reached the number for the first time.
    #[inline]
    fn check(&mut self, count: u64, cx: &mut Cx<'_>) {
        if let Some(call) = &self.call
            && !self.called
            && count >= self.at
        {
            self.called = true;
            call.make(cx);
        }
    }

    fn rewrite(&mut self, new: Trigger) {
        *self = Trigger { call: new.call.or(self.call.take()), ..new };
    }

    fn text(&self) -> String {
        self.call.as_ref().map_or_else(String::new, |_| self.at.to_string())
    }
}

impl Element for Counter {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        if self.on_packets.nameless || self.on_bytes.nameless {
            return Err(Error::new("syntax error"));
        }
        let calls = [&self.on_packets, &self.on_bytes].into_iter().filter_map(|t| t.call.as_ref());
        calls.into_iter().try_for_each(|call| call.check(cx))
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let packets = batch.len() as u64;
        let bytes = batch.iter().map(|p| p.len() as u64).sum();
        self.packets.add(packets);
        self.bytes.add(bytes);
        let now_ns = cx.now_ns();
        self.packet_rate.add(packets, now_ns);
        self.byte_rate.add(bytes, now_ns);
        self.on_packets.check(self.packets.get(), cx);
        self.on_bytes.check(self.bytes.get(), cx);
    }

    /// Who calls handlers has to see each packet.
    fn lower(&self) -> Option<Program> {
        if self.on_packets.call.is_some() || self.on_bytes.call.is_some() {
            return None;
        }
        let mut b = Builder::new();
        let length = b.get(Field::Length);
        b.count(&self.packets, 1);
        b.count(&self.bytes, length);
        b.leave(0);
        b.finish()
    }

    /// The rates reckon with packets that came evenly.
    fn counted(&mut self, counter: &Count, n: u64, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        let since =
            |last: &mut u64| std::mem::replace(last, now_ns).max(now_ns.saturating_sub(ON_THE_WAY_NS));
        let [packets_ns, bytes_ns] = &mut self.counted_ns;
        if *counter == self.packets {
            self.packet_rate.add_since(n, since(packets_ns), now_ns);
        } else if *counter == self.bytes {
            self.byte_rate.add_since(n, since(bytes_ns), now_ns);
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "count" => self.packets.get().to_string(),
            "byte_count" => self.bytes.get().to_string(),
            "count_call" => self.on_packets.text(),
            "byte_count_call" => self.on_bytes.text(),
            "rate" => self.packet_rate.per_s(1, cx.now_ns()),
            "bit_rate" => self.byte_rate.per_s(8, cx.now_ns()),
            _ => self.byte_rate.per_s(1, cx.now_ns()),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        match handler {
            "count_call" => {
                self.on_packets.rewrite(cx.value(handler, value)?);
                return Ok(());
            }
            "byte_count_call" => {
                self.on_bytes.rewrite(cx.value(handler, value)?);
                return Ok(());
            }
            _ => {}
        }
        (self.on_packets.called, self.on_bytes.called) = (false, false);
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
    fn calls_a_handler_when_a_count_is_reached() {
        let mut h = Harness::new(&SPEC, "COUNT_CALL 3 stop, BYTE_COUNT_CALL 90 element.reset", 1, 1).unwrap();
        let push = |h: &mut Harness| {
            h.push(0, Packet::from_bytes(&[0; 20]).unwrap());
            (h.read("count").unwrap(), h.stopped())
        };
        for (count, stopped) in
            [("1", false), ("2", false), ("3", true), ("4", true), ("0", true), ("1", true)]
        {
            assert_eq!(push(&mut h), (count.to_owned(), stopped));
        }
        h.write("byte_count_call", "50").unwrap();
        assert_eq!(h.read("byte_count_call").unwrap(), "50");
        assert_eq!((push(&mut h).0, push(&mut h).0), ("2".to_owned(), "0".to_owned()));
        assert!(h.write("count_call", "many stop").is_err());
        let errors = Harness::new(&SPEC, "COUNT_CALL 3 halt", 1, 1).err().unwrap();
        assert_eq!(errors, ["no 'halt' write handler"]);
        let errors = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap();
        assert_eq!(errors("COUNT_CALL many stop"), ["COUNT_CALL type mismatch"]);
        assert_eq!(errors("COUNT_CALL 3"), ["syntax error"]);
    }

    #[test]
    fn a_handler_is_called_once_until_the_next_reset() {
        let mut h = Harness::new(&SPEC, "COUNT_CALL 2 element.byte_count_call 999", 1, 1).unwrap();
        let after = |h: &mut Harness| {
            h.write("byte_count_call", "1000 stop").unwrap();
            h.push(0, Packet::from_bytes(b"x").unwrap());
            h.read("byte_count_call").unwrap()
        };
        assert_eq!([after(&mut h), after(&mut h), after(&mut h)], ["1000", "999", "1000"]);
        h.write("reset", "").unwrap();
        assert_eq!([after(&mut h), after(&mut h)], ["1000", "999"]);
    }

    #[test]
    fn what_something_else_counts_is_seen_in_counts_and_rates() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        let program = h.lower().expect("a program");
        let [packets, bytes] = program.counters() else { panic!("two counters") };
        // As much comes by itself, in the course of a tenth of a second, as is counted by something else at its end.
        for _ in 0..20 {
            for _ in 0..100 {
                h.push_all(0, (0..3).map(|_| Packet::from_bytes(&[0; 100]).unwrap()));
                h.take(0);
                h.advance(1_000_000);
            }
            h.count(packets, 200);
            h.count(bytes, 20_000);
        }
        assert_eq!(
            (h.read("count").unwrap(), h.read("byte_count").unwrap()),
            ("10000".into(), "1000000".into())
        );
        for (handler, rate) in [("rate", 5_000.0), ("byte_rate", 500_000.0), ("bit_rate", 4_000_000.0)] {
            let now = number(&mut h, handler);
            assert!((now - rate).abs() < rate / 50.0, "{handler}: {now}");
        }
        // What comes after a long time was not long on its way.
        h.advance(60_000_000_000);
        assert_eq!(number(&mut h, "rate"), 0.0);
        h.count(packets, 100);
        let now = number(&mut h, "rate");
        assert!((now - 1_000.0).abs() < 20.0, "{now}");
        h.write("reset", "").unwrap();
        assert_eq!((h.read("count").unwrap(), h.read("rate").unwrap()), ("0".into(), "0".into()));
    }

    #[test]
    fn one_that_calls_handlers_does_not_lower() {
        assert!(Harness::new(&SPEC, "COUNT_CALL 3 stop", 1, 1).unwrap().lower().is_none());
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.write("byte_count_call", "9 stop").unwrap();
        assert!(h.lower().is_none());
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
        // 2 packets of 100 bytes every 2 ms; a millisecond without packets takes a sixteenth off.
        for (handler, rate) in [("rate", 1_000.0), ("byte_rate", 100_000.0), ("bit_rate", 800_000.0)] {
            let now = number(&mut h, handler);
            assert!((now - rate).abs() < rate / 16.0, "{handler}: {now}");
        }
        h.write("reset_counts", "").unwrap();
        assert_eq!(number(&mut h, "rate"), 0.0);
    }
}
