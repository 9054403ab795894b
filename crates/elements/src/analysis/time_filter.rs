//! TimeFilter.

use crate::handlers::Call;
use crate::traces::fields::text::print_time;
use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "TimeFilter",
    category: "analysis",
    summary: "lets packets of a range of timestamps through",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Packets with timestamps from START on and before END pass; the others go to output 1, or are dropped. At most one of each group of arguments is given.",
    args: &[
        optional("START", "seconds", "since the epoch"),
        optional("END", "seconds", "since the epoch"),
        keyword("START_DELAY", "seconds", "the start, after the router's start"),
        keyword("END_DELAY", "seconds", "the end, after the router's start"),
        keyword("START_AFTER", "seconds", "the start, after the first packet"),
        keyword("END_AFTER", "seconds", "the end, after the first packet"),
        keyword("INTERVAL", "seconds", "the end, after the start"),
        keyword("STOP", "boolean", "whether to stop the router when the end is over; default false"),
        keyword(
            "END_CALL",
            "handler and value",
            "write handler to call then; `$t` is the packet's timestamp",
        ),
    ],
    handlers: &[
        reads_writes("start", "the start, once a packet has come"),
        reads_writes("end", "the end, likewise"),
        reads_writes("interval", "the time between them; when it is written the start stays"),
        writes("extend_interval", "seconds by which the end is later"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> TimeFilter(START_AFTER 1s, INTERVAL 5s) -> Discard;",
    see: &["TimeRange", "SetTimestamp"],
    copies: Copies::One,
    acts_with: &["STOP", "END_CALL"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Early = "early", "its timestamp lies before the start, and output 1 is not connected";
        Late = "late", "its timestamp lies not before the end, and output 1 is not connected";
    }
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    At(u64),
    /// After the router's start.
    Delay(u64),
    /// After the first packet.
    After(u64),
    /// After the other point.
    Interval(u64),
}

/// The end as handlers show it where there is none.
const NEVER_NS: u64 = i32::MAX as u64 * 1_000_000_000;

struct TimeFilter {
    start: Point,
    end: Point,
    /// Once they are known.
    range_ns: Option<(u64, u64)>,
    call: Option<Call>,
    called: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let given = |n: Nanoseconds, point: fn(u64) -> Point| (n.0 > 0).then(|| point(n.0));
    let start = conf.optional("START", Nanoseconds(0));
    let end = conf.optional("END", Nanoseconds(0));
    let mut keyword = |name: &str| conf.keyword(name, Nanoseconds(0));
    let starts = [
        given(start, Point::At),
        given(keyword("START_DELAY"), Point::Delay),
        given(keyword("START_AFTER"), Point::After),
    ];
    let ends = [
        given(end, Point::At),
        given(keyword("END_DELAY"), Point::Delay),
        given(keyword("END_AFTER"), Point::After),
        given(keyword("INTERVAL"), Point::Interval),
    ];
    let stop = conf.keyword("STOP", false);
    let mut call = conf.keyword_given::<Call>("END_CALL");
    if starts.iter().flatten().count() > 1 {
        conf.error("START, START_AFTER, and START_AFTER_INIT are mutually exclusive");
    }
    if ends.iter().flatten().count() > 1 {
        conf.error("END, END_AFTER, END_AFTER_INIT, and INTERVAL are mutually exclusive");
    }
    if stop && call.is_some() {
        conf.error("END_CALL and STOP are mutually exclusive");
    }
    conf.finish()?;
    if stop {
        call = Some(Call::stop());
    }
    let start = starts.into_iter().flatten().next().unwrap_or(Point::After(0));
    let end = ends.into_iter().flatten().next().unwrap_or(Point::At(u64::MAX));
    Ok(Box::new(TimeFilter { start, end, range_ns: None, call, called: false }))
}

impl TimeFilter {
    /// The range, which is known with the first packet.
    fn range(&mut self, first_ns: u64) -> (u64, u64) {
        *self.range_ns.get_or_insert_with(|| {
            let known = |point: Point, start_ns: u64| match point {
                Point::At(ns) | Point::Delay(ns) => ns,
                Point::After(ns) => first_ns.saturating_add(ns),
                Point::Interval(ns) => start_ns.saturating_add(ns),
            };
            let start_ns = known(self.start, 0);
            (start_ns, known(self.end, start_ns))
        })
    }

    /// Makes the call at a packet of that time, again for as long as the end moves on but not beyond it. A call of this
    /// element itself counts at once.
    fn call_at(&mut self, ns: u64, cx: &mut Cx<'_>) {
        let Some(call) = &self.call else { return };
        let mut time = String::new();
        print_time(ns, &mut time);
        let call = call.with("$t", &time);
        while !std::mem::replace(&mut self.called, true) {
            let (_, end_ns) = self.range(ns);
            match call.own(cx) {
                // Nobody hears of a value that is wrong.
                Some((handler, value)) => drop(self.set(handler, value, cx)),
                None => call.make(cx),
            }
            let (_, new_ns) = self.range(ns);
            if ns < new_ns || new_ns <= end_ns {
                break;
            }
        }
    }

    fn set(&mut self, handler: &str, value: &str, cx: &Cx<'_>) -> Result<(), Error> {
        let Nanoseconds(ns) = cx.value(handler, value).map_err(|_| "expected time")?;
        if handler == "end" && self.range_ns.is_none() {
            self.end = Point::At(ns);
            self.called = false;
            return Ok(());
        }
        let (start_ns, end_ns) = self.range(ns);
        self.range_ns = Some(match handler {
            "start" => (ns, end_ns),
            "end" => (start_ns, ns),
            "interval" => (start_ns, start_ns.saturating_add(ns)),
            _ => (start_ns, end_ns.saturating_add(ns)),
        });
        self.called &= handler == "start";
        Ok(())
    }

    /// The range as far as it is known.
    fn shown(&self) -> (u64, u64) {
        let plain = |point: Point, start_ns: u64| match point {
            Point::At(ns) | Point::Delay(ns) | Point::After(ns) => ns,
            Point::Interval(ns) => start_ns.saturating_add(ns),
        };
        let start_ns = plain(self.start, 0);
        self.range_ns.unwrap_or((start_ns, plain(self.end, start_ns)))
    }
}

impl Element for TimeFilter {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        if matches!((self.start, self.end), (Point::Delay(_), _) | (_, Point::Delay(_))) {
            let now_ns = cx.now_ns();
            for point in [&mut self.start, &mut self.end] {
                if let Point::Delay(ns) = point {
                    *point = Point::At(now_ns.saturating_add(*ns));
                }
            }
        }
        self.call.as_ref().map_or(Ok(()), |call| call.check(cx))
    }

    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let ns = packet.timestamp_ns();
        let (start_ns, end_ns) = self.range(ns);
        if ns < start_ns {
            return Verdict::divert(1, Reason::Early);
        }
        if ns < end_ns {
            return Verdict::Pass;
        }
        if self.call.is_some() && !self.called {
            self.call_at(ns, cx);
        }
        (ns < self.range(ns).1).or_divert(1, Reason::Late)
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let (start_ns, end_ns) = self.shown();
        let end_ns = end_ns.min(NEVER_NS);
        let mut text = String::new();
        match handler {
            "start" => print_time(start_ns, &mut text),
            "end" => print_time(end_ns, &mut text),
            _ => {
                text.extend((end_ns < start_ns).then_some('-'));
                print_time(end_ns.abs_diff(start_ns), &mut text);
            }
        }
        Ok(text)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.set(handler, value, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    fn passed(config: &str, seconds: &[u64]) -> (Vec<u64>, Harness) {
        let mut h = Harness::new(&SPEC, config, 1, 2).unwrap();
        for s in seconds {
            let mut p = packet(b"x");
            p.set_timestamp_ns(s * 1_000_000_000);
            h.push(0, p);
        }
        (h.take(0).iter().map(|p| p.timestamp_ns() / 1_000_000_000).collect(), h)
    }

    #[test]
    fn ranges_are_absolute_or_relative() {
        let times = [10, 11, 12, 13, 14];
        for (config, pass) in [
            ("", &times[..]),
            ("12", &[12, 13, 14]),
            ("11, 13", &[11, 12]),
            ("START_AFTER 1, END_AFTER 3s", &[11, 12]),
            ("START 11, INTERVAL 1", &[11]),
            ("END 11", &[10]),
            ("END_DELAY 1", &times),
        ] {
            assert_eq!(passed(config, &times).0, pass, "{config}");
        }
        for (config, error) in [
            ("1, START_AFTER 2", "START, START_AFTER, and START_AFTER_INIT are mutually exclusive"),
            ("END 5, INTERVAL 2", "END, END_AFTER, END_AFTER_INIT, and INTERVAL are mutually exclusive"),
        ] {
            assert_eq!(Harness::new(&SPEC, config, 1, 1).err().unwrap(), [error]);
        }
    }

    #[test]
    fn an_end_that_moves_itself_lets_packets_on() {
        let times = [10, 11, 12, 19, 20];
        let (pass, mut h) = passed("INTERVAL 1, END_CALL element.extend_interval 2", &times);
        assert_eq!((pass, h.read("end").unwrap()), (times.to_vec(), "21.000000".into()));
        let (pass, _) = passed("END 11, END_CALL element.extend_interval nonsense", &times);
        assert_eq!(pass, [10]);
        let (_, mut h) = passed("START 5, END 3", &[]);
        assert_eq!(h.read("interval").unwrap(), "-2.000000");
        assert_eq!(passed("", &[]).1.read("end").unwrap(), "2147483647.000000");
    }

    #[test]
    fn the_end_stops_the_router_and_can_be_moved() {
        let (_, mut h) = passed("START_AFTER 0, INTERVAL 2, STOP true", &[10, 11]);
        assert_eq!((h.stopped(), h.read("interval").unwrap()), (false, "2.000000".into()));
        h.write("extend_interval", "3").unwrap();
        assert_eq!([h.read("start").unwrap(), h.read("end").unwrap()], ["10.000000", "15.000000"]);
        let mut p = packet(b"x");
        p.set_timestamp_ns(15_000_000_000);
        h.push(0, p);
        assert_eq!((h.stopped(), h.take(1).len()), (true, 1));
        h.assert_balanced();
    }
}
