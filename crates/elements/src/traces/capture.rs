//! A capture file as a source of packets: those that were chosen, when they are due.

use super::compressed::uncompressed;
use super::range::{Place, Range};
use causeway_engine::{Cx, DropReason, Error};
use causeway_netio::pcap::Reader;
use causeway_packet::{Anno, Packet, pool};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Stdin};

/// The bytes of a file, and how many of them are behind.
struct Source {
    bytes: Bytes,
    position: u64,
}

enum Bytes {
    File(BufReader<File>),
    Stdin(BufReader<Stdin>),
    Uncompressed(Box<dyn BufRead + Send>),
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.bytes {
            Bytes::File(bytes) => bytes.read(buffer),
            Bytes::Stdin(bytes) => bytes.read(buffer),
            Bytes::Uncompressed(bytes) => bytes.read(buffer),
        }?;
        self.position += n as u64;
        Ok(n)
    }
}

impl Source {
    /// Opens the file called `filename`.
    fn open(filename: &str) -> io::Result<Source> {
        let bytes = match filename {
            "-" => Bytes::Stdin(BufReader::new(io::stdin())),
            _ => match uncompressed(File::open(filename)?)? {
                Ok(bytes) => Bytes::Uncompressed(bytes),
                Err(bytes) => Bytes::File(bytes),
            },
        };
        Ok(Source { bytes, position: 0 })
    }

    /// Goes to `position`, which must not be behind unless this is a file as it is.
    fn seek(&mut self, position: u64) -> io::Result<()> {
        match &mut self.bytes {
            Bytes::File(bytes) => {
                bytes.seek(SeekFrom::Start(position))?;
                self.position = position;
            }
            Bytes::Stdin(_) | Bytes::Uncompressed(_) => {
                let skip = position.checked_sub(self.position).ok_or(io::ErrorKind::NotSeekable)?;
                io::copy(&mut self.by_ref().take(skip), &mut io::sink())?;
            }
        }
        Ok(())
    }
}

/// Why there is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The next one is due then.
    Until(u64),
    /// There is no frame.
    NoFrame,
    /// There are no more: in the file, or before the end of the part that is wanted.
    End { in_file: bool },
}

pub(super) struct Capture {
    filename: String,
    /// Probability with which a packet is chosen.
    sample: f64,
    /// `None` before the start and after an error.
    reader: Option<Reader<Source>>,
    linktype: Option<u32>,
    /// Where the file is read from; 0 = from the first packet.
    start: u64,
    /// Where in the file the last packet is that came out, or its end.
    packet_position: u64,
    range: Range,
    /// Where in the file the packet is behind which nothing is wanted.
    ended_at: Option<u64>,
    /// A packet that was read and is not due yet, and where in the file it is.
    ahead: Option<(Packet, u64)>,
    timing: bool,
    /// What the clock said when the packet of the second time was due.
    base_ns: Option<(u64, u64)>,
    too_long: DropReason,
}

impl Capture {
    /// The packets of `range` in the file, each with probability `sample`, from `start` in the file on, or from the first
    /// if that is 0. With `timing` they keep the times between them. A packet that does not fit a frame is dropped for
    /// reason `too_long`.
    pub fn new(
        filename: &str,
        start: u64,
        sample: f64,
        timing: bool,
        range: Range,
        too_long: impl Into<DropReason>,
    ) -> Capture {
        Capture {
            filename: filename.to_owned(),
            sample,
            reader: None,
            linktype: None,
            start,
            packet_position: 0,
            range,
            ended_at: None,
            ahead: None,
            timing,
            base_ns: None,
            too_long: too_long.into(),
        }
    }

    /// Opens the file, whose packets may be of any length.
    pub fn open(&mut self) -> Result<(), Error> {
        // Who decided on shorter frames is told by what is dropped.
        let _ = pool::ask_for_frames_of(pool::MOST_FRAME as usize);
        let source = Source::open(&self.filename).map_err(|e| self.fault(e))?;
        let mut reader = Reader::new(source).map_err(|e| self.fault(e))?;
        self.linktype = reader.linktype();
        if self.start > 0 {
            reader.input_mut().seek(self.start).map_err(|e| self.fault(e))?;
        }
        self.reader = Some(reader);
        Ok(())
    }

