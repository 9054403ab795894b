//! Frames that the tester sends, and what it sees in those that come.
//!
//! A frame is Ethernet, IPv4 or IPv6, UDP, and 18 bytes of the tester's own, so that 64 bytes on the wire are enough for
//! IPv4. The rest is zero. Two checksums find what a device breaks: the payload's own, which no device
//! mends, and that of UDP over everything but the Ethernet header and the IP header's other fields.

mod template;
#[cfg(test)]
mod tests;

pub use template::{Ends, Template};

use causeway_packet::checksum;
use causeway_packet::wire::ethernet::ether_type;
use causeway_packet::wire::{Ethernet, Ipv4, Ipv6, Udp, protocol};

/// Bytes of the frame check sequence, which a frame has on the wire and not in memory.
pub const FCS: usize = 4;
/// Bytes of the tester's payload.
pub const TAG: usize = 18;
/// What the payload begins with.
const MAGIC: [u8; 2] = [0xca, 0x5e];
/// Bits of a time in the payload: three days of nanoseconds.
const TIME_BITS: u32 = 48;

/// What the tester writes into a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Which trial it is of, so that what comes late is not counted in the next.
    pub trial: u16,
    /// Number of its [flow](causeway_results::traffic::Flow).
    pub flow: u16,
    /// Its number in the flow.
    pub sequence: u32,
    /// When it was sent, in nanoseconds from the start of the trial; the lower 48 bits count.
    pub sent_ns: u64,
}

impl Tag {
    /// As it stands in the frame: magic, trial, flow, sequence, time, checksum over those before.
    #[inline]
    pub fn to_bytes(self) -> [u8; TAG] {
        let mut bytes = [0; TAG];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..4].copy_from_slice(&self.trial.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flow.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[10..16].copy_from_slice(&self.sent_ns.to_be_bytes()[2..]);
        let sum = checksum::checksum(&bytes[..16]);
        bytes[16..].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Reads it back; `None` if it is broken.
    #[inline]
    fn from_bytes(bytes: &[u8; TAG]) -> Option<Tag> {
        let [_, _, t0, t1, f0, f1, s0, s1, s2, s3, n0, n1, n2, n3, n4, n5, ..] = *bytes;
        checksum::verify(bytes).then_some(Tag {
            trial: u16::from_be_bytes([t0, t1]),
            flow: u16::from_be_bytes([f0, f1]),
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            sent_ns: u64::from_be_bytes([0, 0, n0, n1, n2, n3, n4, n5]),
        })
    }
}

/// Nanoseconds as they are after their way through a frame.
pub fn wrap_ns(ns: u64) -> u64 {
    ns & ((1 << TIME_BITS) - 1)
}

/// What a frame turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// One of the tester's, as it was sent.
    Test(Tag),
    /// One of the tester's, broken on its way.
    Corrupt,
    /// Somebody else's.
    Foreign,
}

/// Looks at a frame without its check sequence.
#[inline]
pub fn look(frame: &[u8]) -> Seen {
    inspect(frame).unwrap_or(Seen::Foreign)
}

/// `None`: it is not the tester's, as far as can be told.
#[inline]
fn inspect(frame: &[u8]) -> Option<Seen> {
    let (kind, at) = Ethernet::new_checked(frame).ok()?.network_layer();
    let packet = frame.get(at..)?;
    let (datagram, whole) = match kind {
        ether_type::IPV4 => {
            let ip = Ipv4::new_quoted(packet).ok().filter(|ip| ip.protocol() == protocol::UDP)?;
            let datagram = packet.get(ip.header_len()..)?;
            let udp = Udp::new_quoted(datagram).ok()?;
            let sum = checksum::pseudo_header_v4(ip.src(), ip.dst(), protocol::UDP, udp.length());
            let length = usize::from(ip.total_len()).checked_sub(ip.header_len());
            let fits = Ipv4::new_checked(packet).is_ok() && length == Some(usize::from(udp.length()));
            (datagram, fits && ip.checksum_ok() && udp.checksum() != 0 && udp.checksum_ok(sum))
        }
        ether_type::IPV6 => {
            let ip = Ipv6::new_quoted(packet).ok().filter(|ip| ip.next_header() == protocol::UDP)?;
            let datagram = packet.get(causeway_packet::wire::ipv6::HEADER_LEN..)?;
            let udp = Udp::new_quoted(datagram).ok()?;
            let fits = Ipv6::new_checked(packet).is_ok() && ip.payload_len() == udp.length();
            let sum = ip.pseudo_header(protocol::UDP, u32::from(udp.length()));
            (datagram, fits && udp.checksum() != 0 && udp.checksum_ok(sum))
        }
        _ => return None,
    };
    let payload = datagram.get(causeway_packet::wire::udp::HEADER_LEN..)?;
    if !payload.starts_with(&MAGIC) {
        return None;
    }
    let tag = payload.first_chunk().and_then(Tag::from_bytes).filter(|_| whole);
    Some(tag.map_or(Seen::Corrupt, Seen::Test))
}
