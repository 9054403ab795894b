//! Translation between IPv4 and IPv6 packets (RFC 7915), from one buffer into another.
//!
//! Addresses are mapped by a prefix of 96 bits (RFC 6052 §2.2). Nothing is kept from packet to packet.

mod icmp;

use causeway_packet::checksum::{pseudo_header_v4, pseudo_header_v6, update_u16};
use causeway_packet::wire::ipv4::{DONT_FRAGMENT, MORE_FRAGMENTS};
use causeway_packet::wire::ipv6_ext::UpperLayer;
use causeway_packet::wire::{Ipv4, Ipv4Header, Ipv6, Ipv6Header, ipv4, ipv6, protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a packet has no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untranslatable {
    /// It is not a whole packet of its version.
    NoPacket,
    /// An address lies outside of the prefix.
    Address,
    /// A source route, an authentication header or the like, or a protocol that ends at the translator.
    Header,
    /// An ICMP message without a counterpart.
    Icmp,
    /// A fragment of UDP without checksum, or of ICMP.
    Fragment,
    /// The buffer is too short.
    NoRoom,
}

use Untranslatable::{Address, Fragment, Header, Icmp, NoPacket, NoRoom};

/// How much longer a packet becomes at most: the fixed headers' difference and a fragment header, and the same again
/// for a packet that an ICMP error quotes.
pub(super) const GROWTH: usize = 2 * (ipv6::HEADER_LEN - ipv4::HEADER_LEN + FRAGMENT_LEN);
const FRAGMENT_LEN: usize = 8;
/// Packets of this length or less may be fragmented on their way (RFC 7915 §5.1).
const MAY_FRAGMENT: usize = 1260;

/// IPv4 addresses as IPv6 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping(pub(super) [u8; 12]);

impl Mapping {
    pub(super) fn to_v6(self, address: Ipv4Addr) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets[..12].copy_from_slice(&self.0);
        octets[12..].copy_from_slice(&address.octets());
        octets.into()
    }

    pub(super) fn to_v4(self, address: Ipv6Addr) -> Result<Ipv4Addr, Untranslatable> {
        let octets = address.octets();
        let last = octets.last_chunk::<4>().copied().unwrap_or_default();
        if octets[..12] == self.0 { Ok(last.into()) } else { Err(Address) }
    }
}

/// What is translated: a packet, or the begin of one that an ICMP error quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Packet,
    Quoted,
}

/// Translates an IPv4 packet; returns the length of the IPv6 packet in `out`.
pub(super) fn v4_to_v6(packet: &[u8], map: Mapping, out: &mut [u8]) -> Result<usize, Untranslatable> {
    to_v6(packet, map, out, Whole::Packet)
}

/// Translates an IPv6 packet; returns the length of the IPv4 packet in `out`. `identification` is for packets that may be
/// fragmented.
pub(super) fn v6_to_v4(
    packet: &[u8],
    map: Mapping,
    identification: u16,
    out: &mut [u8],
) -> Result<usize, Untranslatable> {
    to_v4(packet, map, identification, out, Whole::Packet)
}

