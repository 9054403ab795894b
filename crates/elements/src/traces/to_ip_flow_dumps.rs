//! ToIPFlowDumps.

use super::file_pattern::FilePattern;
use super::flow_dump::{FlowDump, Origin, Style};
use crate::analysis::listeners::{Notifier, Subscription, companions, keyword_notifier};
use crate::out_file::Losses;
use crate::printing::contents::to_stderr;
use causeway_engine::prelude::*;
use causeway_engine::value::Filename;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ToIPFlowDumps",
    category: "traces",
    summary: "writes a file for each flow of TCP or UDP",
    ports: "1/0-1",
    doc: "Writes a line for each packet, as FromIPSummaryDump reads it, into the file of its flow, which the aggregate annotation tells; \
          AggregateIPFlows sets it. A file begins with the flow's addresses and ports; times and sequence numbers count from \
          its first ones, which `!firsttime` and `!firstseq` tell. Packets without an aggregate, and those that are neither of a whole TCP or UDP header nor \
          an ICMP error about one, are not written. A file ends when NOTIFIER says that its flow has, when `clear` is written, and with the \
          router. A hot swap with the same FILEPATTERN goes on in the same files.\n\n\
          In FILEPATTERN `%n`, `%x` and `%X` stand for the aggregate (decimal, hexadecimal), `%s` and `%d` for the source and \
          destination address of its first packet, `%S` and `%D` for the ports, `%p` for `T` or `U`, and `%%` for `%`. `%.0n` to `%.3n` are a number's \
          bytes and `%.4n` and `%.5n` its halves, likewise `%.0s` to `%.3s`; `%06n` has at least six digits.",
    args: &[
        optional("FILEPATTERN", "file name", "the files; `-` is standard output; default `-`"),
        keyword("OUTPUT_PATTERN", "file name", "the same as FILEPATTERN"),
        keyword(
            "NOTIFIER",
            "element",
            "the AggregateIPFlows or AggregateIPAddrPair that numbers the flows, which tells when one has ended",
        ),
        keyword("ABSOLUTE_TIME", "boolean", "whether times are those of the clock; default false"),
        keyword(
            "ABSOLUTE_SEQ",
            "boolean",
            "whether sequence numbers are those of the packets; default false",
        ),
        keyword("BINARY", "boolean", "whether records are binary; default false"),
        keyword("ALL_TCP_OPT", "boolean", "whether all known TCP options are written; default false"),
        keyword(
            "TCP_OPT",
            "boolean",
            "whether those for segment size, window scale and selective acknowledgement are; default false",
        ),
        keyword("TCP_WINDOW", "boolean", "whether TCP windows are written; default false"),
        keyword(
            "GZIP",
            "boolean",
            "whether files are compressed by gzip when they end, and `.gz` added to their names; default false",
        ),
        keyword("IP_ID", "boolean", "whether IP identifications are written; default false"),
        keyword("MINCOUNT", "packets", "flows of fewer have no file; default 0"),
        keyword("CAPACITY", "flows", "most at a time; packets of others are not written; default 65536"),
    ],
    handlers: &[
        writes("clear", "ends all files"),
        reads("unwritten", "packets that were not written").counts(Unit::Packets),
    ],
    drops: Reason::DOCS,
    example: "FromIPSummaryDump(DATA \"!data ip_src ip_dst sport dport\\n1.0.0.1 1.0.0.2 7 80\\n\", STOP true) \
              -> a :: AggregateIPFlows -> ToIPFlowDumps(-, NOTIFIER a);",
    see: &["ToIPSummaryDump", "AggregateIPFlows"],
    copies: Copies::One,
    tells: |config| config.split(',').next().is_some_and(|file| matches!(file.trim(), "-" | "")),
    lives_with: companions,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotWritten = "not-written", "it is of no flow that has a file, and there is no output";
    }
}

/// The only timer: flows that have ended.
const ENDED: u32 = 0;
/// How long the file of a flow that has ended waits for its last packets, which may be held for others.
const WAIT_NS: u64 = 250_000_000;

