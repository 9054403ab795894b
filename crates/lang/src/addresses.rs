//! Addresses and service names in configuration strings.
//!
//! Only literal forms are read here; names that a configuration defines are the business of whoever knows the
//! configuration.

use crate::values::{ValueError, integer};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 prefix. The mask need not be contiguous, and the address keeps its host bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix4 {
    /// The address as written.
    pub address: Ipv4Addr,
    /// The mask.
    pub mask: Ipv4Addr,
}

impl Prefix4 {
    /// The number of leading one bits, if the mask is nothing but these.
    pub fn len(self) -> Option<u8> {
        let bits = self.mask.to_bits();
        let ones = bits.leading_ones();
        (ones == bits.count_ones()).then_some(ones as u8)
    }

    /// Whether the mask is empty, so that every address matches.
    pub fn is_empty(self) -> bool {
        self.mask.to_bits() == 0
    }

    /// Whether an address lies in the prefix.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        let mask = self.mask.to_bits();
        address.to_bits() & mask == self.address.to_bits() & mask
    }
}

/// An IPv6 prefix; the address keeps its host bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix6 {
    /// The address as written.
    pub address: Ipv6Addr,
    /// Length in bits, at most 128.
    pub len: u8,
}

/// An Ethernet address in transmission order.
pub type EtherAddress = [u8; 6];

const IP: ValueError = ValueError::InvalidAddress("IP address");
const PREFIX: ValueError = ValueError::InvalidAddress("IP address prefix");
const IP6: ValueError = ValueError::InvalidAddress("IPv6 address");
const PREFIX6: ValueError = ValueError::InvalidAddress("IPv6 address prefix");
const ETHER: ValueError = ValueError::InvalidAddress("Ethernet address");

/// Decimal bytes between dots; `None` if there are none, more than four, or one above 255.
fn dotted(text: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = text
        .split('.')
        .map(|part| {
            let legal = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            if legal { part.parse().ok() } else { None }
        })
        .collect();
    bytes.filter(|b| b.len() <= 4)
}

/// An IPv4 address: exactly four decimal bytes.
///
/// # Errors
/// [`ValueError::InvalidAddress`]: `text` is none.
pub fn ip(text: &str) -> Result<Ipv4Addr, ValueError> {
    let bytes: [u8; 4] = dotted(text).and_then(|b| b.try_into().ok()).ok_or(IP)?;
    Ok(bytes.into())
}

/// An IPv4 prefix: `a.b.c.d/len`, `a.b/len` with missing bytes zero, or `address/mask`. With `allow_bare`, an
/// address alone stands for a prefix of 32 bits.
///
/// # Errors
/// [`ValueError::InvalidAddress`]: `text` is none.
pub fn ip_prefix(text: &str, allow_bare: bool) -> Result<Prefix4, ValueError> {
    let Some((address, mask)) = text.split_once('/') else {
        let address = ip(text).map_err(|_| PREFIX)?;
        let host = Prefix4 { address, mask: Ipv4Addr::BROADCAST };
        return if allow_bare { Ok(host) } else { Err(PREFIX) };
    };
    let mask = match prefix_length(mask, 32) {
        Some(len) => Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)),
        None => ip(mask).map_err(|_| PREFIX)?,
    };
    let mut bytes = dotted(address).ok_or(PREFIX)?;
    bytes.resize(4, 0);
    let address = Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]);
    Ok(Prefix4 { address, mask })
}

fn prefix_length(text: &str, most: u8) -> Option<u8> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&len: &u8| digits && len <= most)
}

/// An IPv6 address in the forms of RFC 4291 section 2.2.
///
/// # Errors
/// [`ValueError::InvalidAddress`]: `text` is none.
pub fn ip6(text: &str) -> Result<Ipv6Addr, ValueError> {
    text.parse().map_err(|_| IP6)
}

/// An IPv6 prefix: `address/len`; with `allow_bare`, an address alone stands for 128 bits.
///
/// # Errors
/// [`ValueError::InvalidAddress`]: `text` is none.
pub fn ip6_prefix(text: &str, allow_bare: bool) -> Result<Prefix6, ValueError> {
    let (address, len) = match text.split_once('/') {
        Some((address, len)) => {
            (address, prefix_length(len, 128).or_else(|| mask_length(len)).ok_or(PREFIX6)?)
        }
        None if allow_bare => (text, 128),
        None => return Err(PREFIX6),
    };
    Ok(Prefix6 { address: ip6(address).map_err(|_| PREFIX6)?, len })
}

