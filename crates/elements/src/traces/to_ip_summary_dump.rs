//! ToIPSummaryDump.

use super::fields::view::{Lengths, View, first_timestamp_ns};
use super::fields::{self, Field, Width, text};
use crate::out_file::{Losses, OutFile};
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_engine::value::{Filename, Raw};
use causeway_lang::args::{escape_for_quotes, split_args, split_words, unquote};
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ToIPSummaryDump",
    category: "traces",
    summary: "writes fields of packets to a file",
    ports: "1/0-1",
    processing: "a/h",
    phase: phase::DEFAULT + 100,
    doc: DOC,
    args: &[
        required("FILENAME", "file name", "the file; `-` is standard output"),
        keyword(
            "FIELDS",
            "words",
            "the fields of a line, in order; also CONTENTS; default `timestamp ip_src`",
        ),
        keyword("HEADER", "boolean", "whether lines that describe the file come first; default true"),
        keyword("VERBOSE", "boolean", "whether these tell host and time too; default false"),
        keyword("BANNER", "string", "who made it, which these tell then"),
        keyword("BINARY", "boolean", "whether records are binary; default false"),
        keyword(
            "MULTIPACKET",
            "boolean",
            "whether a packet that stands for several has a line for each, unless `count` is a field; default false",
        ),
        keyword(
            "BAD_PACKETS",
            "boolean",
            "whether a line `!bad …` comes before that of a packet with a bad header; default false",
        ),
        keyword("CAREFUL_TRUNC", "boolean", "whether a packet that lacks bytes is bad; default true"),
        keyword(
            "EXTRA_LENGTH",
            "boolean",
            "whether the EXTRA_LENGTH annotation counts in lengths; default true",
        ),
    ],
    handlers: handlers!(&[writes("flush", "writes to the file what is in memory")], TASK),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> MarkIPHeader -> ToIPSummaryDump(/tmp/causeway-example.dump, FIELDS ip_src ip_dst);",
    see: &["FromIPSummaryDump", "ToDump"],
    copies: Copies::One,
    tells: |config| split_args(config).first().is_some_and(|file| file.trim() == "-"),
    build,
    ..Spec::DEFAULT
};

const DOC: &str = "Writes a line for each packet, with the fields that FIELDS names; `-` where a packet has none. \
With an output the packets go on there, otherwise they end here; behind a pull output it pulls them by itself.\n\n\
Fields: `timestamp` (`ntimestamp` in binary with nanoseconds), `ts_sec`, `ts_usec`, `ts_usec1` (in microseconds), \
`first_timestamp`, `count` (packets it stands for), `link` or `paint`, `direction` (paint 0 is `>`, 1 is `<`), `aggregate`, `wire_len`; \
`eth_src`, `eth_dst`, `eth_type`; `ip_src`, `ip_dst`, `ip_tos`, `ip_dscp`, `ip_ecn` (`no`, `ect1`, `ect2`, `ce`), `ip_ttl`, `ip_frag` (`F` \
first fragment, `f` other, `!` may not be one, `.` none), `ip_fragoff` (bytes, `+` more follow, `!` may not be fragmented), `ip_id`, \
`ip_sum`, `ip_proto` (`T`, `U`, `I` or a number), `ip_hl`, `ip_len`, `ip_capture_len`, `ip_opt`; `sport`, `dport`; `tcp_seq`, `tcp_ack`, `tcp_off`, \
`tcp_flags` (of `FSRPAUECN`, or `.`), `tcp_window`, `tcp_urp`, `tcp_opt`, `tcp_ntopt` (without padding and timestamps), `tcp_sack`; \
`udp_len`; `icmp_type`, `icmp_code`, `icmp_type_name`, `icmp_code_name`, `icmp_flowid`, `icmp_seq`, `icmp_nextmtu`; `payload`, \
`payload_len`, `payload_md5`, `payload_md5_hex`. The `ip_` may be left out.\n\n\
IP options: `rr{10.0.0.1}+5` (room for five more), `ssrr{1.0.0.1^1.0.0.2}` (`^` is the pointer), `lsrr{…}`, `ts{1,!45}+2++3` (`!` not \
standard, overflow of three), `ts.ip{1.0.0.1=1}`, `ts.preip{…}`, others `99=0:5:10`. TCP options: `mss1400`, `wscale10`, `sackok`, \
`sack95-98`, `ts1:2`, others likewise. `;` between them, `.` for none, `?` if one is bad.\n\n\
A binary record is its length (4 bytes, itself included; the top bit marks a text line), and the fields, most significant byte first; options have their length before them.";

drop_reasons! {
    enum Reason for SPEC {
        WriteError = "write-error", "the file cannot be written, and there is no output";
    }
}

/// Version of the format.
pub(super) const VERSION: (u32, u32) = (1, 3);
/// Packets pulled a turn.
const BURST: usize = 1;