struct ToIPFlowDumps {
    name: String,
    text: String,
    pattern: FilePattern,
    style: Style,
    least: u32,
    capacity: usize,
    notifier: Notifier,
    subscription: Option<Subscription>,
    flows: HashMap<u32, FlowDump>,
    /// Flows that have ended, and when their files do.
    ended: VecDeque<(u64, u32)>,
    written: u64,
    unwritten: u64,
    losses: Arc<Losses>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let text = conf.optional("FILEPATTERN", Filename::default());
    let Filename(mut text) = conf.keyword("OUTPUT_PATTERN", text);
    let notifier = keyword_notifier(conf);
    let absolute_time = conf.keyword("ABSOLUTE_TIME", false);
    let absolute_seq = conf.keyword("ABSOLUTE_SEQ", false);
    let binary = conf.keyword("BINARY", false);
    let tcp_timestamp = conf.keyword("ALL_TCP_OPT", false);
    let tcp_opt = conf.keyword("TCP_OPT", false) || tcp_timestamp;
    let tcp_window = conf.keyword("TCP_WINDOW", false);
    let gzip = conf.keyword("GZIP", false);
    let ip_id = conf.keyword("IP_ID", false);
    let least = conf.keyword("MINCOUNT", 0u32);
    let capacity = conf.keyword("CAPACITY", 65_536u32) as usize;
    if text.is_empty() {
        text = "-".to_owned();
    }
    let pattern = FilePattern::parse(&text).map_err(|why| conf.error(why));
    conf.finish()?;
    let pattern = pattern.map_err(|()| Invalid)?;
    if pattern.is_constant() {
        conf.warn("OUTPUT_PATTERN has no % escapes, so output files will get overwritten");
    }
    let style =
        Style { absolute_time, absolute_seq, binary, gzip, ip_id, tcp_window, tcp_opt, tcp_timestamp };
    let name = conf.name().to_string();
    Ok(Box::new(ToIPFlowDumps {
        name,
        text,
        pattern,
        style,
        least,
        capacity,
        notifier,
        subscription: None,
        flows: HashMap::new(),
        ended: VecDeque::new(),
        written: 0,
        unwritten: 0,
        losses: Losses::of(conf)?,
    }))
}

/// Says what went wrong with a file.
fn tell(losses: &Losses, name: &str, done: Result<(), Error>) {
    if let Err(why) = done {
        losses.tell(format_args!("{name}: {why}"));
    }
}

impl ToIPFlowDumps {
    /// Writes a packet; false if it has no flow.
    fn write_packet(&mut self, packet: &Packet, name: &str) -> bool {
        let Some(origin) = Origin::of(packet) else { return false };
        if !self.flows.contains_key(&origin.aggregate) {
            if self.flows.len() >= self.capacity {
                return false;
            }
            let flow = FlowDump::new(packet, origin, self.pattern.expand(&origin), self.style);
            self.flows.insert(origin.aggregate, flow);
        }
        if let Some(flow) = self.flows.get_mut(&origin.aggregate) {
            tell(&self.losses, name, flow.add(packet));
        }
        true
    }

    /// Hears which flows have ended.
    fn listen(&mut self, cx: &mut Cx<'_>) {
        while let Some(aggregate) = self.subscription.and_then(|s| s.next(cx)) {
            if self.flows.contains_key(&aggregate) {
                let due_ns = cx.now_ns().saturating_add(WAIT_NS);
                self.ended.push_back((due_ns, aggregate));
                cx.set_timer(ENDED, self.ended[0].0);
            }
        }
    }

    /// Ends all files; in an order that does not hang on chance, since they may be one.
    fn end_all(&mut self, name: &str) {
        let mut flows: Vec<_> = self.flows.drain().collect();
        flows.sort_unstable_by_key(|(aggregate, _)| *aggregate);
        flows.into_iter().for_each(|(_, flow)| tell(&self.losses, name, flow.end(self.least)));
    }
}

impl Element for ToIPFlowDumps {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.subscription = self.notifier.subscribe(cx)?;
        if cx.pulls_from(0) && cx.n_outputs() == 0 {
            cx.wake();
        }
        Ok(())
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let before = self.unwritten;
        for packet in batch.iter_mut() {
            let written = self.write_packet(packet, cx.name());
            self.written += u64::from(written);
            self.unwritten += u64::from(!written);
        }
        self.listen(cx);
        if cx.n_outputs() == 0 {
            cx.count_drops(Reason::NotWritten, self.unwritten - before);
            batch.clear();
        }
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        self.listen(cx);
        if !cx.pulls_from(0) || cx.n_outputs() > 0 {
            return Run::Sleep;
        }
        super::pull_and_write(self, 1, cx)
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        while let Some(&(_, aggregate)) = self.ended.front().filter(|(due_ns, _)| *due_ns <= now_ns) {
            self.ended.pop_front();
            if let Some(flow) = self.flows.remove(&aggregate) {
                tell(&self.losses, cx.name(), flow.end(self.least));
            }
        }
        if let Some((due_ns, _)) = self.ended.front() {
            cx.set_timer(ENDED, *due_ns);
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.unwritten.to_string())
    }

    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.end_all(cx.name());
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        let same = |old: &&mut ToIPFlowDumps| old.text == self.text && old.style == self.style;
        if let Some(old) = old.downcast_mut::<ToIPFlowDumps>().filter(same) {
            self.flows = std::mem::take(&mut old.flows);
            (self.written, self.unwritten) = (old.written, old.unwritten);
        }
    }
}

impl Drop for ToIPFlowDumps {
    fn drop(&mut self) {
        if self.written == 0 && self.unwritten > 0 {
            to_stderr(&format!(
                "{} :: ToIPFlowDumps: warning: saw no packets with aggregate annotations\n",
                self.name
            ));
        }
        let name = std::mem::take(&mut self.name);
        self.end_all(&name);
    }
}

#[cfg(test)]
mod tests;
