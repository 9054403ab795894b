//! TCP (RFC 9293).

use super::Malformed;
use crate::checksum::{self, Sum};

/// Length of a header without options.
pub const HEADER_LEN: usize = 20;

/// Bits of [`Tcp::flags`].
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number is meant.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is meant.
    pub const URG: u8 = 0x20;
    /// Congestion echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

header! {
    /// A view of a TCP segment.
    pub struct Tcp, fields in field, HEADER_LEN;
    /// Source port.
    SRC_PORT @ 0: u16 => src_port, set_src_port;
    /// Destination port.
    DST_PORT @ 2: u16 => dst_port, set_dst_port;
    /// Sequence number.
    SEQUENCE @ 4: u32 => sequence, set_sequence;
    /// Acknowledgement number.
    ACKNOWLEDGEMENT @ 8: u32 => acknowledgement, set_acknowledgement;
    /// Header length in units of 4 bytes (upper 4 bits), reserved (4 bits).
    DATA_OFFSET @ 12: u8 => data_offset, set_data_offset;
    /// Control bits: see [`flag`].
    FLAGS @ 13: u8 => flags, set_flags;
    /// Receive window, unscaled.
    WINDOW @ 14: u16 => window, set_window;
    /// Checksum over pseudo-header, header and payload.
    CHECKSUM @ 16: u16 => checksum, set_checksum;
    /// Urgent pointer.
    URGENT @ 18: u16 => urgent, set_urgent;
}

impl<T: AsRef<[u8]>> Tcp<T> {
    /// A view of `buf`, which is the segment: TCP has no length field, so padding must have been cut off.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 20 bytes, [`Malformed::HeaderLength`] if the header is below 20 bytes or
    /// longer than the buffer.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        let tcp = Self { buf };
        if tcp.header_len() < HEADER_LEN || tcp.header_len() > tcp.buf.as_ref().len() {
            return Err(Malformed::HeaderLength);
        }
        Ok(tcp)
    }

    /// Header length in bytes, 20 to 60 once checked.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.data_offset() >> 4) * 4
    }

    /// The options, end-of-list and padding included.
    #[inline]
    pub fn options_bytes(&self) -> &[u8] {
        self.buf.as_ref().get(HEADER_LEN..self.header_len()).unwrap_or_default()
    }

    /// The options, one by one.
    #[inline]
    pub fn options(&self) -> Options<'_> {
        Options { rest: self.options_bytes() }
    }

    /// What follows the header.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.buf.as_ref().get(self.header_len()..).unwrap_or_default()
    }

    /// Whether the checksum is right. `pseudo_header` is the network layer's, over the segment.
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        pseudo_header.bytes(self.buf.as_ref()).fold() == 0xffff
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Tcp<T> {
    /// The options, to be written.
    #[inline]
    pub fn options_bytes_mut(&mut self) -> &mut [u8] {
        let end = self.header_len();
        self.buf.as_mut().get_mut(HEADER_LEN..end).unwrap_or_default()
    }

    /// Computes the checksum anew.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let sum = pseudo_header.bytes(self.buf.as_ref()).finish();
        self.set_checksum(sum);
    }

    /// Updates the checksum after a 16-bit word it covers (a port) changed.
    #[inline]
    pub fn update_checksum_u16(&mut self, old: u16, new: u16) {
        self.set_checksum(checksum::update_u16(self.checksum(), old, new));
    }

    /// Updates the checksum after a 32-bit field it covers (an address, a sequence number) changed.
    #[inline]
    pub fn update_checksum_u32(&mut self, old: u32, new: u32) {
        self.set_checksum(checksum::update_u32(self.checksum(), old, new));
    }
}

/// A TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Maximum segment size in bytes (kind 2).
    MaximumSegmentSize(u16),
    /// Window scale, a shift count (kind 3, RFC 7323).
    WindowScale(u8),
    /// Selective acknowledgement permitted (kind 4, RFC 2018).
    SackPermitted,
    /// Blocks acknowledged selectively, 8 bytes each (kind 5, RFC 2018).
    Sack(&'a [[u8; 8]]),
    /// Timestamps (kind 8, RFC 7323).
    Timestamps {
        /// The sender's clock.
        value: u32,
        /// The peer's value, echoed.
        echo: u32,
    },
    /// Any other kind, or one of the above with an unexpected length.
    Unknown {
        /// Option kind.
        kind: u8,
        /// The bytes behind kind and length.
        data: &'a [u8],
    },
}

/// Iterator over TCP options; padding is skipped, and a malformed option ends it with an error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TcpOption<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (kind, length) = match *self.rest {
                [] | [0, ..] => return None,
                [1, ref rest @ ..] => {
                    self.rest = rest;
                    continue;
                }
                [kind, length, ..] if length >= 2 => (kind, usize::from(length)),
                _ => {
                    self.rest = &[];
                    return Some(Err(Malformed::Option));
                }
            };
            let Some((option, rest)) = self.rest.split_at_checked(length) else {
                self.rest = &[];
                return Some(Err(Malformed::Option));
            };
            self.rest = rest;
            return Some(Ok(decode(kind, option.get(2..).unwrap_or_default())));
        }
    }
}

/// The option of `kind` with `data` behind kind and length.
fn decode(kind: u8, data: &[u8]) -> TcpOption<'_> {
    match (kind, data) {
        (2, &[hi, lo]) => TcpOption::MaximumSegmentSize(u16::from_be_bytes([hi, lo])),
        (3, &[shift]) => TcpOption::WindowScale(shift),
        (4, []) => TcpOption::SackPermitted,
        (5, blocks) if blocks.len().is_multiple_of(8) => TcpOption::Sack(blocks.as_chunks().0),
        (8, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
            value: u32::from_be_bytes([a, b, c, d]),
            echo: u32::from_be_bytes([e, f, g, h]),
        },
        _ => TcpOption::Unknown { kind, data },
    }
}
