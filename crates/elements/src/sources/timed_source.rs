//! TimedSource.

use super::generator::{self, Generator};
use causeway_engine::prelude::*;
use causeway_engine::value::{Bytes, Nanoseconds};

pub(crate) static SPEC: Spec = Spec {
    name: "TimedSource",
    category: "sources",
    summary: "makes a packet every so often",
    ports: "0/1",
    processing: "h/h",
    doc: "Pushes a packet that contains DATA every INTERVAL seconds, the first one after an INTERVAL. After LIMIT \
          packets it ends, and with STOP stops the router.",
    args: &[
        optional("INTERVAL", "seconds", "time between packets; default 0.5"),
        generator::DATA_ARG,
        keyword("LIMIT", "packets", "most packets made; negative means no limit; default -1"),
        keyword("ACTIVE", "boolean", "whether to make packets; default true"),
        generator::LENGTH_ARG,
        generator::DATASIZE_ARG,
        generator::HEADROOM_ARG,
        generator::STOP_ARG,
        generator::END_CALL_ARG,
    ],
    handlers: &[
        generator::COUNT,
        generator::RESET,
        generator::DATA_HANDLER,
        generator::LENGTH,
        generator::HEADROOM,
        reads_writes("interval", "seconds between packets"),
        generator::LIMIT,
        generator::ACTIVE,
    ],
    example: "TimedSource(INTERVAL 10ms, DATA tick, LIMIT 3, STOP true) -> Discard;",
    see: &["RatedSource", "InfiniteSource"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

/// The only timer: the next packet.
const NEXT: u32 = 0;

struct TimedSource {
    packets: Generator,
    interval_ns: u64,
    /// When the next packet is due, while the timer runs.
    due_ns: Option<u64>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Nanoseconds(interval_ns) = conf.optional("INTERVAL", Nanoseconds(500_000_000));
    let data = conf.optional("DATA", Bytes(generator::DATA.to_vec()));
    let limit = conf.keyword("LIMIT", -1);
    let active = conf.keyword("ACTIVE", true);
    let packets = Generator::configured(conf, data, limit, active);
    conf.finish()?;
    Ok(Box::new(TimedSource { packets, interval_ns, due_ns: None }))
}

impl TimedSource {
    /// Sets the timer an interval after `from_ns`.
    fn set_timer(&mut self, from_ns: u64, cx: &mut Cx<'_>) {
        let due_ns = from_ns.saturating_add(self.interval_ns);
        self.due_ns = Some(due_ns);
        cx.set_timer(NEXT, due_ns);
    }

    /// Sets the timer going if there is something to do and it does not run.
    fn start(&mut self, cx: &mut Cx<'_>) {
        if self.packets.active && self.packets.left() > 0 && self.due_ns.is_none() {
            let now_ns = cx.now_ns();
            self.set_timer(now_ns, cx);
        }
    }
}

impl Element for TimedSource {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.packets.check(cx)?;
        self.start(cx);
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let Some(due_ns) = self.due_ns.take().filter(|_| self.packets.active) else { return };
        if self.packets.left() == 0 {
            return self.packets.end(cx);
        }
        let mut batch = cx.lend_batch();
        self.packets.fill(1, &mut batch, cx);
        cx.emit_batch(0, batch);
        // An interval after the last packet was due, so that lateness does not add up.
        self.set_timer(due_ns, cx);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.packets)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        self.start(cx);
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(Nanoseconds(self.interval_ns).to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let Nanoseconds(interval_ns) = cx.value(handler, value)?;
        self.interval_ns = interval_ns;
        self.due_ns = None;
        cx.clear_timer(NEXT);
        self.start(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn one_packet_an_interval() {
        let mut h = Harness::new(&SPEC, "", 0, 1).unwrap();
        h.advance(499_000_000);
        assert_eq!(h.take(0).len(), 0);
        h.advance(2_000_000);
        assert_eq!(h.take(0)[0].data(), generator::DATA);
        h.advance(10_000_000_000);
        assert_eq!((h.take(0).len(), h.read("count").unwrap()), (20, "21".to_owned()));
    }

    #[test]
    fn the_last_packet_stops_the_router() {
        let mut h = Harness::new(&SPEC, "1, tick, LIMIT 2, STOP true", 0, 1).unwrap();
        h.advance(1_500_000_000);
        assert_eq!((h.take(0)[0].data(), h.stopped()), (&b"tick"[..], false));
        h.advance(1_000_000_000);
        assert_eq!((h.take(0).len(), h.stopped()), (1, false), "an interval follows the last, too");
        h.advance(1_000_000_000);
        assert_eq!((h.take(0).len(), h.stopped()), (0, true));
        h.write("reset", "").unwrap();
        h.advance(9_000_000_000);
        assert_eq!(h.take(0).len(), 2);
    }

    #[test]
    fn without_an_interval_packets_come_at_once() {
        let mut h = Harness::new(&SPEC, "0, LIMIT 3, STOP true", 0, 1).unwrap();
        h.advance(1);
        assert_eq!((h.take(0).len(), h.stopped(), h.read("interval").unwrap()), (3, true, "0ms".to_owned()));
    }

    #[test]
    fn who_is_to_be_told_of_the_end_must_exist() {
        let errors = |end: &str| Harness::new(&SPEC, &format!("END_CALL {end}"), 0, 1).err();
        assert_eq!(errors("x.y 1"), Some(vec!["no element named 'x'".to_owned()]));
        assert_eq!(errors("element.count"), Some(vec!["no 'element.count' write handler".to_owned()]));
        assert_eq!(errors("element.reset"), None);
    }

    #[test]
    fn handlers_change_the_pace() {
        let mut h = Harness::new(&SPEC, "INTERVAL 10, ACTIVE no", 0, 1).unwrap();
        h.advance(60_000_000_000);
        assert_eq!(h.take(0).len(), 0);
        h.write("active", "yes").unwrap();
        h.write("interval", "0.1").unwrap();
        h.advance(1_050_000_000);
        assert_eq!((h.take(0).len(), h.read("interval").unwrap()), (10, "100ms".to_owned()));
        for (written, read) in
            [("2.5", "2.500000s"), ("250us", "250us"), ("1500us", "1500us"), ("1.000000001", "1.000000001s")]
        {
            h.write("interval", written).unwrap();
            assert_eq!(h.read("interval").unwrap(), read);
        }
        h.write("active", "no").unwrap();
        h.advance(5_000_000_000);
        assert_eq!(h.take(0).len(), 0);
    }
}
