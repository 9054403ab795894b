//! AggregateCounter.

use super::aggregate_file::{AggregateFile, Format};
use crate::flow_table::{FlowTable, ROOM};
use crate::handlers::Call;
use causeway_engine::prelude::*;
use causeway_engine::value::{Filename, Raw, Value};

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateCounter",
    category: "analysis",
    summary: "counts packets by aggregate annotation",
    ports: "1-2/1-2",
    doc: "Counts packets, or bytes, of each aggregate; the handlers `write_…file` write the counts down. When it is frozen no new aggregates are added; \
          the second input always is so. With two outputs packets that were not counted leave by the second. There is room for a million aggregates; beyond that it is as if it were frozen, and `refused` counts the packets. `reaggregate_counts` counts \
          aggregates; Click counts the inner nodes of its tree as well, as aggregates of count 0.",
    args: &[
        keyword("BYTES", "boolean", "whether to count bytes, not packets; default false"),
        keyword("IP_BYTES", "boolean", "whether bytes count from the IP header on; default false"),
        keyword("MULTIPACKET", "boolean", "whether a packet counts for all that it stands for; default true"),
        keyword(
            "EXTRA_LENGTH",
            "boolean",
            "whether the EXTRA_LENGTH annotation counts in bytes; default true",
        ),
        keyword("AGGREGATE_STOP", "number", "stop the router when there would be more aggregates"),
        keyword("AGGREGATE_FREEZE", "number", "freeze when there would be more aggregates"),
        keyword(
            "AGGREGATE_CALL",
            "number, handler and value",
            "call a write handler when there would be more aggregates",
        ),
        keyword("COUNT_STOP", "number", "stop the router when the sum of the counts reaches this"),
        keyword("COUNT_FREEZE", "number", "freeze when the sum of the counts reaches this"),
        keyword(
            "COUNT_CALL",
            "number, handler and value",
            "call a write handler when the sum of the counts reaches this",
        ),
        keyword("BANNER", "string", "a line at the head of files"),
    ],
    handlers: &[
        writes(
            "write_text_file",
            "writes aggregates and counts to a file, a line each; `-` is standard output",
        ),
        writes("write_ascii_file", "`write_text_file`"),
        writes("write_file", "the same, as pairs of words of four bytes"),
        writes("write_ip_file", "the same as text, with aggregates as IP addresses"),
        writes("write_pdf_file", "the same as text, with shares in place of counts"),
        reads_writes("freeze", "whether no new aggregates are added"),
        reads_writes("active", "whether packets are counted"),
        writes("stop", "ends counting and stops the router"),
        writes("reaggregate_counts", "makes the counts the aggregates, and how often each comes the counts"),
        writes("counts_pdf", "`reaggregate_counts`"),
        reads_writes("banner", "BANNER"),
        writes("clear", "forgets all counts"),
        reads_writes("aggregate_call", "AGGREGATE_CALL"),
        reads_writes("count_call", "COUNT_CALL"),
        reads("count", "the sum of the counts"),
        reads("nagg", "aggregates with a count").measures(Unit::None),
        reads("refused", "packets that were not counted because there was no room for another aggregate")
            .counts(Unit::Packets),
    ],
    example: "InfiniteSource(LIMIT 5) -> AggregateLength -> AggregateCounter -> Discard;",
    see: &["AggregateIP", "AggregateIPFlows", "AggregatePacketCounter"],
    copies: Copies::One,
    acts_with: &[
        "AGGREGATE_STOP",
        "AGGREGATE_FREEZE",
        "AGGREGATE_CALL",
        "COUNT_STOP",
        "COUNT_FREEZE",
        "COUNT_CALL",
    ],
    build,
    ..Spec::DEFAULT
};

/// What happens at a limit.
#[derive(Clone, Debug)]
enum Act {
    Stop,
    Freeze,
    Call(Call),
}

impl Act {
    /// The call that it is, of the counter called `name`.
    fn text(&self, name: &str) -> String {
        match self {
            Act::Stop => format!("{name}.stop"),
            Act::Freeze => format!("{name}.freeze true"),
            Act::Call(call) => call.to_string(),
        }
    }
}

type Limit = Option<(u64, Act)>;

