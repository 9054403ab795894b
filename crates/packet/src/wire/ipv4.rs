//! IPv4 (RFC 791).

use super::{Malformed, Value};
use crate::checksum::{self, Sum};
use core::net::Ipv4Addr;

/// Length of a header without options.
pub const HEADER_LEN: usize = 20;
/// Length of the longest header.
pub const MAX_HEADER_LEN: usize = 60;
/// The flag that forbids fragmentation, in [`Ipv4::flags_fragment`].
pub const DONT_FRAGMENT: u16 = 0x4000;
/// The flag that says more fragments follow, in [`Ipv4::flags_fragment`].
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// The fragment offset's bits in [`Ipv4::flags_fragment`], in units of 8 bytes.
pub const FRAGMENT_OFFSET_MASK: u16 = 0x1fff;

header! {
    /// A view of an IPv4 packet.
    pub struct Ipv4, fields in field, HEADER_LEN;
    /// Version (4 bits) and header length in units of 4 bytes (4 bits).
    VERSION_IHL @ 0: u8 => version_ihl, set_version_ihl;
    /// Differentiated services code point (6 bits, RFC 2474) and congestion notification (2, RFC 3168).
    TOS @ 1: u8 => tos, set_tos;
    /// Length of header and payload in bytes.
    TOTAL_LEN @ 2: u16 => total_len, set_total_len;
    /// Identification, equal in all fragments of a datagram.
    IDENTIFICATION @ 4: u16 => identification, set_identification;
    /// Flags (3 bits) and fragment offset in units of 8 bytes (13 bits).
    FLAGS_FRAGMENT @ 6: u16 => flags_fragment, set_flags_fragment;
    /// Time to live in hops.
    TTL @ 8: u8 => ttl, set_ttl;
    /// Protocol of the payload: see [`protocol`](crate::wire::protocol).
    PROTOCOL @ 9: u8 => protocol, set_protocol;
    /// Header checksum.
    CHECKSUM @ 10: u16 => checksum, set_checksum;
    /// Source address.
    SRC @ 12: Ipv4Addr => src, set_src;
    /// Destination address.
    DST @ 16: Ipv4Addr => dst, set_dst;
}

