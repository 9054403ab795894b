//! What a packet's headers say of its flow, followed as far as the kernel follows them.

const IPV4_HEADER_LEN: usize = 20;
pub(super) const IPV6_HEADER_LEN: usize = 40;
const ICMP_HEADER_LEN: usize = 8;
/// Headers that the kernel looks at. It stops behind them; we leave such a packet to it.
const HEADERS: usize = 15;

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const IPV4: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const ESP: u8 = 50;
const AH: u8 = 51;
const ICMPV6: u8 = 58;
const DESTINATION: u8 = 60;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Flags of GRE (RFC 2890 §2) and of its versions (RFC 2637 §4.1).
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_ROUTING: u16 = 0x4000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
const GRE_VERSION: u16 = 0x0007;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

/// Source and destination, in the packet's order of octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    V4(u32, u32),
    V6(u128, u128),
}

impl Addresses {
    /// With zeros in place of what is not kept.
    pub fn keep(self, source: bool, destination: bool) -> Addresses {
        match self {
            Addresses::V4(from, to) => Addresses::V4(from * u32::from(source), to * u32::from(destination)),
            Addresses::V6(from, to) => Addresses::V6(from * u128::from(source), to * u128::from(destination)),
        }
    }
}

/// What was found of a flow, of the innermost header that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub addresses: Addresses,
    /// IPv6 flow label of the innermost header that has one.
    pub label: u32,
    /// The protocol behind the headers that were followed.
    pub protocol: u8,
    /// Source and destination port, or the halves of what stands in their place, in the packet's order of octets.
    pub ports: [u16; 2],
    /// Whether there is a packet in the packet.
    pub encapsulated: bool,
}

/// Where to go on.
enum Next<'a> {
    /// Nowhere: all is found.
    End,
    /// With a packet in the packet.
    Inside(Version, &'a [u8]),
    /// With something that only the kernel knows.
    Unknown,
}

/// Follows the headers of a packet, into the packets in it if `inside` is set. None if the first header is cut short, or if
/// only the kernel knows what comes.
#[inline(always)]
pub(super) fn dissect(packet: &[u8], version: Version, inside: bool) -> Option<Flow> {
    let mut flow = Flow::of_packet(packet, version)?;
    let (mut packet, mut version, mut headers) = (packet, version, 0);
    while let Some(rest) = behind(packet, version) {
        match flow.transport(rest, version, &mut headers, inside) {
            Next::End => return Some(flow),
            Next::Unknown => return None,
            Next::Inside(inner, rest) => (version, packet) = (inner, rest),
        }
        // What is cut short changes nothing.
        let Some(inner) = Flow::of_packet(packet, version) else { return Some(flow) };
        let label = if inner.label == 0 { flow.label } else { inner.label };
        flow = Flow { label, encapsulated: true, ..inner };
    }
    Some(flow)
}

/// The header, inside an ICMP error, of the packet that the error is about.
#[inline(always)]
pub(super) fn error_about(packet: &[u8], version: Version) -> Option<&[u8]> {
    let (message, is_error) = match version {
        Version::V4 => {
            let h = packet.first_chunk::<IPV4_HEADER_LEN>()?;
            let first = u16::from_be_bytes([h[6], h[7]]) & 0x1fff == 0;
            let message = packet.get(ihl(h)..).filter(|_| first && h[9] == ICMP)?;
            // Unreachable, source quench, redirect, time exceeded, parameter problem (RFC 792).
            (message, matches!(message.first()?, 3 | 4 | 5 | 11 | 12))
        }
        Version::V6 => {
            let message = packet.get(IPV6_HEADER_LEN..).filter(|_| packet[6] == ICMPV6)?;
            // Unreachable, too big, time exceeded, parameter problem (RFC 4443).
            (message, matches!(message.first()?, 1..=4))
        }
    };
    let header = message.get(ICMP_HEADER_LEN..).filter(|_| is_error)?;
    let len = if version == Version::V4 { IPV4_HEADER_LEN } else { IPV6_HEADER_LEN };
    (header.len() >= len).then_some(header)
}

/// Octets of an IPv4 header, as it says itself.
#[inline(always)]
fn ihl(header: &[u8; IPV4_HEADER_LEN]) -> usize {
    usize::from(header[0] & 0x0f) * 4
}

/// What follows an IP header; none in an IPv4 fragment, which is not looked into.
#[inline(always)]
fn behind(packet: &[u8], version: Version) -> Option<&[u8]> {
    match version {
        Version::V4 => {
            let h = packet.first_chunk::<IPV4_HEADER_LEN>()?;
            let fragment = u16::from_be_bytes([h[6], h[7]]) & 0x3fff != 0;
            (!fragment).then(|| packet.get(ihl(h)..).unwrap_or_default())
        }
        Version::V6 => packet.get(IPV6_HEADER_LEN..),
    }
}

