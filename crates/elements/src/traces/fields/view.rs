//! Fields taken out of packets.

use super::What;
use crate::nat::get_u16;
use causeway_packet::wire::{icmpv4, protocol};
use causeway_packet::{Anno, Packet};

/// UDP-Lite (RFC 3828) and DCCP (RFC 4340), whose ports lie where those of UDP do.
const DCCP: u8 = 33;
const UDP_LITE: u8 = 136;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'p> {
    /// A number; of times, nanoseconds.
    Number(u64),
    /// Options, a payload, an Ethernet address.
    Bytes(&'p [u8]),
}

/// How lengths are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    /// Whether a packet that lacks more bytes than its annotation says is bad.
    pub careful: bool,
    /// Whether the EXTRA_LENGTH annotation counts.
    pub extra: bool,
}

/// What is known of a packet before its fields are asked for.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Where the IPv4 header is, if it is one.
    ip: Option<usize>,
    transport: Option<usize>,
    /// Which transport header is whole enough to be looked at.
    protocol: Option<u8>,
    /// End of the IP packet in the data: what follows is padding of the link layer.
    end: usize,
    /// The first thing that is wrong.
    pub bad: Option<String>,
}

/// What a field needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Ethernet,
    Ip,
    Ports,
    Protocol(u8),
}

/// Whether transport ports lie where those of UDP do.
pub(super) fn has_ports(number: u8) -> bool {
    matches!(number, protocol::TCP | protocol::UDP | DCCP | UDP_LITE)
}

/// Whether the packet with this header begins at its own start.
pub(super) fn is_first(ip: &[u8]) -> bool {
    get_u16(ip, 6) & 0x1fff == 0
}

/// Whether ICMP messages of this type have an identifier and a sequence number.
pub(super) fn has_identifier(kind: u8) -> bool {
    matches!(kind, 0 | 8 | 13..=16)
}

