//! ICMP messages around packets, in an IPv4 header of their own.

use crate::ip::template::Template;
use causeway_engine::prelude::*;
use causeway_packet::checksum::checksum;
use causeway_packet::wire::{Ipv4Header, ipv4, protocol};

/// Time to live of the packets, as Click's.
const TTL: u8 = 255;
/// Bytes of the longest message header, that of timestamps.
const MAX_HEADER_LEN: usize = 20;

drop_reasons! {
    /// Why no headers can be put in front of a packet; of both classes that do it.
    pub(super) enum Reason {
        NoHeadroom = "no-headroom", "the packet's frame had no room for the headers";
        TooLong = "too-long", "the packet would be longer than 65535 bytes";
    }
}

/// What puts the headers in front of packets.
pub(super) struct Encap {
    template: Template,
    dst: Ipv4Addr,
    /// The message header of the next packet, but for its checksum and number.
    header: [u8; MAX_HEADER_LEN],
    header_len: usize,
    numbered: bool,
    /// Identification of the next packet, which numbers messages as well. Never 0.
    next: u16,
}

impl Encap {
    /// For messages of this type and code. Those that have numbers get `identifier`.
    pub fn new(message_type: u8, code: u8, identifier: u16) -> Encap {
        // Echo, timestamp and information messages (RFC 792).
        let numbered = matches!(message_type, 0 | 8 | 13..=16);
        let mut header = [0; MAX_HEADER_LEN];
        header[..2].copy_from_slice(&[message_type, code]);
        if numbered {
            header[4..6].copy_from_slice(&identifier.to_be_bytes());
        }
        let header_len = if matches!(message_type, 13 | 14) { MAX_HEADER_LEN } else { 8 };
        let (src, dst) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
        Encap { template: template(src), dst, header, header_len, numbered, next: 1 }
    }

    /// From now on packets go from `src` to `dst`.
    pub fn set_addresses(&mut self, src: Ipv4Addr, dst: Ipv4Addr) {
        (self.template, self.dst) = (template(src), dst);
    }

    /// Puts the headers in front of `packet`.
    pub fn put(&mut self, packet: &mut Packet) -> Result<(), Reason> {
        let data = packet.push(ipv4::HEADER_LEN + self.header_len).map_err(|_| Reason::NoHeadroom)?;
        let total_len = u16::try_from(data.len()).map_err(|_| Reason::TooLong)?;
        let (ip, message) = data.split_first_chunk_mut().ok_or(Reason::NoHeadroom)?;
        self.template.write(ip, total_len, self.next, self.dst);
        message[..self.header_len].copy_from_slice(&self.header[..self.header_len]);
        if self.numbered {
            message[6..8].copy_from_slice(&self.next.to_be_bytes());
        }
        let sum = checksum(message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        self.next = self.next.checked_add(1).unwrap_or(1);
        packet.set_dst_ip(self.dst.octets());
        packet.set_network_headers(0, ipv4::HEADER_LEN);
        Ok(())
    }

    /// Goes on numbering where `old` was.
    pub fn go_on(&mut self, old: &Encap) {
        self.next = old.next;
    }
}

fn template(src: Ipv4Addr) -> Template {
    Template::new(Ipv4Header {
        tos: 0,
        total_len: 0,
        identification: 0,
        flags_fragment: 0,
        ttl: TTL,
        protocol: protocol::ICMP,
        src,
        dst: Ipv4Addr::UNSPECIFIED,
    })
}
