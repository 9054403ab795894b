//! AggregatePacketCounter.

use crate::flow_table::{FlowTable, ROOM};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregatePacketCounter",
    category: "analysis",
    summary: "counts packets by aggregate and packet number",
    ports: "1-/=",
    flow: "#/#",
    doc: "Packets leave by the output of their input's number. Which numbers of an aggregate came by which input is remembered, so that one can ask what was sent \
          (input 0) and not received (input 1). Packets of aggregate 0 are not counted. There is room for a million pairs of aggregate and number; packets beyond that are not counted but by `refused`.",
    args: &[
        keyword(
            "ANNO",
            "annotation",
            "four bytes where a packet's number is, or NONE; default PACKET_NUMBER",
        ),
        keyword("NOTIFIER", "element", "without effect; older configurations have it"),
    ],
    handlers: &[
        writes("clear", "forgets all counts"),
        reads("count", "packets counted").counts(Unit::Packets),
        reads("refused", "packets that were not counted because there was no room for another number")
            .counts(Unit::Packets),
        reads_with("received", "numbers of an aggregate that came by any input, a line each"),
        reads_with("undelivered", "numbers of an aggregate that came by input 0 more often than by input 1"),
    ],
    example: "InfiniteSource(LIMIT 5) -> AggregateLength -> c :: AggregatePacketCounter -> Discard;",
    see: &["AggregateCounter", "AggregateIP", "AggregateIPFlows"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

struct AggregatePacketCounter {
    anno: Option<u8>,
    /// By aggregate, number and input.
    counts: FlowTable<u32, 1>,
    /// Packets that there was no room to count.
    refused: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let word = conf.keyword("ANNO", "PACKET_NUMBER".to_owned());
    conf.keyword("NOTIFIER", String::new());
    let anno = match word.as_str() {
        "NONE" => None,
        word => match conf.parse::<Anno>("ANNO", word) {
            Some(anno) if matches!(anno.width, 0 | 4) => Some(anno.offset),
            Some(_) => {
                conf.error("bad ANNO");
                None
            }
            None => None,
        },
    };
    conf.finish()?;
    Ok(Box::new(AggregatePacketCounter { anno, counts: FlowTable::new(ROOM, 1), refused: 0 }))
}

fn key(aggregate: u32, number: u32, port: usize) -> u128 {
    u128::from(aggregate) << 64 | u128::from(number) << 32 | port as u128
}

impl AggregatePacketCounter {
    /// Packets of an aggregate: number, input and count, in ascending order.
    fn of(&self, aggregate: u32) -> Vec<(u32, u32, u32)> {
        let all = self.counts.iter().map(|(id, count)| (self.counts.keys(id)[0], *count));
        let own = all.filter(|(key, _)| (key >> 64) as u32 == aggregate);
        let mut own: Vec<_> = own.map(|(key, count)| ((key >> 32) as u32, key as u32, count)).collect();
        own.sort_unstable();
        own
    }

    fn count(&mut self, port: usize, packet: &Packet) {
        let aggregate = packet.anno_u32(Anno::AGGREGATE.offset);
        if aggregate == 0 {
            return;
        }
        let key = key(aggregate, self.anno.map_or(0, |at| packet.anno_u32(at)), port);
        let id = match self.counts.find(key) {
            Some((id, _)) => Some(id),
            None => self.counts.insert([key], 0, 0, 0).ok(),
        };
        match id.and_then(|id| self.counts.get_mut(id)) {
            Some(count) => *count = count.wrapping_add(1),
            None => self.refused += 1,
        }
    }
}

impl Element for AggregatePacketCounter {
    fn packet(&mut self, port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.count(port, packet);
        Verdict::Out(port)
    }

    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.pull(port, max, batch);
        batch.iter().for_each(|packet| self.count(port, packet));
    }

    fn read(&mut self, handler: &str, arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        if handler == "refused" {
            return Ok(self.refused.to_string());
        }
        if handler == "count" {
            return Ok(self.counts.iter().map(|(_, count)| u64::from(*count)).sum::<u64>().to_string());
        }
        let aggregate = match arg.trim() {
            "" => 0,
            text => cx.value(handler, text).map_err(|_| "argument should be aggregate number")?,
        };
        let own = self.of(aggregate);
        let by = |number: u32, port: u32| {
            own.iter().find(|(n, p, _)| (*n, *p) == (number, port)).map_or(0, |(_, _, count)| *count)
        };
        let mut numbers: Vec<u32> = own.iter().map(|(number, ..)| *number).collect();
        numbers.dedup();
        if handler == "undelivered" {
            numbers.retain(|number| by(*number, 0) > by(*number, 1));
        }
        Ok(numbers.iter().map(|number| format!("{number}\n")).collect())
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        while let Some((_, id)) = self.counts.next(0) {
            self.counts.remove(id);
        }
        self.refused = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn what_was_sent_and_not_received_is_told() {
        let mut h = Harness::new(&SPEC, "", 2, 2).unwrap();
        for (port, aggregate, number) in
            [(0, 1, 5), (0, 1, 6), (0, 1, 6), (1, 1, 6), (1, 1, 9), (0, 2, 5), (0, 0, 1)]
        {
            let mut p = packet(b"x");
            p.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
            p.set_anno_u32(32, number);
            h.push(port, p);
        }
        assert_eq!((h.take(0).len(), h.take(1).len(), h.read("count").unwrap()), (5, 2, "6".into()));
        assert_eq!(h.read_with("received", "1").unwrap(), "5\n6\n9\n");
        assert_eq!(h.read_with("undelivered", "1").unwrap(), "5\n6\n");
        h.write("clear", "").unwrap();
        assert_eq!(h.read("count").unwrap(), "0");
        assert!(Harness::new(&SPEC, "ANNO PAINT", 1, 1).is_err());
    }

    #[test]
    fn what_there_is_no_room_for_is_refused() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.element::<AggregatePacketCounter>().unwrap().counts.set_limit(1);
        for number in [5, 6, 5, 7] {
            let mut p = packet(b"x");
            p.set_anno_u32(Anno::AGGREGATE.offset, 1);
            p.set_anno_u32(32, number);
            h.push(0, p);
        }
        assert_eq!((h.read("count").unwrap(), h.read("refused").unwrap()), ("2".into(), "2".into()));
        h.write("clear", "").unwrap();
        assert_eq!(h.read("refused").unwrap(), "0");
    }
}