struct AggregateCounter {
    bytes: bool,
    ip_bytes: bool,
    multipacket: bool,
    extra_length: bool,
    banner: String,
    aggregates: Limit,
    counts: Limit,
    frozen: bool,
    active: bool,
    table: FlowTable<u32, 1>,
    /// Those whose count is not 0.
    known: u64,
    count: u64,
    /// Packets for whose aggregates there was no room.
    refused: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let counter = AggregateCounter {
        bytes: conf.keyword("BYTES", false),
        ip_bytes: conf.keyword("IP_BYTES", false),
        multipacket: conf.keyword("MULTIPACKET", true),
        extra_length: conf.keyword("EXTRA_LENGTH", true),
        banner: conf.keyword("BANNER", String::new()),
        aggregates: limit(
            conf,
            "AGGREGATE",
            "AGGREGATE_CALL first word should be unsigned (number of aggregates)",
        ),
        counts: limit(conf, "COUNT", "COUNT_CALL first word should be unsigned (count)"),
        frozen: false,
        active: true,
        table: FlowTable::new(ROOM, 1),
        known: 0,
        count: 0,
        refused: 0,
    };
    conf.finish()?;
    Ok(Box::new(counter))
}

/// The limit of `what` that one of three keywords sets.
fn limit(conf: &mut Conf<'_>, what: &str, bad: &str) -> Limit {
    let stop = conf.keyword_given::<u64>(&format!("{what}_STOP")).map(|n| (n, Act::Stop));
    let freeze = conf.keyword_given::<u64>(&format!("{what}_FREEZE")).map(|n| (n, Act::Freeze));
    let text = conf.keyword_given::<Raw>(&format!("{what}_CALL"));
    let call = text.and_then(|Raw(text)| {
        let call = parse_call(&text, conf);
        if call.is_none() {
            conf.error(bad);
        }
        call
    });
    let mut given = [freeze, stop, call].into_iter().flatten();
    let first = given.next();
    if given.next().is_some() {
        conf.error(format!("'{what}_FREEZE', '{what}_STOP', and '{what}_CALL' are mutually exclusive"));
    }
    first
}

fn parse_call(text: &str, conf: &Conf<'_>) -> Option<(u64, Act)> {
    let (number, call) = text.trim().split_once(char::is_whitespace)?;
    let number = u64::parse(number, &conf.scope()).ok()?;
    Some((number, Act::Call(Call::parse(call.trim(), &conf.scope()).ok()?)))
}

impl AggregateCounter {
    fn act(&mut self, act: &Act, cx: &mut Cx<'_>) {
        match act {
            Act::Stop => {
                self.active = false;
                cx.stop_driver();
            }
            Act::Freeze => self.frozen = true,
            // A call of the counter itself counts before the packet does.
            Act::Call(call) => match call.own(cx) {
                Some((handler, value)) => drop(self.write(handler, value, cx)),
                None => call.make(cx),
            },
        }
    }

    /// Counts `packet`; says whether it did.
    fn count(&mut self, packet: &Packet, frozen: bool, cx: &mut Cx<'_>) -> bool {
        if !self.active {
            return false;
        }
        let aggregate = packet.anno_u32(Anno::AGGREGATE.offset);
        let amount = self.amount(packet);
        let frozen = frozen || self.frozen;
        let id = match self.table.find(aggregate.into()) {
            Some((id, _)) => id,
            None if frozen => return false,
            None => {
                if amount > 0
                    && let Some((limit, act)) = self.aggregates.take_if(|(limit, _)| self.known >= *limit)
                {
                    self.act(&act, cx);
                    let _ = limit;
                    // What was called may have changed everything.
                    return self.count(packet, frozen, cx);
                }
                let Ok(id) = self.table.insert([aggregate.into()], 0, 0, 0) else {
                    self.refused += 1;
                    return false;
                };
                id
            }
        };
        let Some(own) = self.table.get_mut(id) else { return false };
        self.known += u64::from(*own == 0 && amount > 0);
        *own = own.wrapping_add(amount);
        self.count += u64::from(amount);
        if let Some((_, act)) = self.counts.take_if(|(limit, _)| self.count >= *limit) {
            self.act(&act, cx);
        }
        true
    }

