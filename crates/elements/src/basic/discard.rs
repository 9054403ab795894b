//! Discard.

use causeway_engine::prelude::*;
use causeway_engine::settings::Fresh;
use causeway_engine::value::AtLeast;

pub(crate) static SPEC: Spec = Spec {
    name: "Discard",
    aliases: &["DiscardNoFree"],
    category: "basic",
    summary: "drops all packets",
    ports: "1/0",
    processing: "a/a",
    doc: "Drops every packet. Behind a pull output it pulls by itself, at most BURST packets a turn, and sleeps \
          while a notifier upstream says that there is nothing.",
    args: Discard::ARGS,
    handlers: handlers!(Discard::HANDLERS, TASK),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> Discard(BURST 32);",
    see: &["Idle", "Unqueue"],
    build: configured::<Discard>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Discarded = "discarded", "it reached a Discard";
    }
}

settings! {
    struct Discard {
        active: bool = keyword("ACTIVE", "boolean", "whether to pull; default true"), or(true),
            live("active", "whether it pulls");
        burst: AtLeast<1> = keyword("BURST", "packets", "most packets pulled a turn; default 1"), or(AtLeast(1));
    }
    counts {
        count: Fresh = reads("count", "packets dropped since the last reset").counts(Unit::Packets);
    }
    resets {
        "reset_counts", "sets the count to zero";
    }
}

impl Element for Discard {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.count.add(batch.len() as u64);
        cx.count_drops(Reason::Discarded, batch.len() as u64);
        batch.clear();
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.count(&self.count, 1);
        b.drop(Reason::Discarded as u16);
        b.finish()
    }

    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
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
        cx.pull(0, self.burst.0 as usize, &mut batch);
        let pulled = batch.len();
        self.count.add(pulled as u64);
        cx.count_drops(Reason::Discarded, pulled as u64);
        cx.return_batch(batch);
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
        if self.active && cx.pulls_from(0) {
            cx.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Ports};

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
