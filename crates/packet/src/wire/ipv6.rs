//! IPv6 (RFC 8200), the fixed header.

use super::Malformed;
use crate::checksum::{self, Sum};
use core::net::Ipv6Addr;

/// Length of the fixed header.
pub const HEADER_LEN: usize = 40;

header! {
    /// A view of an IPv6 packet.
    pub struct Ipv6, fields in field, HEADER_LEN;
    /// Version (4 bits), traffic class (8), flow label (20).
    VERSION_CLASS_FLOW @ 0: u32 => version_class_flow, set_version_class_flow;
    /// Length of what follows the fixed header, in bytes.
    PAYLOAD_LEN @ 4: u16 => payload_len, set_payload_len;
    /// Type of the next header: an extension header, or the payload's [`protocol`](crate::wire::protocol).
    NEXT_HEADER @ 6: u8 => next_header, set_next_header;
    /// Hop limit.
    HOP_LIMIT @ 7: u8 => hop_limit, set_hop_limit;
    /// Source address.
    SRC @ 8: Ipv6Addr => src, set_src;
    /// Destination address.
    DST @ 24: Ipv6Addr => dst, set_dst;
}

impl<T: AsRef<[u8]>> Ipv6<T> {
    /// A view of `buf`, which may be longer than the packet.
    ///
    /// A jumbogram (RFC 2675) has a payload length of 0 and is seen as a packet without payload.
    ///
    /// # Errors
    /// In this order: [`Malformed::Truncated`] below 40 bytes, [`Malformed::Version`], [`Malformed::Length`] if
    /// the payload reaches beyond the buffer.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        let ip = Self::new_quoted(buf)?;
        if HEADER_LEN + usize::from(ip.payload_len()) > ip.buf.as_ref().len() {
            return Err(Malformed::Length);
        }
        Ok(ip)
    }

    /// A view of a packet that may be cut short behind the fixed header, as ICMPv6 errors quote it.
    ///
    /// # Errors
    /// As [`Self::new_checked`], without [`Malformed::Length`].
    #[inline]
    pub fn new_quoted(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        let ip = Self { buf };
        if ip.version() == 6 { Ok(ip) } else { Err(Malformed::Version) }
    }

    /// Version, 6 once checked.
    #[inline]
    pub fn version(&self) -> u8 {
        (self.version_class_flow() >> 28) as u8
    }

    /// Traffic class: DSCP (6 bits) and ECN (2 bits).
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow() >> 20) as u8
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow() & 0xf_ffff
    }

    /// What follows the fixed header, up to the payload length or the end of the buffer.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let bytes = self.buf.as_ref();
        bytes.get(HEADER_LEN..self.end(bytes.len())).unwrap_or_default()
    }

    /// The end of the packet in a buffer of `buf_len` bytes.
    #[inline]
    fn end(&self, buf_len: usize) -> usize {
        (HEADER_LEN + usize::from(self.payload_len())).min(buf_len)
    }

    /// The pseudo-header for the checksum of an upper-layer packet of `length` bytes.
    ///
    /// The destination is the final one: with a routing header that is its last address (RFC 8200 §8.1), which
    /// this does not look for.
    #[inline]
    pub fn pseudo_header(&self, protocol: u8, length: u32) -> Sum {
        checksum::pseudo_header_v6(self.src(), self.dst(), protocol, length)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv6<T> {
    /// What follows the fixed header, to be written.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.end(self.buf.as_ref().len());
        self.buf.as_mut().get_mut(HEADER_LEN..end).unwrap_or_default()
    }

    /// Takes one from the hop limit. A hop limit of 0 is left.
    #[inline]
    pub fn decrement_hop_limit(&mut self) {
        self.set_hop_limit(self.hop_limit().saturating_sub(1));
    }

    /// Writes the traffic class.
    #[inline]
    pub fn set_traffic_class(&mut self, class: u8) {
        let rest = self.version_class_flow() & !(0xff << 20);
        self.set_version_class_flow(rest | u32::from(class) << 20);
    }
}

/// The values of an IPv6 fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, of which the lower 20 bits count.
    pub flow_label: u32,
    /// Length of what follows the fixed header, in bytes.
    pub payload_len: u16,
    /// Type of the next header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
}

impl Ipv6Header {
    /// Writes the header.
    #[inline]
    pub fn emit(&self, out: &mut [u8; HEADER_LEN]) {
        let mut view = Ipv6 { buf: &mut out[..] };
        let class_flow = u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        view.set_version_class_flow(6 << 28 | class_flow);
        view.set_payload_len(self.payload_len);
        view.set_next_header(self.next_header);
        view.set_hop_limit(self.hop_limit);
        view.set_src(self.src);
        view.set_dst(self.dst);
    }
}
