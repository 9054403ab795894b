//! AggregateIPAddrPair.

use super::listeners::Ended;
use crate::flow_table::{FlowTable, ROOM};
use crate::nat::Headers;
use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateIPAddrPair",
    category: "analysis",
    summary: "numbers pairs of IP addresses in the aggregate annotation",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Packets between two addresses get one number, in both directions; numbers begin with 1. The paint annotation is 0 for the direction of the first packet, else 1. \
          With TIMEOUT a pair that was silent that long, by timestamps, gets a new number. Packets without IP header go to output 1, or are dropped. A million pairs are known at a time; \
          for another the one that was silent longest is forgotten, which `evicted` counts.",
    args: &[
        keyword("TIMEOUT", "seconds", "silence after which a pair has ended; default never"),
        keyword("REAP", "seconds", "between searches for pairs that have ended; default 20 min"),
    ],
    handlers: &[
        writes("clear", "forgets all pairs"),
        reads("evicted", "pairs that were forgotten to make room").counts(Unit::None),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 7, 1.0.0.2, 53) -> MarkIPHeader -> AggregateIPAddrPair -> Discard;",
    see: &["AggregateIPFlows", "AggregateIP", "AggregateCounter"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "the packet has no IP header, and output 1 is not connected";
    }
}

/// Pairs that are forgotten with a packet at most, when many have ended.
const REAPED: usize = 64;

struct Pair {
    aggregate: u32,
    /// Whether its first packet came from the higher address.
    reverse: bool,
    last_s: u64,
}

pub(super) struct AggregateIPAddrPair {
    timeout_s: u64,
    reap_s: u64,
    pairs: FlowTable<Pair, 1>,
    next: u32,
    reap_at_s: u64,
    evicted: u64,
    /// Packets so far: the time where there is no TIMEOUT, so that the order in which pairs were seen is known.
    packets: u64,
    pub ended: Ended,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let seconds = |t: Nanoseconds| t.0 / 1_000_000_000;
    let timeout_s = seconds(conf.keyword("TIMEOUT", Nanoseconds(0)));
    let reap_s = seconds(conf.keyword("REAP", Nanoseconds(1_200_000_000_000)));
    conf.finish()?;
    let (pairs, ended) = (FlowTable::new(ROOM, 1), Ended::default());
    Ok(Box::new(AggregateIPAddrPair {
        timeout_s,
        reap_s,
        pairs,
        next: 1,
        reap_at_s: 0,
        evicted: 0,
        packets: 0,
        ended,
    }))
}

impl AggregateIPAddrPair {
    fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.pairs.next(0)
            && let Some(pair) = self.pairs.remove(id)
        {
            self.ended.add(pair.aggregate);
        }
    }

    /// Forgets some of the pairs that have ended; the next packets go on until there is none left.
    fn reap(&mut self, now_s: u64) {
        for _ in 0..REAPED {
            match self.pairs.next(0) {
                Some((last_s, _)) if last_s + self.timeout_s < now_s => self.forget_oldest(),
                _ => {
                    self.reap_at_s = now_s + self.reap_s;
                    return;
                }
            }
        }
    }

    fn number(&mut self, key: u128, flipped: bool, now_s: u64) -> (u32, bool) {
        let found = self.pairs.find(key).map(|(id, _)| id);
        if let Some(id) = found {
            self.pairs.touch(id, 0, now_s);
            let (timeout_s, next) = (self.timeout_s, self.next);
            if let Some(pair) = self.pairs.get_mut(id) {
                if timeout_s > 0 && pair.last_s + timeout_s < now_s {
                    self.ended.add(pair.aggregate);
                    (pair.aggregate, pair.reverse) = (next, flipped);
                    self.next = next.checked_add(1).unwrap_or(1);
                }
                pair.last_s = now_s;
                return (pair.aggregate, pair.reverse);
            }
        }
        if self.pairs.len() >= self.pairs.limit() {
            self.forget_oldest();
            self.evicted += 1;
        }
        let aggregate = self.next;
        self.next = aggregate.checked_add(1).unwrap_or(1);
        // There is room, and nobody has the key.
        let _ = self.pairs.insert([key], Pair { aggregate, reverse: flipped, last_s: now_s }, 0, now_s);
        (aggregate, flipped)
    }
}