    fn amount(&self, packet: &Packet) -> u32 {
        if !self.bytes {
            let others = if self.multipacket { packet.anno_u32(Anno::EXTRA_PACKETS.offset) } else { 0 };
            return others.wrapping_add(1);
        }
        let extra = if self.extra_length { packet.anno_u32(Anno::EXTRA_LENGTH.offset) } else { 0 };
        let before = if self.ip_bytes { packet.network_offset().unwrap_or(0) } else { 0 };
        ((packet.len() - before) as u32).wrapping_add(extra)
    }

    fn clear(&mut self) {
        while let Some((_, id)) = self.table.next(0) {
            self.table.remove(id);
        }
        (self.known, self.count, self.refused) = (0, 0, 0);
    }

    /// Aggregates with their counts, in ascending order.
    fn sorted(&self) -> Vec<(u32, u32)> {
        let all = self.table.iter().map(|(id, count)| (self.table.keys(id)[0] as u32, *count));
        let mut all: Vec<_> = all.filter(|(_, count)| *count > 0).collect();
        all.sort_unstable();
        all
    }

    fn reaggregate(&mut self) {
        let counts = self.sorted();
        self.clear();
        for (_, count) in counts {
            let id = match self.table.find(count.into()) {
                Some((id, _)) => Some(id),
                None => self.table.insert([count.into()], 0, 0, 0).ok(),
            };
            if let Some(own) = id.and_then(|id| self.table.get_mut(id)) {
                self.known += u64::from(*own == 0);
                *own += 1;
                self.count += 1;
            }
        }
    }

    fn write_file(&self, name: &str, format: Format) -> Result<(), Error> {
        AggregateFile { format, banner: &self.banner, counts: self.sorted(), total: self.count }.write(name)
    }

    fn set_limit(value: &str, handler: &str, cx: &Cx<'_>) -> Result<Limit, Error> {
        let value = value.trim();
        if value.is_empty() {
            return Ok(None);
        }
        let bad = || format!("argument to '{handler}' should be 'N HANDLER [VALUE]'");
        let (number, call) = value.split_once(char::is_whitespace).ok_or_else(bad)?;
        let number = cx.value(handler, number).map_err(|_| bad())?;
        let call: Call = cx.value(handler, call)?;
        call.check(cx)?;
        Ok(Some((number, Act::Call(call))))
    }
}

