//! A capture file as a source of packets: those that were chosen, when they are due.

use super::range::{Place, Range};
use causeway_engine::value::Filename;
use causeway_engine::{Conf, Cx, DropReason};
use causeway_netio::pcap::Reader;
use causeway_packet::{Anno, Packet};
use std::fs::File;
use std::io::{self, BufReader, Read};

type Input = Reader<Box<dyn Read + Send>>;

/// Why there is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The next one is due then.
    Until(u64),
    /// There is no frame.
    NoFrame,
    /// There are no more.
    End,
}

pub(super) struct Capture {
    pub filename: String,
    /// Probability with which a packet is chosen.
    pub sample: f64,
    /// `None` before the start and after the end of the file.
    reader: Option<Input>,
    linktype: Option<u32>,
    range: Range,
    /// A packet that was read and is not due yet.
    ahead: Option<Packet>,
    timing: bool,
    /// What the clock said when the packet of the second time was due.
    base_ns: Option<(u64, u64)>,
    too_long: DropReason,
}

/// Opens the file called `filename`.
fn open(filename: &str) -> Result<Input, String> {
    let input: Box<dyn Read + Send> = match filename {
        "-" => Box::new(BufReader::new(io::stdin())),
        _ => Box::new(BufReader::new(File::open(filename).map_err(|e| format!("{filename}: {e}"))?)),
    };
    Reader::new(input).map_err(|e| format!("{filename}: {e}"))
}

impl Capture {
    /// From FILENAME and the keywords that choose packets and their time. A packet that does not fit a frame is
    /// dropped for reason `too_long`.
    pub fn configured(conf: &mut Conf<'_>, too_long: impl Into<DropReason>) -> Capture {
        let Filename(filename) = conf.required("FILENAME");
        let range = Range::keywords(conf);
        let sample = conf.keyword("SAMPLE", 1.0);
        if !(0.0..=1.0).contains(&sample) {
            conf.error("SAMPLE: must be from 0 to 1");
        }
        let timing = conf.keyword("TIMING", false);
        let (reader, linktype, ahead, base_ns) = (None, None, None, None);
        Capture {
            filename,
            sample,
            reader,
            linktype,
            range,
            ahead,
            timing,
            base_ns,
            too_long: too_long.into(),
        }
    }

    /// Opens the file.
    pub fn open(&mut self) -> Result<(), String> {
        let reader = open(&self.filename)?;
        self.linktype = reader.linktype();
        self.reader = Some(reader);
        Ok(())
    }

    /// Closes the file.
    pub fn close(&mut self) {
        self.reader = None;
    }

    /// What the packets begin with, as capture files name it, as soon as that is known.
    pub fn linktype(&self) -> Option<u32> {
        self.linktype
    }

    /// Lets the times between packets count from the next one.
    pub fn reset_timing(&mut self) {
        self.base_ns = None;
    }

    /// Lets the part that is wanted end later by `more_ns`.
    pub fn extend(&mut self, more_ns: u64) {
        self.range.extend(more_ns);
    }

    /// Goes on where `old` was, if that is the same file.
    pub fn take_over(&mut self, old: &mut Capture) -> bool {
        if old.filename != self.filename {
            return false;
        }
        self.reader = old.reader.take();
        self.linktype = old.linktype;
        self.range = old.range.clone();
        self.ahead = old.ahead.take();
        self.base_ns = old.base_ns;
        true
    }

    /// Packets that were read and did not come out.
    pub fn held(&self) -> usize {
        usize::from(self.ahead.is_some())
    }

    /// The next packet that is wanted, if it is due.
    pub fn next(&mut self, cx: &mut Cx<'_>) -> Result<Packet, Pause> {
        let packet = match self.ahead.take() {
            Some(packet) => packet,
            None => self.read(cx)?,
        };
        if self.timing {
            let now_ns = cx.now_ns();
            let due_ns = self.due_ns(packet.timestamp_ns(), now_ns);
            if due_ns > now_ns {
                self.ahead = Some(packet);
                return Err(Pause::Until(due_ns));
            }
        }
        Ok(packet)
    }

    /// When a packet captured at `captured_ns` is due; the first is at once.
    fn due_ns(&mut self, captured_ns: u64, now_ns: u64) -> u64 {
        let (base_now_ns, base_captured_ns) = *self.base_ns.get_or_insert((now_ns, captured_ns));
        base_now_ns.saturating_add(captured_ns.saturating_sub(base_captured_ns))
    }

    /// Reads on to a packet that is wanted.
    fn read(&mut self, cx: &mut Cx<'_>) -> Result<Packet, Pause> {
        let reader = self.reader.as_mut().ok_or(Pause::End)?;
        loop {
            // The frame is taken first: while there is none, the packet waits in the file.
            let mut packet = Packet::new().ok_or(Pause::NoFrame)?;
            let record = match reader.next_record() {
                Ok(record) => record.ok_or(Pause::End)?,
                Err(e) => {
                    log::error!("{}: {}: {e}", cx.name(), self.filename);
                    return Err(Pause::End);
                }
            };
            self.linktype = Some(record.linktype);
            match self.range.place(record.timestamp_ns) {
                Place::Before => continue,
                Place::Inside => {}
                Place::Behind => return Err(Pause::End),
            }
            if self.sample < 1.0 && cx.rng().f64() >= self.sample {
                continue;
            }
            let Ok(data) = packet.put(record.data.len()) else {
                cx.drop(self.too_long, packet);
                continue;
            };
            data.copy_from_slice(record.data);
            packet.set_timestamp_ns(record.timestamp_ns);
            packet.set_wire_len(record.wire_len as usize);
            let extra = record.wire_len.saturating_sub(record.data.len() as u32);
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, extra);
            return Ok(packet);
        }
    }
}
