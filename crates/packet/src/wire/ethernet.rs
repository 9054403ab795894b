//! Ethernet II frames, without preamble and frame check sequence.

use super::Malformed;
use core::fmt;
use core::str::FromStr;

/// Length of the header.
pub const HEADER_LEN: usize = 14;

/// EtherType values.
pub mod ether_type {
    /// IPv4 (RFC 894).
    pub const IPV4: u16 = 0x0800;
    /// ARP (RFC 826).
    pub const ARP: u16 = 0x0806;
    /// 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6 (RFC 2464).
    pub const IPV6: u16 = 0x86dd;
    /// 802.1ad service tag.
    pub const SERVICE_VLAN: u16 = 0x88a8;
}

/// A 48-bit Ethernet address. Prints and parses as `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All ones: every station on the link.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// All zeros: no address.
    pub const ZERO: Self = Self([0; 6]);

    /// The bytes, in transmission order.
    #[inline]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Whether this is a group address, the broadcast address included.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether this is the broadcast address.
    #[inline]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// The group address of an IPv4 multicast address (RFC 1112 §6.4).
    #[inline]
    pub const fn from_ipv4_multicast(group: core::net::Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The group address of an IPv6 multicast address (RFC 2464 §7).
    #[inline]
    pub const fn from_ipv6_multicast(group: core::net::Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        Self([0x33, 0x33, a, b, c, d])
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The text is not six hexadecimal bytes with colons or hyphens between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMacAddr;

impl fmt::Display for BadMacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an Ethernet address")
    }
}

impl core::error::Error for BadMacAddr {}

impl FromStr for MacAddr {
    type Err = BadMacAddr;

    /// Six bytes of one or two hexadecimal digits, all separated by `:` or all by `-`.
    fn from_str(text: &str) -> Result<Self, BadMacAddr> {
        let separator = if text.contains(':') { ':' } else { '-' };
        let mut parts = text.split(separator);
        let mut octets = [0; 6];
        for octet in &mut octets {
            let part = parts.next().ok_or(BadMacAddr)?;
            // The length and digit test keeps out the "+f" that from_str_radix would take.
            if !(1..=2).contains(&part.len()) || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(BadMacAddr);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| BadMacAddr)?;
        }
        if parts.next().is_some() { Err(BadMacAddr) } else { Ok(Self(octets)) }
    }
}

header! {
    /// A view of an Ethernet II frame.
    pub struct Ethernet, fields in field, HEADER_LEN;
    /// Destination address.
    DST @ 0: MacAddr => dst, set_dst;
    /// Source address.
    SRC @ 6: MacAddr => src, set_src;
    /// EtherType: the protocol of the payload, or a tag protocol identifier.
    ETHER_TYPE @ 12: u16 => ether_type, set_ether_type;
}

impl<T: AsRef<[u8]>> Ethernet<T> {
    /// A view of `buf`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 14 bytes.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        Ok(Self { buf })
    }

    /// What follows the header, link-layer padding included.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.buf.as_ref().get(HEADER_LEN..).unwrap_or_default()
    }

    /// The network layer's protocol and its offset in the frame, behind at most two VLAN tags.
    ///
    /// A third tag, or a tag cut short, is returned as it stands: its tag protocol identifier and offset.
    #[inline]
    pub fn network_layer(&self) -> (u16, usize) {
        let (mut ether_type, mut offset) = (self.ether_type(), HEADER_LEN);
        for _ in 0..2 {
            if !matches!(ether_type, ether_type::VLAN | ether_type::SERVICE_VLAN) {
                break;
            }
            let Some(&[_, _, hi, lo]) = self.buf.as_ref().get(offset..).and_then(<[u8]>::first_chunk) else {
                break;
            };
            ether_type = u16::from_be_bytes([hi, lo]);
            offset += super::vlan::TAG_LEN;
        }
        (ether_type, offset)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ethernet<T> {
    /// What follows the header, to be written.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        self.buf.as_mut().get_mut(HEADER_LEN..).unwrap_or_default()
    }
}

/// The values of an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
    /// EtherType.
    pub ether_type: u16,
}

impl EthernetHeader {
    /// Writes the header.
    #[inline]
    pub fn emit(&self, out: &mut [u8; HEADER_LEN]) {
        let mut view = Ethernet { buf: &mut out[..] };
        view.set_dst(self.dst);
        view.set_src(self.src);
        view.set_ether_type(self.ether_type);
    }
}