    /// Where in the file reading goes on, in bytes from its start.
    pub fn position(&mut self) -> u64 {
        self.reader.as_mut().map_or(0, |reader| reader.input_mut().position)
    }

    /// Whether it is uncompressed on the way, so that the file's length says nothing.
    pub fn is_uncompressed(&mut self) -> bool {
        let input = self.reader.as_mut().map(|reader| &reader.input_mut().bytes);
        matches!(input, Some(Bytes::Uncompressed(_)))
    }

    /// Where in the file the last packet is that came out, or its end.
    pub fn packet_position(&self) -> u64 {
        self.packet_position
    }

    /// Lets reading go on at `position`, where a packet begins.
    pub fn seek(&mut self, position: u64) -> Result<(), Error> {
        let closed = || Error::new("it is closed").of(&self.filename);
        let reader = self.reader.as_mut().ok_or_else(closed)?;
        reader.input_mut().seek(position).map_err(|e| self.fault(e))
    }

    /// What went wrong with the file.
    fn fault(&self, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::caused_by(cause).of(&self.filename)
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

    /// As [`Capture::extend`], where that part ended: the packet there is looked at again. False if it is behind.
    pub fn extend_here(&mut self, more_ns: u64) -> bool {
        self.range.extend(more_ns);
        match (self.ended_at.take(), &mut self.reader) {
            (Some(position), Some(reader)) => reader.input_mut().seek(position).is_ok(),
            _ => false,
        }
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
        self.packet_position = old.packet_position;
        self.base_ns = old.base_ns;
        true
    }

    /// Packets that were read and did not come out.
    pub fn held(&self) -> usize {
        usize::from(self.ahead.is_some())
    }

    /// The next packet that is wanted, if it is due.
    pub fn next(&mut self, cx: &mut Cx<'_>) -> Result<Packet, Pause> {
        let (packet, position) = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.read(cx)?,
        };
        if self.timing {
            let now_ns = cx.now_ns();
            let due_ns = self.due_ns(packet.timestamp_ns(), now_ns);
            if due_ns > now_ns {
                self.ahead = Some((packet, position));
                return Err(Pause::Until(due_ns));
            }
        }
        self.packet_position = position;
        Ok(packet)
    }

    /// When a packet captured at `captured_ns` is due; the first is at once.
    fn due_ns(&mut self, captured_ns: u64, now_ns: u64) -> u64 {
        let (base_now_ns, base_captured_ns) = *self.base_ns.get_or_insert((now_ns, captured_ns));
        base_now_ns.saturating_add(captured_ns.saturating_sub(base_captured_ns))
    }

    /// Reads on to a packet that is wanted, and says where in the file it is.
    fn read(&mut self, cx: &mut Cx<'_>) -> Result<(Packet, u64), Pause> {
        const OVER: Pause = Pause::End { in_file: true };
        let reader = self.reader.as_mut().ok_or(OVER)?;
        loop {
            // The frame is taken first: while there is none, the packet waits in the file.
            let mut packet = Packet::new().ok_or(Pause::NoFrame)?;
            let position = reader.input_mut().position;
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.packet_position = position;
                    return Err(OVER);
                }
                Err(e) => {
                    log::error!("{}: {}: {e}", cx.name(), self.filename);
                    self.reader = None;
                    return Err(OVER);
                }
            };
            self.linktype = Some(record.linktype);
            match self.range.place(record.timestamp_ns) {
                Place::Before => continue,
                Place::Inside => {}
                Place::Behind => {
                    self.ended_at = Some(position);
                    return Err(Pause::End { in_file: false });
                }
            }
            if self.sample < 1.0 && cx.rng().f64() >= self.sample {
                continue;
            }
            // There cannot be more bytes than there were on the wire.
            let bytes = record.data.get(..record.wire_len as usize).unwrap_or(record.data);
            let Ok(data) = packet.put(bytes.len()) else {
                cx.drop(self.too_long, packet);
                continue;
            };
            data.copy_from_slice(bytes);
            packet.set_timestamp_ns(record.timestamp_ns);
            packet.set_wire_len(record.wire_len as usize);
            let extra = record.wire_len.saturating_sub(record.data.len() as u32);
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, extra);
            return Ok((packet, position));
        }
    }
}
