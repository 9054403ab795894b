//! FromDump.

use super::capture::{Capture, Pause};
use super::encap;
use crate::handlers::{Call, task};
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "FromDump",
    category: "traces",
    summary: "reads packets from a capture file",
    ports: "0/1-2",
    processing: "a/ah",
    doc: "Emits the packets of a pcap or pcapng file, with the timestamps they were captured at and the lengths \
          they had on the wire; `-` is standard input. With TIMING it keeps the times between them, otherwise \
          they come as fast as they are taken. At the end of the file, or of the part of it that START to \
          INTERVAL choose, it becomes inactive, and with STOP stops the router. With FORCE_IP only IPv4 packets \
          leave by output 0, with their headers marked; the others go to output 1 if that is connected, and are \
          dropped otherwise. A hot swap goes on where the old graph was in the file.",
    args: &[
        required("FILENAME", "file name", "the file"),
        keyword("STOP", "boolean", "whether to stop the router at the end; default false"),
        keyword("END_CALL", "handler and value", "write handler to call at the end; instead of STOP"),
        keyword("TIMING", "boolean", "whether to keep the times between packets; default false"),
        keyword("SAMPLE", "probability", "with which a packet is emitted; default 1"),
        keyword("FORCE_IP", "boolean", "whether to pass IPv4 only and mark its headers; default false"),
        keyword("START", "seconds", "time since the epoch before which packets are skipped"),
        keyword("START_AFTER", "seconds", "the same, after the first packet of the file"),
        keyword("END", "seconds", "time since the epoch at which reading ends"),
        keyword("END_AFTER", "seconds", "the same, after the first packet of the file"),
        keyword("INTERVAL", "seconds", "the same, after the first packet that is emitted"),
        keyword("ACTIVE", "boolean", "whether to emit packets; default true"),
        keyword("BURST", "packets", "packets a turn; above 256 means 256; default 1"),
        keyword("MMAP", "boolean", "without effect; older configurations have it"),
    ],
    handlers: handlers!(
        &[
            reads("count", "packets read and emitted since the last reset").counts(Unit::Packets),
            writes("reset_counts", "sets the count to zero"),
            reads("sampling_prob", "SAMPLE"),
            reads_writes("active", "whether it emits packets"),
            reads("encap", "name of the file's first header, as ToDump's ENCAP has it"),
            reads("filename", "FILENAME"),
            reads("filesize", "length of the file in bytes, or `-`"),
            writes("stop", "ends reading and stops the router"),
            writes(
                "extend_interval",
                "seconds, by which reading ends later than END, END_AFTER or INTERVAL say"
            ),
            writes("reset_timing", "lets the times between packets count from the next one"),
        ],
        TASK,
    ),
    drops: Reason::DOCS,
    example: "FromDump(trace.pcap, STOP true) -> Print -> Discard;",
    see: &["ToDump"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotIp = "not-ip", "FORCE_IP, it is not an IPv4 packet, and output 1 is not connected";
        TooLong = "too-long", "the packet does not fit a frame";
    }
}

/// The only timer: the next packet with TIMING.
const DUE: u32 = 0;

struct FromDump {
    capture: Capture,
    force_ip: bool,
    end: Option<Call>,
    active: bool,
    burst: u32,
    count: Counter,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut dump = FromDump {
        capture: Capture::configured(conf, Reason::TooLong),
        force_ip: conf.keyword("FORCE_IP", false),
        end: conf.keyword("STOP", false).then(Call::stop),
        active: conf.keyword("ACTIVE", true),
        burst: conf.keyword("BURST", 1),
        count: conf.counter("count"),
    };
    if let Some(call) = conf.keyword_given("END_CALL")
        && dump.end.replace(call).is_some()
    {
        conf.error("specify at most one of STOP and END_CALL");
    }
    conf.keyword("MMAP", false);
    if dump.burst == 0 {
        conf.error("BURST: must be at least 1");
    }
    conf.finish()?;
    Ok(Box::new(dump))
}

