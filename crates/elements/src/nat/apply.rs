//! Writing a flow's new addresses and ports into its packets, with checksums that follow (RFC 1624).

use super::flow_id::FlowId;
use super::flows::Flows;
use crate::flow_table::Id;
use causeway_packet::Packet;
use causeway_packet::checksum::{update_u16, update_u32};
use causeway_packet::wire::protocol;

/// Where the headers of an IPv4 packet are, both known to be inside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    network: usize,
    transport: usize,
    /// Bytes from the transport header on.
    pub transport_len: usize,
    pub protocol: u8,
    /// Whether it is whole, or the first piece of a whole one: only there is a transport header.
    pub is_first: bool,
    pub source: u32,
    pub destination: u32,
}

pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_be_bytes(*b))
}

pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b))
}

pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(b) = bytes.get_mut(at..at + 2) {
        b.copy_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(b) = bytes.get_mut(at..at + 4) {
        b.copy_from_slice(&value.to_be_bytes());
    }
}

impl Headers {
    /// Those of a packet whose headers are marked.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Option<Headers> {
        let (network, transport) = (packet.network_offset()?, packet.transport_offset()?);
        let ip = packet.data().get(network..)?.first_chunk::<20>()?;
        let transport_len = packet.len().checked_sub(transport).filter(|_| transport >= network + 20)?;
        Some(Headers {
            network,
            transport,
            transport_len,
            protocol: ip[9],
            is_first: get_u16(ip, 6) & 0x1fff == 0,
            source: get_u32(ip, 12),
            destination: get_u32(ip, 16),
        })
    }

    /// Source and destination of a packet whose IP header is marked.
    pub fn addresses(packet: &Packet) -> Option<(u32, u32)> {
        let ip = packet.network_header()?.first_chunk::<20>()?;
        Some((get_u32(ip, 12), get_u32(ip, 16)))
    }

    pub fn transport<'p>(&self, packet: &'p Packet) -> &'p [u8] {
        packet.data().get(self.transport..).unwrap_or_default()
    }

    /// Addresses and ports; the transport header must have them.
    #[inline]
    pub fn flow(&self, packet: &Packet) -> FlowId {
        let transport = self.transport(packet);
        FlowId::new(self.source, get_u16(transport, 0), self.destination, get_u16(transport, 2))
    }

    /// Puts addresses in, and the IP header's checksum right.
    #[inline]
    pub fn set_addresses(&self, packet: &mut Packet, source: u32, destination: u32) {
        let ip = packet.data_mut().get_mut(self.network..).unwrap_or_default();
        let sum = update_u32(get_u16(ip, 10), self.source, source);
        put_u16(ip, 10, update_u32(sum, self.destination, destination));
        put_u32(ip, 12, source);
        put_u32(ip, 16, destination);
    }

    /// Puts a TCP or UDP checksum right for other addresses and ports. A UDP checksum of 0 is none, and stays (RFC 768).
    #[inline]
    pub fn follow(&self, packet: &mut Packet, old: FlowId, new: FlowId) {
        let at = match self.protocol {
            protocol::TCP if self.transport_len >= 18 => 16,
            protocol::UDP if self.transport_len >= 8 => 6,
            _ => return,
        };
        let transport = packet.data_mut().get_mut(self.transport..).unwrap_or_default();
        let sum = get_u16(transport, at);
        let is_udp = self.protocol == protocol::UDP;
        if is_udp && sum == 0 {
            return;
        }
        let sum = update_u32(update_u32(sum, old.source, new.source), old.destination, new.destination);
        let sum = update_u16(sum, old.source_port, new.source_port);
        let sum = update_u16(sum, old.destination_port, new.destination_port);
        put_u16(transport, at, if is_udp && sum == 0 { 0xffff } else { sum });
    }

    /// Puts ports in.
    #[inline]
    pub fn set_ports(&self, packet: &mut Packet, new: FlowId) {
        let transport = packet.data_mut().get_mut(self.transport..).unwrap_or_default();
        put_u16(transport, 0, new.source_port);
        put_u16(transport, 2, new.destination_port);
    }

    /// Puts the identifier of an ICMP echo in, and its checksum right.
    pub fn set_identifier(&self, packet: &mut Packet, identifier: u16) {
        let transport = packet.data_mut().get_mut(self.transport..).unwrap_or_default();
        set_identifier(transport, identifier);
    }

    /// Takes note of a TCP segment in its flow, and shifts its sequence numbers.
    pub(super) fn track_tcp(&self, packet: &mut Packet, flows: &mut Flows, id: Id, direction: usize) {
        let data = packet.data_mut();
        let total_len = usize::from(get_u16(data, self.network + 2));
        let ip_header_len = self.transport - self.network;
        let Some(tcp) = data.get_mut(self.transport..) else { return };
        let &[offset, flags] = tcp.get(12..14).and_then(|b| b.first_chunk()).unwrap_or(&[0, 0]);
        let header_len = usize::from(offset >> 4) * 4;
        if let Some(flow) = flows.get_mut(id) {
            flow.seen_tcp(direction, flags, ip_header_len + header_len < total_len);
        }
        if self.transport_len < header_len {
            return;
        }
        let Some(shifts) = flows.shifts(id) else { return };
        let (sequence, acknowledged) = (get_u32(tcp, 4), get_u32(tcp, 8));
        shifts[direction].pass(sequence);
        let (new_sequence, new_acknowledged) =
            (shifts[direction].shift(sequence), shifts[1 - direction].unshift(acknowledged));
        let sum = update_u32(get_u16(tcp, 16), sequence, new_sequence);
        put_u16(tcp, 16, update_u32(sum, acknowledged, new_acknowledged));
        put_u32(tcp, 4, new_sequence);
        put_u32(tcp, 8, new_acknowledged);
        let other = shifts[1 - direction];
        shift_sacks(&mut tcp[..header_len.max(20).min(self.transport_len)], |n| other.unshift(n));
    }
}

