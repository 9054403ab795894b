//! FromDump.

use super::capture::{Capture, Pause};
use super::encap;
use super::range::{Point, Range, one_of};
use crate::handlers::{Call, task};
use causeway_engine::prelude::*;
use causeway_engine::spec::{HandlerDoc, Notifies};
use causeway_engine::value::{AtLeast, Filename, Nanoseconds};

pub(crate) static SPEC: Spec = Spec {
    name: "FromDump",
    category: "traces",
    summary: "reads packets from a capture file",
    ports: "0/1-2",
    processing: "a/ah",
    doc: "Emits the packets of a pcap or pcapng file, with the timestamps they were captured at and the lengths \
          they had on the wire; `-` is standard input. Files may be compressed by gzip or bzip2; then their `filepos` counts bytes as they \
          are uncompressed, and goes forward only. With TIMING it keeps the times between them, otherwise \
          they come as fast as they are taken. At the end of the part of the file that START to INTERVAL choose it \
          becomes inactive; there, and at the end of the file, STOP stops the router. With FORCE_IP, and where the file has no link layer, only IPv4 packets \
          leave by output 0, with their headers marked and their destination annotation set; the others go to output 1 if that is connected, and are \
          dropped otherwise. A hot swap goes on where the old graph was in the file.",
    args: Own::ARGS,
    handlers: handlers!(Own::HANDLERS, FILE_HANDLERS, TASK),
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

const FILE_HANDLERS: &[HandlerDoc] = &[
    reads("sampling_prob", "SAMPLE"),
    reads("encap", "name of the file's first header, as ToDump's ENCAP has it"),
    reads("filename", "FILENAME"),
    reads("filesize", "length of the file in bytes, or `-`"),
    reads_writes(
        "filepos",
        "where in the file reading goes on, in bytes; what is written must be where a packet begins",
    ),
    reads("packet_filepos", "where in the file the last packet begins that was emitted, in bytes"),
    writes("stop", "becomes inactive and stops the router"),
    writes(
        "extend_interval",
        "seconds, by which reading ends later than END, END_AFTER or INTERVAL say; becomes active again",
    ),
    writes("reset_timing", "lets the times between packets count from the next one"),
];

/// The only timer: the next packet with TIMING.
const DUE: u32 = 0;

settings! {
    struct Own {
        filename: Filename = required("FILENAME", "file name", "the file");
        timing: bool = optional("TIMING", "boolean", "whether to keep the times between packets; default false"), or(false);
        stop: bool = keyword("STOP", "boolean", "whether to stop the router at the end; default false"), or(false);
        end_call: Option<Call> = keyword("END_CALL", "handler and value", "write handler to call at the end; instead of STOP"), or(None);
        sample: f64 = keyword("SAMPLE", "probability", "with which a packet is emitted; default 1"), or(1.0);
        force_ip: bool = keyword("FORCE_IP", "boolean", "whether to pass IPv4 only and mark its headers; default false"), or(false);
        start: Option<Nanoseconds> = keyword("START", "seconds", "time since the epoch before which packets are skipped"), or(None);
        start_after: Option<Nanoseconds> = keyword("START_AFTER", "seconds", "the same, after the first packet of the file"), or(None);
        end: Option<Nanoseconds> = keyword("END", "seconds", "time since the epoch at which reading ends"), or(None);
        end_after: Option<Nanoseconds> = keyword("END_AFTER", "seconds", "the same, after the first packet of the file"), or(None);
        interval: Option<Nanoseconds> = keyword("INTERVAL", "seconds", "the same, after the first packet that is emitted"), or(None);
        filepos: u64 = keyword("FILEPOS", "bytes", "where in the file reading begins, which must be where a packet does; default 0, the first packet"), or(0);
        active: bool = keyword("ACTIVE", "boolean", "whether to emit packets; default true"), or(true),
            live("active", "whether it emits packets");
        burst: AtLeast<1> = keyword("BURST", "packets", "packets a turn; above 256 means 256; default 1"), or(AtLeast(1));
        mmap: bool = keyword("MMAP", "boolean", "without effect; older configurations have it"), or(false);
        per_node: bool = keyword("PER_NODE", "boolean", "without effect; configurations of simulators have it"), or(false);
    }
    counts {
        count: Counter = reads("count", "packets read and emitted since the last reset").counts(Unit::Packets);
    }
    resets {
        "reset_counts", "sets the count to zero";
    }
}

struct FromDump {
    own: Own,
    capture: Capture,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut own = Own::configure(conf);
    if own.stop && own.end_call.is_some() {
        conf.error("END_CALL and STOP are mutually exclusive");
    }
    if own.sample > 1.0 {
        conf.warn("SAMPLE probability reduced to 1");
        own.sample = 1.0;
    } else if own.sample < 0.0 {
        conf.error("SAMPLE: parse error");
    } else if own.sample == 0.0 {
        conf.warn("SAMPLE probability is 0; emitting no packets");
    }
    let start =
        one_of(conf, [("START", own.start, Point::At), ("START_AFTER", own.start_after, Point::AfterFirst)]);
    let ends = [
        ("END", own.end, Point::At as fn(u64) -> Point),
        ("END_AFTER", own.end_after, Point::AfterFirst),
        ("INTERVAL", own.interval, Point::AfterStart),
    ];
    let range = Range::new(start, one_of(conf, ends));
    conf.finish()?;
    let capture = Capture::new(&own.filename.0, own.filepos, own.sample, own.timing, range, Reason::TooLong);
    Ok(Box::new(FromDump { own, capture }))
}

/// Parts of the reasons why a file is no capture, and Click's words for them.
const FAULTS: [(&str, &str); 4] = [
    ("it is neither pcap nor pcapng", "not a tcpdump file (bad magic number)"),
    ("it is empty", "empty file"),
    ("it ends inside", "not a tcpdump file (too short)"),
    ("Is a directory", "Is a directory"),
];

impl FromDump {
    /// Adds packets that are due to `batch`, at most `max`; the error is why there are no more.
    fn fill(&mut self, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) -> Result<(), Pause> {
        for _ in 0..max.min(batch.room()) {
            let mut packet = loop {
                match self.capture.next(cx) {
                    Err(Pause::End { in_file: false }) if self.goes_on(cx) => {}
                    other => break other?,
                }
            };
            self.own.count.add(1);
            let linktype = self.capture.linktype().unwrap_or_default();
            packet.set_mac_header(0);
            let forces_ip = self.own.force_ip || encap::is_raw(linktype);
            if forces_ip && !encap::mark(&mut packet, linktype) {
                cx.divert(1, Reason::NotIp, packet);
            } else {
                // There is room for `max`.
                let _ = batch.push(packet);
            }
        }
        Ok(())
    }

    /// Whether END_CALL lets this element itself go on where its part of the file ended.
    fn goes_on(&mut self, cx: &Cx<'_>) -> bool {
        let call = self.own.end_call.as_ref().and_then(|call| call.own(cx));
        let Some(("extend_interval", value)) = call else { return false };
        match cx.value::<Nanoseconds>("extend_interval", value) {
            Ok(Nanoseconds(more_ns)) if more_ns > 0 => self.capture.extend_here(more_ns),
            _ => false,
        }
    }

    /// There are no more packets: in the file, or in the part of it that was chosen.
    fn end(&mut self, in_file: bool, cx: &mut Cx<'_>) {
        match &self.own.end_call {
            // Where the file ends nothing can go on.
            Some(call) if in_file && matches!(call.own(cx), Some(("extend_interval", _))) => {}
            Some(call) => call.make(cx),
            None if self.own.stop => self.stop(cx),
            None => self.own.active &= in_file,
        }
    }

    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.own.active = false;
        cx.stop_driver();
    }
}

