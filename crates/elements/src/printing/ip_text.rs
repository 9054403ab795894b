//! IPv4 packets as text, a line each, much as tcpdump(1) writes them.

use crate::icmp::names;
use causeway_packet::wire::{Icmpv4, Ipv4, icmpv4, protocol, tcp};
use std::fmt::Write as _;

/// The name of an IP protocol, as protocols(5) has it, of those that packets are often lost with.
fn protocol_name(number: u8) -> Option<&'static str> {
    match number {
        protocol::ICMP => Some("icmp"),
        protocol::TCP => Some("tcp"),
        protocol::UDP => Some("udp"),
        _ => None,
    }
}

/// What of a packet's transport layer is there.
struct Transport<'a> {
    ip: Ipv4<&'a [u8]>,
    /// The bytes behind the IPv4 header that belong to the packet and were captured.
    bytes: &'a [u8],
    /// Whether the transport header is in this packet: it is not in later fragments.
    has_header: bool,
    /// Bytes in the packet's buffer.
    packet_len: usize,
}

/// Appends addresses, transport and fragment of `ip`, which may be cut short behind its header and lies in a packet
/// of `packet_len` bytes. `swap` prints numbers of echo messages in network order. Writing to a string cannot fail.
pub(super) fn packet(text: &mut String, ip: Ipv4<&[u8]>, packet_len: usize, swap: bool) {
    let all = ip.as_bytes();
    let header_len = ip.header_len();
    let payload_len = i32::from(ip.total_len()) - header_len as i32;
    let behind = all.get(header_len..).unwrap_or_default();
    let bytes = &behind[..behind.len().min(payload_len.max(0) as usize)];
    let has_header = ip.fragment_offset() == 0;
    let transport = Transport { ip, bytes, has_header, packet_len };
    match ip.protocol() {
        protocol::TCP => transport.tcp(text),
        protocol::UDP => transport.udp(text),
        protocol::ICMP => transport.icmp(text, swap),
        number => {
            transport.addresses(text);
            let _ = write!(text, "ip-proto-{number}");
        }
    }
    if ip.is_fragment() {
        let more = if ip.more_fragments() { "+" } else { "" };
        let (id, offset) = (ip.identification(), ip.fragment_offset());
        let _ = write!(text, " (frag {id}:{payload_len}@{offset}{more})");
    }
}

/// What of `behind`, the bytes behind `ip`'s header, is behind the transport header too, where that is known.
pub(super) fn payload<'a>(ip: &Ipv4<&[u8]>, behind: &'a [u8]) -> &'a [u8] {
    let header_len = match (ip.fragment_offset(), ip.protocol()) {
        (0, protocol::TCP) => behind.get(12).map_or(0, |b| usize::from(b >> 4) * 4),
        (0, protocol::UDP) => 8,
        _ => 0,
    };
    behind.get(header_len..).unwrap_or_default()
}

