//! Discard.

use crate::handlers::{self, task};
use causeway_engine::spec::{drops, keyword, reads, reads_writes, writes};
use causeway_engine::{Conf, Counter, Cx, Element, Invalid, Run, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "Discard",
    category: "basic",
    summary: "drops all packets",
    ports: "1/0",
    processing: "a/a",
    doc: "Drops every packet. Behind a pull output it pulls by itself, at most BURST packets a turn, and sleeps \
          while a notifier upstream says that there is nothing.",
    args: &[
        keyword("ACTIVE", "boolean", "whether to pull; default true"),
        keyword("BURST", "packets", "most packets pulled a turn; default 1"),
    ],
    handlers: &[
        reads("count", "packets dropped since the last reset"),
        writes("reset_counts", "sets the count to zero"),
        reads_writes("active", "whether it pulls"),
        task::TICKETS,
        task::SCHEDULED,
        task::HOME_THREAD,
    ],
    drops: &[drops("discarded", "it reached a Discard")],
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> Discard(BURST 32);",
    see: &["Idle", "Unqueue"],
    build,
    ..Spec::DEFAULT
};

const DISCARDED: usize = 0;

struct Discard {
    active: bool,
    burst: usize,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let active = conf.keyword("ACTIVE", true);
    let burst = conf.keyword("BURST", 1u32) as usize;
    if burst == 0 {
        conf.error("BURST: must be at least 1");
    }
    conf.finish()?;
    Ok(Box::new(Discard { active, burst, count: conf.fresh_counter("count") }))
}

impl Element for Discard {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        cx.count_drops(DISCARDED, batch.len() as u64);
        batch.clear();
    }

    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        if self.active && cx.pulls_from(0) {
            cx.wake();
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !self.active {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, self.burst, &mut batch);
        let pulled = batch.len();
        self.count.add(pulled as u64);
        cx.count_drops(DISCARDED, pulled as u64);
        cx.return_batch(batch);
        match pulled {
            0 if !cx.packets_upstream(0) => Run::Sleep,
            0 => Run::Idle,
            _ => Run::Worked,
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.count.get().to_string(),
            _ => task::read(handler, cx).unwrap_or_else(|| self.active.to_string()),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        match handler {
            "reset_counts" => self.count.set(0),
            "active" => self.active = handlers::value(handler, value)?,
            _ => return task::write(handler, value, cx),
        }
        if self.active && cx.pulls_from(0) {
            cx.wake();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Ports};
    use causeway_packet::Packet;

    fn pulling(config: &str) -> Harness {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![] };
        let mut h = Harness::with_ports(&SPEC, config, &ports).unwrap();
        (0..5u8).for_each(|n| h.feed(0, Packet::from_bytes(&[n]).unwrap()));
        h
    }

    #[test]
    fn drops_what_it_is_pushed() {
        let mut h = Harness::new(&SPEC, "", 1, 0).unwrap();
        h.push_all(0, (0..3u8).map(|n| Packet::from_bytes(&[n]).unwrap()));
        assert_eq!((h.drops(), h.run_task()), (vec![("discarded", 3)], None));
        assert_eq!(h.read("count").unwrap(), "3");
        h.write("reset_counts", "").unwrap();
        assert_eq!(h.read("count").unwrap(), "0");
        h.assert_balanced();
    }

    #[test]
    fn pulls_a_burst_a_turn() {
        let mut h = pulling("BURST 3");
        assert_eq!((h.run_task(), h.drops()), (Some(Run::Worked), vec![("discarded", 3)]));
        assert_eq!((h.run_task(), h.drops()), (Some(Run::Worked), vec![("discarded", 5)]));
        assert_eq!(h.run_task(), Some(Run::Idle));
        h.assert_balanced();
    }

    #[test]
    fn rests_while_inactive() {
        let mut h = pulling("ACTIVE false");
        assert_eq!((h.run_task(), h.read("scheduled").unwrap()), (None, "false".to_owned()));
        h.write("active", "true").unwrap();
        assert_eq!((h.run_task(), h.drops()), (Some(Run::Worked), vec![("discarded", 1)]));
        h.write("active", "no").unwrap();
        assert_eq!((h.run_task(), h.read("active").unwrap()), (Some(Run::Sleep), "false".to_owned()));
        assert!(h.write("active", "perhaps").is_err());
    }

    #[test]
    fn tickets_are_checked() {
        let mut h = pulling("");
        h.write("tickets", "2048").unwrap();
        assert_eq!(h.read("tickets").unwrap(), "2048");
        assert!(h.write("tickets", "0").is_err() && h.write("tickets", "40000").is_err());
    }

    #[test]
    fn a_burst_of_nothing_is_an_error() {
        assert_eq!(Harness::new(&SPEC, "BURST 0", 1, 0).err().unwrap(), ["BURST: must be at least 1"]);
    }
}
