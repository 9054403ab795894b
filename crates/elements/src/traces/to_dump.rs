//! ToDump.

use super::{compressed, encap};
use crate::out_file::{Losses, OutFile};
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_engine::value::{Filename, Raw};
use causeway_lang::args::{keyword as keyword_of, split_args, split_words};
use causeway_netio::pcap::{Format, Writer};
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "ToDump",
    category: "traces",
    summary: "writes packets to a capture file",
    ports: "1/0-1",
    processing: "a/a",
    phase: phase::DEFAULT + 100,
    doc: "Writes packets to a pcap file, an existing one anew, compressed if its name ends in `.gz` or `.bz2`; `-` is standard output. Packets without a timestamp \
          get the present time. With an output the packets go on there, otherwise they end here, and behind a pull \
          output ToDump pulls them by itself. A hot swap goes on in the same file.",
    args: &[
        required("FILENAME", "file name", "the file"),
        optional("SNAPLEN", "bytes", "most bytes of a packet written; 0 writes all; default 2000"),
        keyword(
            "ENCAP",
            "word",
            "the packets' first header, which readers must know: ETHER, IP, FDDI, ATM, 802_11, SLL, AIRONET, HDLC, \
             PPP_HDLC, PPP, SUNATM, PRISM or NULL; default ETHER",
        ),
        keyword(
            "USE_ENCAP_FROM",
            "element names",
            "instead of ENCAP: what the `encap` handlers of these say, such as FromDumps, on whose worker it then is",
        ),
        keyword(
            "EXTRA_LENGTH",
            "boolean",
            "whether the length on the wire includes the EXTRA_LENGTH annotation; default true",
        ),
        keyword("UNBUFFERED", "boolean", "whether to write each batch at once; default false"),
        keyword("PER_NODE", "boolean", "without effect; configurations of simulators have it"),
        keyword("NANO", "boolean", "whether timestamps have nanoseconds, not microseconds; default true"),
    ],
    handlers: handlers!(
        &[
            reads("count", "packets written since the last reset").counts(Unit::Packets),
            writes("reset_counts", "sets the count to zero"),
            reads("filename", "FILENAME"),
        ],
        TASK,
    ),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> ToDump(/tmp/causeway-example.pcap);",
    see: &["FromDump"],
    copies: Copies::One,
    lives_with: sources,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        WriteError = "write-error", "the file cannot be written, and there is no output";
    }
}

/// The keyword that names elements.
const FROM: &str = "USE_ENCAP_FROM";

/// The elements that a configuration calls USE_ENCAP_FROM.
fn sources(config: &str) -> Vec<String> {
    let named = |argument: &String| match keyword_of(argument) {
        Some((FROM, names)) => split_words(names),
        _ => Vec::new(),
    };
    split_args(config).iter().flat_map(named).collect()
}

/// Packets pulled a turn.
const BURST: usize = 32;

type Output = Writer<Box<dyn Write + Send>>;

/// How far the file is.
enum State {
    /// The graph is not put in place yet. `None` = standard output.
    Ready(Option<OutFile>),
    /// The head is written.
    Writing(Output),
    /// It cannot be written, or a successor has it.
    Closed,
}

struct ToDump {
    filename: String,
    snap_len: usize,
    linktype: u32,
    /// The elements whose packets are written.
    sources: Vec<String>,
    format: Format,
    extra_length: bool,
    unbuffered: bool,
    state: State,
    count: Counter,
    losses: Arc<Losses>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Filename(filename) = conf.required("FILENAME");
    let snap_len = match conf.optional("SNAPLEN", 2_000u32) {
        0 => usize::MAX,
        n => n as usize,
    };
    let word = conf.optional("ENCAP", None::<String>);
    let linktype = encap::by_name(word.as_deref().unwrap_or("ETHER")).unwrap_or_else(|| {
        conf.error("bad encapsulation type");
        0
    });
    let sources = conf.keyword_given::<Raw>(FROM).map(|names| split_words(&names.0));
    if sources.is_some() && word.is_some() {
        conf.error("specify at most one of 'ENCAP' and 'USE_ENCAP_FROM'");
    } else if sources.as_ref().is_some_and(Vec::is_empty) {
        conf.error("element names missing after 'USE_ENCAP_FROM'");
    }
    let sources = sources.unwrap_or_default();
    for name in &sources {
        if !conf.env.elements.is_empty() && conf.element(name).is_none() {
            conf.error(format!("no element named '{name}'"));
        }
    }
    let extra_length = conf.keyword("EXTRA_LENGTH", true);
    let unbuffered = conf.keyword("UNBUFFERED", false);
    conf.keyword("PER_NODE", false);
    let format = if conf.keyword("NANO", true) { Format::Pcap } else { Format::PcapMicroseconds };
    conf.finish()?;
    let count = conf.counter("count");
    let losses = Losses::of(conf)?;
    Ok(Box::new(ToDump {
        filename,
        snap_len,
        linktype,
        sources,
        format,
        extra_length,
        unbuffered,
        state: State::Closed,
        count,
        losses,
    }))
}