impl Element for AggregateIPAddrPair {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some((source, destination)) = Headers::addresses(packet) else {
            return Verdict::divert(1, Reason::NoHeader);
        };
        self.packets += 1;
        let mut now_s = self.packets;
        if self.timeout_s > 0 {
            if packet.timestamp_ns() == 0 {
                packet.set_timestamp_ns(cx.now_ns());
            }
            now_s = packet.timestamp_ns() / 1_000_000_000;
        }
        let flipped = source > destination;
        let (low, high) = if flipped { (destination, source) } else { (source, destination) };
        let (aggregate, reverse) = self.number(u128::from(low) << 32 | u128::from(high), flipped, now_s);
        packet.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
        packet.set_paint(u8::from(reverse != flipped));
        if self.timeout_s > 0 && now_s > self.reap_at_s {
            self.reap(now_s);
        }
        Verdict::Pass
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.evicted.to_string())
    }

    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        while self.pairs.len() > 0 {
            self.forget_oldest();
        }
        self.ended.wake(cx);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<AggregateIPAddrPair>() {
            std::mem::swap(&mut self.pairs, &mut old.pairs);
            (self.next, self.reap_at_s, self.evicted) = (old.next, old.reap_at_s, old.evicted);
            self.packets = old.packets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus::{datagram, marked};
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn pairs_are_numbered_in_both_directions() {
        let mut h = Harness::new(&SPEC, "TIMEOUT 10", 1, 2).unwrap();
        let mut number = |a: u8, b: u8, s: u64| {
            let mut bytes = datagram(&[], b"x", 64, 0);
            (bytes[15], bytes[19]) = (a, b);
            (bytes[13], bytes[17]) = (0, 0);
            let mut p = marked(&bytes, 0);
            p.set_timestamp_ns(s * 1_000_000_000);
            h.push(0, p);
            let out = h.take(0);
            (out[0].anno_u32(Anno::AGGREGATE.offset), out[0].paint())
        };
        assert_eq!(
            [number(2, 1, 1), number(1, 2, 1), number(1, 3, 2), number(2, 1, 11)],
            [(1, 0), (1, 1), (2, 0), (1, 0)]
        );
        assert_eq!([number(1, 2, 30), number(1, 3, 30)], [(3, 0), (4, 0)]);
        h.push(0, packet(b"no ip"));
        assert_eq!(h.take(1).len(), 1);
        h.write("clear", "").unwrap();
    }

    #[test]
    fn many_pairs_that_have_ended_are_forgotten_a_few_at_a_time() {
        let mut h = Harness::new(&SPEC, "TIMEOUT 10, REAP 5", 1, 1).unwrap();
        let send = |h: &mut Harness, other: u16, s: u64| {
            let mut bytes = datagram(&[], b"x", 64, 0);
            bytes[18..20].copy_from_slice(&other.to_be_bytes());
            let mut p = marked(&bytes, 0);
            p.set_timestamp_ns(s * 1_000_000_000);
            h.push(0, p);
            h.element::<AggregateIPAddrPair>().unwrap().pairs.len()
        };
        let many = 3 * REAPED as u16;
        // The first packet of all looks for pairs that have ended, and the next look is 5 seconds later.
        let grown: Vec<usize> = (0..many).map(|other| send(&mut h, other, 1)).collect();
        assert_eq!(grown, (1..=usize::from(many)).collect::<Vec<_>>());
        let left = [(1_000, 11), (1_001, 17), (1_001, 17), (1_001, 17), (1_001, 17)]
            .map(|(other, s)| send(&mut h, other, s));
        let many = usize::from(many);
        assert_eq!(left, [many + 1, many + 2 - REAPED, many + 2 - 2 * REAPED, 2, 2], "at 11 none has ended");
        // Once all have been looked at the next look is later again.
        assert_eq!([send(&mut h, 1_002, 22), send(&mut h, 1_002, 23), send(&mut h, 1_002, 29)], [3, 2, 1]);
    }

    #[test]
    fn the_pair_that_was_silent_longest_makes_room() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.element::<AggregateIPAddrPair>().unwrap().pairs.set_limit(2);
        for other in [2, 3, 2, 4, 2, 3] {
            let mut bytes = datagram(&[], b"x", 64, 0);
            bytes[19] = other;
            h.push(0, marked(&bytes, 0));
        }
        let numbers: Vec<u32> = h.take(0).iter().map(|p| p.anno_u32(Anno::AGGREGATE.offset)).collect();
        assert_eq!((numbers, h.read("evicted").unwrap()), (vec![1, 2, 1, 3, 1, 4], "2".into()));
    }
}
