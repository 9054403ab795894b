//! AggregateLast.

use super::listeners::{Notifier, Subscription, companions, keyword_notifier};
use crate::flow_table::{FlowTable, Id};
use crate::traces::fields::view::{first_timestamp_ns, set_first_timestamp_ns};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateLast",
    category: "analysis",
    summary: "lets the last packet of each aggregate through",
    ports: "1/1-2",
    processing: "h/h",
    doc: "Holds the last packet of each aggregate until the aggregate has ended, which NOTIFIER tells, or `clear` is written. It then stands for all of them: \
          its EXTRA_PACKETS, EXTRA_LENGTH and FIRST_TIMESTAMP annotations say how many packets and bytes there were, and when the first was. The \
          packets before it go to output 1, or are dropped. At most CAPACITY packets are held; for another the one that has been there longest leaves.",
    args: &[
        keyword(
            "NOTIFIER",
            "element",
            "the AggregateIPFlows or AggregateIPAddrPair that numbers the aggregates",
        ),
        keyword(
            "STOP_AFTER_CLEAR",
            "boolean",
            "whether to stop the router when `clear` has been written; default false",
        ),
        keyword("CAPACITY", "packets", "most packets held; default 4096"),
    ],
    handlers: &[writes("clear", "lets all packets out that are held")],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> AggregateLength -> AggregateLast -> Discard;",
    see: &["AggregateFirst", "AggregateIPFlows", "AggregateCounter"],
    copies: Copies::One,
    lives_with: companions,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotLast = "not-last", "it is not the last of its aggregate, and output 1 is not connected";
        Full = "full", "there is no place for another packet";
    }
}

struct AggregateLast {
    notifier: Notifier,
    subscription: Option<Subscription>,
    stop_after_clear: bool,
    /// `clear` was written, and the task has not run since.
    clearing: bool,
    held: FlowTable<Packet, 1>,
    /// Aggregates that have ended and of which no packet is held, since the task ran last. Their packets may still be on the
    /// way: those that were held for others come with the news of the end.
    missing: Vec<u32>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let notifier = keyword_notifier(conf);
    let stop_after_clear = conf.keyword("STOP_AFTER_CLEAR", false);
    let capacity = conf.keyword("CAPACITY", 4_096u32);
    conf.finish()?;
    let held = FlowTable::new(capacity as usize, 1);
    Ok(Box::new(AggregateLast {
        notifier,
        subscription: None,
        stop_after_clear,
        clearing: false,
        held,
        missing: Vec::new(),
    }))
}

impl AggregateLast {
    fn emit(&mut self, id: Id, cx: &mut Cx<'_>) {
        if let Some(packet) = self.held.remove(id) {
            cx.emit(0, packet);
        }
    }

    fn emit_ended(&mut self, cx: &mut Cx<'_>) {
        while let Some(aggregate) = self.subscription.and_then(|s| s.next(cx)) {
            match self.held.find(aggregate.into()) {
                Some((id, _)) => self.emit(id, cx),
                None => self.missing.push(aggregate),
            }
        }
    }

    fn emit_missing(&mut self, cx: &mut Cx<'_>) {
        for aggregate in std::mem::take(&mut self.missing) {
            match self.held.find(aggregate.into()) {
                Some((id, _)) => self.emit(id, cx),
                None => self.missing.push(aggregate),
            }
        }
    }

    /// Lets all packets out if `clear` was written: with the task, or before the next packet.
    fn clear(&mut self, cx: &mut Cx<'_>) {
        if !std::mem::take(&mut self.clearing) {
            return;
        }
        let mut all: Vec<(u128, Id)> = self.held.iter().map(|(id, _)| (self.held.keys(id)[0], id)).collect();
        all.sort_unstable_by_key(|(aggregate, _)| *aggregate);
        all.into_iter().for_each(|(_, id)| self.emit(id, cx));
        if self.stop_after_clear {
            cx.stop_driver();
        }
    }