impl Element for FromDump {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.own.end_call.as_ref().map_or(Ok(()), |call| call.check(cx))?;
        let name = &self.own.filename.0;
        if let Err(why) = self.capture.open() {
            // The file's name is not looked at.
            let words = why.cause().map(ToString::to_string).unwrap_or_default();
            let fault = FAULTS.iter().find(|(text, _)| words.contains(text));
            let place = if name == "-" { "<stdin>" } else { name };
            if let Some((_, told)) = fault {
                return Err(Error::new(*told).at(place, format!("{}({place})", cx.class())));
            }
            return Err(why);
        }
        if let Some(linktype) = self.capture.linktype().filter(|l| self.own.force_ip && !encap::is_known(*l))
        {
            return Err(Error::new(format!(
                "{}: unknown linktype {linktype}; can't force IP packets",
                self.own.filename.0
            )));
        }
        task::start(self.own.active, cx);
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !self.own.active {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        let filled = self.fill(self.own.burst.0 as usize, &mut batch, cx);
        cx.emit_batch(0, batch);
        match filled {
            Ok(()) => return Run::Worked,
            Err(Pause::NoFrame) => return Run::Idle,
            Err(Pause::Until(due_ns)) => cx.set_timer(DUE, due_ns),
            Err(Pause::End { in_file }) => self.end(in_file, cx),
        }
        Run::Sleep
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        task::start(self.own.active, cx);
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.own.active {
            return;
        }
        match self.fill(max, batch, cx) {
            Ok(()) | Err(Pause::NoFrame) => {}
            Err(Pause::Until(due_ns)) => {
                cx.notify_packets(false);
                cx.set_timer(DUE, due_ns);
            }
            Err(Pause::End { in_file }) => {
                cx.notify_packets(false);
                self.end(in_file, cx);
            }
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        task::start(self.own.active, cx);
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        let filename = &self.own.filename.0;
        Ok(match handler {
            "sampling_prob" => self.own.sample.to_string(),
            "encap" => self.capture.linktype().map_or("-".to_owned(), encap::name),
            "filename" => filename.clone(),
            "filepos" => self.capture.position().to_string(),
            "packet_filepos" => self.capture.packet_position().to_string(),
            _ if self.capture.is_uncompressed() => "-".to_owned(),
            _ => std::fs::metadata(filename).map_or("-".to_owned(), |m| m.len().to_string()),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        match handler {
            "reset_timing" => self.capture.reset_timing(),
            "filepos" => {
                self.capture.seek(cx.value(handler, value)?)?;
                task::start(self.own.active, cx);
            }
            "extend_interval" => {
                let Nanoseconds(more_ns) = cx.value(handler, value)?;
                self.capture.extend(more_ns);
                self.own.active = true;
                task::start(true, cx);
            }
            _ => self.stop(cx),
        }
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        let Some(old) = old.downcast_mut::<FromDump>() else { return };
        if !self.capture.take_over(&mut old.capture) {
            return;
        }
        self.own.active = old.own.active;
        self.own.count.set(old.own.count.get());
        task::start(self.own.active, cx);
    }

    fn held(&self) -> usize {
        self.capture.held()
    }
}

#[cfg(test)]
mod tests;
