//! Types of element arguments: how each is read from text.

use crate::error::Error;
use crate::names::Scope;
use causeway_lang::{addresses, args, values};
use causeway_packet::Anno;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A type that an argument can have.
pub trait Value: Sized {
    /// Reads the whole of `text`.
    ///
    /// # Errors
    /// It is no value of the type; the words are Click's. An error that is [`Error::whole`] is told as it is, others with the
    /// argument's name in front.
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error>;
    /// Some value, to go on with after an error; it is never used.
    fn placeholder() -> Self;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Value for $t {
            fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
                let n = values::integer(text, <$t>::MIN as i128, <$t>::MAX as i128)?;
                <$t>::try_from(n).map_err(|_| Error::new("out of range"))
            }

            fn placeholder() -> Self {
                0
            }
        }
    )*};
}
integers!(u8, i8, u16, i16, u32, i32, u64, i64, usize);

macro_rules! simple {
    ($t:ty, $read:expr, $placeholder:expr) => {
        impl Value for $t {
            fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
                Ok($read(text)?)
            }

            fn placeholder() -> Self {
                $placeholder
            }
        }
    };
}
simple!(bool, values::boolean, false);
simple!(f64, values::real, 0.0);
simple!(String, values::string, String::new());

/// One that may be left out: given, it is a `T`.
impl<T: Value> Value for Option<T> {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        T::parse(text, scope).map(Some)
    }

    fn placeholder() -> Self {
        None
    }
}

/// A number that is `MIN` or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtLeast<const MIN: u32>(pub u32);

impl<const MIN: u32> Value for AtLeast<MIN> {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let n = u32::parse(text, scope)?;
        if n < MIN { Err(Error::new(format!("must be at least {MIN}"))) } else { Ok(AtLeast(n)) }
    }

    fn placeholder() -> Self {
        AtLeast(MIN)
    }
}

impl<const MIN: u32> std::fmt::Display for AtLeast<MIN> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Values separated by white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        List(Vec::new())
    }
}

impl<T: Value> Value for List<T> {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        args::split_words(text).iter().map(|word| T::parse(word, scope)).collect::<Result<_, _>>().map(List)
    }

    fn placeholder() -> Self {
        List::default()
    }
}

/// The text of an argument as it stands, quotes and all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Raw(pub String);
simple!(Raw, |t: &str| Ok::<_, values::ValueError>(Raw(t.to_owned())), Raw::default());

/// Bytes, from a text with or without quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);
simple!(Bytes, |t| values::string_bytes(t).map(Bytes), Bytes::default());

/// A time in nanoseconds; a number without a unit is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanoseconds(pub u64);
simple!(Nanoseconds, |t| values::time_ns(t, values::SECOND_NS).map(Nanoseconds), Nanoseconds(0));

/// In the largest unit of which it is a whole number, if it is less than a second; else in seconds with six or nine
/// digits.
impl std::fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0 / values::SECOND_NS, self.0 % values::SECOND_NS) {
            (0, ns) if ns % 1_000_000 == 0 => write!(f, "{}ms", ns / 1_000_000),
            (0, ns) if ns % 1_000 == 0 => write!(f, "{}us", ns / 1_000),
            (0, ns) => write!(f, "{ns}ns"),
            (s, ns) if ns % 1_000 == 0 => write!(f, "{s}.{:06}s", ns / 1_000),
            (s, ns) => write!(f, "{s}.{ns:09}s"),
        }
    }
}

/// A rate in bytes a second; a number without a unit is that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytesPerSecond(pub u64);
simple!(BytesPerSecond, |t| values::bandwidth_bytes_per_s(t).map(BytesPerSecond), BytesPerSecond(0));

/// In bits a second, in the largest of Gbps, Mbps and kbps in which it is not less than one, or in kbps.
impl std::fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unit, name, digits) = match self.0 {
            125_000_000.. => (1_000_000_000, "Gbps", 9),
            125_000.. => (1_000_000, "Mbps", 6),
            _ => (1_000, "kbps", 3),
        };
        let bits = u128::from(self.0) * 8;
        let part = format!("{:0digits$}", bits % unit);
        let part = part.trim_end_matches('0');
        let point = if part.is_empty() { "" } else { "." };
        write!(f, "{}{point}{part}{name}", bits / unit)
    }
}

/// A file's name; `-` means standard input or output to some elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filename(pub String);
simple!(
    Filename,
    |t| values::filename(t, std::env::var("HOME").ok().as_deref()).map(Filename),
    Filename::default()
);

/// An Ethernet address; written as Click writes it, in capitals with hyphens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ether(pub [u8; 6]);

impl std::fmt::Display for Ether {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{g:02X}")
    }
}

impl Value for Ether {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let by_name = || named(scope, text, &["eth", "ethernet"]).and_then(|a| a.ether);
        addresses::ether(text).ok().or_else(by_name).map(Ether).ok_or_else(|| Error::new("parse error"))
    }

    fn placeholder() -> Self {
        Ether::default()
    }
}

impl Value for Ipv4Addr {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        addresses::ip(text).ok().or_else(|| ip_of_name(text, scope)).ok_or_else(|| Error::new("parse error"))
    }

    fn placeholder() -> Self {
        Ipv4Addr::UNSPECIFIED
    }
}

