//! ICMP errors: when one may be sent, and the whole packet that carries it.

use super::icmpv4::{self, kind as kind4};
use super::icmpv6::{self, kind as kind6};
use super::{Icmpv4, Icmpv6, Ipv4, Ipv4Header, Ipv6, Ipv6Header, Malformed};
use super::{ipv4, ipv6, ipv6_ext::UpperLayer, protocol};
use core::net::{Ipv4Addr, Ipv6Addr};

/// The longest IPv4 packet an error makes (RFC 1812 §4.3.2.3).
pub const MAX_V4_LEN: usize = 576;
/// The longest IPv6 packet an error makes (RFC 4443 §2.4 (c)): the minimum MTU.
pub const MAX_V6_LEN: usize = 1280;
/// Precedence "internetwork control" (RFC 1812 §4.3.2.5).
const CONTROL_TOS: u8 = 0xc0;
/// Time to live of the errors.
const TTL: u8 = 64;

/// What lies in front of the quotation.
const V4_HEADERS_LEN: usize = ipv4::HEADER_LEN + icmpv4::HEADER_LEN;
/// What lies in front of the quotation.
const V6_HEADERS_LEN: usize = ipv6::HEADER_LEN + icmpv6::HEADER_LEN;

/// An ICMP error for IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmpv4Error {
    /// Type: see [`icmpv4::kind`].
    pub message_type: u8,
    /// Code.
    pub code: u8,
    /// The four bytes behind the checksum.
    pub rest: u32,
}

impl Icmpv4Error {
    /// Destination unreachable; `code` from [`icmpv4::unreachable`].
    pub const fn unreachable(code: u8) -> Self {
        Self { message_type: kind4::UNREACHABLE, code, rest: 0 }
    }

    /// Fragmentation needed but forbidden; the next hop takes `mtu` bytes (RFC 1191 §4).
    pub const fn fragmentation_needed(mtu: u16) -> Self {
        let code = icmpv4::unreachable::FRAGMENTATION_NEEDED;
        Self { message_type: kind4::UNREACHABLE, code, rest: mtu as u32 }
    }

    /// The TTL ran out in transit.
    pub const fn ttl_exceeded() -> Self {
        Self { message_type: kind4::TIME_EXCEEDED, code: 0, rest: 0 }
    }

    /// The byte at offset `pointer` of the header is wrong.
    pub const fn parameter_problem(pointer: u8) -> Self {
        Self { message_type: kind4::PARAMETER_PROBLEM, code: 0, rest: (pointer as u32) << 24 }
    }

    /// For this host, `gateway` is the better first hop (code 1: RFC 1812 §5.2.7.2).
    pub const fn redirect(gateway: Ipv4Addr) -> Self {
        Self { message_type: kind4::REDIRECT, code: 1, rest: gateway.to_bits() }
    }

    /// Whether an error about `packet` may be sent at all (RFC 1812 §4.3.2.7): it is no later fragment, no ICMP
    /// error, not sent to a group or to all, and its source is one host. Whether it came as a link-layer
    /// broadcast is not in the packet, and the caller's to know.
    pub fn may_answer<T: AsRef<[u8]>>(packet: &Ipv4<T>) -> bool {
        let (src, dst) = (packet.src(), packet.dst());
        // 0/8 is "this network", 240/4 is reserved with the broadcast address at its end.
        let src_is_host = !(src.octets()[0] == 0 || src.is_loopback() || src.octets()[0] >= 224);
        let dst_is_group = dst.is_multicast() || dst.is_broadcast();
        let icmp_error = || {
            packet.protocol() == protocol::ICMP
                // An ICMP message too short to have a type is not one to answer either.
                && Icmpv4::new_checked(packet.payload()).map_or(true, |icmp| icmp.is_error())
        };
        src_is_host && !dst_is_group && packet.fragment_offset() == 0 && !icmp_error()
    }

    /// Length of the packet that reports about `offending`, in bytes.
    pub fn packet_len(offending: &[u8]) -> usize {
        (V4_HEADERS_LEN + offending.len()).min(MAX_V4_LEN)
    }

    /// Writes the packet from `src` to the source of `offending`, the IPv4 packet at fault, into the start of
    /// `out` and returns its length, [`Self::packet_len`].
    ///
    /// # Errors
    /// What is wrong with the header of `offending`; [`Malformed::Length`] if `out` is too short.
    pub fn emit(&self, src: Ipv4Addr, offending: &[u8], out: &mut [u8]) -> Result<usize, Malformed> {
        let dst = Ipv4::new_quoted(offending)?.src();
        let packet_len = Self::packet_len(offending);
        let out = out.get_mut(..packet_len).ok_or(Malformed::Length)?;
        let (header, message) = out.split_first_chunk_mut().ok_or(Malformed::Length)?;
        // Without fragments the identification means nothing (RFC 6864), so it need not be unique.
        Ipv4Header {
            tos: CONTROL_TOS,
            total_len: packet_len as u16,
            identification: 0,
            flags_fragment: ipv4::DONT_FRAGMENT,
            ttl: TTL,
            protocol: protocol::ICMP,
            src,
            dst,
        }
        .emit(header);
        let mut icmp = Icmpv4::new_checked(message)?;
        icmp.set_message_type(self.message_type);
        icmp.set_code(self.code);
        icmp.set_rest(self.rest);
        quote(offending, icmp.payload_mut());
        icmp.fill_checksum();
        Ok(packet_len)
    }
}

