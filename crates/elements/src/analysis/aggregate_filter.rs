//! AggregateFilter.

use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::args::split_words;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateFilter",
    category: "analysis",
    summary: "filters packets by aggregate annotation",
    ports: "1/1-254",
    processing: "h/h",
    doc: "Each argument is an action and aggregates: numbers, ranges such as `0-98`, or `all` (also `-`). The first that has the packet's \
          aggregate says what becomes of it: a number is an output, `allow` is 0, `drop` or `deny` drops it. What none has is dropped.",
    args: &[rest("FILTER", "action and aggregates", "what becomes of packets of these")],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> AggregateLength -> AggregateFilter(allow 0-100, drop all) -> Discard;",
    see: &["AggregateIP", "AggregateIPFlows", "IPFilter"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Denied = "denied", "a filter drops its aggregate, or none has it";
    }
}

/// Aggregates from `first` to `last` go to `output`; `None` = they are dropped.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u32,
    last: u32,
    output: Option<usize>,
}

struct AggregateFilter {
    /// In ascending order; they do not overlap.
    ranges: Vec<Range>,
    others: Option<usize>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut filter = AggregateFilter { ranges: Vec::new(), others: None };
    let mut is_over = false;
    for (n, text) in conf.rest().into_iter().enumerate() {
        let words = split_words(&text);
        let Some((action, aggregates)) = words.split_first() else {
            conf.error(format!("empty pattern {n}"));
            continue;
        };
        if is_over {
            conf.warn(&format!("pattern {n} matches no packets"));
            continue;
        }
        let output = match action.as_str() {
            "allow" => Some(0),
            "drop" | "deny" => None,
            word => match u32::parse(word, &conf.scope()) {
                Ok(output) => Some(output as usize),
                Err(_) => {
                    conf.error(format!("pattern {n}: expected a port number"));
                    continue;
                }
            },
        };
        match aggregates {
            [] => conf.error(format!("pattern {n} has no aggregates")),
            [all] if all == "all" || all == "-" => (filter.others, is_over) = (output, true),
            aggregates => {
                for word in aggregates {
                    let bound = |text: &str| u32::parse(text, &conf.scope()).ok();
                    let (first, last) = word.split_once('-').unwrap_or((word, word));
                    match bound(first).zip(bound(last)) {
                        Some((first, last)) => {
                            if let Some(known) = filter.add(first, last, output) {
                                conf.warn(&format!("pattern {n}: aggregate {known} already filtered"));
                            }
                        }
                        None => conf.error(format!("pattern {n}: bad aggregate number '{word}'")),
                    }
                }
            }
        }
    }
    conf.finish()?;
    Ok(Box::new(filter))
}

impl AggregateFilter {
    /// Adds what is not there yet of `first` to `last`; answers the first that is, and goes elsewhere.
    fn add(&mut self, first: u32, last: u32, output: Option<usize>) -> Option<u32> {
        let overlaps = |r: &&Range| r.first <= last && r.last >= first;
        let known = self.ranges.iter().filter(overlaps).find(|r| r.output != output);
        let known = known.map(|r| r.first.max(first));
        let mut next = Some(first);
        let mut new = Vec::new();
        for range in self.ranges.iter().filter(overlaps) {
            if let Some(start) = next.filter(|n| *n < range.first) {
                new.push(Range { first: start, last: range.first - 1, output });
            }
            next = range.last.checked_add(1);
        }
        if let Some(start) = next.filter(|n| *n <= last) {
            new.push(Range { first: start, last, output });
        }
        self.ranges.extend(new);
        self.ranges.sort_by_key(|r| r.first);
        known
    }
}

impl Element for AggregateFilter {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let aggregate = packet.anno_u32(Anno::AGGREGATE.offset);
        let at = self.ranges.partition_point(|r| r.last < aggregate);
        let range = self.ranges.get(at).filter(|r| r.first <= aggregate);
        match range.map_or(self.others, |r| r.output) {
            Some(output) => Verdict::divert(output, Reason::Denied),
            None => Verdict::drop(Reason::Denied),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_first_filter_that_has_the_aggregate_decides() {
        let mut h = Harness::new(&SPEC, "1 5 7-9, deny 0-6, allow 4-20 4294967295, drop all", 1, 2).unwrap();
        assert_eq!(h.warnings().len(), 2, "{:?}", h.warnings());
        for aggregate in [0, 4, 5, 6, 7, 9, 10, 20, 21, u32::MAX] {
            let mut p = packet(b"x");
            p.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
            h.push(0, p);
        }
        let mut of =
            |port| h.take(port).iter().map(|p| p.anno_u32(Anno::AGGREGATE.offset)).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![10, 20, u32::MAX], vec![5, 7, 9]));
        h.assert_balanced();
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().concat();
        assert_eq!(error("x 1"), "pattern 0: expected a port number");
        assert_eq!(error("allow"), "pattern 0 has no aggregates");
        assert_eq!(error("allow 1, 0 y"), "pattern 1: bad aggregate number 'y'");
    }
}