impl Element for AggregateCounter {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        for (_, act) in [&self.aggregates, &self.counts].into_iter().flatten() {
            if let Act::Call(call) = act {
                call.check(cx)?;
            }
        }
        Ok(())
    }

    fn packet(&mut self, port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let counted = self.count(packet, port == 1, cx);
        Verdict::Out(if counted || cx.n_outputs() == 1 { 0 } else { 1 })
    }

    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.pull(if cx.n_inputs() == 1 { 0 } else { port }, max, batch);
        for packet in batch.iter() {
            self.count(packet, port == 1, cx);
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        let shown = |limit: &Limit| match limit {
            Some((n, act)) => format!("{n} {}", act.text(cx.name())),
            None => String::new(),
        };
        Ok(match handler {
            "freeze" => self.frozen.to_string(),
            "active" => self.active.to_string(),
            "banner" => self.banner.clone(),
            "aggregate_call" => shown(&self.aggregates),
            "count_call" => shown(&self.counts),
            "count" => self.count.to_string(),
            "refused" => self.refused.to_string(),
            _ => self.known.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let format = match handler {
            "freeze" => {
                self.frozen = cx.value(handler, value)?;
                return Ok(());
            }
            "active" => {
                self.active = cx.value(handler, value)?;
                return Ok(());
            }
            "stop" => {
                self.act(&Act::Stop, cx);
                return Ok(());
            }
            "banner" => {
                self.banner = value.trim_end_matches('\n').to_owned();
                return Ok(());
            }
            "aggregate_call" => {
                self.aggregates = Self::set_limit(value, handler, cx)?;
                return Ok(());
            }
            "count_call" => {
                self.counts = Self::set_limit(value, handler, cx)?;
                return Ok(());
            }
            "clear" => {
                self.clear();
                return Ok(());
            }
            "reaggregate_counts" | "counts_pdf" => {
                self.reaggregate();
                return Ok(());
            }
            "write_file" => Format::Binary,
            "write_ip_file" => Format::Addresses,
            "write_pdf_file" => Format::Shares,
            _ => Format::Text,
        };
        let Filename(name) = cx.value(handler, value).map_err(|_| "argument should be filename")?;
        self.write_file(&name, format)
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<AggregateCounter>() {
            std::mem::swap(&mut self.table, &mut old.table);
            (self.known, self.count, self.frozen) = (old.known, old.count, old.frozen);
            self.refused = old.refused;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    fn push(h: &mut Harness, port: usize, aggregate: u32) {
        let mut p = packet(&[0; 10]);
        p.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
        p.set_anno_u32(Anno::EXTRA_PACKETS.offset, u32::from(aggregate == 9));
        h.push(port, p);
    }

    fn written(h: &mut Harness, handler: &str) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("causeway-aggregates-{}-{handler}", std::process::id()));
        h.write(handler, path.to_str().unwrap()).unwrap();
        let text = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        text
    }

    #[test]
    fn counts_are_kept_and_written() {
        let mut h = Harness::new(&SPEC, "BANNER !hello", 2, 2).unwrap();
        [(0, 7), (0, 9), (1, 7), (1, 8), (0, 7)].iter().for_each(|(port, a)| push(&mut h, *port, *a));
        assert_eq!((h.take(0).len(), h.take(1).len()), (4, 1), "the second input adds none");
        assert_eq!((h.read("count").unwrap(), h.read("nagg").unwrap()), ("5".into(), "2".into()));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let head = "!IPAggregate 1.0\n!hello\n!num_nonzero 2\n";
        assert_eq!(text(written(&mut h, "write_text_file")), format!("{head}7 3\n9 2\n"));
        assert_eq!(text(written(&mut h, "write_ip_file")), format!("{head}!ip\n0.0.0.7 3\n0.0.0.9 2\n"));
        assert_eq!(text(written(&mut h, "write_pdf_file")), format!("{head}7 0.6\n9 0.4\n"));
        assert!(written(&mut h, "write_file").ends_with(&[7, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0]));
        h.write("counts_pdf", "").unwrap();
        assert!(text(written(&mut h, "write_text_file")).ends_with("2 1\n3 1\n"));
        h.write("clear", "").unwrap();
        assert_eq!((h.read("count").unwrap(), h.read("nagg").unwrap()), ("0".into(), "0".into()));
    }

    #[test]
    fn a_call_of_its_own_counts_before_the_packet() {
        let mut h = Harness::new(&SPEC, "AGGREGATE_CALL 2 element.clear", 1, 1).unwrap();
        [1, 2, 3, 4].iter().for_each(|a| push(&mut h, 0, *a));
        assert_eq!((h.read("count").unwrap(), h.read("nagg").unwrap()), ("2".into(), "2".into()));
    }

    #[test]
    fn what_there_is_no_room_for_is_refused() {
        let mut h = Harness::new(&SPEC, "", 1, 2).unwrap();
        h.element::<AggregateCounter>().unwrap().table.set_limit(2);
        [1, 2, 3, 4, 1].iter().for_each(|a| push(&mut h, 0, *a));
        assert_eq!((h.take(0).len(), h.take(1).len(), h.read("refused").unwrap()), (3, 2, "2".into()));
        h.write("clear", "").unwrap();
        assert_eq!(h.read("refused").unwrap(), "0");
    }

    #[test]
    fn limits_freeze_and_stop() {
        let mut h = Harness::new(&SPEC, "AGGREGATE_FREEZE 2, BYTES true, COUNT_STOP 40", 1, 2).unwrap();
        assert_eq!(h.read("aggregate_call").unwrap(), "2 element.freeze true");
        [1, 2, 3, 1].iter().for_each(|a| push(&mut h, 0, *a));
        assert_eq!((h.take(0).len(), h.take(1).len(), h.read("freeze").unwrap()), (3, 1, "true".into()));
        assert!(!h.stopped());
        push(&mut h, 0, 2);
        assert!(h.stopped());
        push(&mut h, 0, 2);
        assert_eq!((h.take(1).len(), h.read("active").unwrap()), (1, "false".into()));
        let error = Harness::new(&SPEC, "COUNT_STOP 1, COUNT_FREEZE 2", 1, 1).err().unwrap().concat();
        assert_eq!(error, "'COUNT_FREEZE', 'COUNT_STOP', and 'COUNT_CALL' are mutually exclusive");
    }
}
