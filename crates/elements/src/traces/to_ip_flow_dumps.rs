//! ToIPFlowDumps.

use super::file_pattern::FilePattern;
use super::flow_dump::{FlowDump, Origin, Style};
use crate::analysis::listeners::{Notifier, Subscription, companions, keyword_notifier};
use crate::printing::contents::to_stderr;
use causeway_engine::prelude::*;
use causeway_engine::value::Filename;
use std::collections::{HashMap, VecDeque};

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
    }))
}

/// Says what went wrong with a file.
fn tell(name: &str, done: Result<(), String>) {
    if let Err(why) = done {
        log::error!("{name}: {why}");
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
            tell(name, flow.add(packet));
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
        flows.into_iter().for_each(|(_, flow)| tell(name, flow.end(self.least)));
    }
}

impl Element for ToIPFlowDumps {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
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
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        let pulled = batch.len();
        self.push(0, &mut batch, cx);
        cx.return_batch(batch);
        match pulled {
            0 if !cx.packets_upstream(0) => Run::Sleep,
            0 => Run::Idle,
            _ => Run::Worked,
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        while let Some(&(_, aggregate)) = self.ended.front().filter(|(due_ns, _)| *due_ns <= now_ns) {
            self.ended.pop_front();
            if let Some(flow) = self.flows.remove(&aggregate) {
                tell(cx.name(), flow.end(self.least));
            }
        }
        if let Some((due_ns, _)) = self.ended.front() {
            cx.set_timer(ENDED, *due_ns);
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.unwritten.to_string())
    }

    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
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
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use std::path::PathBuf;