/// The length of the prefix of which `text` is the mask, written as an address.
fn mask_length(text: &str) -> Option<u8> {
    let mask = u128::from(ip6(text).ok()?);
    let len = mask.leading_ones();
    (len + mask.trailing_zeros() >= 128).then_some(len as u8)
}

/// An Ethernet address: six groups of one or two hexadecimal digits, all separated by `:` or all by `-`.
///
/// # Errors
/// [`ValueError::InvalidAddress`]: `text` is none.
pub fn ether(text: &str) -> Result<EtherAddress, ValueError> {
    let separator = if text.contains(':') { ':' } else { '-' };
    let groups: Option<Vec<u8>> = text
        .split(separator)
        .map(|group| {
            let legal = (1..=2).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit());
            if legal { u8::from_str_radix(group, 16).ok() } else { None }
        })
        .collect();
    groups.and_then(|g| g.try_into().ok()).ok_or(ETHER)
}

/// The transports whose services have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Well-known services: name, whether over TCP and over UDP, port (IANA Service Name and Port Number Registry).
const SERVICES: &[(&str, bool, bool, u16)] = &[
    ("echo", true, true, 7),
    ("discard", true, true, 9),
    ("daytime", true, true, 13),
    ("chargen", true, true, 19),
    ("ftp-data", true, false, 20),
    ("ftp", true, false, 21),
    ("ssh", true, false, 22),
    ("telnet", true, false, 23),
    ("smtp", true, false, 25),
    ("time", true, true, 37),
    ("domain", true, true, 53),
    ("dns", true, true, 53),
    ("bootps", false, true, 67),
    ("bootpc", false, true, 68),
    ("tftp", false, true, 69),
    ("finger", true, false, 79),
    ("http", true, true, 80),
    ("www", true, true, 80),
    ("kerberos", true, true, 88),
    ("pop3", true, false, 110),
    ("sunrpc", true, true, 111),
    ("auth", true, false, 113),
    ("nntp", true, false, 119),
    ("ntp", false, true, 123),
    ("netbios-ns", true, true, 137),
    ("netbios-dgm", true, true, 138),
    ("netbios-ssn", true, true, 139),
    ("imap2", true, false, 143),
    ("imap", true, false, 143),
    ("imap3", true, true, 220),
    ("snmp", true, true, 161),
    ("snmp-trap", true, true, 162),
    ("bgp", true, false, 179),
    ("irc", true, true, 194),
    ("ldap", true, true, 389),
    ("https", true, true, 443),
    ("submission", true, false, 587),
    ("syslog", false, true, 514),
    ("rip", false, true, 520),
    ("route", false, true, 520),
    ("ldaps", true, true, 636),
    ("domain-s", true, true, 853),
    ("imaps", true, false, 993),
    ("pop3s", true, false, 995),
    ("l2tp", false, true, 1701),
    ("pptp", true, false, 1723),
    ("radius", true, true, 1812),
    ("nfs", true, true, 2049),
    ("bfd-control", true, true, 3784),
    ("sip", true, true, 5060),
    ("vxlan", false, true, 4789),
    ("x11", true, false, 6000),
];

/// A TCP or UDP port: a number or a service's name.
///
/// # Errors
/// [`ValueError::Parse`]: `text` is neither.
pub fn port(text: &str, transport: Transport) -> Result<u16, ValueError> {
    let over = |&&(name, tcp, udp, _): &&(&str, bool, bool, u16)| {
        name == text && if transport == Transport::Tcp { tcp } else { udp }
    };
    if let Some(service) = SERVICES.iter().find(over) {
        return Ok(service.3);
    }
    integer(text, 0, 65_535).map(|n| n as u16).map_err(|_| ValueError::Parse)
}

/// IP protocols by name (IANA Protocol Numbers registry).
const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("egp", 8),
    ("igp", 9),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmp6", 58),
    ("icmpv6", 58),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
    ("udplite", 136),
];

