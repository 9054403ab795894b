//! CoDel.

use super::{lines, queues};
use crate::traces::fields::view::first_timestamp_ns;
use causeway_engine::prelude::*;
use causeway_engine::value::{List, Nanoseconds};
use causeway_engine::{Defaults, Stored};
use causeway_lang::values::SECOND_NS;
use causeway_packet::BATCH;

pub(crate) static SPEC: Spec = Spec {
    name: "CoDel",
    category: "aqm",
    summary: "drops packets while those that it pulls have waited too long",
    ports: "1/1",
    processing: "l/l",
    doc: "Controlled Delay (Nichols and Jacobson, ACM Queue 10(5), 2012; RFC 8289). Pulls packets and looks how long ago \
          their first-timestamp annotation is, which `SetTimestamp(FIRST true)` in front of the queue sets. Once all \
          packets of an INTERVAL have waited for TARGET or longer it drops one, and then more often, until one has waited \
          less. Packets without the annotation pass.",
    args: Own::ARGS,
    handlers: handlers!(
        Own::HANDLERS,
        &[
            reads("queues", "the queues, a line each"),
            reads("stats", "length of the queues, and packets dropped, in words"),
            CONFIG,
        ],
    ),
    drops: Reason::DOCS,
    example: "RatedSource(RATE 100, LIMIT 50, STOP true) -> SetTimestamp(FIRST true) -> Queue(200) -> CoDel(5ms, 100ms) \
              -> RatedUnqueue(50) -> Discard;",
    see: &["RED", "SetTimestamp", "Queue"],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        target: Nanoseconds = optional("TARGET", "time", "how long packets may wait; a number without a unit is seconds; default 5ms"), or(Nanoseconds(5_000_000)),
            live("codel_target", "how long packets may wait");
        interval: Nanoseconds = optional("INTERVAL", "time", "for how long all must have waited too long; default 100ms"), or(Nanoseconds(100_000_000)),
            live("codel_interval", "for how long all must have waited too long");
        queues: List<String> = keyword("QUEUES", "element names", "queues whose lengths are shown; default the nearest ones"), or(List::default());
    }
    counts {
        drops: u64 = reads("drops", "packets dropped").counts(Unit::Packets);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Late = "late", "CoDel chose it, since packets have waited too long";
    }
}

struct CoDel {
    own: Own,
    /// Whether `config` shows what Click's does.
    as_click: bool,
    stored: Vec<Stored>,
    /// When a packet may be dropped if all have waited too long until then.
    first_above_ns: Option<u64>,
    dropping: bool,
    drop_next_ns: u64,
    /// Packets dropped since dropping began, or a little less.
    in_a_row: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    super::check(&own.queues.0, conf);
    conf.finish()?;
    Ok(Box::new(CoDel {
        own,
        as_click: conf.env.defaults == Defaults::Click,
        stored: Vec::new(),
        first_above_ns: None,
        dropping: false,
        drop_next_ns: 0,
        in_a_row: 0,
    }))
}

/// A packet and what was found of it.
struct Pulled {
    packet: Packet,
    /// Whether it is known how long it has waited.
    known: bool,
    may_drop: bool,
}

impl CoDel {
    /// Lets `config` show the times of now, if Click's would.
    fn show(&self, cx: &mut Cx<'_>) {
        let seconds = |Nanoseconds(ns)| format!("{}.{:06}", ns / SECOND_NS, ns % SECOND_NS / 1_000);
        if self.as_click {
            cx.set_config(format!("{}s, {} s, ", seconds(self.own.target), seconds(self.own.interval)));
        }
    }

    fn next(&mut self, now_ns: u64, cx: &mut Cx<'_>) -> Option<Pulled> {
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        let packet = batch.pop();
        cx.return_batch(batch);
        let Some(packet) = packet else {
            self.first_above_ns = None;
            return None;
        };
        let first_ns = first_timestamp_ns(&packet);
        if first_ns == 0 {
            return Some(Pulled { packet, known: false, may_drop: false });
        }
        let mut may_drop = false;
        if now_ns.saturating_sub(first_ns) < self.own.target.0 {
            self.first_above_ns = None;
        } else {
            let above_ns = *self.first_above_ns.get_or_insert(now_ns.saturating_add(self.own.interval.0));
            may_drop = now_ns >= above_ns;
        }
        Some(Pulled { packet, known: true, may_drop })
    }

