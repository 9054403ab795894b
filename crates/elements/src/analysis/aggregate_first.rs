//! AggregateFirst.

use super::listeners::{Notifier, Subscription, companions, keyword_notifier};
use crate::flow_table::{FlowTable, ROOM};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateFirst",
    category: "analysis",
    summary: "lets the first packet of each aggregate through",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "The others go to output 1, or are dropped. With NOTIFIER it forgets aggregates that have ended. It remembers a million; of more none is \
          the first.",
    args: &[keyword(
        "NOTIFIER",
        "element",
        "the AggregateIPFlows or AggregateIPAddrPair that numbers the aggregates",
    )],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> AggregateLength -> AggregateFirst -> Discard;",
    see: &["AggregateLast", "AggregateIPFlows", "AggregateCounter"],
    copies: Copies::One,
    lives_with: companions,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotFirst = "not-first", "it is not the first of its aggregate, and output 1 is not connected";
        Full = "full", "there is no place for another aggregate, and output 1 is not connected";
    }
}

struct AggregateFirst {
    notifier: Notifier,
    subscription: Option<Subscription>,
    known: FlowTable<(), 1>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let notifier = keyword_notifier(conf);
    conf.finish()?;
    Ok(Box::new(AggregateFirst { notifier, subscription: None, known: FlowTable::new(ROOM, 1) }))
}

impl AggregateFirst {
    fn forget(&mut self, cx: &mut Cx<'_>) {
        while let Some(aggregate) = self.subscription.and_then(|s| s.next(cx)) {
            if let Some((id, _)) = self.known.find(aggregate.into()) {
                self.known.remove(id);
            }
        }
    }
}

impl Element for AggregateFirst {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.subscription = self.notifier.subscribe(cx)?;
        Ok(())
    }

    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        self.forget(cx);
        let aggregate = packet.anno_u32(Anno::AGGREGATE.offset);
        if self.known.find(aggregate.into()).is_some() {
            return Verdict::divert(1, Reason::NotFirst);
        }
        self.known.insert([aggregate.into()], (), 0, 0).or_divert(1, Reason::Full)
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        self.forget(cx);
        Run::Sleep
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<AggregateFirst>() {
            std::mem::swap(&mut self.known, &mut old.known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn only_the_first_passes() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "", 1, outputs).unwrap();
            for aggregate in [5, 6, 5, 5, 7] {
                let mut p = packet(b"x");
                p.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
                h.push(0, p);
            }
            let first: Vec<_> = h.take(0).iter().map(|p| p.anno_u32(Anno::AGGREGATE.offset)).collect();
            assert_eq!((first, h.take(1).len()), (vec![5, 6, 7], if outputs == 2 { 2 } else { 0 }));
            h.assert_balanced();
        }
    }
}