/// Puts the identifier of the ICMP echo in `icmp` in, and the checksum right. That of a message of zeros is 0xffff, which
/// cannot be told from the old one.
pub(super) fn set_identifier(icmp: &mut [u8], identifier: u16) {
    let sum = update_u16(get_u16(icmp, 2), get_u16(icmp, 4), identifier);
    put_u16(icmp, 4, identifier);
    let is_zero = sum == 0 && icmp.iter().enumerate().all(|(at, b)| *b == 0 || at == 2 || at == 3);
    put_u16(icmp, 2, if is_zero { 0xffff } else { sum });
}

/// Selective acknowledgements (RFC 2018) in a TCP header, each through `shift`, with the checksum.
fn shift_sacks(tcp: &mut [u8], shift: impl Fn(u32) -> u32) {
    let mut at = 20;
    while let Some(&kind) = tcp.get(at) {
        let len = match kind {
            0 => return,
            1 => {
                at += 1;
                continue;
            }
            _ => usize::from(tcp.get(at + 1).copied().unwrap_or(0)),
        };
        if len < 2 || at + len > tcp.len() {
            return;
        }
        if kind == 5 && len % 8 == 2 {
            for edge in (at + 2..at + len).step_by(4) {
                let (old, mut sum) = (get_u32(tcp, edge), get_u16(tcp, 16));
                let new = shift(old);
                // At an odd place a number's bytes lie in three words of the checksum.
                let first = edge & !1;
                let words = if edge.is_multiple_of(2) { 2 } else { 3 };
                let before: Vec3 = std::array::from_fn(|i| get_u16(tcp, first + 2 * i));
                put_u32(tcp, edge, new);
                for (i, old) in before.iter().enumerate().take(words) {
                    sum = update_u16(sum, *old, get_u16(tcp, first + 2 * i));
                }
                put_u16(tcp, 16, sum);
            }
        }
        at += len;
    }
}

type Vec3 = [u16; 3];

#[cfg(test)]
mod tests;