    /// When the next packet is dropped after one at `ns`: an interval later by the square root of their number.
    fn after(&self, ns: u64) -> u64 {
        let milliseconds = self.own.interval.0 / 1_000_000;
        ns.saturating_add((milliseconds * 16_000_000).checked_div((self.in_a_row * 256).isqrt()).unwrap_or(0))
    }

    fn drop(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        cx.drop(Reason::Late, packet);
        self.own.drops += 1;
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now_ns = cx.now_ns();
        let Some(mut pulled) = self.next(now_ns, cx) else {
            self.dropping = false;
            return None;
        };
        if !pulled.known {
            self.dropping = false;
            return Some(pulled.packet);
        }
        if self.dropping {
            self.dropping = pulled.may_drop;
            // Where INTERVAL is so short that the next is due at once a source that always has packets must not keep the worker
            // here.
            let mut dropped = 0;
            while self.dropping && now_ns >= self.drop_next_ns && dropped < BATCH {
                dropped += 1;
                self.drop(pulled.packet, cx);
                self.in_a_row += 1;
                pulled = match self.next(now_ns, cx) {
                    Some(next) => next,
                    None => {
                        self.dropping = false;
                        return None;
                    }
                };
                self.dropping = pulled.may_drop;
                if self.dropping {
                    self.drop_next_ns = self.after(self.drop_next_ns);
                }
            }
            return Some(pulled.packet);
        }
        let interval_ns = self.own.interval.0;
        let lately = now_ns.saturating_sub(self.drop_next_ns) < interval_ns;
        let long = self.first_above_ns.is_some_and(|above_ns| now_ns.saturating_sub(above_ns) >= interval_ns);
        if !(pulled.may_drop && (lately || long)) {
            return Some(pulled.packet);
        }
        self.drop(pulled.packet, cx);
        let next = self.next(now_ns, cx);
        self.dropping = true;
        self.in_a_row = if lately && self.in_a_row > 2 { self.in_a_row - 2 } else { 1 };
        self.drop_next_ns = self.after(now_ns);
        next.map(|pulled| pulled.packet)
    }
}

impl Element for CoDel {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.stored = queues(&self.own.queues.0, cx)?;
        self.show(cx);
        Ok(())
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        while batch.len() < max && batch.room() > 0 {
            let Some(packet) = self.dequeue(cx) else { break };
            // There is room.
            let _ = batch.push(packet);
        }
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        self.show(cx);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "queues" => lines(&self.stored),
            _ => {
                let length: usize = self.stored.iter().map(|queue| cx.stored(queue)).sum();
                format!("{length} current queue\n{} drops\n", self.own.drops)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::fields::view::set_first_timestamp_ns;
    use causeway_engine::harness::{Harness, packet};

    /// CoDel alone: there is no queue whose length it could tell.
    struct Alone(Box<dyn Element>);

    impl Element for Alone {
        fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
            self.0.pull(port, max, batch, cx);
        }
    }

    static ALONE: Spec = Spec { build: |conf| Ok(Box::new(Alone(build(conf)?))), ..SPEC };

    /// Pulls a packet each millisecond. Packets count up, and one that is pulled has waited for as long as `waited_ms` says of
    /// the millisecond; `None` = nobody knows. Says when which packet was dropped.
    fn drops(config: &str, milliseconds: u64, waited_ms: impl Fn(u64) -> Option<u64>) -> Vec<(u64, u16)> {
        let mut h = Harness::pulled(&ALONE, config).unwrap();
        let (mut dropped, mut next, mut due) = (Vec::new(), 0u16, 0u16);
        // A packet for that millisecond.
        let mut feed = |h: &mut Harness, ms: u64| {
            let mut p = packet(&next.to_be_bytes());
            let now_ns = causeway_engine::clock::SIMULATED_START_NS + ms * 1_000_000;
            set_first_timestamp_ns(&mut p, waited_ms(ms).map_or(0, |waited| now_ns - waited * 1_000_000));
            h.feed(0, p);
            next += 1;
        };
        feed(&mut h, 1);
        for ms in 1..=milliseconds {
            // There is always one more, for the place of one that is dropped.
            feed(&mut h, ms + 1);
            h.advance(1_000_000);
            for p in h.pull(0, 1) {
                let came = u16::from_be_bytes([p.data()[0], p.data()[1]]);
                for n in due..came {
                    dropped.push((ms, n));
                    feed(&mut h, ms + 1);
                }
                due = came + 1;
            }
        }
        h.assert_balanced();
        dropped
    }