impl FromDump {
    /// Adds packets that are due to `batch`, at most `max`; the error is why there are no more.
    fn fill(&mut self, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) -> Result<(), Pause> {
        for _ in 0..max.min(batch.room()) {
            let mut packet = self.capture.next(cx)?;
            self.count.add(1);
            let is_ip = encap::mark(&mut packet, self.capture.linktype().unwrap_or_default());
            if self.force_ip && !is_ip {
                cx.divert(1, Reason::NotIp, packet);
            } else {
                // There is room for `max`.
                let _ = batch.push(packet);
            }
        }
        Ok(())
    }

    fn end(&mut self, cx: &mut Cx<'_>) {
        self.capture.close();
        self.active = false;
        if let Some(call) = &self.end {
            call.make(cx);
        }
    }
}

impl Element for FromDump {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
        self.end.as_ref().map_or(Ok(()), |call| call.check(cx))?;
        self.capture.open()?;
        task::start(self.active, cx);
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !self.active {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        let filled = self.fill(self.burst as usize, &mut batch, cx);
        cx.emit_batch(0, batch);
        match filled {
            Ok(()) => Run::Worked,
            Err(Pause::NoFrame) => Run::Idle,
            Err(Pause::Until(due_ns)) => {
                cx.set_timer(DUE, due_ns);
                Run::Sleep
            }
            Err(Pause::End) => {
                self.end(cx);
                Run::Sleep
            }
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        task::start(self.active, cx);
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.active {
            return;
        }
        match self.fill(max, batch, cx) {
            Ok(()) | Err(Pause::NoFrame) => {}
            Err(Pause::Until(due_ns)) => {
                cx.notify_packets(false);
                cx.set_timer(DUE, due_ns);
            }
            Err(Pause::End) => {
                cx.notify_packets(false);
                self.end(cx);
            }
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.count.get().to_string(),
            "sampling_prob" => self.capture.sample.to_string(),
            "active" => self.active.to_string(),
            "encap" => self.capture.linktype().map_or("-".to_owned(), encap::name),
            "filename" => self.capture.filename.clone(),
            _ => std::fs::metadata(&self.capture.filename).map_or("-".to_owned(), |m| m.len().to_string()),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        match handler {
            "reset_counts" => self.count.set(0),
            "reset_timing" => self.capture.reset_timing(),
            "extend_interval" => {
                let Nanoseconds(more_ns) = cx.value(handler, value)?;
                self.capture.extend(more_ns);
            }
            "stop" => {
                self.capture.close();
                self.active = false;
                cx.stop_driver();
            }
            _ => {
                self.active = cx.value(handler, value)?;
                task::start(self.active, cx);
            }
        }
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        let Some(old) = old.downcast_mut::<FromDump>() else { return };
        if !self.capture.take_over(&mut old.capture) {
            return;
        }
        self.active = old.active;
        self.count.set(old.count.get());
        task::start(self.active, cx);
    }

    fn held(&self) -> usize {
        self.capture.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};
    use causeway_netio::pcap::{Format, Writer};
    use std::fs::File;
    use std::path::PathBuf;

    /// A capture file that is removed in the end. Packets are one second apart; the first was cut short.
    struct Trace(PathBuf);

    impl Trace {
        fn new(test: &str, packets: &[&[u8]]) -> Trace {
            let name = format!("causeway-from-dump-{test}-{}.pcap", std::process::id());
            let path = std::env::temp_dir().join(name);
            let mut writer = Writer::new(File::create(&path).unwrap(), Format::Pcap, 101, 2_000).unwrap();
            for (i, packet) in packets.iter().enumerate() {
                let wire_len = packet.len() as u32 + if i == 0 { 100 } else { 0 };
                writer.write((1_000 + i as u64) * 1_000_000_000 + 7, wire_len, packet).unwrap();
            }
            Trace(path)
        }

        fn config(&self, keywords: &str) -> String {
            format!("{}{keywords}", self.0.display())
        }
    }

    impl Drop for Trace {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn run(config: &str) -> (Vec<Vec<u8>>, Harness) {
        let mut h = Harness::new(&SPEC, config, 0, 1).unwrap();
        while h.run_task().is_some() {}
        (h.take(0).iter().map(|p| p.data().to_vec()).collect(), h)
    }

    const IP: &[u8] = b"\x45\0\0\x16\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02ab";

    #[test]
    fn packets_come_as_they_were_captured() {
        let trace = Trace::new("all", &[b"a", b"bc", b""]);
        let mut h = Harness::new(&SPEC, &trace.config(", STOP true, BURST 5"), 0, 1).unwrap();
        assert_eq!((h.run_task(), h.stopped()), (Some(Run::Sleep), true));
        let out = h.take(0);
        assert_eq!(out.iter().map(|p| p.data()).collect::<Vec<_>>(), [&b"a"[..], b"bc", b""]);
        assert_eq!((out[0].timestamp_ns(), out[0].wire_len()), (1_000_000_000_007, 101));
        assert_eq!((out[0].anno_u32(28), out[1].anno_u32(28)), (100, 0));
        assert_eq!((h.read("count").unwrap(), h.read("encap").unwrap()), ("3".into(), "IP".into()));
        assert_eq!((h.read("active").unwrap(), h.read("filesize").unwrap()), ("false".into(), "75".into()));
    }

    #[test]
    fn parts_are_chosen_by_time() {
        let trace = Trace::new("parts", &[b"0", b"1", b"2", b"3", b"4"]);
        for (keywords, part) in [
            (", START 1002", "234"),
            (", START_AFTER 1, INTERVAL 2s", "12"),
            (", END 1001", "0"),
            (", END_AFTER 3", "012"),
            (", SAMPLE 0", ""),
        ] {
            assert_eq!(run(&trace.config(keywords)).0.concat(), part.as_bytes(), "{keywords}");
        }
        let errors = Harness::new(&SPEC, &trace.config(", START 1, START_AFTER 2"), 0, 1).err().unwrap();
        assert_eq!(errors, ["at most one of START, START_AFTER may be given"]);
    }

    #[test]
    fn timing_is_kept() {
        let trace = Trace::new("timing", &[b"0", b"1", b"2"]);
        let mut h = Harness::new(&SPEC, &trace.config(", TIMING true"), 0, 1).unwrap();
        let mut came = |ns| {
            h.advance(ns);
            while h.run_task().is_some() {}
            (h.take(0).len(), h.held())
        };
        assert_eq!(came(0), (1, 1));
        assert_eq!(came(999_000_000), (0, 1));
        assert_eq!(came(2_000_000), (1, 1));
        assert_eq!(came(1_000_000_000), (1, 0));
    }

    #[test]
    fn force_ip_sorts_and_marks() {
        let trace = Trace::new("force", &[IP, b"no ip", IP]);
        let mut h = Harness::new(&SPEC, &trace.config(", FORCE_IP true"), 0, 2).unwrap();
        while h.run_task().is_some() {}
        let out = h.take(0);
        assert_eq!((out.len(), h.take(1)[0].data()), (2, &b"no ip"[..]));
        assert_eq!((out[0].network_offset(), out[1].transport_header()), (Some(0), Some(&b"ab"[..])));
        let (out, h) = run(&trace.config(", FORCE_IP true"));
        assert_eq!((out.len(), h.drops()), (2, vec![("not-ip", 1)]));
    }

    #[test]
    fn gives_what_is_pulled() {
        let trace = Trace::new("pull", &[b"0", b"1", b"2"]);
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, &trace.config(", STOP true"), &ports).unwrap();
        assert_eq!((h.pull(0, 2).len(), h.stopped()), (2, false));
        assert_eq!((h.pull(0, 2).len(), h.stopped(), h.pull(0, 2).len()), (1, true, 0));
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 0, 1).err().unwrap().concat();
        assert!(error("/no/such/file.pcap").starts_with("/no/such/file.pcap: No such file"));
        let trace = Trace::new("bad", &[]);
        std::fs::write(&trace.0, b"not a capture file").unwrap();
        assert!(error(&trace.config("")).contains("neither pcap nor pcapng"));
    }
}