type Output = BufWriter<Box<dyn Write + Send>>;

/// How far the file is.
enum State {
    /// The graph is not put in place yet. `None` = standard output.
    Ready(Option<OutFile>),
    /// The head is written.
    Writing(Output),
    /// It cannot be written, or a successor has it.
    Closed,
}

struct ToIPSummaryDump {
    filename: String,
    fields: Vec<&'static Field>,
    needs_headers: bool,
    header: bool,
    verbose: bool,
    banner: String,
    binary: bool,
    multipacket: bool,
    bad_packets: bool,
    lengths: Lengths,
    state: State,
    losses: Arc<Losses>,
    /// The line or record that is being written, kept for its room.
    line: String,
    record: Vec<u8>,
    scratch: Vec<u8>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Filename(filename) = conf.required("FILENAME");
    let words = conf.deprecated("DATA").unwrap_or(Raw("timestamp ip_src".to_owned()));
    let words = conf.keyword("CONTENTS", words);
    let words = conf.keyword("FIELDS", words).0;
    let mut dump = ToIPSummaryDump {
        filename,
        fields: Vec::new(),
        needs_headers: false,
        header: conf.keyword("HEADER", true),
        verbose: conf.keyword("VERBOSE", false),
        banner: conf.keyword("BANNER", String::new()),
        binary: conf.keyword("BINARY", false),
        multipacket: conf.keyword("MULTIPACKET", false),
        bad_packets: conf.keyword("BAD_PACKETS", false),
        lengths: Lengths {
            careful: conf.keyword("CAREFUL_TRUNC", true),
            extra: conf.keyword("EXTRA_LENGTH", true),
        },
        state: State::Closed,
        losses: Losses::of(conf)?,
        line: String::with_capacity(512),
        record: Vec::with_capacity(512),
        scratch: Vec::with_capacity(64),
    };
    for word in split_words(&words) {
        let word = unquote(&word);
        match fields::find(&word) {
            None => conf.error(format!("unknown content type '{word}'")),
            Some(field) if field.name == "none" => conf.error(format!("unknown content type '{word}'")),
            Some(field) if dump.binary && field.width == Width::TextOnly => {
                conf.error(format!("cannot use field {word} with BINARY"));
            }
            Some(field) => dump.fields.push(field),
        }
    }
    if dump.fields.is_empty() {
        conf.error("no contents specified");
    }
    conf.finish()?;
    dump.needs_headers = dump.fields.iter().any(|f| f.what.needs_headers());
    Ok(Box::new(dump))
}

impl ToIPSummaryDump {
    /// The lines at the start.
    fn head(&self, now_ns: u64) -> String {
        let mut text = format!("!IPSummaryDump {}.{}\n", VERSION.0, VERSION.1);
        if !self.banner.is_empty() {
            text += &format!("!creator \"{}\"\n", escape_for_quotes(&self.banner));
        }
        if self.verbose {
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            text += &format!("!host {}\n!runtime ", host.trim());
            text::print_time(now_ns, &mut text);
            text.push('\n');
        }
        let name = |f: &&Field| if f.name == "ntimestamp" && !self.binary { "timestamp" } else { f.name };
        let names: Vec<_> = self.fields.iter().map(name).collect();
        text += &format!("!data {}\n", names.join(" "));
        if self.binary {
            text += "!binary\n";
        }
        text
    }

    fn begin(&self, file: Option<OutFile>, now_ns: u64) -> io::Result<Output> {
        let out: Box<dyn Write + Send> = match file {
            Some(file) => Box::new(file.commit()?),
            None => Box::new(io::stdout()),
        };
        let mut out = BufWriter::new(out);
        if self.header {
            out.write_all(self.head(now_ns).as_bytes())?;
        }
        // What others print comes behind it.
        if self.filename == "-" {
            out.flush()?;
        }
        Ok(out)
    }

    /// Makes the packet's line or record, and the line before it if it is bad.
    fn summarize(&mut self, packet: &mut Packet) -> Option<String> {
        let mut view = match self.needs_headers {
            true => View::new(packet, self.lengths),
            false => View::default(),
        };
        self.line.clear();
        self.record.clear();
        self.record.extend([0; 4]);
        for (i, field) in self.fields.iter().enumerate() {
            let value = view.value(field.what, packet, self.lengths);
            if self.binary {
                let value = value.map(|v| text::binary(field.what, v, &mut self.scratch));
                field.width.write(value.as_ref(), &mut self.record);
                continue;
            }
            if i > 0 {
                self.line.push(' ');
            }
            match value {
                Some(value) => text::print(field.what, &value, &view, packet, &mut self.line),
                None => self.line.push('-'),
            }
        }
        self.line.push('\n');
        let len = self.record.len() as u32;
        self.record[..4].copy_from_slice(&len.to_be_bytes());
        view.bad.take().filter(|_| self.bad_packets)
    }

