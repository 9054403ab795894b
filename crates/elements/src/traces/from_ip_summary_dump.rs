//! FromIPSummaryDump.

use super::fields::Field;
use super::fields::make::Maker;
use super::lines::{Lines, Record};
use super::several::Several;
use super::to_ip_summary_dump::VERSION;
use crate::fixed::Probability;
use crate::handlers::{Call, task};
use crate::nat::flow_id::FlowId;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;
use causeway_engine::value::{Bytes, Filename, Raw};
use causeway_lang::Of;
use causeway_packet::wire::protocol;

mod directives;

pub(crate) static SPEC: Spec = Spec {
    name: "FromIPSummaryDump",
    category: "traces",
    summary: "makes packets from a file of their fields",
    ports: "0/1",
    processing: "a/a",
    doc: "Reads a file as ToIPSummaryDump writes it, text or binary, and makes a packet of each line: IPv4 with TTL 100, TCP unless PROTO or \
          a line says otherwise, and zeros where nothing is said. Lengths may be longer than the packet's bytes; then the EXTRA_LENGTH \
          annotation is the rest. Lines that begin with `!` say what the fields are (`!data FIELD…`), and what they are where a line lacks them \
          (`!proto P`, `!flowid SRC SPORT DST DPORT [PROTO]`, `!aggregate N`); those that begin with `#` are comments. `-` is standard \
          input; files may be compressed by gzip or bzip2. With CHECKSUM packets are whole and their checksums right. \
          Click reads `!flowid` and FLOWID and makes no use of them.",
    args: &[
        optional("FILENAME", "file name", "the file; unless DATA is given"),
        keyword("STOP", "boolean", "whether to stop the router at the end; default false"),
        keyword("TIMING", "boolean", "whether to keep the times between packets; default false"),
        keyword("ACTIVE", "boolean", "whether to emit packets; default true"),
        keyword(
            "ZERO",
            "boolean",
            "without effect: what no field says is zero; older configurations have it",
        ),
        keyword("CHECKSUM", "boolean", "whether packets are whole and checksums right; default false"),
        keyword("PROTO", "byte", "the protocol of packets that have none; default 6"),
        keyword(
            "MULTIPACKET",
            "boolean",
            "whether as many packets are made of a line as its count says; default false",
        ),
        keyword("SAMPLE", "probability", "with which a packet is emitted; default 1"),
        keyword("FIELDS", "words", "the fields where the file does not say them; also CONTENTS"),
        keyword(
            "FLOWID",
            "words",
            "source, source port, destination, destination port and protocol where the file does not say them",
        ),
        keyword("ALLOW_NONEXISTENT", "boolean", "whether the file may be missing; default false"),
        keyword("DATA", "string", "what is read in the place of a file"),
    ],
    handlers: handlers!(
        &[
            reads("sampling_prob", "SAMPLE"),
            reads_writes("active", "whether it emits packets"),
            reads("encap", "IP"),
            reads("filename", "FILENAME"),
            reads("filesize", "length of the file in bytes, or `-`"),
            reads("filepos", "how far it is in the file, in bytes"),
            writes("stop", "ends reading and stops the router"),
        ],
        TASK,
    ),
    drops: Reason::DOCS,
    example: r#"FromIPSummaryDump(DATA "!data ip_src ip_dst\n1.0.0.1 1.0.0.2\n", STOP true) -> Discard;"#,
    see: &["ToIPSummaryDump", "FromDump"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        TooLong = "too-long", "the packet does not fit a frame";
        NotSampled = "not-sampled", "SAMPLE left it out";
    }
}

/// How probable it is that a packet is emitted.
type Chance = Probability<28>;

/// The only timer: the next packet with TIMING.
const DUE: u32 = 0;