impl Flow {
    /// What the IP header of a packet says; none if it is cut short, or shorter than it may be by its own word.
    #[inline(always)]
    fn of_packet(packet: &[u8], version: Version) -> Option<Flow> {
        if version == Version::V4 && ihl(packet.first_chunk()?) < IPV4_HEADER_LEN {
            return None;
        }
        Flow::of_header(packet, version)
    }

    /// What an IP header says; none if it is cut short.
    #[inline(always)]
    pub fn of_header(header: &[u8], version: Version) -> Option<Flow> {
        let (addresses, label, protocol) = match version {
            Version::V4 => {
                let h = header.first_chunk::<IPV4_HEADER_LEN>()?;
                let [from, to] =
                    [12, 16].map(|at| u32::from_ne_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]]));
                (Addresses::V4(from, to), 0, h[9])
            }
            Version::V6 => {
                let h = header.first_chunk::<IPV6_HEADER_LEN>()?;
                let (addresses, _) = h[8..].as_chunks::<16>();
                let label = u32::from_be_bytes([0, h[1] & 0x0f, h[2], h[3]]);
                (
                    Addresses::V6(u128::from_ne_bytes(addresses[0]), u128::from_ne_bytes(addresses[1])),
                    label,
                    h[6],
                )
            }
        };
        Some(Flow { addresses, label, protocol, ports: [0; 2], encapsulated: false })
    }

    /// What stands behind an IP header: IPv6 extension headers, ports, or another packet.
    #[inline(always)]
    fn transport<'a>(
        &mut self,
        mut rest: &'a [u8],
        version: Version,
        headers: &mut usize,
        inside: bool,
    ) -> Next<'a> {
        loop {
            let inner = match (self.protocol, version) {
                (HOP_BY_HOP | ROUTING | DESTINATION, Version::V6) => {
                    let Some(&[next, len]) = rest.first_chunk::<2>() else { return Next::End };
                    self.protocol = next;
                    rest = rest.get(8 * (usize::from(len) + 1)..).unwrap_or_default();
                    None
                }
                (FRAGMENT, Version::V6) => {
                    // Fragments must stay together, and only the first has ports.
                    self.protocol = rest.first_chunk::<8>().map_or(FRAGMENT, |h| h[0]);
                    return Next::End;
                }
                (IPV4, _) => Some(Next::Inside(Version::V4, rest)),
                (IPV6, _) => Some(Next::Inside(Version::V6, rest)),
                (GRE, _) => Some(gre(rest)),
                _ => {
                    self.ports = ports(self.protocol, rest);
                    return Next::End;
                }
            };
            if let Some(inner) = inner {
                self.encapsulated = !matches!(inner, Next::End);
                return if inside { deeper(headers).map_or(Next::Unknown, |()| inner) } else { Next::End };
            }
            if deeper(headers).is_none() {
                return Next::Unknown;
            }
        }
    }
}

/// Counts a header more; none if it is one too many.
fn deeper(headers: &mut usize) -> Option<()> {
    *headers += 1;
    (*headers <= HEADERS).then_some(())
}

/// What a GRE header (RFC 2784, RFC 2890) leads to.
fn gre(header: &[u8]) -> Next<'_> {
    let Some(&[f0, f1, t0, t1]) = header.first_chunk::<4>() else { return Next::End };
    let (flags, ethertype) = (u16::from_be_bytes([f0, f1]), u16::from_be_bytes([t0, t1]));
    let optional = |flag| if flags & flag != 0 { 4 } else { 0 };
    let key_end = 4 + optional(GRE_CHECKSUM) + optional(GRE_KEY);
    if flags & GRE_ROUTING != 0 || flags & GRE_VERSION > 1 || (flags & GRE_KEY != 0 && header.len() < key_end)
    {
        return Next::End;
    }
    let rest = header.get(key_end + optional(GRE_SEQUENCE)..).unwrap_or_default();
    match (flags & GRE_VERSION, ethertype) {
        (0, ETHERTYPE_IPV4) => Next::Inside(Version::V4, rest),
        (0, ETHERTYPE_IPV6) => Next::Inside(Version::V6, rest),
        // Ethernet, MPLS, PPP, ...
        _ => Next::Unknown,
    }
}

/// The two ports, or what the kernel takes for them; zeros if the protocol has none.
#[inline(always)]
fn ports(protocol: u8, transport: &[u8]) -> [u16; 2] {
    let at = match protocol {
        TCP | UDP | DCCP | SCTP | UDP_LITE | ESP => 0,
        // As with ESP, the security parameters' index.
        AH => 4,
        _ => return [0; 2],
    };
    let word = transport.get(at..).and_then(|rest| rest.first_chunk::<4>());
    word.map_or([0; 2], |&[a, b, c, d]| [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])])
}
