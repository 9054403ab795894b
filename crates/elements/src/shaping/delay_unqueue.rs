//! DelayUnqueue.

use super::delay_shaper::due_ns;
use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;
use causeway_packet::BATCH;

pub(crate) static SPEC: Spec = Spec {
    name: "DelayUnqueue",
    category: "shaping",
    summary: "pulls packets and pushes them on after a delay",
    ports: "1/1",
    processing: "l/h",
    doc: "Pulls packets and pushes each when its timestamp is DELAY ago, with the time at which it was due. A packet \
          without a timestamp counts from when it was pulled. One packet is held back until its time has come; nothing \
          is pulled meanwhile. It sleeps while a notifier upstream says that there is nothing.",
    args: Delay::ARGS,
    handlers: handlers!(Delay::HANDLERS, &[CONFIG], TASK),
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> DelayUnqueue(0.1) -> Discard;",
    see: &["DelayShaper", "LinkUnqueue", "Unqueue"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Delay {
        delay: Nanoseconds = required("DELAY", "seconds", "how old packets must be"), live("delay", "how old packets must be");
    }
}

/// The only timer: the packet that is held is due.
const DUE: u32 = 0;

struct DelayUnqueue {
    delay: Delay,
    /// Its timestamp is when it is due.
    held: Option<Packet>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let delay = Delay::configure(conf);
    conf.finish()?;
    Ok(Box::new(DelayUnqueue { delay, held: None }))
}

impl DelayUnqueue {
    /// The next packet, with the time at which it is due.
    fn next(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if self.held.is_some() {
            return self.held.take();
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        let pulled = batch.pop();
        cx.return_batch(batch);
        pulled.map(|mut packet| {
            let due_ns = due_ns(&mut packet, self.delay.delay, cx);
            packet.set_timestamp_ns(due_ns);
            packet
        })
    }
}

impl Element for DelayUnqueue {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        for sent in 0..BATCH {
            let Some(packet) = self.next(cx) else {
                return match (sent, cx.packets_upstream(0)) {
                    (_, false) => Run::Sleep,
                    (0, true) => Run::Idle,
                    (_, true) => Run::Worked,
                };
            };
            if packet.timestamp_ns() > cx.now_ns() {
                cx.set_timer(DUE, packet.timestamp_ns());
                self.held = Some(packet);
                return Run::Sleep;
            }
            cx.emit(0, packet);
        }
        Run::Worked
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.delay)
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<DelayUnqueue>() {
            self.held = old.held.take();
            cx.wake();
        }
    }

    fn held(&self) -> usize {
        usize::from(self.held.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn unqueue(config: &str) -> Harness {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pushed] };
        Harness::with_ports(&SPEC, config, &ports).unwrap()
    }

    #[test]
    fn packets_leave_when_they_are_old_enough() {
        let mut h = unqueue("0.5");
        for n in 0..3u8 {
            let mut packet = packet(&[n]);
            packet.set_timestamp_ns(causeway_engine::clock::SIMULATED_START_NS + u64::from(n) * 100_000_000);
            h.feed(0, packet);
        }
        let mut sent = |ns: u64| {
            h.advance(ns);
            while !matches!(h.run_task(), None | Some(Run::Idle)) {}
            h.assert_balanced();
            h.take(0)
        };
        assert_eq!(sent(0).len(), 0);
        assert_eq!(sent(499_000_000).len(), 0);
        let out = sent(2_000_000);
        let due_ns = causeway_engine::clock::SIMULATED_START_NS + 500_000_000;
        assert_eq!((out.len(), out[0].timestamp_ns()), (1, due_ns));
        assert_eq!(sent(300_000_000).len(), 2);
    }

    #[test]
    fn what_has_no_time_counts_from_its_pull() {
        let mut h = unqueue("10");
        h.write("delay", "0.5").unwrap();
        h.feed(0, packet(b"x"));
        assert_eq!((h.run_task(), h.held(), h.run_task()), (Some(Run::Sleep), 1, None));
        h.advance(500_000_001);
        h.run_task();
        assert_eq!((h.take(0).len(), h.read("delay").unwrap()), (1, "500ms".to_owned()));
    }
}