fn to_v6(packet: &[u8], map: Mapping, out: &mut [u8], whole: Whole) -> Result<usize, Untranslatable> {
    let ip = match whole {
        Whole::Packet => Ipv4::new_checked(packet),
        Whole::Quoted => Ipv4::new_quoted(packet),
    }
    .map_err(|_| NoPacket)?;
    // A source route of which all has been passed is left out as other options are (RFC 7915 §4.1).
    let unexpired = |option: &[u8]| option.get(2).is_none_or(|&pointer| usize::from(pointer) <= option.len());
    if whole == Whole::Packet
        && crate::icmp::source_route(ip.options_bytes()).is_some_and(|(_, option)| unexpired(option))
    {
        return Err(Header);
    }
    let header_len = ip.header_len();
    let end = usize::from(ip.total_len()).clamp(header_len, packet.len());
    let payload = &packet[header_len..end];
    let fragmented = ip.fragment_offset() != 0 || ip.flags_fragment() & MORE_FRAGMENTS != 0;
    let first = ip.fragment_offset() == 0;
    let (src, dst) = (map.to_v6(ip.src()), map.to_v6(ip.dst()));
    let front = ipv6::HEADER_LEN + if fragmented { FRAGMENT_LEN } else { 0 };
    let (head, body) = out.split_at_mut_checked(front).ok_or(NoRoom)?;
    let next_header = match ip.protocol() {
        protocol::ICMP if fragmented && whole == Whole::Packet => return Err(Fragment),
        protocol::ICMP => protocol::ICMPV6,
        protocol::ICMPV6 | protocol::HOP_BY_HOP | protocol::ROUTING | protocol::FRAGMENT => {
            return Err(Header);
        }
        other => other,
    };
    let body_len = match (next_header, whole) {
        (protocol::ICMPV6, Whole::Packet) => icmp::to_v6(payload, map, src, dst, body)?,
        _ => copy(payload, body)?,
    };
    let length = if whole == Whole::Packet {
        body_len
    } else {
        usize::from(ip.total_len()).saturating_sub(header_len)
    };
    if next_header == protocol::ICMPV6 && whole == Whole::Quoted {
        icmp::kind_to_v6(&mut body[..body_len]);
    }
    let body = &mut body[..body_len];
    if first && next_header != protocol::ICMPV6 {
        let old = pseudo_header_v4(ip.src(), ip.dst(), ip.protocol(), length as u16).fold();
        let new = pseudo_header_v6(src, dst, next_header, length as u32);
        let none = ip.protocol() == protocol::UDP && body.get(6..8) == Some(&[0, 0]);
        match (none, fragmented, whole) {
            // IPv6 has no UDP without checksum, and that of a fragment cannot be known (§4.5).
            (true, true, Whole::Packet) => return Err(Fragment),
            (true, false, Whole::Packet) => {
                let sum = new.bytes(body).finish();
                body[6..8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
            }
            (true, _, Whole::Quoted) => {}
            (false, ..) => adjust(body, ip.protocol(), old, new.fold()),
        }
    }
    let head_len = length + front - ipv6::HEADER_LEN;
    Ipv6Header {
        traffic_class: ip.tos(),
        flow_label: 0,
        payload_len: u16::try_from(head_len).map_err(|_| NoRoom)?,
        next_header: if fragmented { protocol::FRAGMENT } else { next_header },
        hop_limit: ip.ttl(),
        src,
        dst,
    }
    .emit(head.first_chunk_mut().ok_or(NoRoom)?);
    if let Some(header) = head.get_mut(ipv6::HEADER_LEN..).filter(|h| !h.is_empty()) {
        let more = u16::from(ip.flags_fragment() & MORE_FRAGMENTS != 0);
        header[..2].copy_from_slice(&[next_header, 0]);
        header[2..4].copy_from_slice(&(ip.fragment_offset() as u16 | more).to_be_bytes());
        header[4..].copy_from_slice(&u32::from(ip.identification()).to_be_bytes());
    }
    Ok(front + body_len)
}

fn to_v4(
    packet: &[u8],
    map: Mapping,
    identification: u16,
    out: &mut [u8],
    whole: Whole,
) -> Result<usize, Untranslatable> {
    let ip = match whole {
        Whole::Packet => Ipv6::new_checked(packet),
        Whole::Quoted => Ipv6::new_quoted(packet),
    }
    .map_err(|_| NoPacket)?;
    let mut fragment = None;
    let (mut next_header, mut offset) = (ip.next_header(), ipv6::HEADER_LEN);
    for extension in ip.extensions() {
        let extension = extension.map_err(|_| NoPacket)?;
        let routed = extension.routing().is_some_and(|(_, left)| left != 0);
        if extension.kind == protocol::AH || routed {
            return Err(Header);
        }
        fragment = extension.fragment().filter(|f| !f.is_atomic()).or(fragment);
        (next_header, offset) = (extension.next_header, extension.offset + extension.bytes.len());
    }
    if matches!(ip.upper_layer(), Ok(UpperLayer::Unsure { .. }) | Err(_)) || next_header == protocol::ICMP {
        return Err(Header);
    }
    let (src, dst) = (map.to_v4(ip.src())?, map.to_v4(ip.dst())?);
    let end = (ipv6::HEADER_LEN + usize::from(ip.payload_len())).clamp(offset, packet.len().max(offset));
    let payload = packet.get(offset..end).ok_or(NoPacket)?;
    let (head, body) = out.split_first_chunk_mut::<{ ipv4::HEADER_LEN }>().ok_or(NoRoom)?;
    let is_icmp = next_header == protocol::ICMPV6;
    if is_icmp && fragment.is_some() && whole == Whole::Packet {
        return Err(Fragment);
    }
    let body_len = match (is_icmp, whole) {
        (true, Whole::Packet) => icmp::to_v4(payload, map, body)?,
        _ => copy(payload, body)?,
    };
    let own = usize::from(ip.payload_len()).saturating_sub(offset - ipv6::HEADER_LEN);
    let length = if whole == Whole::Packet { body_len } else { own };
    let body = &mut body[..body_len];
    if is_icmp && whole == Whole::Quoted {
        icmp::kind_to_v4(body);
    }
    if fragment.is_none_or(|f| f.offset == 0) && !is_icmp {
        let old = pseudo_header_v6(ip.src(), ip.dst(), next_header, length as u32).fold();
        adjust(body, next_header, old, pseudo_header_v4(src, dst, next_header, length as u16).fold());
    }
    let total = ipv4::HEADER_LEN + length;
    let (id, flags) = match fragment {
        Some(f) => {
            let more = if f.more { MORE_FRAGMENTS } else { 0 };
            (f.identification as u16, (f.offset / 8) as u16 | more)
        }
        None if total <= MAY_FRAGMENT => (identification, 0),
        None => (0, DONT_FRAGMENT),
    };
    Ipv4Header {
        tos: ip.traffic_class(),
        total_len: u16::try_from(total).map_err(|_| NoRoom)?,
        identification: id,
        flags_fragment: flags,
        ttl: ip.hop_limit(),
        protocol: if is_icmp { protocol::ICMP } else { next_header },
        src,
        dst,
    }
    .emit(head);
    if let Ok(mut ip) = Ipv4::new_quoted(&mut head[..]) {
        ip.fill_checksum();
    }
    Ok(ipv4::HEADER_LEN + body_len)
}

fn copy(from: &[u8], to: &mut [u8]) -> Result<usize, Untranslatable> {
    to.get_mut(..from.len()).ok_or(NoRoom)?.copy_from_slice(from);
    Ok(from.len())
}

/// Brings the checksum of TCP or UDP from one pseudo-header to another; `old` and `new` are their sums.
fn adjust(body: &mut [u8], protocol: u8, old: u16, new: u16) {
    let at = match protocol {
        protocol::TCP => 16,
        protocol::UDP => 6,
        _ => return,
    };
    let Some(field) = body.get_mut(at..at + 2) else { return };
    let sum = update_u16(u16::from_be_bytes([field[0], field[1]]), old, new);
    let sum = if sum == 0 && protocol == protocol::UDP { 0xffff } else { sum };
    field.copy_from_slice(&sum.to_be_bytes());
}
