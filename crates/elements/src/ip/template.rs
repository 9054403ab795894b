//! An IPv4 header that is put in front of many packets.

use causeway_packet::checksum::Sum;
use causeway_packet::wire::Ipv4Header;
use causeway_packet::wire::ipv4::{HEADER_LEN, field};
use std::net::Ipv4Addr;

/// A header but for its length, identification, destination and checksum.
pub(crate) struct Template {
    bytes: [u8; HEADER_LEN],
    sum: Sum,
}

impl Template {
    /// The template with the other fields of `header`.
    pub fn new(header: Ipv4Header) -> Self {
        let mut bytes = [0; HEADER_LEN];
        Ipv4Header { total_len: 0, identification: 0, dst: Ipv4Addr::UNSPECIFIED, ..header }.emit(&mut bytes);
        bytes[field::CHECKSUM].fill(0);
        Template { bytes, sum: Sum::new().array(&bytes) }
    }

    /// Writes the header of a packet of `total_len` bytes, checksum included.
    #[inline]
    pub fn write(&self, to: &mut [u8; HEADER_LEN], total_len: u16, identification: u16, dst: Ipv4Addr) {
        let dst = dst.octets();
        let sum = self.sum.word(total_len).word(identification).array(&dst);
        *to = self.bytes;
        to[field::TOTAL_LEN].copy_from_slice(&total_len.to_be_bytes());
        to[field::IDENTIFICATION].copy_from_slice(&identification.to_be_bytes());
        to[field::DST].copy_from_slice(&dst);
        to[field::CHECKSUM].copy_from_slice(&sum.finish().to_be_bytes());
    }
}
