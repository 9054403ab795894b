//! DelayShaper.

use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "DelayShaper",
    category: "shaping",
    summary: "lets itself be pulled after a delay",
    ports: "1/1",
    processing: "l/l",
    doc: "Answers pulls with packets whose timestamp is DELAY ago or more, and gives them the present time. A packet \
          without a timestamp counts from the pull that took it. One packet is held back until its time has come; \
          meanwhile pullers sleep.",
    args: Delay::ARGS,
    handlers: handlers!(Delay::HANDLERS, &[CONFIG]),
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> DelayShaper(0.1) -> Discard;",
    see: &["DelayUnqueue", "LinkUnqueue", "Shaper"],
    notifies: Notifies { packets: true, room: false },
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Delay {
        delay: Nanoseconds = required("DELAY", "seconds", "how old packets must be"), live("delay", "how old packets must be");
    }
}

struct DelayShaper {
    delay: Delay,
    /// With the time at which it may go.
    held: Option<(Packet, u64)>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let delay = Delay::configure(conf);
    conf.finish()?;
    Ok(Box::new(DelayShaper { delay, held: None }))
}

/// When `packet` may go that is to be `delay` old; from now on it has a timestamp.
pub(super) fn due_ns(packet: &mut Packet, delay: Nanoseconds, cx: &mut Cx<'_>) -> u64 {
    if packet.timestamp_ns() == 0 {
        packet.set_timestamp_ns(cx.now_ns());
    }
    packet.timestamp_ns().saturating_add(delay.0)
}

impl Element for DelayShaper {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut one = cx.lend_batch();
        while batch.len() < max && batch.room() > 0 {
            if self.held.is_none() {
                cx.pull(0, 1, &mut one);
                let delay = self.delay.delay;
                self.held = one.pop().map(|mut packet| {
                    let due_ns = due_ns(&mut packet, delay, cx);
                    (packet, due_ns)
                });
            }
            let now_ns = cx.now_ns();
            match self.held.take_if(|(_, due_ns)| *due_ns <= now_ns) {
                Some((mut packet, _)) => {
                    packet.set_timestamp_ns(now_ns);
                    // There is room.
                    let _ = batch.push(packet);
                    continue;
                }
                None => match &self.held {
                    Some((_, due_ns)) => cx.notify_packets_at(*due_ns),
                    None if !cx.packets_upstream(0) => cx.notify_packets(false),
                    None => {}
                },
            }
            break;
        }
        cx.return_batch(one);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.delay)
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<DelayShaper>() {
            self.held = old.held.take();
        }
    }

    fn held(&self) -> usize {
        usize::from(self.held.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn packets_come_when_they_are_old_enough() {
        let mut h = Harness::pulled(&SPEC, "0.5").unwrap();
        (0..3).for_each(|n| h.feed(0, packet(&[n])));
        assert_eq!((h.pull(0, 9).len(), h.held()), (0, 1));
        h.advance(400_000_000);
        assert_eq!(h.pull(0, 9).len(), 0);
        h.advance(200_000_000);
        let out = h.pull(0, 9);
        assert_eq!((out.len(), out[0].data()), (1, &[0][..]), "the next has only come");
        assert!(out[0].timestamp_ns() >= causeway_engine::clock::SIMULATED_START_NS + 600_000_000);
        h.assert_balanced();
    }

    #[test]
    fn what_is_old_enough_already_is_not_held() {
        let mut h = Harness::pulled(&SPEC, "0.5").unwrap();
        for _ in 0..3 {
            let mut packet = packet(b"x");
            packet.set_timestamp_ns(5);
            h.feed(0, packet);
        }
        assert_eq!((h.pull(0, 2).len(), h.pull(0, 9).len(), h.held()), (2, 1, 0));
    }

    #[test]
    fn the_delay_can_be_changed() {
        let mut h = Harness::pulled(&SPEC, "5").unwrap();
        h.write("delay", "250us").unwrap();
        assert_eq!((h.read("delay").unwrap(), h.read("config").unwrap()), ("250us".into(), "250us".into()));
        h.feed(0, packet(b"x"));
        h.pull(0, 1);
        h.advance(250_000);
        assert_eq!(h.pull(0, 1).len(), 1);
        assert!(h.write("delay", "later").is_err());
    }
}