pub(super) struct FromIPSummaryDump {
    lines: Lines,
    pub(super) fields: Vec<&'static Field>,
    /// Their numbers in the order in which packets get them.
    pub(super) order: Vec<usize>,
    protocol: u8,
    flow: Option<FlowId>,
    aggregate: Option<u32>,
    pub(super) version: u32,
    stop: Option<Call>,
    timing: bool,
    /// What is added to timestamps to tell when they are due.
    timing_offset_ns: Option<i128>,
    active: bool,
    checksum: bool,
    multipacket: bool,
    sample: Chance,
    complained: bool,
    held: Option<Packet>,
    several: Option<Several>,
    scratch: Vec<u8>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Filename(filename) = conf.optional("FILENAME", Filename::default());
    let stop = conf.keyword("STOP", false).then(Call::stop);
    let active = conf.keyword("ACTIVE", true);
    conf.keyword("ZERO", true);
    let timing = conf.keyword("TIMING", false);
    let checksum = conf.keyword("CHECKSUM", false);
    let mut sample = conf.keyword("SAMPLE", Chance::ONE);
    let protocol = conf.keyword("PROTO", protocol::TCP);
    let multipacket = conf.keyword("MULTIPACKET", false);
    let words = ["DEFAULT_CONTENTS", "DEFAULT_FIELDS", "CONTENTS", "FIELDS"];
    let contents = words.iter().fold(Raw::default(), |text, word| conf.keyword(word, text)).0;
    let flow = conf.keyword("DEFAULT_FLOWID", Raw::default());
    let flow = conf.keyword("FLOWID", flow).0;
    let allow_missing = conf.keyword("ALLOW_NONEXISTENT", false);
    let data = conf.keyword("DATA", Bytes::default()).0;
    if sample.0 > Chance::ONE.0 {
        conf.warn("SAMPLE probability reduced to 1");
        sample = Chance::ONE;
    } else if sample.0 == 0 {
        conf.warn("SAMPLE probability is 0; emitting no packets");
    }
    let lines = match (filename.is_empty(), data.is_empty()) {
        (false, false) => Err("FILENAME and DATA conflict"),
        (true, true) => Err("FILENAME: required argument missing"),
        (true, false) => Ok(Lines::of(data)),
        (false, true) => Ok(Lines::named(&filename, allow_missing)),
    };
    let lines = lines.unwrap_or_else(|why| {
        conf.error(why);
        Lines::of(Vec::new())
    });
    conf.finish()?;
    let mut dump = FromIPSummaryDump {
        lines,
        fields: Vec::new(),
        order: Vec::new(),
        protocol,
        flow: None,
        aggregate: None,
        version: VERSION.1,
        stop,
        timing,
        timing_offset_ns: None,
        active,
        checksum,
        multipacket,
        sample,
        complained: false,
        held: None,
        several: None,
        scratch: Vec::with_capacity(64),
    };
    let place = Of::File(dump.lines.landmark());
    if !contents.is_empty() {
        for wrong in dump.set_fields(&contents) {
            conf.warn_of(place.clone(), &wrong);
        }
    }
    if !flow.is_empty()
        && let Err(wrong) = dump.set_flow(&format!("! {flow}"), &conf.scope())
    {
        conf.warn_of(place, &wrong.to_string());
    }
    Ok(Box::new(dump))
}

impl FromIPSummaryDump {
    /// The packet of the next line that makes one. `None` at the end; an error if no frame is free.
    fn read(&mut self, cx: &mut Cx<'_>) -> Result<Option<Packet>, ()> {
        loop {
            let mut record = std::mem::take(self.lines.buffer());
            let kind = self.lines.next(&mut record);
            let made = match kind {
                Record::End => {
                    *self.lines.buffer() = record;
                    return Ok(None);
                }
                Record::Text => {
                    let text = String::from_utf8_lossy(&record);
                    match text.bytes().next() {
                        Some(b'!') => {
                            self.command(&text, cx);
                            Ok(None)
                        }
                        None | Some(b'#') => Ok(None),
                        Some(_) => self.make(Ok(&text), cx),
                    }
                }
                Record::Binary => self.make(Err(&record), cx),
            };
            *self.lines.buffer() = record;
            match made {
                Ok(None) => {}
                other => return other,
            }
        }
    }

    /// The packet of a line or binary record; none if it is bad.
    fn make(&mut self, record: Result<&str, &[u8]>, cx: &mut Cx<'_>) -> Result<Option<Packet>, ()> {
        let mut maker = Maker::new(self.protocol, self.flow).ok_or(())?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = match record {
            Ok(line) => self.fill(&mut maker, line, &mut scratch, cx),
            Err(bytes) => self.fill_binary(&mut maker, bytes),
        };
        self.scratch = scratch;
        let Ok(known) = done else {
            cx.count_drops(Reason::TooLong, 1);
            return Ok(None);
        };
        if known == 0 {
            let blank = record.is_ok_and(|line| line.trim().is_empty());
            if !blank && !std::mem::replace(&mut self.complained, true) {
                let what = if self.fields.is_empty() { "no '!data' provided" } else { "packet parse error" };
                self.complain(what);
            }
            return Ok(None);
        }
        let Ok(mut packet) = maker.finish(self.checksum) else {
            cx.count_drops(Reason::TooLong, 1);
            return Ok(None);
        };
        if let Some(aggregate) = self.aggregate
            && packet.anno_u32(Anno::AGGREGATE.offset) == 0
        {
            packet.set_anno_u32(Anno::AGGREGATE.offset, aggregate);
        }
        Ok(Some(packet))
    }

