//! RatedSource.

use super::generator::{self, Generator};
use crate::handlers::task;
use crate::token_bucket::TokenBucket;
use causeway_engine::Defaults;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;
use causeway_engine::value::{Bytes, BytesPerSecond};

pub(crate) static SPEC: Spec = Spec {
    name: "RatedSource",
    category: "sources",
    summary: "makes packets at a rate",
    ports: "0/1",
    processing: "a/a",
    doc: "Makes RATE packets a second that contain DATA, the first one at once. When it comes late it catches up, \
          by at most a hundredth of a second's packets; for configurations written for Click it keeps the rate in \
          milliseconds, and begins with what it might have to catch up. It does not wait for room in a Queue: what does not fit is \
          lost there. Between packets it sleeps, and when it is pulled its puller does. After LIMIT packets it \
          ends, and with STOP stops the router.",
    args: &[
        generator::DATA_ARG,
        optional("RATE", "packets a second", "how many; default 10"),
        generator::LIMIT_ARG,
        generator::ACTIVE_ARG,
        generator::LENGTH_ARG,
        generator::DATASIZE_ARG,
        generator::HEADROOM_ARG,
        generator::STOP_ARG,
        generator::END_CALL_ARG,
        keyword("BANDWIDTH", "bandwidth", "sets RATE from the length of the first packet"),
    ],
    handlers: handlers!(
        &[
            generator::COUNT,
            generator::RESET,
            generator::DATA_HANDLER,
            generator::LENGTH,
            generator::DATASIZE,
            reads_writes("rate", "packets a second"),
            generator::LIMIT,
            generator::ACTIVE,
        ],
        TASK,
    ),
    example: "RatedSource(RATE 1000, LIMIT 50, STOP true) -> Discard;",
    see: &["InfiniteSource", "TimedSource"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

/// The only timer: the next token.
const TOKEN: u32 = 0;

struct RatedSource {
    packets: Generator,
    rate_pps: u32,
    bucket: TokenBucket,
    /// Whether the bucket is in Click's measure.
    in_ticks: bool,
}

/// Packets by which a source of that rate catches up.
fn depth(rate_pps: u32) -> u32 {
    (rate_pps / 100).max(2)
}

/// A bucket that is full for Click's configurations, and else has a token.
fn bucket(rate_pps: u32, in_ticks: bool) -> TokenBucket {
    let depth = depth(rate_pps);
    match in_ticks {
        true => TokenBucket::in_ticks(rate_pps, depth),
        false => TokenBucket::new(rate_pps.into(), depth.into(), 1),
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let data = conf.optional("DATA", Bytes(generator::DATA.to_vec()));
    let mut rate_pps = conf.optional("RATE", 10u32);
    let limit = conf.optional("LIMIT", -1i32).into();
    let active = conf.optional("ACTIVE", true);
    let packets = Generator::configured(conf, data, limit, active);
    if let Some(BytesPerSecond(bandwidth)) = conf.keyword_given("BANDWIDTH") {
        rate_pps = u32::try_from(bandwidth / packets.packet_len().max(1) as u64).unwrap_or(u32::MAX);
    }
    conf.finish()?;
    let in_ticks = conf.env.defaults == Defaults::Click;
    Ok(Box::new(RatedSource { packets, rate_pps, bucket: bucket(rate_pps, in_ticks), in_ticks }))
}

impl RatedSource {
    /// Fills `batch` with what may leave now, at most `max`; returns how many packets those are.
    fn fill(&mut self, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) -> usize {
        let tokens = self.bucket.tokens(cx.now_ns());
        let made = self.packets.fill(tokens.min(max as u64), batch, cx);
        self.bucket.take(made as u64);
        made
    }

    /// Comes back when there is a token.
    fn wait(&self, cx: &mut Cx<'_>) {
        if let Some(when_ns) = self.bucket.next_ns() {
            cx.set_timer(TOKEN, when_ns);
        }
    }
}

impl Element for RatedSource {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.packets.check(cx)?;
        task::start(self.packets.active, cx);
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !self.packets.active {
            return Run::Sleep;
        }
        if self.packets.left() == 0 {
            self.packets.end(cx);
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        // What is downstream of a source of Click's sees one packet after the other.
        let most = if self.in_ticks { 1 } else { causeway_packet::BATCH };
        let made = self.fill(most, &mut batch, cx);
        cx.emit_batch(0, batch);
        if made > 0 {
            return Run::Worked;
        }
        self.wait(cx);
        Run::Sleep
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        task::start(self.packets.active, cx);
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.packets.active {
            return;
        }
        if self.packets.left() == 0 {
            cx.notify_packets(false);
            self.packets.end(cx);
        } else if self.fill(max, batch, cx) == 0 {
            cx.notify_packets(false);
            self.wait(cx);
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.packets)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        task::start(self.packets.active, cx);
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.rate_pps.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.rate_pps = cx.value(handler, value)?;
        // Tokens up to now come at the old rate.
        self.bucket.tokens(cx.now_ns());
        let depth = depth(self.rate_pps);
        match self.in_ticks {
            true => self.bucket.set_rate_in_ticks(self.rate_pps, depth),
            false => self.bucket.set_rate(self.rate_pps.into(), depth.into()),
        }
        self.settings_changed(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};

    /// Runs the source for `ns`, its task whenever it wants to; returns the packets that came.
    fn run(h: &mut Harness, ns: u64) -> usize {
        let mut made = 0;
        for _ in 0..1_000 {
            while h.run_task().is_some() {}
            made += h.take(0).len();
            h.advance(ns / 1_000);
        }
        made
    }

    #[test]
    fn keeps_its_rate() {
        for (rate, seconds, packets) in
            [(10, 10, 101), (2, 10, 21), (12_345, 2, 24_691), (1_000_000, 1, 1_000_001)]
        {
            let mut h = Harness::new(&SPEC, &format!("RATE {rate}"), 0, 1).unwrap();
            let made = run(&mut h, seconds * 1_000_000_000);
            // The last timer may come a step after the end, and each step reads the clock.
            let slack = packets / 1_000 + 1;
            assert!(made.abs_diff(packets) <= slack, "{rate}: {made}");
        }
    }

    #[test]
    fn the_first_packet_comes_at_once_and_the_last_stops_the_router() {
        let mut h = Harness::new(&SPEC, "abc, 10, 2, STOP true", 0, 1).unwrap();
        assert_eq!((h.run_task(), h.take(0)[0].data()), (Some(Run::Worked), &b"abc"[..]));
        assert_eq!((h.run_task(), h.run_task()), (Some(Run::Sleep), None));
        h.advance(100_000_001);
        assert_eq!((h.run_task(), h.take(0).len(), h.stopped()), (Some(Run::Worked), 1, false));
        assert_eq!((h.run_task(), h.stopped()), (Some(Run::Sleep), true));
    }

    #[test]
    fn bandwidth_sets_the_rate() {
        let mut h = Harness::new(&SPEC, "LENGTH 100, BANDWIDTH 8kbps", 0, 1).unwrap();
        assert_eq!(h.read("rate").unwrap(), "10");
        h.write("rate", "500").unwrap();
        assert_eq!(h.read("rate").unwrap(), "500");
        assert!(h.write("rate", "-1").is_err());
    }

    #[test]
    fn a_rate_of_nothing_makes_at_most_the_first() {
        let mut h = Harness::new(&SPEC, "RATE 0", 0, 1).unwrap();
        assert_eq!(run(&mut h, 5_000_000_000), 1);
    }

    #[test]
    fn gives_tokens_to_its_puller() {
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, "RATE 1000", &ports).unwrap();
        assert_eq!((h.pull(0, 50).len(), h.pull(0, 50).len()), (1, 0));
        h.advance(5_000_000);
        assert_eq!((h.pull(0, 3).len(), h.pull(0, 50).len()), (3, 2));
    }
}