    fn take(&mut self, mut packet: Packet, cx: &mut Cx<'_>) {
        let aggregate = packet.anno_u32(Anno::AGGREGATE.offset);
        let Some((id, _)) = self.held.find(aggregate.into()) else {
            let ns = packet.timestamp_ns();
            set_first_timestamp_ns(&mut packet, ns);
            if self.held.len() >= self.held.limit()
                && let Some((_, oldest)) = self.held.next(0)
            {
                self.emit(oldest, cx);
            }
            if self.held.limit() == 0 {
                return cx.drop(Reason::Full, packet);
            }
            // There is room, and nobody has the key.
            let _ = self.held.insert([aggregate.into()], packet, 0, 0);
            return;
        };
        let Some(last) = self.held.get_mut(id) else { return };
        let add = |packet: &mut Packet, anno: Anno, more: u32| {
            let sum = packet.anno_u32(anno.offset).wrapping_add(more);
            packet.set_anno_u32(anno.offset, sum);
        };
        let packets = last.anno_u32(Anno::EXTRA_PACKETS.offset).wrapping_add(1);
        let bytes = last.anno_u32(Anno::EXTRA_LENGTH.offset).wrapping_add(last.len() as u32);
        add(&mut packet, Anno::EXTRA_PACKETS, packets);
        add(&mut packet, Anno::EXTRA_LENGTH, bytes);
        let first_ns = first_timestamp_ns(last);
        set_first_timestamp_ns(&mut packet, first_ns);
        let before = std::mem::replace(last, packet);
        cx.divert(1, Reason::NotLast, before);
    }
}

impl Element for AggregateLast {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.subscription = self.notifier.subscribe(cx)?;
        Ok(())
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.clear(cx);
        self.emit_ended(cx);
        for packet in batch.drain() {
            self.take(packet, cx);
        }
        self.emit_missing(cx);
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        self.clear(cx);
        self.emit_ended(cx);
        self.emit_missing(cx);
        self.missing.clear();
        Run::Sleep
    }

    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.clearing = true;
        cx.wake();
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<AggregateLast>().filter(|o| o.held.limit() == self.held.limit())
        {
            std::mem::swap(&mut self.held, &mut old.held);
        }
    }

    fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_last_stands_for_all() {
        let mut h = Harness::new(&SPEC, "STOP_AFTER_CLEAR true, CAPACITY 2", 1, 2).unwrap();
        for (aggregate, len, ns) in [(9, 10, 100), (5, 20, 200), (9, 30, 300), (9, 40, 400)] {
            let mut p = packet(&vec![0; len]);
            p.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
            p.set_timestamp_ns(ns);
            h.push(0, p);
        }
        assert_eq!((h.take(1).len(), h.take(0).len(), h.held()), (2, 0, 2));
        h.write("clear", "").unwrap();
        assert_eq!((h.take(0).len(), h.stopped()), (0, false), "its task has not run");
        h.run_task();
        let out = h.take(0);
        let told = |p: &Packet| {
            let anno = |anno: Anno| p.anno_u32(anno.offset);
            (
                anno(Anno::AGGREGATE),
                p.len(),
                anno(Anno::EXTRA_PACKETS),
                anno(Anno::EXTRA_LENGTH),
                first_timestamp_ns(p),
            )
        };
        assert_eq!(out.iter().map(told).collect::<Vec<_>>(), [(5, 20, 0, 0, 200), (9, 40, 2, 40, 100)]);
        assert!(h.stopped());
        h.assert_balanced();
        for aggregate in 0..3 {
            let mut p = packet(b"x");
            p.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
            h.push(0, p);
        }
        assert_eq!((h.take(0).len(), h.held()), (1, 2), "the oldest leaves for another");
        h.write("clear", "").unwrap();
        h.push(0, packet(b"x"));
        assert_eq!((h.take(0).len(), h.held()), (2, 1), "a packet does not come before what was to go");
    }
}