    /// A folder that is removed in the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            Folder(std::env::temp_dir().join(format!("causeway-flow-dumps-{test}-{}", std::process::id())))
        }

        fn read(&self, name: &str) -> String {
            let bytes = std::fs::read(self.0.join(name)).unwrap();
            bytes.iter().map(|b| char::from(*b)).collect()
        }

        fn names(&self) -> Vec<String> {
            let Ok(entries) = std::fs::read_dir(&self.0) else { return vec![] };
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        fn config(&self, rest: &str) -> String {
            format!("{}/f%n{rest}", self.0.display())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A packet of flow `aggregate` from 1.0.0.1 port 7 to 1.0.0.2 port 80, or back.
    fn packet(aggregate: u32, protocol: u8, back: bool, ms: u64, transport: &[u8]) -> Packet {
        let (mut ends, mut ports) = ([[1, 0, 0, 1], [1, 0, 0, 2]], [[0, 7], [0, 80]]);
        if back {
            ends.reverse();
            ports.reverse();
        }
        let len = (24 + transport.len()) as u8;
        let head = [0x45, 0, 0, len, 0, 5, 0, 0, 64, protocol, 0, 0];
        let bytes = [&head[..], &ends.concat(), &ports.concat(), transport].concat();
        let mut packet = Packet::from_bytes(&bytes).unwrap();
        packet.set_network_headers(0, 20);
        packet.set_timestamp_ns(5_000_000_000 + ms * 1_000_000);
        packet.set_paint(back.into());
        packet.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
        packet
    }

    /// Sequence and acknowledgement number, flags and options behind the ports.
    fn tcp(sequence: u32, acknowledgement: u32, flags: u8, options: &[u8]) -> Vec<u8> {
        let numbers = [sequence.to_be_bytes(), acknowledgement.to_be_bytes()].concat();
        let offset = (5 + options.len() / 4) as u8;
        [&numbers[..], &[offset << 4, flags, 0, 99, 0, 0, 0, 0], options].concat()
    }

    const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 3, 242, 0, 0, 4, 1];

    fn exchange(h: &mut Harness) {
        h.push(0, packet(3, 6, false, 0, &tcp(1_000, 0, 2, &[2, 4, 5, 180])));
        h.push(0, packet(3, 6, true, 1, &tcp(2_000, 1_001, 0x12, &[])));
        h.push(0, packet(3, 6, true, 2, &[&tcp(2_001, 1_001, 0x18, &SACK)[..], b"abc"].concat()));
        h.push(0, packet(4, 17, false, 3, &[0, 12, 0, 0, 1, 2, 3, 4]));
        h.push(0, packet(0, 17, false, 3, &[0, 12, 0, 0, 1, 2, 3, 4]));
    }

    #[test]
    fn each_flow_has_its_file() {
        let folder = Folder::new("each");
        let mut h =
            Harness::new(&SPEC, &folder.config(", TCP_OPT true, IP_ID true, TCP_WINDOW true"), 1, 0).unwrap();
        exchange(&mut h);
        assert_eq!((h.drops(), folder.names().len()), (vec![("not-written", 1)], 0));
        drop(h);
        assert_eq!(
            folder.read("f3"),
            "!IPSummaryDump 1.3\n!flowid 1.0.0.1 7 1.0.0.2 80 T\n!aggregate 3\n\
             !data ntimestamp direction ip_id tcp_flags tcp_seq payload_len tcp_ack tcp_window tcp_ntopt\n\
             !firstseq > 1000\n!firstseq < 2000\n!firsttime 4.999999999\n\
             0.000000001 > 5 S 0 0 0 99 mss1460\n0.001000001 < 5 SA 0 0 1 99\n0.002000001 < 5 PA 1 3 1 99 sack10-25\n"
        );
        assert_eq!(
            folder.read("f4"),
            "!IPSummaryDump 1.3\n!flowid 1.0.0.1 7 1.0.0.2 80 U\n!aggregate 4\n!data ntimestamp direction ip_id payload_len\n\
             !firsttime 5.002999999\n0.000000001 > 5 4\n"
        );
    }

    #[test]
    fn numbers_may_be_absolute_and_records_binary() {
        let folder = Folder::new("binary");
        let config = folder.config(", BINARY true, ABSOLUTE_TIME true, ABSOLUTE_SEQ true");
        let mut h = Harness::new(&SPEC, &config, 1, 1).unwrap();
        exchange(&mut h);
        assert_eq!((h.take(0).len(), h.read("unwritten").unwrap()), (5, "1".to_owned()));
        h.write("clear", "").unwrap();
        let text = folder.read("f3");
        let (head, records) = text.split_once("!binary\n").unwrap();
        assert!(
            head.ends_with("!data ntimestamp tcp_seq payload_len tcp_ack tcp_flags direction tcp_ntopt\n"),
            "{head}"
        );
        let words: Vec<u32> = records.chars().map(|c| c as u32).collect();
        assert_eq!(words[..4], [0, 0, 0, 26]);
        assert_eq!((words.len(), words[24], words[26 + 25]), (78, 2, 1));
        assert_eq!(words[12..16], [0, 0, 3, 232]);
    }

    #[test]
    fn errors_are_notes_and_short_flows_have_no_file() {
        let folder = Folder::new("notes");
        let mut h = Harness::new(&SPEC, &folder.config(", MINCOUNT 3, GZIP true"), 1, 0).unwrap();
        exchange(&mut h);
        let quoted = packet(3, 6, false, 0, &tcp(1_000, 0, 2, &[]));
        let bytes = [
            &[0x45, 0, 0, 72, 0, 0, 0, 0, 64, 1, 0, 0, 9, 9, 9, 9, 1, 0, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0][..],
            quoted.data(),
        ]
        .concat();
        let mut error = Packet::from_bytes(&bytes).unwrap();
        error.copy_annos(&quoted);
        error.set_network_headers(0, 20);
        error.set_timestamp_ns(6_000_000_000);
        error.set_paint(3);
        h.push(0, error);
        h.write("clear", "").unwrap();
        assert_eq!(folder.names(), ["f3.gz"]);
        let again = format!("{}/f3.gz", folder.0.display());
        let mut h = Harness::new(&crate::traces::from_ip_summary_dump::SPEC, &again, 0, 1).unwrap();
        while h.run_task().is_some() {}
        let out = h.take(0);
        assert_eq!((out.len(), out[2].anno_u32(Anno::AGGREGATE.offset), out[2].paint()), (3, 3, 1));
    }

    #[test]
    fn no_more_flows_than_there_is_room_for() {
        let folder = Folder::new("room");
        let mut h = Harness::new(&SPEC, &folder.config(", CAPACITY 1"), 1, 0).unwrap();
        exchange(&mut h);
        for n in 0..300 {
            h.push(0, packet(3, 6, false, n, &tcp(1_000, 0, 0x10, &[])));
        }
        // What is written before the end is written in parts.
        assert_eq!((folder.names(), h.read("unwritten").unwrap()), (vec!["f3".to_owned()], "2".to_owned()));
        drop(h);
        assert_eq!(folder.read("f3").lines().filter(|l| !l.starts_with('!')).count(), 303);
    }

    #[test]
    fn bad_patterns_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 0).err().unwrap().concat();
        assert_eq!(error("f%y"), "bad filename pattern '%y'");
    }
}