impl<T: AsRef<[u8]>> Ipv4<T> {
    /// A view of `buf`, which may be longer than the packet: Ethernet pads short ones.
    ///
    /// The checksum is not looked at: [`Self::checksum_ok`].
    ///
    /// # Errors
    /// In this order: [`Malformed::Truncated`] below 20 bytes, [`Malformed::Version`],
    /// [`Malformed::HeaderLength`] if the header is below 20 bytes or longer than the buffer,
    /// [`Malformed::Length`] if the total length is below the header's or beyond the buffer (RFC 1812 §5.2.2).
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        let ip = Self::new_quoted(buf)?;
        let total_len = usize::from(ip.total_len());
        if total_len < ip.header_len() || total_len > ip.buf.as_ref().len() {
            return Err(Malformed::Length);
        }
        Ok(ip)
    }

    /// A view of a packet that may be cut short behind its header, as ICMP errors quote it.
    ///
    /// # Errors
    /// As [`Self::new_checked`], without [`Malformed::Length`].
    #[inline]
    pub fn new_quoted(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        let ip = Self { buf };
        // The common case, no options, is settled by one comparison.
        if ip.version_ihl() != 0x45 {
            if ip.version() != 4 {
                return Err(Malformed::Version);
            }
            if ip.header_len() < HEADER_LEN || ip.header_len() > ip.buf.as_ref().len() {
                return Err(Malformed::HeaderLength);
            }
        }
        Ok(ip)
    }

    /// Version, 4 once checked.
    #[inline]
    pub fn version(&self) -> u8 {
        self.version_ihl() >> 4
    }

    /// Header length in bytes, 20 to 60 once checked.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl() & 0xf) * 4
    }

    /// Whether there are options.
    #[inline]
    pub fn has_options(&self) -> bool {
        self.header_len() > HEADER_LEN
    }

    /// The options, end-of-list and padding included; empty without any.
    #[inline]
    pub fn options_bytes(&self) -> &[u8] {
        self.buf.as_ref().get(HEADER_LEN..self.header_len()).unwrap_or_default()
    }

    /// Whether the packet may not be fragmented.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.flags_fragment() & DONT_FRAGMENT != 0
    }

    /// Whether fragments with higher offsets follow.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.flags_fragment() & MORE_FRAGMENTS != 0
    }

    /// Where this fragment lies in the datagram, in bytes, 0 to 65,528.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.flags_fragment() & FRAGMENT_OFFSET_MASK) * 8
    }

    /// Whether this is part of a datagram only, its first fragment included.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.flags_fragment() & (MORE_FRAGMENTS | FRAGMENT_OFFSET_MASK) != 0
    }

    /// The sum over the header, checksum field included.
    #[inline]
    fn header_sum(&self) -> Sum {
        if self.has_options() {
            Sum::new().bytes(self.buf.as_ref().get(..self.header_len()).unwrap_or_default())
        } else {
            Sum::new().array(self.fixed())
        }
    }

    /// Whether the header checksum is right.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        self.header_sum().fold() == 0xffff
    }

    /// What follows the header, up to the total length or the end of the buffer, whichever is first.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let bytes = self.buf.as_ref();
        bytes.get(self.header_len()..self.end(bytes.len())).unwrap_or_default()
    }

    /// The end of the packet in a buffer of `buf_len` bytes.
    #[inline]
    fn end(&self, buf_len: usize) -> usize {
        usize::from(self.total_len()).min(buf_len)
    }

    /// The pseudo-header for the checksum of a payload of `length` bytes.
    #[inline]
    pub fn pseudo_header(&self, length: u16) -> Sum {
        checksum::pseudo_header_v4(self.src(), self.dst(), self.protocol(), length)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv4<T> {
    /// What follows the header, to be written.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.header_len(), self.end(self.buf.as_ref().len()));
        self.buf.as_mut().get_mut(start..end).unwrap_or_default()
    }

    /// The options, to be written.
    #[inline]
    pub fn options_bytes_mut(&mut self) -> &mut [u8] {
        let end = self.header_len();
        self.buf.as_mut().get_mut(HEADER_LEN..end).unwrap_or_default()
    }

    /// Computes the header checksum anew.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let sum = self.header_sum().finish();
        self.set_checksum(sum);
    }

    /// Takes one from the TTL, not 0 before, and updates the checksum. A TTL of 0 is left.
    #[inline]
    pub fn decrement_ttl(&mut self) {
        if let Some(header) = self.buf.as_mut().first_chunk_mut::<HEADER_LEN>() {
            let [ttl] = &mut header[field::TTL] else { return };
            if *ttl == 0 {
                return;
            }
            *ttl -= 1;
            let bytes = &mut header[field::CHECKSUM];
            checksum::decrement_ttl(u16::load(bytes)).store(bytes);
        }
    }

    /// Writes the source address and updates the header checksum, not the transport's.
    #[inline]
    pub fn rewrite_src(&mut self, src: Ipv4Addr) {
        self.set_checksum(checksum::update_u32(self.checksum(), self.src().to_bits(), src.to_bits()));
        self.set_src(src);
    }

    /// Writes the destination address and updates the header checksum, not the transport's.
    #[inline]
    pub fn rewrite_dst(&mut self, dst: Ipv4Addr) {
        self.set_checksum(checksum::update_u32(self.checksum(), self.dst().to_bits(), dst.to_bits()));
        self.set_dst(dst);
    }

    /// Writes DSCP and ECN and updates the header checksum.
    #[inline]
    pub fn rewrite_tos(&mut self, tos: u8) {
        let word = |tos| u16::from_be_bytes([self.version_ihl(), tos]);
        self.set_checksum(checksum::update_u16(self.checksum(), word(self.tos()), word(tos)));
        self.set_tos(tos);
    }
}

/// The values of an IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// DSCP and ECN.
    pub tos: u8,
    /// Length of header and payload in bytes.
    pub total_len: u16,
    /// Identification.
    pub identification: u16,
    /// Flags and fragment offset: [`DONT_FRAGMENT`] and the like.
    pub flags_fragment: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
}

impl Ipv4Header {
    /// Writes the header, checksum included.
    #[inline]
    pub fn emit(&self, out: &mut [u8; HEADER_LEN]) {
        let mut view = Ipv4 { buf: &mut out[..] };
        view.set_version_ihl(0x45);
        view.set_tos(self.tos);
        view.set_total_len(self.total_len);
        view.set_identification(self.identification);
        view.set_flags_fragment(self.flags_fragment);
        view.set_ttl(self.ttl);
        view.set_protocol(self.protocol);
        view.set_src(self.src);
        view.set_dst(self.dst);
        view.fill_checksum();
    }
}