impl ToDump {
    /// What the sources' packets begin with, on which they must agree; the own link type if there are none.
    fn linktype_of_sources(&self, cx: &mut Cx<'_>) -> Result<u32, Error> {
        let mut found: Vec<(String, u32, String)> = Vec::new();
        for name in &self.sources {
            let peer = cx.find_peer(name)?;
            let source = format!("{} :: {}", cx.peer_name(peer), cx.peer_class(peer));
            let said = cx.ask_peer(peer, "encap", "");
            let said = said.ok_or_else(|| Error::new(format!("'{source}' has no 'encap' read handler")))?;
            let linktype = encap::by_name(said.trim()).ok_or_else(|| {
                format!("'{}.encap' did not return a valid encapsulation type", cx.peer_name(peer))
            })?;
            found.push((source, linktype, said));
        }
        let Some((_, linktype, _)) = found.first() else { return Ok(self.linktype) };
        if found.iter().any(|(_, other, _)| other != linktype) {
            let lines = found.iter().map(|(source, _, said)| format!("\n  {source} has {}", said.trim()));
            return Err(Error::new(format!(
                "source encapsulation types disagree:{}",
                lines.collect::<String>()
            )));
        }
        Ok(*linktype)
    }

    /// Writes the head of the file.
    fn begin(&self, file: Option<OutFile>) -> io::Result<Output> {
        let out: Box<dyn Write + Send> = match file {
            Some(file) => Box::new(BufWriter::new(compressed::compress(&self.filename, file.commit()?))),
            None => Box::new(BufWriter::new(io::stdout())),
        };
        let snap_len = u32::try_from(self.snap_len).unwrap_or(u32::MAX);
        Writer::new(out, self.format, self.linktype, snap_len)
    }

    /// Stops writing because of an error.
    fn fail(&mut self, error: &io::Error, cx: &Cx<'_>) {
        self.losses.tell(format_args!("{}: {}: {error}", cx.name(), self.filename));
        self.state = State::Closed;
    }

    /// Writes the packets; those without a timestamp as of `now_ns`. Says how many were written.
    fn write_all(&mut self, batch: &[Packet], now_ns: u64) -> io::Result<usize> {
        let (snap_len, extra_length, unbuffered) = (self.snap_len, self.extra_length, self.unbuffered);
        let State::Writing(out) = &mut self.state else { return Ok(0) };
        for packet in batch {
            let extra = if extra_length { packet.anno_u32(Anno::EXTRA_LENGTH.offset) } else { 0 };
            let wire_len = (packet.len() as u32).saturating_add(extra);
            let data = packet.data().get(..snap_len).unwrap_or(packet.data());
            let ns = if packet.timestamp_ns() == 0 { now_ns } else { packet.timestamp_ns() };
            out.write(ns, wire_len, data)?;
        }
        if unbuffered {
            out.flush()?;
        }
        Ok(batch.len())
    }
}

impl Drop for ToDump {
    fn drop(&mut self) {
        // What is still in memory is written now, and nothing else would tell that there is no room for it.
        if let State::Writing(out) = &mut self.state
            && let Err(e) = out.flush()
        {
            self.losses.tell(format_args!("{}: the last packets are lost: {e}", self.filename));
        }
    }
}

