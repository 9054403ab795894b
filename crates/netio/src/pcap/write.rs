//! Writing capture files.

use std::io::{self, Write};

/// The format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Classic pcap with nanoseconds.
    Pcap,
    /// Classic pcap with microseconds, for programs that know no others.
    PcapMicroseconds,
    /// pcapng: one section, one interface.
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
                // Section header: byte-order magic, version 1.0, length unknown.
                for word in [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28] {
                    out.write_all(&u32::to_le_bytes(word))?;
                }
                // Interface: link type, snap length; option 9, one byte: 10^-9 s; end of options.
                for word in [1, 32, linktype & 0xffff, snap_len, 1 << 16 | 9, 9, 0, 32] {
                    out.write_all(&u32::to_le_bytes(word))?;
                }
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
            Format::PcapNg => {
                let padding = data.len().next_multiple_of(4) - data.len();
                let total = 32 + len + padding as u32;
                for word in [6, total, 0, (timestamp_ns >> 32) as u32, timestamp_ns as u32, len, wire_len] {
                    self.out.write_all(&word.to_le_bytes())?;
                }
                self.out.write_all(data)?;
                self.out.write_all(&[0; 3][..padding])?;
                self.out.write_all(&total.to_le_bytes())
            }
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