    /// When packets were dropped.
    fn times(config: &str, milliseconds: u64, waited_ms: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
        drops(config, milliseconds, waited_ms).into_iter().map(|(ms, _)| ms).collect()
    }

    #[test]
    fn drops_come_closer_by_the_square_root_of_their_number() {
        // It begins two intervals after the first that is late; the roots are those of 256 times the numbers, cut to
        // whole numbers.
        assert_eq!(times("5ms, 100ms", 530, |_| Some(50)), [201, 301, 374, 433, 483, 529]);
        assert_eq!(times("5ms, 40ms", 215, |_| Some(50)), [81, 121, 151, 174, 194, 213]);
    }

    #[test]
    fn the_time_between_drops_is_the_interval_by_the_root_of_their_number() {
        // RFC 8289 §3.3 and §5.3; where the root is no whole number of sixteenths it is cut to one.
        let after = |in_a_row: u64, interval_ns: u64| {
            let (target, interval) = (Nanoseconds(5_000_000), Nanoseconds(interval_ns));
            let own = Own { target, interval, queues: List::default(), drops: 0 };
            let (stored, as_click) = (Vec::new(), false);
            let codel = CoDel {
                own,
                as_click,
                stored,
                first_above_ns: None,
                dropping: true,
                drop_next_ns: 0,
                in_a_row,
            };
            codel.after(1_000) - 1_000
        };
        for (in_a_row, ns) in [
            (1, 100_000_000),
            (2, 72_727_272),
            (3, 59_259_259),
            (4, 50_000_000),
            (9, 33_333_333),
            (16, 25_000_000),
            (100, 10_000_000),
            (10_000, 1_000_000),
        ] {
            assert_eq!(after(in_a_row, 100_000_000), ns, "{in_a_row}");
        }
        assert_eq!(
            [after(4, 1_999_999), after(4, 999_999)],
            [500_000, 0],
            "whole milliseconds of INTERVAL count"
        );
    }

    #[test]
    fn what_is_dropped_is_what_has_waited_longest() {
        let dropped = drops("5ms, 100ms", 310, |_| Some(50));
        assert_eq!(dropped, [(201, 200), (301, 301)]);
    }

    #[test]
    fn one_that_is_in_time_ends_it_and_soon_after_it_goes_on_where_it_was() {
        // At 530 six have been dropped: 4 count when it begins anew within an interval.
        let at = |good: std::ops::Range<u64>| move |ms: u64| Some(if good.contains(&ms) { 4 } else { 50 });
        let again = times("5ms, 100ms", 740, at(531..532));
        assert_eq!(again[6..], [632, 682, 728], "{again:?}");
        // Of two or three one counts, of four two.
        for (until, again) in [(350, [451, 551, 624]), (400, [501, 601, 674]), (460, [561, 634, 693])] {
            let times = times("5ms, 100ms", 700, at(until..until + 1));
            let next = times.iter().position(|&ms| ms > until).unwrap();
            assert_eq!(times[next..][..3], again, "{times:?}");
        }
        // Long after it begins with one.
        let again = times("5ms, 100ms", 1_250, at(531..800));
        assert_eq!(again[6..], [1_000, 1_100, 1_173, 1_232], "{again:?}");
    }

    #[test]
    fn packets_that_have_waited_for_the_target_are_late_and_unknown_ones_are_not() {
        assert_eq!(times("5ms, 100ms", 202, |_| Some(5)), [201]);
        assert_eq!(times("5ms, 100ms", 500, |_| Some(4)), []);
        assert_eq!(times("5ms, 100ms", 500, |_| None), []);
        // One without a time ends the dropping, though not what is known of the others.
        assert_eq!(times("5ms, 100ms", 320, |ms| (ms != 250).then_some(50)), [201, 251]);
    }

    #[test]
    fn when_there_is_nothing_to_pull_it_begins_anew() {
        let mut h = Harness::pulled(&ALONE, "5ms, 10ms").unwrap();
        let mut pull = |ms: u64, packets: usize| {
            h.advance(ms * 1_000_000);
            for _ in 0..packets {
                let mut p = packet(b"x");
                set_first_timestamp_ns(&mut p, 1);
                h.feed(0, p);
            }
            h.pull(0, packets.max(1)).len()
        };
        assert_eq!([pull(1, 1), pull(19, 1), pull(1, 2)], [1, 1, 1], "two intervals after the first");
        assert_eq!([pull(1, 0), pull(30, 1), pull(19, 1)], [0, 1, 1], "there was nothing");
        assert_eq!(pull(1, 2), 1);
    }
}
