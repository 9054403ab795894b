//! Reading capture files. Every length is checked before it is used: files come from anywhere.

use crate::{Error, ErrorKind, Result};
use std::io::{self, Read};

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time since the epoch; 0 where the file has none.
    pub timestamp_ns: u64,
    /// Bytes the packet had on the wire.
    pub wire_len: u32,
    /// The file's type of link, as tcpdump.org lists them.
    pub linktype: u32,
    /// The bytes captured.
    pub data: &'a [u8],
}

/// Longest record or block that is believed, in bytes.
const MAX_BLOCK: u32 = 1 << 24;
const NS: u64 = 1_000_000_000;

/// An interface of a pcapng section.
#[derive(Clone, Copy, Debug)]
struct Interface {
    linktype: u32,
    snap_len: u32,
    /// Timestamp units a second.
    units: u64,
    /// Seconds to add.
    offset_s: i64,
}

#[derive(Debug)]
enum Kind {
    Pcap { nanoseconds: bool, linktype: u32 },
    PcapNg { interfaces: Vec<Interface> },
}

/// Reads the packets of a pcap or pcapng stream, one by one.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: R,
    big_endian: bool,
    kind: Kind,
    /// The present record's body.
    buffer: Vec<u8>,
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Format, format!("capture file: {what}"))
}

/// Reads as many bytes as `buffer` holds; false at the end of the input before the first.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<bool> {
    let mut done = 0;
    while done < buffer.len() {
        match input.read(&mut buffer[done..]) {
            Ok(0) if done == 0 => return Ok(false),
            Ok(0) => return Err(malformed("it ends inside a record")),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::system("read a capture file", e)),
        }
    }
    Ok(true)
}

impl<R: Read> Reader<R> {
    /// Reads the head of the stream.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if it is neither pcap nor pcapng.
    pub fn new(mut input: R) -> Result<Reader<R>> {
        let mut magic = [0; 4];
        if !fill(&mut input, &mut magic)? {
            return Err(malformed("it is empty"));
        }
        let (big_endian, nanoseconds) = match u32::from_le_bytes(magic) {
            0x0a0d_0d0a => return Self::section(input),
            0xa1b2_c3d4 => (false, false),
            0xa1b2_3c4d => (false, true),
            0xd4c3_b2a1 => (true, false),
            0x4d3c_b2a1 => (true, true),
            _ => return Err(malformed("it is neither pcap nor pcapng")),
        };
        let mut head = [0; 20];
        if !fill(&mut input, &mut head)? {
            return Err(malformed("it ends inside its head"));
        }
        let mut reader =
            Reader { input, big_endian, kind: Kind::PcapNg { interfaces: Vec::new() }, buffer: Vec::new() };
        // The upper bits of the last word say how frame check sequences are kept.
        let linktype = reader.word(&head, 16).unwrap_or(0) & 0xffff;
        reader.kind = Kind::Pcap { nanoseconds, linktype };
        Ok(reader)
    }

    /// A pcapng stream after its first block type.
    fn section(input: R) -> Result<Reader<R>> {
        let kind = Kind::PcapNg { interfaces: Vec::new() };
        let mut reader = Reader { input, big_endian: false, kind, buffer: Vec::new() };
        reader.section_header()?;
        Ok(reader)
    }

    /// The type of link, as tcpdump.org lists them: the file's, or that of the first interface of a pcapng section
    /// once its description was read.
    pub fn linktype(&self) -> Option<u32> {
        match &self.kind {
            Kind::Pcap { linktype, .. } => Some(*linktype),
            Kind::PcapNg { interfaces } => interfaces.first().map(|i| i.linktype),
        }
    }

    /// The stream. Who moves on it must leave it where a record begins.
    pub fn input_mut(&mut self) -> &mut R {
        &mut self.input
    }

