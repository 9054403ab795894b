//! Unqueue.

use causeway_engine::prelude::*;
use causeway_engine::settings::Fresh;
use causeway_packet::BATCH;

pub(crate) static SPEC: Spec = Spec {
    name: "Unqueue",
    category: "queues",
    summary: "pulls packets and pushes them on",
    ports: "1/1",
    processing: "l/h",
    doc: "Pulls at most BURST packets each time it is scheduled and pushes them out. It sleeps while a notifier \
          upstream says that there is nothing, and for good once LIMIT packets have passed.",
    args: Unqueue::ARGS,
    handlers: handlers!(Unqueue::HANDLERS, TASK),
    example: "InfiniteSource(LIMIT 1000, STOP true) -> Queue -> Unqueue(BURST 32) -> Discard;",
    see: &["Queue"],
    copies: Copies::OneWith(&["LIMIT"]),
    build: configured::<Unqueue>,
    ..Spec::DEFAULT
};

settings! {
    struct Unqueue {
        burst: i32 = optional("BURST", "packets", "most packets a turn; above 256 or negative means 256; default 1"), or(1),
            live("burst", "most packets a turn");
        limit: i64 = keyword("LIMIT", "packets", "most packets in all; negative means no limit; default -1"), or(-1),
            live("limit", "most packets in all; negative means no limit");
        active: bool = keyword("ACTIVE", "boolean", "whether to pull; default true"), or(true),
            live("active", "whether it pulls");
    }
    counts {
        count: Fresh = reads("count", "packets passed since the last reset").counts(Unit::Packets);
    }
    resets {
        "reset", "sets the count to zero, so that LIMIT packets may pass again";
        "reset_counts", "the same as `reset`";
    }
}

impl Unqueue {
    /// Packets to pull this turn.
    fn wanted(&self) -> usize {
        let burst = usize::try_from(self.burst).unwrap_or(BATCH).min(BATCH);
        match u64::try_from(self.limit) {
            Ok(limit) => limit.saturating_sub(self.count.get()).min(burst as u64) as usize,
            Err(_) => burst,
        }
    }
}

impl Element for Unqueue {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        if self.burst == 0 {
            cx.warn_of(None, "BURST size 0, no packets will be pulled");
        }
        if self.active {
            cx.wake();
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let wanted = self.wanted();
        if !self.active || wanted == 0 {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, wanted, &mut batch);
        let pulled = batch.len();
        self.count.add(pulled as u64);
        cx.emit_batch(0, batch);
        match pulled {
            0 if !cx.packets_upstream(0) => Run::Sleep,
            0 => Run::Idle,
            _ => Run::Worked,
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        if self.active {
            cx.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};

    fn unqueue(config: &str, packets: u8) -> Harness {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pushed] };
        let mut h = Harness::with_ports(&SPEC, config, &ports).unwrap();
        (0..packets).for_each(|n| h.feed(0, Packet::from_bytes(&[n]).unwrap()));
        h
    }

    #[test]
    fn moves_a_burst_a_turn() {
        for (config, first) in [("", 1), ("3", 3), ("BURST -1", 10), ("BURST 1000", 10)] {
            let mut h = unqueue(config, 10);
            assert_eq!((h.run_task(), h.take(0).len()), (Some(Run::Worked), first), "{config}");
            h.assert_balanced();
        }
        let mut h = unqueue("", 0);
        assert_eq!(h.run_task(), Some(Run::Idle));
        let mut h = unqueue("BURST 0", 1);
        assert_eq!(h.run_task(), Some(Run::Sleep));
    }

    #[test]
    fn stops_at_its_limit_until_it_is_reset() {
        let mut h = unqueue("BURST 4, LIMIT 6", 20);
        while h.run_task().is_some() {}
        assert_eq!((h.take(0).len(), h.read("count").unwrap()), (6, "6".into()));
        h.write("reset", "").unwrap();
        while h.run_task().is_some() {}
        assert_eq!((h.take(0).len(), h.read("count").unwrap()), (6, "6".into()));
        h.write("limit", "8").unwrap();
        while h.run_task().is_some() {}
        assert_eq!(h.take(0).len(), 2);
        h.assert_balanced();
    }

    #[test]
    fn rests_while_inactive() {
        let mut h = unqueue("ACTIVE false", 3);
        assert_eq!(h.run_task(), None);
        h.write("active", "true").unwrap();
        assert_eq!((h.run_task(), h.take(0).len()), (Some(Run::Worked), 1));
        h.write("active", "false").unwrap();
        assert_eq!((h.run_task(), h.take(0).len()), (Some(Run::Sleep), 0));
        assert_eq!((h.read("active").unwrap(), h.read("burst").unwrap()), ("false".into(), "1".into()));
    }
}