/// An ICMPv6 error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmpv6Error {
    /// Type: see [`icmpv6::kind`].
    pub message_type: u8,
    /// Code.
    pub code: u8,
    /// The four bytes behind the checksum.
    pub rest: u32,
}

impl Icmpv6Error {
    /// Destination unreachable; `code` from [`icmpv6::unreachable`].
    pub const fn unreachable(code: u8) -> Self {
        Self { message_type: kind6::UNREACHABLE, code, rest: 0 }
    }

    /// The packet does not fit the next hop, which takes `mtu` bytes.
    pub const fn packet_too_big(mtu: u32) -> Self {
        Self { message_type: kind6::PACKET_TOO_BIG, code: 0, rest: mtu }
    }

    /// The hop limit ran out in transit.
    pub const fn hop_limit_exceeded() -> Self {
        Self { message_type: kind6::TIME_EXCEEDED, code: 0, rest: 0 }
    }

    /// The byte at offset `pointer` is wrong (code 0), an unknown next header (1), an unknown option (2).
    pub const fn parameter_problem(code: u8, pointer: u32) -> Self {
        Self { message_type: kind6::PARAMETER_PROBLEM, code, rest: pointer }
    }

    /// Whether this error about `packet` may be sent (RFC 4443 §2.4 (e)): the packet is no ICMPv6 error or
    /// redirect, its source is one node, and it was not sent to a group, except for the two errors that path
    /// MTU discovery and unknown options need. A packet the walk over its headers is not sure of is not
    /// answered. Whether it came as a link-layer multicast is the caller's to know.
    pub fn may_answer<T: AsRef<[u8]>>(&self, packet: &Ipv6<T>) -> bool {
        let src_is_node = !packet.src().is_unspecified() && !packet.src().is_multicast();
        let for_groups = self.message_type == kind6::PACKET_TOO_BIG
            || (self.message_type, self.code) == (kind6::PARAMETER_PROBLEM, 2);
        if !src_is_node || (packet.dst().is_multicast() && !for_groups) {
            return false;
        }
        match packet.upper_layer() {
            Ok(UpperLayer::At { protocol: protocol::ICMPV6, offset, .. }) => {
                let message = packet.as_bytes().get(offset..).unwrap_or_default();
                Icmpv6::new_checked(message)
                    .is_ok_and(|icmp| !icmp.is_error() && icmp.message_type() != kind6::REDIRECT)
            }
            Ok(UpperLayer::LaterFragment { next_header }) => next_header != protocol::ICMPV6,
            // A wrong next header or option is just what a parameter problem reports.
            Ok(UpperLayer::Unsure { .. }) | Err(_) => self.message_type == kind6::PARAMETER_PROBLEM,
            Ok(UpperLayer::At { .. }) => true,
        }
    }

    /// Length of the packet that reports about `offending`, in bytes.
    pub fn packet_len(offending: &[u8]) -> usize {
        (V6_HEADERS_LEN + offending.len()).min(MAX_V6_LEN)
    }

    /// Writes the packet from `src` to the source of `offending`, the IPv6 packet at fault, into the start of
    /// `out` and returns its length, [`Self::packet_len`].
    ///
    /// # Errors
    /// What is wrong with the header of `offending`; [`Malformed::Length`] if `out` is too short.
    pub fn emit(&self, src: Ipv6Addr, offending: &[u8], out: &mut [u8]) -> Result<usize, Malformed> {
        let dst = Ipv6::new_quoted(offending)?.src();
        let packet_len = Self::packet_len(offending);
        let out = out.get_mut(..packet_len).ok_or(Malformed::Length)?;
        let (header, message) = out.split_first_chunk_mut().ok_or(Malformed::Length)?;
        let message_len = message.len() as u32;
        Ipv6Header {
            traffic_class: CONTROL_TOS,
            flow_label: 0,
            payload_len: message_len as u16,
            next_header: protocol::ICMPV6,
            hop_limit: TTL,
            src,
            dst,
        }
        .emit(header);
        let pseudo_header = crate::checksum::pseudo_header_v6(src, dst, protocol::ICMPV6, message_len);
        let mut icmp = Icmpv6::new_checked(message)?;
        icmp.set_message_type(self.message_type);
        icmp.set_code(self.code);
        icmp.set_rest(self.rest);
        quote(offending, icmp.payload_mut());
        icmp.fill_checksum(pseudo_header);
        Ok(packet_len)
    }
}

/// Copies as much of `packet` as `to` takes.
fn quote(packet: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(packet) {
        *to = *from;
    }
}