/// The address that a name stands for: its own, or that of its network's broadcasts or gateway. Where nobody said
/// what the gateway is, it is the first address of the network.
fn ip_of_name(text: &str, scope: &Scope<'_>) -> Option<Ipv4Addr> {
    if let Some(ip) = scope.get(text).and_then(|a| a.ip) {
        return Some(ip);
    }
    let (name, kind) = text.rsplit_once(':')?;
    let known = scope.get(name)?;
    let network = known.ip_net.map(|(address, len)| (u32::from(address), mask4(len)));
    match kind.to_ascii_lowercase().as_str() {
        "ip" | "ip4" => known.ip,
        "bcast" => network.map(|(address, mask)| Ipv4Addr::from(address | !mask)),
        "gw" => known.gateway.or(network.map(|(address, mask)| Ipv4Addr::from(address & mask | 1))),
        _ => None,
    }
}

impl Value for Ipv6Addr {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let by_name = || named(scope, text, &["ip6"]).and_then(|a| a.ip6);
        addresses::ip6(text).ok().or_else(by_name).ok_or_else(|| Error::new("parse error"))
    }

    fn placeholder() -> Self {
        Ipv6Addr::UNSPECIFIED
    }
}

/// An IPv4 address with a prefix length: `a.b.c.d/len`, `a.b.c.d/mask`, or a bare address, which is a /32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix4 {
    /// The address as it was written, host bits included.
    pub address: Ipv4Addr,
    /// Prefix length, 0 to 32.
    pub len: u8,
}

/// An IPv6 address with a prefix length, or a bare address, which is a /128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix6 {
    /// The address as it was written, host bits included.
    pub address: Ipv6Addr,
    /// Prefix length, 0 to 128.
    pub len: u8,
}

fn mask4(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - len.min(32) as u32).unwrap_or(0)
}

fn mask6(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - len.min(128) as u32).unwrap_or(0)
}

impl Prefix4 {
    /// The network mask.
    pub fn mask(&self) -> u32 {
        mask4(self.len)
    }

    /// Whether the prefix covers `address`.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ u32::from(self.address)) & self.mask() == 0
    }
}

impl Prefix6 {
    /// The network mask.
    pub fn mask(&self) -> u128 {
        mask6(self.len)
    }
}

impl Prefix4 {
    /// As [`Value::parse`], without bare addresses: a name stands for its network.
    ///
    /// # Errors
    /// It is no prefix, and no name of a network.
    pub fn parse_network(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        if let Ok(written) = addresses::ip_prefix(text, false) {
            let len = written.len().ok_or("the mask has a 0 before a 1")?;
            return Ok(Prefix4 { address: written.address, len });
        }
        if let Some((name, mask)) = text.rsplit_once('/') {
            let mask = addresses::ip_prefix(&format!("0.0.0.0/{mask}"), false).ok().and_then(|p| p.len());
            let named = ip_of_name(name, scope).zip(mask);
            return named
                .map(|(address, len)| Prefix4 { address, len })
                .ok_or_else(|| Error::new("invalid IP address prefix"));
        }
        let known = named(scope, text, &["net", "ipnet", "ip4net"]).and_then(|a| a.ip_net);
        let (address, len) = known.ok_or("invalid IP address prefix")?;
        Ok(Prefix4 { address: Ipv4Addr::from(u32::from(address) & mask4(len)), len })
    }
}

/// A name stands for its address, if it has one, and else for its network.
impl Value for Prefix4 {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        let network = || Prefix4::parse_network(text, scope);
        let address = Ipv4Addr::parse(text, scope).map(|address| Prefix4 { address, len: 32 });
        address.or_else(|_| network()).map_err(|_| Error::new("parse error"))
    }

    fn placeholder() -> Self {
        Prefix4 { address: Ipv4Addr::UNSPECIFIED, len: 0 }
    }
}

/// A name stands for its address, if it has one, and else for its network.
impl Value for Prefix6 {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        if let Ok(written) = addresses::ip6_prefix(text, true) {
            return Ok(Prefix6 { address: written.address, len: written.len });
        }
        if let Ok(address) = Ipv6Addr::parse(text, scope) {
            return Ok(Prefix6 { address, len: 128 });
        }
        let known = named(scope, text, &["ip6net"]).and_then(|a| a.ip6_net);
        let (address, len) = known.ok_or("invalid IPv6 address prefix")?;
        Ok(Prefix6 { address: Ipv6Addr::from(u128::from(address) & mask6(len)), len })
    }

    fn placeholder() -> Self {
        Prefix6 { address: Ipv6Addr::UNSPECIFIED, len: 0 }
    }
}

/// Addresses of a name that may end in `:kind`, one of `kinds`.
fn named(scope: &Scope<'_>, text: &str, kinds: &[&str]) -> Option<crate::names::Addresses> {
    match text.rsplit_once(':') {
        Some((name, kind)) if kinds.contains(&kind) => scope.get(name),
        _ => scope.get(text),
    }
}

/// A place in the annotation area, by name or by offset.
impl Value for Anno {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        if let Some(anno) = Anno::by_name(text) {
            return Ok(anno);
        }
        let offset = u8::parse(text, scope).map_err(|_| Error::new("parse error"))?;
        match (offset as usize) < causeway_packet::meta::ANNO_BYTES {
            true => Ok(Anno { offset, width: 0 }),
            false => Err(Error::new("parse error")),
        }
    }

    fn placeholder() -> Self {
        Anno::PAINT
    }
}

/// A list of words, split at white space outside quotes.
impl Value for Vec<String> {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        Ok(args::split_words(text))
    }

    fn placeholder() -> Self {
        Vec::new()
    }
}

/// The value that was written to `handler`, in the form that arguments of its type have, with the names of `scope`.
///
/// # Errors
/// It is no value of the type.
pub fn written<T: Value>(handler: &str, text: &str, scope: &Scope<'_>) -> Result<T, Error> {
    let named = |why: Error| if why.is_whole() { why } else { why.of(handler) };
    T::parse(text.trim(), scope).map_err(named)
}