impl Element for ToDump {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.linktype = self.linktype_of_sources(cx)?;
        self.state = State::Ready(match self.filename.as_str() {
            "-" => None,
            name => {
                compressed::check_name(name)?;
                Some(OutFile::open(name)?)
            }
        });
        if cx.pulls_from(0) && cx.n_outputs() == 0 {
            cx.wake();
        }
        Ok(())
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        // Unless a predecessor's file was taken over.
        if let State::Ready(file) = &mut self.state {
            let file = file.take();
            match self.begin(file) {
                Ok(out) => self.state = State::Writing(out),
                Err(e) => self.fail(&e, cx),
            }
        }
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        let written = self.write_all(batch, now_ns).unwrap_or_else(|e| {
            self.fail(&e, cx);
            0
        });
        self.count.add(written as u64);
        if cx.n_outputs() == 0 {
            cx.count_drops(Reason::WriteError, (batch.len() - written) as u64);
            batch.clear();
        }
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        super::pull_and_write(self, BURST, cx)
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(if handler == "count" { self.count.get().to_string() } else { self.filename.clone() })
    }

    fn write(&mut self, _handler: &str, _value: &str, _cx: &mut Cx<'_>) -> Result<(), Error> {
        self.count.set(0);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ToDump>().filter(|old| old.filename == self.filename)
            && matches!(old.state, State::Writing(_))
        {
            self.state = std::mem::replace(&mut old.state, State::Closed);
            self.count.set(old.count.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Ports};
    use causeway_netio::pcap::Reader;
    use std::fs::File;
    use std::path::PathBuf;

    struct Target(PathBuf);

    /// Time, length on the wire and bytes.
    type Written = (u64, u32, Vec<u8>);

    impl Target {
        fn new(test: &str) -> Target {
            let name = format!("causeway-to-dump-{test}-{}.pcap", std::process::id());
            Target(std::env::temp_dir().join(name))
        }

        fn config(&self, keywords: &str) -> String {
            format!("{}{keywords}", self.0.display())
        }

        /// The packets in the file, and its link type.
        fn read(&self) -> (Vec<Written>, Option<u32>) {
            let mut reader = Reader::new(File::open(&self.0).unwrap()).unwrap();
            let mut packets = Vec::new();
            while let Some(r) = reader.next_record().unwrap() {
                packets.push((r.timestamp_ns, r.wire_len, r.data.to_vec()));
            }
            (packets, reader.linktype())
        }
    }

    impl Drop for Target {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn packet(bytes: &[u8]) -> Packet {
        let mut packet = Packet::from_bytes(bytes).unwrap();
        packet.set_timestamp_ns(1_000_000_000_123_456_789);
        packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, 10);
        packet
    }

    #[test]
    fn what_is_written_can_be_read() {
        const T: u64 = 1_000_000_000_123_456_789;
        for (keywords, ns, wire_len, bytes, linktype) in [
            ("", T, 16, &b"abcdef"[..], 1),
            (", SNAPLEN 4, ENCAP ip", T, 16, b"abcd", 101),
            (", SNAPLEN 0, EXTRA_LENGTH no", T, 6, b"abcdef", 1),
            (", NANO false, UNBUFFERED true", T / 1_000 * 1_000, 16, b"abcdef", 1),
        ] {
            let target = Target::new("write");
            let mut h = Harness::new(&SPEC, &target.config(keywords), 1, 1).unwrap();
            h.push(0, packet(b"abcdef"));
            assert_eq!((h.take(0).len(), h.read("count").unwrap()), (1, "1".to_owned()));
            h.assert_balanced();
            drop(h);
            assert_eq!(target.read(), (vec![(ns, wire_len, bytes.to_vec())], Some(linktype)), "{keywords}");
        }
    }

    #[test]
    fn pulls_by_itself_and_stamps_what_has_no_time() {
        let target = Target::new("pull");
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![] };
        let mut h = Harness::with_ports(&SPEC, &target.config(""), &ports).unwrap();
        (0..3u8).for_each(|n| h.feed(0, Packet::from_bytes(&[n]).unwrap()));
        assert_eq!((h.run_task(), h.run_task()), (Some(Run::Worked), Some(Run::Idle)));
        drop(h);
        let (packets, _) = target.read();
        assert_eq!(packets.len(), 3);
        assert!(packets.iter().all(|p| p.0 >= 1_000_000_000_000_000_000));
    }

    #[test]
    fn what_the_packets_begin_with_is_asked_of_one_source_at_most() {
        let error = |keywords: &str| {
            let config = Target::new("encap").config(keywords);
            Harness::new(&SPEC, &config, 1, 0).err().unwrap().concat()
        };
        assert_eq!(error(", ENCAP foo"), "bad encapsulation type");
        assert_eq!(
            error(", ENCAP IP, USE_ENCAP_FROM d"),
            "specify at most one of 'ENCAP' and 'USE_ENCAP_FROM'"
        );
        assert_eq!((SPEC.lives_with)("f, USE_ENCAP_FROM a b/c, NANO true"), ["a", "b/c"]);
    }

    #[test]
    fn the_name_may_ask_for_compression() {
        let target =
            Target(std::env::temp_dir().join(format!("causeway-to-dump-{}.pcap.gz", std::process::id())));
        let mut h = Harness::new(&SPEC, &target.config(""), 1, 0).unwrap();
        h.push(0, packet(b"x"));
        drop(h);
        assert_eq!(std::fs::read(&target.0).unwrap()[..2], [0x1f, 0x8b]);
        let mut h = Harness::new(&super::super::from_dump::SPEC, &target.config(""), 0, 1).unwrap();
        while h.run_task().is_some() {}
        assert_eq!((h.take(0)[0].data(), h.read("filepos").unwrap()), (&b"x"[..], "41".to_owned()));
    }

    #[test]
    fn a_file_without_packets_is_a_capture_file() {
        let target = Target::new("empty");
        drop(Harness::new(&SPEC, &target.config(""), 1, 0).unwrap());
        assert_eq!(target.read(), (vec![], Some(1)));
    }

    #[test]
    fn an_old_file_is_replaced() {
        let target = Target::new("old");
        std::fs::write(&target.0, [7; 1_000]).unwrap();
        let mut h = Harness::new(&SPEC, &target.config(""), 1, 0).unwrap();
        h.push(0, packet(b"x"));
        drop(h);
        assert_eq!(target.read().0.len(), 1);
    }

    #[test]
    fn a_full_disk_is_counted() {
        let mut h = Harness::new(&SPEC, "/dev/full, UNBUFFERED true", 1, 0).unwrap();
        (0..2).for_each(|_| h.push(0, packet(b"x")));
        assert_eq!((h.drops(), h.read("count").unwrap()), (vec![("write-error", 2)], "0".to_owned()));
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 0).err().unwrap().concat();
        assert!(error("/no/such/folder/x").starts_with("/no/such/folder/x: No such file"));
        assert_eq!(error("x, ENCAP X25"), "bad encapsulation type");
    }
}