    /// The next packet, also of those that stand for several.
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Option<Packet>, ()> {
        if let Some(packet) = self.held.take() {
            return Ok(Some(packet));
        }
        if let Some(several) = self.several.take() {
            return Ok(self.one_of(several));
        }
        let Some(packet) = self.read(cx)? else { return Ok(None) };
        if !self.multipacket || packet.anno_u32(Anno::EXTRA_PACKETS.offset) == 0 {
            return Ok(Some(packet));
        }
        Ok(self.one_of(Several::new(packet)))
    }

    fn one_of(&mut self, several: Several) -> Option<Packet> {
        let (packet, rest) = several.split();
        self.several = rest;
        packet
    }

    /// When `packet` is due, if that is later.
    fn due(&mut self, packet: &Packet, cx: &mut Cx<'_>) -> Option<u64> {
        let (now, at) = (i128::from(cx.now_ns()), i128::from(packet.timestamp_ns()));
        let due = at + *self.timing_offset_ns.get_or_insert(now - at);
        (due > now).then_some(due as u64)
    }

    /// One packet into `batch`; `Run` is how the task goes on.
    fn fill_batch(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) -> Run {
        let packet = match self.next(cx) {
            Err(()) => return Run::Idle,
            Ok(None) => {
                self.end(cx);
                return Run::Sleep;
            }
            Ok(Some(packet)) => packet,
        };
        if self.timing
            && let Some(due_ns) = self.due(&packet, cx)
        {
            self.held = Some(packet);
            cx.set_timer(DUE, due_ns);
            return Run::Sleep;
        }
        if self.sample != Chance::ONE && !self.sample.happens(cx) {
            cx.drop(Reason::NotSampled, packet);
        } else {
            // An empty batch has room.
            let _ = batch.push(packet);
        }
        Run::Worked
    }

    fn end(&mut self, cx: &mut Cx<'_>) {
        cx.notify_packets(false);
        self.active = false;
        if let Some(call) = &self.stop {
            call.make(cx);
        }
    }
}

impl Element for FromIPSummaryDump {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let first = self.lines.open()?;
        if first.is_empty() && !self.lines.is_missing() {
            return Err(Error::new("empty file").at(self.lines.landmark(), cx.class()));
        }
        let known = ["!IPSummaryDump", "!creator", "!data", "!contents", "!proto", "!flowid"];
        if self.fields.is_empty()
            && !self.lines.is_missing()
            && !known.iter().any(|word| first.starts_with(word.as_bytes()))
        {
            let place = Of::File(self.lines.landmark());
            cx.warn_of(place, "missing banner line; is this an IP summary dump?");
        }
        task::start(self.active, cx);
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !self.active {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        let run = self.fill_batch(&mut batch, cx);
        cx.emit_batch(0, batch);
        run
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        task::start(self.active, cx);
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        while self.active && batch.len() < max.min(1) {
            match self.fill_batch(batch, cx) {
                Run::Worked => {}
                Run::Idle => return,
                Run::Sleep => {
                    cx.notify_packets(false);
                    return;
                }
            }
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "sampling_prob" => self.sample.to_string(),
            "active" => self.active.to_string(),
            "encap" => "IP".to_owned(),
            "filename" => match self.lines.name() {
                "-" => "<stdin>".to_owned(),
                name => name.to_owned(),
            },
            "filesize" => self.lines.size().map_or("-".to_owned(), |n| n.to_string()),
            _ => self.lines.position().to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        if handler == "stop" {
            self.active = false;
            cx.stop_driver();
            return Ok(());
        }
        self.active = cx.value(handler, value)?;
        task::start(self.active, cx);
        Ok(())
    }

    fn held(&self) -> usize {
        usize::from(self.held.is_some()) + self.several.as_ref().map_or(0, Several::left)
    }
}
