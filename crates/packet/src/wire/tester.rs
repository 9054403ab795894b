//! The payload of a router tester's frames: who sent a frame, which it is, and when it left.
//!
//! A frame is Ethernet, IPv4 or IPv6, UDP, and 18 bytes of the tester's own, so that 64 bytes on the wire are enough for
//! IPv4. Two checksums find what a device breaks: the payload's own, which no device
//! mends, and that of UDP over everything but the Ethernet header and the IP header's other fields.

use super::ethernet::ether_type;
use super::{Ethernet, Ipv4, Ipv6, Udp, ipv6, protocol, udp};
use crate::checksum;

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
    /// Number of its flow.
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
            let datagram = packet.get(ipv6::HEADER_LEN..)?;
            let udp = Udp::new_quoted(datagram).ok()?;
            let fits = Ipv6::new_checked(packet).is_ok() && ip.payload_len() == udp.length();
            let sum = ip.pseudo_header(protocol::UDP, u32::from(udp.length()));
            (datagram, fits && udp.checksum() != 0 && udp.checksum_ok(sum))
        }
        _ => return None,
    };
    let payload = datagram.get(udp::HEADER_LEN..)?;
    if !payload.starts_with(&MAGIC) {
        return None;
    }
    let tag = payload.first_chunk().and_then(Tag::from_bytes).filter(|_| whole);
    Some(tag.map_or(Seen::Corrupt, Seen::Test))
}

/// Writes `tag` into the payload of a frame that holds a UDP packet, and makes the UDP checksum right. Says whether it had
/// room; else nothing is changed.
#[inline]
pub fn stamp(frame: &mut [u8], tag: Tag) -> bool {
    stamped(frame, tag).is_some()
}

#[inline]
fn stamped(frame: &mut [u8], tag: Tag) -> Option<()> {
    let (kind, at) = Ethernet::new_checked(&*frame).ok()?.network_layer();
    let packet = frame.get_mut(at..)?;
    let (header, pseudo_header) = match kind {
        ether_type::IPV4 => {
            let ip = Ipv4::new_checked(&*packet).ok().filter(|ip| ip.protocol() == protocol::UDP)?;
            let length = ip.payload().len() as u16;
            let sum = checksum::pseudo_header_v4(ip.src(), ip.dst(), protocol::UDP, length);
            (ip.header_len(), sum)
        }
        ether_type::IPV6 => {
            let ip = Ipv6::new_checked(&*packet).ok().filter(|ip| ip.next_header() == protocol::UDP)?;
            (ipv6::HEADER_LEN, ip.pseudo_header(protocol::UDP, u32::from(ip.payload_len())))
        }
        _ => return None,
    };
    let mut udp = Udp::new_checked(packet.get_mut(header..)?).ok()?;
    udp.payload_mut().first_chunk_mut::<TAG>()?.copy_from_slice(&tag.to_bytes());
    udp.fill_checksum(pseudo_header);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Ipv4Header, UdpHeader};
    use std::net::Ipv4Addr;

    const TAGGED: Tag = Tag { trial: 3, flow: 5, sequence: 9, sent_ns: 77 };

    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![0; length];
        frame[12..14].copy_from_slice(&ether_type::IPV4.to_be_bytes());
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let ip = Ipv4Header {
            tos: 0,
            total_len: 0,
            identification: 0,
            flags_fragment: 0,
            ttl: 9,
            protocol: 0,
            src,
            dst,
        };
        let header = UdpHeader { src_port: 1, dst_port: 2, length: 0 };
        udp::encapsulate_v4(ip, header, &mut frame[14..]).expect("room");
        frame
    }

    #[test]
    fn a_stamped_frame_is_a_test_frame() {
        for length in [60, 61, 200] {
            let mut frame = frame(length);
            assert_eq!(look(&frame), Seen::Foreign);
            assert!(stamp(&mut frame, TAGGED));
            assert_eq!(look(&frame), Seen::Test(TAGGED));
        }
    }

    #[test]
    fn what_has_no_room_stays_as_it_is() {
        let mut short = frame(59);
        let before = short.clone();
        assert!(!stamp(&mut short, TAGGED) && short == before);
        let mut other = frame(60);
        other[23] = protocol::TCP;
        assert!(!stamp(&mut other, TAGGED) && !stamp(&mut [], TAGGED));
    }
}