    fn write_one(&mut self, packet: &mut Packet) -> io::Result<()> {
        let bad = self.summarize(packet);
        let State::Writing(out) = &mut self.state else { return Ok(()) };
        if let Some(bad) = bad {
            let line = format!("!bad {bad}\n");
            if self.binary {
                out.write_all(&((line.len() + 4) as u32 | 1 << 31).to_be_bytes())?;
            }
            out.write_all(line.as_bytes())?;
        }
        out.write_all(if self.binary { &self.record } else { self.line.as_bytes() })
    }

    /// Writes a line for each packet that this one stands for, with times and lengths between them.
    fn write(&mut self, packet: &mut Packet) -> io::Result<()> {
        let extra_packets = packet.anno_u32(Anno::EXTRA_PACKETS.offset);
        if !self.multipacket || extra_packets == 0 {
            return self.write_one(packet);
        }
        let count = u64::from(extra_packets) + 1;
        let len = packet.len() as u64;
        let extra = if self.lengths.extra { packet.anno_u32(Anno::EXTRA_LENGTH.offset) } else { 0 };
        let mut total = (len + u64::from(extra)).max(count * len);
        let (first_ns, end_ns) = (first_timestamp_ns(packet), packet.timestamp_ns());
        // The last one's time is the end only as far as the steps are whole nanoseconds.
        let step_ns = if first_ns > 0 { end_ns.saturating_sub(first_ns) / (count - 1) } else { 0 };
        packet.set_anno_u32(Anno::EXTRA_PACKETS.offset, 0);
        let mut ns = if first_ns > 0 { first_ns } else { end_ns };
        for left in (1..=count).rev() {
            let own = total / left;
            total -= own;
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, own.saturating_sub(len) as u32);
            packet.set_timestamp_ns(ns);
            self.write_one(packet)?;
            ns += step_ns;
        }
        packet.set_timestamp_ns(end_ns);
        Ok(())
    }

    fn fail(&mut self, error: &io::Error, cx: &Cx<'_>) {
        self.losses.tell(format_args!("{}: {}: {error}", cx.name(), self.filename));
        self.state = State::Closed;
    }
}

impl Drop for ToIPSummaryDump {
    fn drop(&mut self) {
        // What is still in memory is written now, and nothing else would tell that there is no room for it.
        if let State::Writing(out) = &mut self.state
            && let Err(e) = out.flush()
        {
            self.losses.tell(format_args!("{}: the last lines are lost: {e}", self.filename));
        }
    }
}

impl Element for ToIPSummaryDump {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.state = State::Ready(match self.filename.as_str() {
            "-" => None,
            name => Some(OutFile::open(name)?),
        });
        if cx.pulls_from(0) {
            cx.wake();
        }
        Ok(())
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        // Unless a predecessor's file was taken over.
        if let State::Ready(file) = &mut self.state {
            let file = file.take();
            let now_ns = if self.verbose { cx.now_ns() } else { 0 };
            match self.begin(file, now_ns) {
                Ok(out) => self.state = State::Writing(out),
                Err(e) => self.fail(&e, cx),
            }
        }
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let mut written = 0;
        for packet in batch.iter_mut() {
            if let Err(e) = self.write(packet) {
                self.fail(&e, cx);
            }
            written += u64::from(matches!(self.state, State::Writing(_)));
        }
        // What others print comes behind it.
        if let State::Writing(out) = &mut self.state
            && self.filename == "-"
            && let Err(e) = out.flush()
        {
            self.fail(&e, cx);
        }
        if cx.n_outputs() == 0 {
            cx.count_drops(Reason::WriteError, batch.len() as u64 - written);
            batch.clear();
        }
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        super::pull_and_write(self, BURST, cx)
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        match &mut self.state {
            State::Writing(out) => out.flush().map_err(|e| Error::caused_by(e).of(&self.filename)),
            _ => Ok(()),
        }
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        let same = |old: &&mut ToIPSummaryDump| old.filename == self.filename && old.binary == self.binary;
        if let Some(old) = old.downcast_mut::<ToIPSummaryDump>().filter(same)
            && matches!(old.state, State::Writing(_))
        {
            self.state = std::mem::replace(&mut old.state, State::Closed);
            // Lines that follow have other fields.
            let (names, old_names) = (self.head(0), old.head(0));
            if let State::Writing(out) = &mut self.state
                && names != old_names
                && let Some(data) = names.lines().find(|l| l.starts_with("!data"))
            {
                let mut line = String::new();
                let _ = writeln!(line, "{data}");
                if self.binary {
                    let _ = out.write_all(&((line.len() + 4) as u32 | 1 << 31).to_be_bytes());
                }
                // What fails here fails at the next packet too, and is told then.
                let _ = out.write_all(line.as_bytes());
            }
        }
    }
}
