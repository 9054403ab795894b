//! TimedUnqueue, and the element that Burster is as well.

use causeway_engine::prelude::*;
use causeway_engine::spec::ArgDoc;
use causeway_engine::value::Nanoseconds;
use causeway_packet::BATCH;

pub(crate) static SPEC: Spec = Spec {
    name: "TimedUnqueue",
    category: "shaping",
    summary: "pulls packets every so often and pushes them on",
    ports: "1/1",
    processing: "l/h",
    doc: "Pulls at most BURST packets every INTERVAL, in whole milliseconds, and pushes them out. While a notifier \
          upstream says that there is nothing it sleeps, and the first packet then goes at once.",
    args: &[INTERVAL, optional("BURST", "packets", "most packets each time; default 1")],
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> TimedUnqueue(0.1) -> Discard;",
    see: &["Burster", "RatedUnqueue", "Unqueue"],
    copies: Copies::One,
    build: |conf| build(conf, 1, true),
    ..Spec::DEFAULT
};

/// Argument of the classes.
pub(super) const INTERVAL: ArgDoc = required("INTERVAL", "seconds", "how long it waits between two times");

/// The only timer: the next time.
const NEXT: u32 = 0;

struct TimedUnqueue {
    interval_ns: u64,
    burst: usize,
    /// Whether it heeds notifiers.
    heeds: bool,
    due_ns: Option<u64>,
}

pub(super) fn build(conf: &mut Conf<'_>, burst: i32, heeds: bool) -> Result<Box<dyn Element>, Invalid> {
    let Nanoseconds(interval_ns) = conf.required("INTERVAL");
    let burst: i32 = conf.optional("BURST", burst);
    if burst <= 0 {
        conf.error("bad BURST");
    }
    conf.finish()?;
    // A millisecond at least, so that it does not run for ever at one time.
    let interval_ns = (interval_ns / 1_000_000).max(1) * 1_000_000;
    let burst = usize::try_from(burst).unwrap_or(1).min(BATCH);
    Ok(Box::new(TimedUnqueue { interval_ns, burst, heeds, due_ns: None }))
}

impl Element for TimedUnqueue {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let now_ns = cx.now_ns();
        // A packet has come, but it is not time.
        if self.due_ns.is_some_and(|due_ns| now_ns < due_ns) {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, self.burst, &mut batch);
        let none = batch.is_empty();
        cx.emit_batch(0, batch);
        if none && self.heeds && !cx.packets_upstream(0) {
            self.due_ns = None;
            return Run::Sleep;
        }
        let due_ns = self.due_ns.unwrap_or(now_ns).saturating_add(self.interval_ns).max(now_ns + 1);
        self.due_ns = Some(due_ns);
        cx.set_timer(NEXT, due_ns);
        Run::Sleep
    }
}

#[cfg(test)]
mod tests {
    use super::super::burster;
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn unqueue(spec: &'static Spec, config: &str) -> Result<Harness, Vec<String>> {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pushed] };
        let mut h = Harness::with_ports(spec, config, &ports)?;
        (0..100).for_each(|_| h.feed(0, packet(b"x")));
        Ok(h)
    }

    fn after(h: &mut Harness, ns: u64) -> usize {
        let end = 10;
        for _ in 0..end {
            while h.run_task().is_some() {}
            h.advance(ns / end);
        }
        h.assert_balanced();
        h.take(0).len()
    }

    #[test]
    fn so_many_come_every_so_often() {
        for (spec, config, first, later) in [
            (&SPEC, "0.1", 10, 10),
            (&SPEC, "0.5, 3", 6, 6),
            (&SPEC, "0.0001, BURST 100000", 100, 0),
            (&burster::SPEC, "0.5", 16, 16),
        ] {
            let mut h = unqueue(spec, config).unwrap();
            assert_eq!(
                (after(&mut h, 1_000_000_000), after(&mut h, 1_000_000_000)),
                (first, later),
                "{config}"
            );
        }
        assert_eq!(unqueue(&SPEC, "1, 0").err().unwrap(), ["bad BURST"]);
    }
}