impl Transport<'_> {
    fn addresses(&self, text: &mut String) {
        let _ = write!(text, "{} > {}: ", self.ip.src(), self.ip.dst());
    }

    /// Addresses and ports; false where the ports are not there, which `name` and the state of affairs then say.
    fn ports(&self, text: &mut String, name: &str) -> bool {
        if let (true, Some(src_port), Some(dst_port)) = (self.has_header, self.u16(0), self.u16(2)) {
            let (src, dst) = (self.ip.src(), self.ip.dst());
            let _ = write!(text, "{src}.{src_port} > {dst}.{dst_port}: ");
            return true;
        }
        self.addresses(text);
        let _ = write!(text, "{}{name}", if self.has_header { "truncated-" } else { "" });
        false
    }

    /// The transport header's two bytes at `at`, if they are there.
    fn u16(&self, at: usize) -> Option<u16> {
        self.bytes.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
    }

    /// The transport header's four bytes at `at`, if they are there.
    fn u32(&self, at: usize) -> Option<u32> {
        self.bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
    }

    fn tcp(&self, text: &mut String) {
        if !self.ports(text, "tcp") {
            return;
        }
        let (Some(sequence), Some(acknowledgement), Some(&[offset, flags])) =
            (self.u32(4), self.u32(8), self.bytes.get(12..).and_then(|b| b.first_chunk()))
        else {
            *text += "truncated-tcp";
            return;
        };
        let names =
            [(tcp::flag::SYN, 'S'), (tcp::flag::FIN, 'F'), (tcp::flag::RST, 'R'), (tcp::flag::PSH, 'P')];
        let before = text.len();
        text.extend(names.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name));
        if text.len() == before {
            text.push('.');
        }
        // SYN and FIN count in the sequence space.
        let counted = (flags & (tcp::flag::SYN | tcp::flag::FIN)).count_ones() as i32;
        let ip_len = self.ip.total_len();
        let len = i32::from(ip_len) - self.ip.header_len() as i32 - i32::from(offset >> 4) * 4 + counted;
        let next = sequence.wrapping_add_signed(len);
        let _ = write!(text, " {sequence}:{next}({len},{},{ip_len})", self.packet_len);
        if flags & tcp::flag::ACK != 0 {
            let _ = write!(text, " ack {acknowledgement}");
        }
        match self.u16(14) {
            Some(window) => drop(write!(text, " win {window}")),
            None => *text += "truncated-tcp",
        }
    }

    fn udp(&self, text: &mut String) {
        if !self.ports(text, "udp") {
            return;
        }
        match (self.u16(4), self.u16(6)) {
            (Some(length), Some(_)) => drop(write!(text, "udp {length}")),
            _ => *text += "truncated-udp",
        }
    }

    fn icmp(&self, text: &mut String, swap: bool) {
        self.addresses(text);
        let (Some(&kind), Some(&code)) = (self.bytes.first(), self.bytes.get(1)) else {
            *text += if self.has_header { "truncated-icmp" } else { "icmp" };
            return;
        };
        if !self.has_header {
            *text += "icmp";
            return;
        }
        match kind {
            icmpv4::kind::ECHO_REQUEST | icmpv4::kind::ECHO_REPLY => self.icmp_echo(text, kind, swap),
            icmpv4::kind::UNREACHABLE => self.icmp_unreachable(text, code),
            _ => {
                match names::type_name(kind) {
                    Some(name) => drop(write!(text, "icmp {name}")),
                    None => drop(write!(text, "icmp type {kind}")),
                }
                match names::code_name(kind, code) {
                    Some(name) => drop(write!(text, " {name}")),
                    None if code != 0 => drop(write!(text, " code {code}")),
                    None => {}
                }
            }
        }
    }

    fn icmp_echo(&self, text: &mut String, kind: u8, swap: bool) {
        *text += if kind == icmpv4::kind::ECHO_REQUEST { "icmp echo " } else { "icmp echo-reply " };
        let Ok(view) = Icmpv4::new_checked(self.bytes) else {
            *text += "truncated-icmp";
            return;
        };
        let order = |n: u16| if swap { n } else { n.swap_bytes() };
        let _ = write!(text, "({}, {})", order(view.identifier()), order(view.sequence()));
    }

    fn icmp_unreachable(&self, text: &mut String, code: u8) {
        let name = names::code_name(icmpv4::kind::UNREACHABLE, code);
        let name = name.map_or_else(|| format!("code {code}"), str::to_owned);
        let quoted_bytes = self.bytes.get(icmpv4::HEADER_LEN..).unwrap_or_default();
        let Ok(quoted) = Ipv4::new_quoted(quoted_bytes) else {
            let _ = write!(text, "icmp unreachable {name} truncated-icmp");
            return;
        };
        let _ = write!(text, "icmp {} unreachable {name}", quoted.dst());
        let number = quoted.protocol();
        match code {
            icmpv4::unreachable::PROTOCOL => {
                let _ = write!(text, " {}", protocol_name(number).unwrap_or(&number.to_string()));
            }
            icmpv4::unreachable::PORT => {
                let _ = match protocol_name(number) {
                    Some(name) => write!(text, " {name}"),
                    None => write!(text, " protocol {number}"),
                };
                let ports = quoted_bytes.get(quoted.header_len()..).unwrap_or_default();
                match ports {
                    &[_, _, a, b, ..] => drop(write!(text, "/{}", u16::from_be_bytes([a, b]))),
                    _ => *text += "truncated-icmp",
                }
            }
            icmpv4::unreachable::FRAGMENTATION_NEEDED => {
                if let Some(mtu) = self.u16(6).filter(|&mtu| mtu != 0) {
                    let _ = write!(text, " (mtu {mtu})");
                }
            }
            _ => {}
        }
    }
}
