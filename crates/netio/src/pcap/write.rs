//! Writing capture files.

use std::io::{self, Write};

/// The format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap with nanoseconds.
    Pcap,
    /// Classic pcap with microseconds, for programs that know no others.
    PcapMicroseconds,
    /// pcapng: one section.
    PcapNg,
}

/// Longest packet that is written.
pub const SNAP_LEN: u32 = 262_144;

/// Writes packets of one link type to `W`.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    format: Format,
}

/// Writes packets of several interfaces, pcapng, to `W`.
#[derive(Debug)]
pub struct InterfacesWriter<W: Write> {
    out: W,
    interfaces: u32,
}

impl<W: Write> InterfacesWriter<W> {
    /// Writes the file's head.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(mut out: W) -> io::Result<InterfacesWriter<W>> {
        section(&mut out)?;
        Ok(InterfacesWriter { out, interfaces: 0 })
    }

    /// Adds an interface; its number.
    ///
    /// # Errors
    /// What the output says.
    pub fn add(&mut self, linktype: u32, name: &str) -> io::Result<u32> {
        interface(&mut self.out, linktype, SNAP_LEN, name)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes one packet of one of the interfaces, as [`Writer::write`].
    ///
    /// # Errors
    /// What the output says.
    pub fn write(&mut self, interface: u32, timestamp_ns: u64, wire_len: u32, data: &[u8]) -> io::Result<()> {
        packet(&mut self.out, interface, timestamp_ns, wire_len, data)
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// What the output says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A section header block: byte-order magic, version 1.0, length unknown.
fn section(out: &mut impl Write) -> io::Result<()> {
    let words: [u32; 7] = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
}

/// An interface description block: link type, snap length; option 2: the name, if it has one; option 9, one byte:
/// 10^-9 s; end of options.
fn interface(out: &mut impl Write, linktype: u32, snap_len: u32, name: &str) -> io::Result<()> {
    let name = &name.as_bytes()[..name.len().min(1 << 12)];
    let padding = name.len().next_multiple_of(4) - name.len();
    let option = if name.is_empty() { 0 } else { 4 + name.len() + padding };
    let total = 32 + option as u32;
    for word in [1, total, linktype & 0xffff, snap_len] {
        out.write_all(&word.to_le_bytes())?;
    }
    if !name.is_empty() {
        out.write_all(&((name.len() as u32) << 16 | 2).to_le_bytes())?;
        out.write_all(name)?;
        out.write_all(&[0; 3][..padding])?;
    }
    [1u32 << 16 | 9, 9, 0, total].iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))
}

/// An enhanced packet block.
fn packet(
    out: &mut impl Write,
    interface: u32,
    timestamp_ns: u64,
    wire_len: u32,
    data: &[u8],
) -> io::Result<()> {
    let data = &data[..data.len().min(SNAP_LEN as usize)];
    let len = data.len() as u32;
    let padding = data.len().next_multiple_of(4) - data.len();
    let total = 32 + len + padding as u32;
    for word in
        [6, total, interface, (timestamp_ns >> 32) as u32, timestamp_ns as u32, len, wire_len.max(len)]
    {
        out.write_all(&word.to_le_bytes())?;
    }
    out.write_all(data)?;
    out.write_all(&[0; 3][..padding])?;
    out.write_all(&total.to_le_bytes())
}

impl<W: Write> Writer<W> {
    /// Writes the file's head, which declares that of no packet more than `snap_len` bytes follow.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(mut out: W, format: Format, linktype: u32, snap_len: u32) -> io::Result<Writer<W>> {
        match format {
            Format::Pcap | Format::PcapMicroseconds => {
                let magic = if format == Format::Pcap { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
                let version = 4 << 16 | 2;
                for word in [magic, version, 0, 0, snap_len, linktype] {
                    out.write_all(&u32::to_le_bytes(word))?;
                }
            }
            Format::PcapNg => {
                section(&mut out)?;
                interface(&mut out, linktype, snap_len, "")?;
            }
        }
        Ok(Writer { out, format })
    }

    /// Writes one packet of `wire_len` bytes, of which `data` was captured, with its time since the epoch.
    ///
    /// # Errors
    /// What the output says.
    pub fn write(&mut self, timestamp_ns: u64, wire_len: u32, data: &[u8]) -> io::Result<()> {
        let data = &data[..data.len().min(SNAP_LEN as usize)];
        let len = data.len() as u32;
        let wire_len = wire_len.max(len);
        match self.format {
            Format::Pcap | Format::PcapMicroseconds => {
                let (seconds, rest_ns) = (timestamp_ns / 1_000_000_000, timestamp_ns % 1_000_000_000);
                let rest = if self.format == Format::Pcap { rest_ns } else { rest_ns / 1_000 };
                for word in [seconds as u32, rest as u32, len, wire_len] {
                    self.out.write_all(&word.to_le_bytes())?;
                }
                self.out.write_all(data)
            }
            Format::PcapNg => packet(&mut self.out, 0, timestamp_ns, wire_len, data),
        }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// What the output says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }
}
