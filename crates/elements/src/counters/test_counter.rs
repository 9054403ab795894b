//! TestCounter.

use crate::real;
use crate::sequence::{Arrival, Counts, Sequence};
use causeway_engine::prelude::*;
use causeway_engine::spec::HandlerDoc;
use causeway_packet::wire::tester::{Seen, look, wrap_ns};

pub(crate) static SPEC: Spec = Spec {
    name: "TestCounter",
    category: "counters",
    summary: "counts a router tester's packets: in order, lost, doubled, reordered, broken, and how late",
    doc: "Looks at Ethernet frames and counts those of SetTestPayload or of `causeway lab transmit` that are of the trial. \
          Terms are those of RFC 4737 and RFC 5560: a packet is in order if its number is above all of its flow before, reordered \
          if it comes the first time after a higher one, duplicated if it comes again. What has not come below the \
          highest number is lost. The delay is from the time in the packet to now; on two machines it is as good as their \
          clocks. All packets pass on.",
    args: Counted::ARGS,
    handlers: HANDLERS,
    example: "FastUDPSource(1000, 100, 60, 2:0:0:0:0:1, 10.0.0.1, 1, 2:0:0:0:0:2, 10.0.0.2, 1) \
              -> SetTestPayload -> Unqueue -> TestCounter -> Discard;",
    see: &["AverageCounter", "SetTestPayload"],
    // A flow's numbers are in order, and delays have a mean, only where all of them come by.
    copies: Copies::One,
    build,
    stamps: true,
    ..Spec::DEFAULT
};

settings! {
    struct Counted {
        trial: u16 = keyword("TRIAL", "number", "the trial that is counted; default 1"), or(1);
        flows: u16 = keyword("FLOWS", "number", "flows that are told apart, from number 0 on; default 16"), or(16);
    }
}

const HANDLERS: &[HandlerDoc] = &[
    reads("count", "packets of the trial that came the first time").counts(Unit::Packets),
    reads("in_order", "packets that came in order").counts(Unit::Packets),
    reads("reordered", "packets that came the first time after one of a higher number").counts(Unit::Packets),
    reads("duplicated", "packets that came again").counts(Unit::Packets),
    reads("too_late", "packets so far behind that nobody remembers whether they came").counts(Unit::Packets),
    reads("lost", "packets below the highest number of their flow that did not come").measures(Unit::Packets),
    reads("corrupt", "packets of a tester that were broken on their way").counts(Unit::Packets),
    reads("foreign", "packets of others").counts(Unit::Packets),
    reads("other_trials", "packets of another trial, or of a flow beyond FLOWS").counts(Unit::Packets),
    reads("delay_min", "the smallest delay in nanoseconds"),
    reads("delay_mean", "the mean delay in nanoseconds"),
    reads("delay_max", "the greatest delay in nanoseconds"),
    writes("reset", "begins anew"),
];

struct TestCounter {
    settings: Counted,
    flows: Box<[Sequence]>,
    corrupt: u64,
    foreign: u64,
    other_trials: u64,
    delay: Delay,
}