impl View {
    /// Looks at the headers. The EXTRA_LENGTH annotation becomes what the IP header's length does not count.
    pub fn new(packet: &mut Packet, lengths: Lengths) -> View {
        let mut view = View { end: packet.len(), ..View::default() };
        let extra = packet.anno_u32(Anno::EXTRA_LENGTH.offset);
        view.transport = packet.transport_offset();
        let Some(at) = packet.network_offset() else { return view };
        let ip = &packet.data()[at..];
        let header_len = usize::from(ip.first().copied().unwrap_or(0) & 15) * 4;
        let total_len = usize::from(get_u16(ip, 2));
        let wrong = match ip {
            short if short.len() < 4 => Some("truncated IP header".to_owned()),
            ip if ip[0] >> 4 != 4 => Some(format!("IP version {}", ip[0] >> 4)),
            _ if header_len < 20 => Some(format!("IP header length {}", header_len / 4)),
            _ if total_len < header_len => Some(format!("IP length {total_len}")),
            _ => None,
        };
        if wrong.is_some() {
            view.bad = wrong;
            return view;
        }
        view.ip = Some(at);
        let captured = ip.len();
        let mut extra_now = extra;
        if captured > total_len {
            extra_now = extra.wrapping_add((captured - total_len) as u32);
            view.end = at + total_len;
        } else if lengths.careful && captured + (extra as usize) < total_len {
            view.bad = Some(format!("truncated IP missing {}", total_len - captured - extra as usize));
        }
        view.find_transport(packet.data(), header_len);
        if extra_now > 0 {
            // Lengths are computed from the header's, which cannot say more than this.
            let full_len = (view.end - at) as u64 + u64::from(extra_now);
            let beyond = if total_len == 0xffff { full_len.saturating_sub(0xffff) } else { 0 };
            packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, beyond as u32);
        }
        view
    }

    fn find_transport(&mut self, data: &[u8], header_len: usize) {
        let ip = self.network(data);
        let (Some(at), true) = (self.transport, ip.len() > header_len && ip.len() > 9 && is_first(ip)) else {
            return;
        };
        let number = ip[9];
        let transport = data.get(at..self.end).unwrap_or_default();
        if number == protocol::TCP && transport.len() > 12 && transport[12] >> 4 < 5 {
            self.bad.get_or_insert_with(|| format!("TCP header length {}", transport[12] >> 4));
            return;
        }
        self.protocol = Some(number);
    }

    /// The IP packet, or nothing.
    fn network<'p>(&self, data: &'p [u8]) -> &'p [u8] {
        self.ip.and_then(|at| data.get(at..self.end)).unwrap_or_default()
    }

    /// What follows the IP header.
    fn transport<'p>(&self, data: &'p [u8]) -> &'p [u8] {
        self.transport.and_then(|at| data.get(at..self.end)).unwrap_or_default()
    }

    /// The header of that transport protocol, if it is there and has `len` bytes.
    fn header<'p>(&self, data: &'p [u8], number: u8, len: usize) -> Result<&'p [u8], (Needs, usize)> {
        let transport = self.transport(data);
        let there = self.protocol == Some(number) && transport.len() >= len;
        if there { Ok(transport) } else { Err((Needs::Protocol(number), len)) }
    }

    /// The value of a field; `None` if the packet has none, which may make it a bad packet.
    pub fn value<'p>(&mut self, what: What, packet: &'p Packet, lengths: Lengths) -> Option<Value<'p>> {
        match self.take(what, packet, lengths) {
            Ok(value) => value,
            Err((needs, len)) => {
                self.missing(needs, len, packet);
                None
            }
        }
    }

    /// Says what is missing, unless something else is wrong already. A packet of another protocol is not bad.
    fn missing(&mut self, needs: Needs, len: usize, packet: &Packet) {
        if self.bad.is_some() {
            return;
        }
        let ip = self.network(packet.data());
        let name = match needs {
            Needs::Ethernet => {
                self.bad = Some("Ethernet header".to_owned());
                return;
            }
            Needs::Ip | Needs::Ports => "TCP/UDP",
            Needs::Protocol(protocol::TCP) => "TCP",
            Needs::Protocol(protocol::UDP) => "UDP",
            Needs::Protocol(_) => "ICMP",
        };
        let other = match needs {
            Needs::Protocol(number) => ip.get(9).is_some_and(|n| *n != number),
            Needs::Ports => ip.get(9).is_some_and(|n| !matches!(*n, protocol::TCP | protocol::UDP)),
            _ => false,
        };
        let known = self.transport(packet.data()).len() + packet.anno_u32(Anno::EXTRA_LENGTH.offset) as usize;
        self.bad = match needs {
            _ if self.ip.is_none() => Some("no IP header".to_owned()),
            Needs::Ip => Some("truncated IP header capture".to_owned()),
            _ if other => None,
            _ if !is_first(ip) => Some(format!("fragmented {name} header")),
            _ if known >= len => Some(format!("truncated {name} header capture")),
            _ => Some(format!("truncated {name} header")),
        };
    }

    fn take<'p>(
        &self,
        what: What,
        packet: &'p Packet,
        lengths: Lengths,
    ) -> Result<Option<Value<'p>>, (Needs, usize)> {
        let number = |n: u64| Ok(Some(Value::Number(n)));
        let ns = packet.timestamp_ns();
        let extra = u64::from(packet.anno_u32(Anno::EXTRA_LENGTH.offset));
        match what {
            What::None => Ok(None),
            What::Timestamp => number(ns),
            What::TimestampSec => number(ns / 1_000_000_000),
            What::TimestampUsec => number(ns % 1_000_000_000 / 1_000),
            What::TimestampUsec1 => number(ns / 1_000),
            What::FirstTimestamp => number(first_timestamp_ns(packet)),
            What::Count => number(1 + u64::from(packet.anno_u32(Anno::EXTRA_PACKETS.offset))),
            What::Link | What::Direction => number(packet.paint().into()),
            What::Aggregate => number(packet.anno_u32(Anno::AGGREGATE.offset).into()),
            What::WireLen => number(packet.len() as u64),
            What::EthSrc | What::EthDst | What::EthType => self.ethernet(what, packet).map(Some),
            What::IpLen => {
                let len = if self.ip.is_some() {
                    get_u16(self.network(packet.data()), 2).into()
                } else {
                    packet.len() as u64
                };
                number(len + if lengths.extra { extra } else { 0 })
            }
            What::IpCaptureLen => {
                let ip = self.network(packet.data());
                let all = if self.ip.is_some() { ip.len() } else { packet.len() } as u64;
                let len = if self.ip.is_some() { get_u16(ip, 2).into() } else { all };
                number(len.min(all))
            }
            What::Payload | What::PayloadLen | What::PayloadMd5 | What::PayloadMd5Hex => {
                Ok(self.payload(what, packet, if lengths.extra || self.ip.is_none() { extra } else { 0 }))
            }
            What::Sport | What::Dport => {
                let ip = self.network(packet.data());
                let header_len = usize::from(ip.first().copied().unwrap_or(0) & 15) * 4;
                let at = if what == What::Dport { 2 } else { 0 };
                let transport = self.transport(packet.data());
                let there = ip.len() > header_len && ip.len() > 9 && is_first(ip) && has_ports(ip[9]);
                if !there || transport.len() < at + 2 {
                    return Err((Needs::Ports, at + 2));
                }
                number(get_u16(transport, at).into())
            }
            What::IcmpType
            | What::IcmpTypeName
            | What::IcmpCode
            | What::IcmpCodeName
            | What::IcmpFlowid
            | What::IcmpSeq
            | What::IcmpNextmtu => self.icmp(what, packet.data()),
            What::UdpLen => number(get_u16(self.header(packet.data(), protocol::UDP, 6)?, 4).into()),
            _ if what.is_tcp() => self.tcp(what, packet.data()),
            _ => self.ip(what, packet.data()),
        }
    }

    fn ethernet<'p>(&self, what: What, packet: &'p Packet) -> Result<Value<'p>, (Needs, usize)> {
        let network = packet.network_offset().map_or(packet.len() as i32, |at| at as i32);
        let mac = match packet.mac_distance() {
            Some(distance) => Some(distance),
            None => packet.network_offset().is_none_or(|at| at > 0).then_some(0),
        };
        let header = match mac {
            Some(at) if at + 14 == network => match usize::try_from(at) {
                Ok(at) => packet.data().get(at..at + 14),
                // It was stripped off, or a part of it.
                Err(_) => packet.stripped_mac_header().and_then(|h| h.get(..14)),
            },
            _ => None,
        };
        let header = header.ok_or((Needs::Ethernet, 0))?;
        Ok(match what {
            What::EthSrc => Value::Bytes(&header[6..12]),
            What::EthDst => Value::Bytes(&header[..6]),
            _ => Value::Number(get_u16(header, 12).into()),
        })
    }

    fn ip<'p>(&self, what: What, data: &'p [u8]) -> Result<Option<Value<'p>>, (Needs, usize)> {
        let ip = self.network(data);
        let header_len = usize::from(ip.first().copied().unwrap_or(0) & 15) * 4;
        let needed = match what {
            What::IpSrc => 16,
            What::IpDst => 20,
            What::IpTos | What::IpDscp | What::IpEcn => 2,
            What::IpTtl => 9,
            What::IpFrag | What::IpFragoff => 8,
            What::IpId => 6,
            What::IpSum => 12,
            What::IpProto => 10,
            What::IpOpt if header_len > 20 => header_len,
            _ => 1,
        };
        if self.ip.is_none() || ip.len() < needed {
            return Err((Needs::Ip, needed));
        }
        let flags = get_u16(ip, 6);
        Ok(Some(match what {
            What::IpSrc => Value::Number(super::text::number(&ip[12..16])),
            What::IpDst => Value::Number(super::text::number(&ip[16..20])),
            What::IpTos => Value::Number(ip[1].into()),
            What::IpDscp => Value::Number((ip[1] >> 2).into()),
            What::IpEcn => Value::Number((ip[1] & 3).into()),
            What::IpTtl => Value::Number(ip[8].into()),
            What::IpFrag => Value::Number(u64::from(match (flags & 0x3fff != 0, flags & 0x1fff == 0) {
                (true, true) => b'F',
                (true, false) => b'f',
                _ if flags & 0x4000 != 0 => b'!',
                _ => b'.',
            })),
            What::IpFragoff => Value::Number(flags.into()),
            What::IpId => Value::Number(get_u16(ip, 4).into()),
            What::IpSum => Value::Number(get_u16(ip, 10).into()),
            What::IpProto => Value::Number(ip[9].into()),
            What::IpHl => Value::Number(header_len as u64),
            _ => Value::Bytes(ip.get(20..header_len).unwrap_or_default()),
        }))
    }

    fn tcp<'p>(&self, what: What, data: &'p [u8]) -> Result<Option<Value<'p>>, (Needs, usize)> {
        let needed = match what {
            What::TcpSeq => 8,
            What::TcpAck => 12,
            What::TcpFlags => 14,
            What::TcpWindow => 16,
            What::TcpUrp => 20,
            _ => 13,
        };
        let tcp = self.header(data, protocol::TCP, needed)?;
        let header_len = tcp.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4);
        Ok(Some(match what {
            What::TcpSeq => Value::Number(super::text::number(&tcp[4..8])),
            What::TcpAck => Value::Number(super::text::number(&tcp[8..12])),
            What::TcpFlags => Value::Number(u64::from(tcp[13]) | u64::from(tcp[12] & 15) << 8),
            What::TcpOff => Value::Number(header_len as u64),
            What::TcpWindow => Value::Number(get_u16(tcp, 14).into()),
            What::TcpUrp => Value::Number(get_u16(tcp, 18).into()),
            _ if header_len <= 20 => Value::Bytes(&[]),
            // What most segments have, and nothing else.
            What::TcpNtopt | What::TcpSack
                if header_len == 32 && tcp.get(20..24) == Some(&[1, 1, 8, 10][..]) =>
            {
                Value::Bytes(&[])
            }
            _ => {
                let options = tcp.get(20..header_len);
                Value::Bytes(options.ok_or((Needs::Protocol(protocol::TCP), tcp.len() + 1))?)
            }
        }))
    }

    fn icmp<'p>(&self, what: What, data: &'p [u8]) -> Result<Option<Value<'p>>, (Needs, usize)> {
        let header = |len| self.header(data, protocol::ICMP, len);
        let number = |n: u16| Ok(Some(Value::Number(n.into())));
        match what {
            What::IcmpType | What::IcmpTypeName => number(header(1)?[0].into()),
            What::IcmpCode | What::IcmpCodeName => number(header(2)?[1].into()),
            What::IcmpNextmtu => match header(2)? {
                [icmpv4::kind::UNREACHABLE, 4, ..] => number(get_u16(header(8)?, 6)),
                _ => Ok(None),
            },
            _ if !has_identifier(header(1)?[0]) => Ok(None),
            What::IcmpFlowid => number(get_u16(header(6)?, 4)),
            _ => number(get_u16(header(8)?, 6)),
        }
    }

    /// The type of the ICMP message, for the names of its codes.
    pub fn icmp_type(&self, packet: &Packet) -> u8 {
        self.transport(packet.data()).first().copied().unwrap_or(0)
    }

    /// Where the payload probably begins, and how long it probably is. Both may lie beyond the data.
    fn payload_place(&self, data: &[u8]) -> (usize, usize) {
        let (Some(network), Some(transport)) = (self.ip, self.transport) else { return (0, self.end) };
        payload_place(data, network, transport, self.end)
    }

    fn payload<'p>(&self, what: What, packet: &'p Packet, extra: u64) -> Option<Value<'p>> {
        let (at, len) = self.payload_place(packet.data());
        if what == What::PayloadLen {
            return Some(Value::Number(len as u64 + extra));
        }
        if len > 0 && at >= packet.len() {
            return None;
        }
        let end = (at + len).min(self.end).max(at);
        Some(Value::Bytes(packet.data().get(at..end).unwrap_or_default()))
    }
}

