//! IP protocol numbers, which are also IPv6 next-header values (the IANA registry).

/// IPv6 hop-by-hop options (RFC 8200 §4.3).
pub const HOP_BY_HOP: u8 = 0;
/// ICMP for IPv4 (RFC 792).
pub const ICMP: u8 = 1;
/// IGMP (RFC 9776).
pub const IGMP: u8 = 2;
/// IPv4 in IP (RFC 2003).
pub const IPIP: u8 = 4;
/// TCP (RFC 9293).
pub const TCP: u8 = 6;
/// UDP (RFC 768).
pub const UDP: u8 = 17;
/// IPv6 in IP (RFC 4213).
pub const IPV6: u8 = 41;
/// IPv6 routing header (RFC 8200 §4.4).
pub const ROUTING: u8 = 43;
/// IPv6 fragment header (RFC 8200 §4.5).
pub const FRAGMENT: u8 = 44;
/// GRE (RFC 2784).
pub const GRE: u8 = 47;
/// IPsec encapsulating security payload (RFC 4303).
pub const ESP: u8 = 50;
/// IPsec authentication header (RFC 4302).
pub const AH: u8 = 51;
/// ICMP for IPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// IPv6: no next header (RFC 8200 §4.7).
pub const NO_NEXT_HEADER: u8 = 59;
/// IPv6 destination options (RFC 8200 §4.6).
pub const DESTINATION_OPTIONS: u8 = 60;
/// OSPF (RFC 2328).
pub const OSPF: u8 = 89;
/// VRRP (RFC 9568).
pub const VRRP: u8 = 112;
/// SCTP (RFC 9260).
pub const SCTP: u8 = 132;