/// Of packets that came the first time.
#[derive(Default)]
struct Delay {
    packets: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Delay {
    fn record(&mut self, ns: u64) {
        self.min_ns = if self.packets == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
        self.packets += 1;
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let settings = Counted::configure(conf);
    conf.finish()?;
    let flows = flows(settings.flows);
    let delay = Delay::default();
    Ok(Box::new(TestCounter { settings, flows, corrupt: 0, foreign: 0, other_trials: 0, delay }))
}

fn flows(n: u16) -> Box<[Sequence]> {
    std::iter::repeat_with(Sequence::default).take(n.into()).collect()
}

impl TestCounter {
    fn total(&self) -> Counts {
        let of = |flow: &Sequence| flow.counts(flow.next());
        self.flows.iter().map(of).fold(Counts::default(), |sum, flow| sum.plus(&flow))
    }
}

impl Element for TestCounter {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        match look(packet.data()) {
            Seen::Corrupt => self.corrupt += 1,
            Seen::Foreign => self.foreign += 1,
            Seen::Test(tag) => match self.flows.get_mut(usize::from(tag.flow)) {
                Some(flow) if tag.trial == self.settings.trial => match flow.arrived(tag.sequence) {
                    Arrival::InOrder { .. } | Arrival::Reordered => {
                        let delay_ns = wrap_ns(cx.now_ns().wrapping_sub(tag.sent_ns));
                        self.delay.record(delay_ns);
                    }
                    Arrival::Duplicate | Arrival::TooLate => {}
                },
                _ => self.other_trials += 1,
            },
        }
        Verdict::Pass
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.settings)
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let (total, delay) = (self.total(), &self.delay);
        let count = match handler {
            "count" => total.received(),
            "in_order" => total.in_order,
            "reordered" => total.reordered,
            "duplicated" => total.duplicated,
            "too_late" => total.too_late,
            "lost" => total.lost,
            "corrupt" => self.corrupt,
            "foreign" => self.foreign,
            "other_trials" => self.other_trials,
            "delay_min" => delay.min_ns,
            "delay_max" => delay.max_ns,
            _ => return Ok(real::shown(delay.sum_ns as f64 / delay.packets.max(1) as f64)),
        };
        Ok(count.to_string())
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        self.flows = flows(self.settings.flows);
        (self.corrupt, self.foreign, self.other_trials) = (0, 0, 0);
        self.delay = Delay::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_packet::wire::tester::{Tag, stamp};

    fn frame(trial: u16, flow: u16, sequence: u32, sent_ns: u64) -> Packet {
        let mut frame = [0; 60];
        frame[12] = 8;
        frame[14..42].copy_from_slice(
            b"\x45\0\0\x2e\0\0\0\0\x40\x11\x66\xbd\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02\0\x1a\0\0",
        );
        assert!(stamp(&mut frame, Tag { trial, flow, sequence, sent_ns }));
        packet(&frame)
    }

    #[test]
    fn each_thing_that_can_happen_is_counted_apart() {
        let mut h = Harness::new(&SPEC, "FLOWS 2", 1, 1).unwrap();
        [0, 1, 4, 3, 4].into_iter().for_each(|number| h.push(0, frame(1, 0, number, 0)));
        h.push(0, frame(1, 1, 0, 0));
        h.push(0, frame(2, 0, 5, 0));
        h.push(0, frame(1, 2, 5, 0));
        let mut broken = frame(1, 0, 6, 0);
        broken.data_mut()[50] ^= 1;
        h.push(0, broken);
        h.push(0, packet(&[0; 60]));
        let mut read = |name: &str| h.read(name).unwrap().parse::<u64>().unwrap();
        let names = ["count", "in_order", "reordered", "duplicated", "lost", "too_late"];
        assert_eq!(names.map(&mut read), [5, 4, 1, 1, 1, 0]);
        assert_eq!(["other_trials", "corrupt", "foreign"].map(&mut read), [2, 1, 1]);
        assert_eq!(h.take(0).len(), 10, "all pass on");
        h.write("reset", "").unwrap();
        let names = ["count", "lost", "corrupt", "foreign", "other_trials", "delay_max"];
        assert!(names.iter().all(|name| h.read(name).unwrap() == "0"));
        h.assert_balanced();
    }

    #[test]
    fn the_delay_is_from_the_time_in_the_packet() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        for number in 0..3 {
            h.push(0, frame(1, 0, number, 0));
            h.advance(1_000_000);
        }
        let mut read = |name: &str| h.read(name).unwrap().parse::<f64>().unwrap();
        let [min, mean, max] = ["delay_min", "delay_mean", "delay_max"].map(&mut read);
        // A look at the clock takes a nanosecond of simulated time.
        assert_eq!([mean - min, max - min].map(|ns| (ns / 1e6).round()), [1.0, 2.0]);
    }
}
