//! UDP (RFC 768).

use super::{Ipv4Header, Ipv6Header, Malformed, ipv4, ipv6, protocol};
use crate::checksum::{self, Sum};

/// Length of the header.
pub const HEADER_LEN: usize = 8;

header! {
    /// A view of a UDP datagram.
    pub struct Udp, fields in field, HEADER_LEN;
    /// Source port.
    SRC_PORT @ 0: u16 => src_port, set_src_port;
    /// Destination port.
    DST_PORT @ 2: u16 => dst_port, set_dst_port;
    /// Length of header and payload in bytes.
    LENGTH @ 4: u16 => length, set_length;
    /// Checksum over pseudo-header, header and payload; 0 is none.
    CHECKSUM @ 6: u16 => checksum, set_checksum;
}

impl<T: AsRef<[u8]>> Udp<T> {
    /// A view of `buf`, which may be longer than the datagram.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 8 bytes, [`Malformed::Length`] if the length is below 8 or beyond the
    /// buffer.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        let udp = Self::new_quoted(buf)?;
        let length = usize::from(udp.length());
        if length < HEADER_LEN || length > udp.buf.as_ref().len() { Err(Malformed::Length) } else { Ok(udp) }
    }

    /// A view of a datagram that may be cut short: a first fragment, or a quotation in an ICMP error.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 8 bytes.
    #[inline]
    pub fn new_quoted(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        Ok(Self { buf })
    }

    /// The datagram, up to its length or the end of the buffer.
    #[inline]
    fn datagram(&self) -> &[u8] {
        let bytes = self.buf.as_ref();
        bytes.get(..usize::from(self.length()).min(bytes.len())).unwrap_or_default()
    }

    /// What follows the header, up to the length or the end of the buffer.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.datagram().get(HEADER_LEN..).unwrap_or_default()
    }

    /// Whether the checksum is right, or there is none. `pseudo_header` is the network layer's, over
    /// [`Self::length`]. IPv6 allows no datagram without a checksum but in tunnels (RFC 6935): see
    /// [`Self::checksum`].
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        self.checksum() == 0 || pseudo_header.bytes(self.datagram()).fold() == 0xffff
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Udp<T> {
    /// What follows the header, to be written.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = usize::from(self.length()).min(self.buf.as_ref().len());
        self.buf.as_mut().get_mut(HEADER_LEN..end).unwrap_or_default()
    }

    /// Computes the checksum anew; a result of 0 is written as 0xffff.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let sum = pseudo_header.bytes(self.datagram()).finish();
        self.set_checksum(nonzero(sum));
    }

    /// Updates the checksum, unless there is none, after a 16-bit word it covers (a port) changed.
    #[inline]
    pub fn update_checksum_u16(&mut self, old: u16, new: u16) {
        if self.checksum() != 0 {
            self.set_checksum(nonzero(checksum::update_u16(self.checksum(), old, new)));
        }
    }

    /// Updates the checksum, unless there is none, after a 32-bit field it covers (an address) changed.
    #[inline]
    pub fn update_checksum_u32(&mut self, old: u32, new: u32) {
        if self.checksum() != 0 {
            self.set_checksum(nonzero(checksum::update_u32(self.checksum(), old, new)));
        }
    }
}

/// 0 means "no checksum" on the wire; 0xffff is the other zero and takes its place.
#[inline]
const fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// The values of a UDP header. The checksum is for [`Udp::fill_checksum`], once the payload is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Length of header and payload in bytes.
    pub length: u16,
}

impl UdpHeader {
    /// Writes the header, without a checksum.
    #[inline]
    pub fn emit(&self, out: &mut [u8; HEADER_LEN]) {
        let mut view = Udp { buf: &mut out[..] };
        view.set_src_port(self.src_port);
        view.set_dst_port(self.dst_port);
        view.set_length(self.length);
        view.set_checksum(0);
    }
}

/// Makes `packet` a UDP packet over IPv4: writes both headers, checksums included, over its first 28 bytes. The
/// rest is the payload. Of `ip`, total length and protocol are filled in, of `udp` the length.
///
/// # Errors
/// [`Malformed::Truncated`] if `packet` has no room for the headers, [`Malformed::Length`] above 65,535 bytes.
pub fn encapsulate_v4(mut ip: Ipv4Header, mut udp: UdpHeader, packet: &mut [u8]) -> Result<(), Malformed> {
    ip.total_len = packet.len().try_into().map_err(|_| Malformed::Length)?;
    ip.protocol = protocol::UDP;
    let (ip_out, datagram) = packet.split_first_chunk_mut().ok_or(Malformed::Truncated)?;
    udp.length = ip.total_len.saturating_sub(ipv4::HEADER_LEN as u16);
    udp.emit(datagram.first_chunk_mut().ok_or(Malformed::Truncated)?);
    ip.emit(ip_out);
    let pseudo_header = checksum::pseudo_header_v4(ip.src, ip.dst, protocol::UDP, udp.length);
    Udp { buf: datagram }.fill_checksum(pseudo_header);
    Ok(())
}

/// Makes `packet` a UDP packet over IPv6: writes both headers, checksum included, over its first 48 bytes. The
/// rest is the payload. Of `ip`, payload length and next header are filled in, of `udp` the length.
///
/// # Errors
/// [`Malformed::Truncated`] if `packet` has no room for the headers, [`Malformed::Length`] above 65,575 bytes.
pub fn encapsulate_v6(mut ip: Ipv6Header, mut udp: UdpHeader, packet: &mut [u8]) -> Result<(), Malformed> {
    let (ip_out, datagram) =
        packet.split_first_chunk_mut::<{ ipv6::HEADER_LEN }>().ok_or(Malformed::Truncated)?;
    udp.length = datagram.len().try_into().map_err(|_| Malformed::Length)?;
    udp.emit(datagram.first_chunk_mut().ok_or(Malformed::Truncated)?);
    (ip.payload_len, ip.next_header) = (udp.length, protocol::UDP);
    ip.emit(ip_out);
    let pseudo_header = checksum::pseudo_header_v6(ip.src, ip.dst, protocol::UDP, u32::from(udp.length));
    Udp { buf: datagram }.fill_checksum(pseudo_header);
    Ok(())
}