/// Where the payload of an IP packet begins and how long it is, by its headers.
pub(super) fn payload_place(data: &[u8], network: usize, transport: usize, end: usize) -> (usize, usize) {
    let ip = data.get(network..).unwrap_or_default();
    let mut at = transport;
    if is_first(ip) {
        let offset =
            data.get(..end).and_then(|d| d.get(transport + 12)).map_or(0, |o| usize::from(o >> 4) * 4);
        at += match ip.get(9) {
            Some(&protocol::TCP) => offset.max(20),
            Some(&protocol::UDP | &UDP_LITE) => 8,
            _ => 0,
        };
    }
    (at, usize::from(get_u16(ip, 2)).saturating_sub(at.saturating_sub(network)))
}

impl What {
    fn is_tcp(self) -> bool {
        use What::*;
        matches!(self, TcpSeq | TcpAck | TcpOff | TcpFlags | TcpWindow | TcpUrp | TcpOpt | TcpNtopt | TcpSack)
    }

    /// Whether the headers must have been looked at.
    pub fn needs_headers(self) -> bool {
        use What::*;
        !matches!(
            self,
            None | Timestamp
                | TimestampSec
                | TimestampUsec
                | TimestampUsec1
                | FirstTimestamp
                | Count
                | Link
                | Direction
                | Aggregate
                | WireLen
                | EthSrc
                | EthDst
                | EthType
        )
    }
}

/// The FIRST_TIMESTAMP annotation: nanoseconds since the epoch.
pub(crate) fn first_timestamp_ns(packet: &Packet) -> u64 {
    u64::from_ne_bytes(packet.anno_bytes(32))
}

/// Sets the FIRST_TIMESTAMP annotation.
pub(crate) fn set_first_timestamp_ns(packet: &mut Packet, ns: u64) {
    packet.set_anno_bytes(32, ns.to_ne_bytes());
}