/// An IP protocol: a number or a name.
///
/// # Errors
/// [`ValueError::InvalidNumber`] or [`ValueError::OutOfRange`]: `text` is no name, and no number of eight bits.
pub fn protocol(text: &str) -> Result<u8, ValueError> {
    let is = |name: &str| name == text || name.to_ascii_uppercase() == text;
    match PROTOCOLS.iter().find(|(name, _)| is(name)) {
        Some(&(_, number)) => Ok(number),
        None => integer(text, 0, 255).map(|n| n as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_addresses_have_four_decimal_bytes() {
        assert_eq!(ip("1.2.3.255"), Ok(Ipv4Addr::new(1, 2, 3, 255)));
        for text in ["", "1.2.3", "1.2.3.256", "1.2.3.4.5", "1..3.4", "1.2.3.+4", "1.2.3.4 ", "0x1.2.3.4"] {
            assert_eq!(ip(text), Err(IP), "{text}");
        }
    }

    #[test]
    fn prefixes() {
        let prefix = |text| ip_prefix(text, false).map(|p| (p.address.to_string(), p.len()));
        assert_eq!(prefix("10.1.2.3/8"), Ok(("10.1.2.3".into(), Some(8))));
        assert_eq!(prefix("18.26/16"), Ok(("18.26.0.0".into(), Some(16))));
        assert_eq!(prefix("0/0"), Ok(("0.0.0.0".into(), Some(0))));
        assert_eq!(prefix("1.2.3.4/32"), Ok(("1.2.3.4".into(), Some(32))));
        assert_eq!(prefix("1.2.3.4/255.255.0.0"), Ok(("1.2.3.4".into(), Some(16))));
        assert_eq!(prefix("1.2.3.4/255.0.255.0"), Ok(("1.2.3.4".into(), None)));
        assert_eq!(ip_prefix("1.2.3.4", true).map(Prefix4::len), Ok(Some(32)));
        for text in ["1.2.3.4", "1.2.3.4/33", "1.2.3.4/", "/8", "1.2.3.4/255.0", "1.2.3.4/+8"] {
            assert_eq!(ip_prefix(text, false), Err(PREFIX), "{text}");
        }
        let p = ip_prefix("1.2.3.4/255.0.255.0", false).unwrap();
        assert!(p.contains(Ipv4Addr::new(1, 9, 3, 9)) && !p.contains(Ipv4Addr::new(1, 9, 4, 9)));
        assert!(ip_prefix("9.9.9.9/0", false).unwrap().contains(Ipv4Addr::BROADCAST));
    }

    #[test]
    fn ip6_addresses() {
        assert_eq!(ip6("::1.2.3.4").map(|a| a.to_bits()), Ok(0x0102_0304));
        assert_eq!(ip6_prefix("fe80::/10", false).map(|p| p.len), Ok(10));
        assert_eq!(ip6_prefix("fe80::/ffc0::", false).map(|p| p.len), Ok(10));
        assert_eq!(ip6_prefix("::/::", false).map(|p| p.len), Ok(0));
        assert_eq!(ip6_prefix("fe80::/ff40::", false), Err(PREFIX6));
        assert_eq!(ip6_prefix("::/129", false), Err(PREFIX6));
        assert_eq!(ip6_prefix("::", false), Err(PREFIX6));
        assert_eq!(ip6_prefix("::", true).map(|p| p.len), Ok(128));
    }

    #[test]
    fn ether_addresses_have_one_separator() {
        assert_eq!(ether("0:1:2:aA:b:ff"), Ok([0, 1, 2, 0xaa, 0xb, 0xff]));
        assert_eq!(ether("00-01-02-03-04-05"), Ok([0, 1, 2, 3, 4, 5]));
        for text in ["0:1:2:3:4", "0:1:2:3:4-5", "000:1:2:3:4:5", "0:1:2:3:4:+5", "", "0:1:2:3:4:g"] {
            assert_eq!(ether(text), Err(ETHER), "{text}");
        }
    }

    #[test]
    fn services_and_protocols() {
        assert_eq!(port("domain", Transport::Udp), Ok(53));
        assert_eq!(port("smtp", Transport::Udp), Err(ValueError::Parse));
        assert_eq!(port("0x50", Transport::Tcp), Ok(80));
        assert_eq!(port("65536", Transport::Tcp), Err(ValueError::Parse));
        assert_eq!((protocol("ospf"), protocol("ICMP"), protocol("Icmp").is_err()), (Ok(89), Ok(1), true));
        assert_eq!(protocol("256"), Err(ValueError::OutOfRange("255".into())));
    }
}