    /// The next packet; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] when a record contradicts the format; the stream cannot be read on from there.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        match self.kind {
            Kind::Pcap { nanoseconds, linktype } => self.next_pcap(nanoseconds, linktype),
            Kind::PcapNg { .. } => self.next_pcapng(),
        }
    }

    fn next_pcap(&mut self, nanoseconds: bool, linktype: u32) -> Result<Option<Record<'_>>> {
        let mut head = [0; 16];
        if !fill(&mut self.input, &mut head)? {
            return Ok(None);
        }
        let word = |at| self.word(&head, at).unwrap_or(0);
        let (seconds, rest, len, wire_len) = (word(0), word(4), word(8), word(12));
        self.body(len)?;
        let unit = if nanoseconds { 1 } else { 1000 };
        let timestamp_ns = u64::from(seconds) * NS + u64::from(rest) * unit;
        Ok(Some(Record { timestamp_ns, wire_len, linktype, data: &self.buffer }))
    }

    fn next_pcapng(&mut self) -> Result<Option<Record<'_>>> {
        loop {
            let mut head = [0; 4];
            if !fill(&mut self.input, &mut head)? {
                return Ok(None);
            }
            // The section header's type reads the same in both orders, and may change the order.
            if head == [0x0a, 0x0d, 0x0d, 0x0a] {
                self.section_header()?;
                continue;
            }
            let kind = self.word(&head, 0).unwrap_or(0);
            self.block()?;
            let found = match kind {
                1 => {
                    self.interface()?;
                    None
                }
                2 | 6 => Some(self.packet_block(kind)?),
                3 => Some(self.simple_packet()?),
                // Blocks of other types are skipped, as the format demands.
                _ => None,
            };
            if let Some((timestamp_ns, wire_len, linktype, from, len)) = found {
                let data = self.buffer.get(from..from + len);
                let data = data.ok_or_else(|| malformed("a packet is longer than its block"))?;
                return Ok(Some(Record { timestamp_ns, wire_len, linktype, data }));
            }
        }
    }

    /// Reads a section header after its type, and starts the section.
    fn section_header(&mut self) -> Result<()> {
        let mut head = [0; 8];
        fill(&mut self.input, &mut head)?;
        self.big_endian = match u32::from_le_bytes([head[4], head[5], head[6], head[7]]) {
            0x1a2b_3c4d => false,
            0x4d3c_2b1a => true,
            _ => return Err(malformed("a section has no byte order")),
        };
        let total = self.word(&head, 0).unwrap_or(0);
        let rest = total.checked_sub(12).filter(|r| total.is_multiple_of(4) && *r >= 16);
        self.body(rest.ok_or_else(|| malformed("a section header has a wrong length"))?)?;
        self.kind = Kind::PcapNg { interfaces: Vec::new() };
        Ok(())
    }

    /// Reads a block's length and body after its type; the buffer holds the body without the final length.
    fn block(&mut self) -> Result<()> {
        let mut head = [0; 4];
        if !fill(&mut self.input, &mut head)? {
            return Err(malformed("it ends inside a block"));
        }
        let total = self.word(&head, 0).unwrap_or(0);
        let rest = total.checked_sub(8).filter(|r| total.is_multiple_of(4) && *r >= 4);
        self.body(rest.ok_or_else(|| malformed("a block has a wrong length"))?)?;
        let body = self.buffer.len() - 4;
        if self.word(&self.buffer, body) != Some(total) {
            return Err(malformed("a block's two lengths differ"));
        }
        self.buffer.truncate(body);
        Ok(())
    }

    /// Reads `len` bytes into the buffer.
    fn body(&mut self, len: u32) -> Result<()> {
        if len > MAX_BLOCK {
            return Err(malformed("a record is longer than 16 MiB"));
        }
        self.buffer.clear();
        // A length that lies costs no more memory than there are bytes.
        let got = self.input.by_ref().take(u64::from(len)).read_to_end(&mut self.buffer);
        let got = got.map_err(|e| Error::system("read a capture file", e))?;
        if got < len as usize { Err(malformed("it ends inside a record")) } else { Ok(()) }
    }

    fn interface(&mut self) -> Result<()> {
        let body = &self.buffer;
        let linktype = self.half(body, 0).ok_or_else(|| malformed("an interface block is too short"))?;
        let snap_len = self.word(body, 4).ok_or_else(|| malformed("an interface block is too short"))?;
        let mut interface = Interface { linktype: linktype.into(), snap_len, units: 1_000_000, offset_s: 0 };
        let mut at = 8;
        while let (Some(code), Some(len)) = (self.half(body, at), self.half(body, at + 2)) {
            let Some(value) = body.get(at + 4..at + 4 + len as usize) else { break };
            match (code, value) {
                (0, _) => break,
                (9, &[resolution, ..]) => interface.units = units(resolution),
                (14, value) if value.len() == 8 => {
                    let (high, low) = if self.big_endian { (0, 4) } else { (4, 0) };
                    let word = |at| u64::from(self.word(value, at).unwrap_or(0));
                    interface.offset_s = (word(high) << 32 | word(low)) as i64;
                }
                _ => {}
            }
            at += 4 + (len as usize).next_multiple_of(4);
        }
        if let Kind::PcapNg { interfaces } = &mut self.kind {
            interfaces.push(interface);
        }
        Ok(())
    }

    /// An enhanced packet block (6) or its forerunner (2), whose interface number is 16 bits wide.
    fn packet_block(&self, kind: u32) -> Result<(u64, u32, u32, usize, usize)> {
        let short = || malformed("a packet block is too short");
        let body = &self.buffer;
        let id = if kind == 6 { self.word(body, 0) } else { self.half(body, 0).map(u32::from) };
        let interface = self.nth_interface(id.ok_or_else(short)?)?;
        let word = |at| self.word(body, at).ok_or_else(short);
        let ticks = u64::from(word(4)?) << 32 | u64::from(word(8)?);
        Ok((nanoseconds(ticks, interface), word(16)?, interface.linktype, 20, word(12)? as usize))
    }

    fn simple_packet(&self) -> Result<(u64, u32, u32, usize, usize)> {
        let interface = self.nth_interface(0)?;
        let wire_len = self.word(&self.buffer, 0).ok_or_else(|| malformed("a packet block is too short"))?;
        let limit = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        Ok((0, wire_len, interface.linktype, 4, wire_len.min(limit) as usize))
    }

    fn nth_interface(&self, id: u32) -> Result<Interface> {
        let Kind::PcapNg { interfaces } = &self.kind else { return Err(malformed("no section")) };
        interfaces.get(id as usize).copied().ok_or_else(|| malformed("a packet names an unknown interface"))
    }

    fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    fn half(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let half = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) })
    }
}

/// Units a second of a resolution byte: a power of ten, or of two if the top bit is set.
fn units(resolution: u8) -> u64 {
    let power = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(power).unwrap_or(u64::MAX)
}

fn nanoseconds(ticks: u64, interface: Interface) -> u64 {
    let ns = u128::from(ticks) * u128::from(NS) / u128::from(interface.units.max(1));
    let ns = i128::try_from(ns)
        .unwrap_or(i128::MAX)
        .saturating_add(i128::from(interface.offset_s) * i128::from(NS));
    u64::try_from(ns).unwrap_or(0)
}
