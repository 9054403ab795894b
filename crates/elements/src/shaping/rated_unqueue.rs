//! RatedUnqueue, and the element that BandwidthRatedUnqueue is as well.

use super::bucket::{Bucket, Limits, PacketLimits};
use causeway_engine::prelude::*;
use causeway_engine::spec::HandlerDoc;

pub(crate) static SPEC: Spec = Spec {
    name: "RatedUnqueue",
    category: "shaping",
    summary: "pulls packets at a rate and pushes them on",
    ports: "1/1",
    processing: "l/h",
    doc: "Pulls RATE packets a second, one a turn, and pushes them out. A token bucket, filled each millisecond, keeps \
          the rate: what was not used of it is saved up, as far as BURST_DURATION or BURST_SIZE allow. It sleeps until \
          the next packet may pass, and while a notifier upstream says that there is nothing.",
    args: PacketLimits::ARGS,
    handlers: handlers!(PacketLimits::HANDLERS, HANDLERS, TASK),
    example: "InfiniteSource(LIMIT 50, STOP true) -> Queue -> RatedUnqueue(100) -> Discard;",
    see: &["BandwidthRatedUnqueue", "Unqueue", "Shaper", "RatedSplitter"],
    copies: Copies::One,
    build: |conf| build::<PacketLimits>(conf),
    ..Spec::DEFAULT
};

/// Handlers besides those of the bucket and the task.
pub(super) const HANDLERS: &[HandlerDoc] = &[
    CONFIG,
    reads("calls", "runs of the task, those without a packet, packets, and pulls without one, in words"),
    reads_writes("active", "whether it pulls"),
];

/// The only timer: the next token.
const TOKEN: u32 = 0;

struct RatedUnqueue<L> {
    bucket: Bucket<L>,
    active: bool,
    runs: u64,
    empty_runs: u64,
    pushes: u64,
    failed_pulls: u64,
}

pub(super) fn build<L: Limits>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let bucket = Bucket::<L>::configure(conf);
    conf.finish()?;
    Ok(Box::new(RatedUnqueue { bucket, active: true, runs: 0, empty_runs: 0, pushes: 0, failed_pulls: 0 }))
}

impl<L: Limits> Element for RatedUnqueue<L> {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        self.runs += 1;
        if !self.active {
            return Run::Sleep;
        }
        if !self.bucket.open(cx.now_ns()) {
            self.empty_runs += 1;
            if let Some(when_ns) = self.bucket.next_ns() {
                cx.set_timer(TOKEN, when_ns);
            }
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        let pulled = batch.iter().next().map(|packet| self.bucket.take(packet)).is_some();
        cx.emit_batch(0, batch);
        if pulled {
            self.pushes += 1;
            return Run::Worked;
        }
        self.failed_pulls += 1;
        if !cx.packets_upstream(0) {
            return Run::Sleep;
        }
        self.empty_runs += 1;
        Run::Idle
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.bucket.limits)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        self.bucket.changed();
        cx.wake();
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "active" => self.active.to_string(),
            _ => format!(
                "{} calls to run_task()\n{} empty runs\n{} pushes\n{} failed pulls\n",
                self.runs, self.empty_runs, self.pushes, self.failed_pulls
            ),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.active = cx.value(handler, value)?;
        cx.wake();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::bandwidth_rated_unqueue;
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn unqueue(spec: &'static Spec, config: &str) -> Harness {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pushed] };
        let mut h = Harness::with_ports(spec, config, &ports).unwrap();
        (0..1_000).for_each(|_| h.feed(0, packet(&[0; 100])));
        h
    }

    /// Packets that come in a second.
    fn second(h: &mut Harness) -> usize {
        for _ in 0..1_000 {
            while h.run_task().is_some() {}
            h.advance(1_000_000);
        }
        h.assert_balanced();
        h.take(0).len()
    }

    #[test]
    fn packets_come_at_the_rate() {
        let mut h = unqueue(&SPEC, "100, BURST_SIZE 5");
        assert_eq!((second(&mut h), second(&mut h)), (104, 100));
        h.write("rate", "50").unwrap();
        assert_eq!(second(&mut h), 50);
        h.write("active", "false").unwrap();
        assert_eq!(
            (second(&mut h), h.read("rate").unwrap(), h.read("active").unwrap()),
            (0, "50".into(), "false".into())
        );
        let calls = h.read("calls").unwrap();
        assert!(calls.contains("254 pushes\n0 failed pulls\n"), "{calls}");
        let mut h = unqueue(&bandwidth_rated_unqueue::SPEC, "10kBps, BURST_BYTES 0");
        assert!((99..=101).contains(&second(&mut h)));
        assert_eq!(h.read("rate").unwrap(), "80kbps");
        h.write("config", "16kbps").unwrap();
        assert!((19..=21).contains(&second(&mut h)));
    }

    #[test]
    fn without_a_rate_nothing_comes_and_nothing_waits() {
        let mut h = unqueue(&SPEC, "0");
        assert_eq!((h.run_task(), h.run_task(), h.take(0).len()), (Some(Run::Sleep), None, 0));
        h.write("rate", "10").unwrap();
        assert!((9..=11).contains(&second(&mut h)));
    }
}
