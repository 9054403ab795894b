//! Prefixes: an address and a length, always with the host bits clear.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::address::Address;
use crate::error::PrefixError;

/// A prefix of the address space; the bits after its length are zero.
///
/// Prefixes order by address and then by length, so that a prefix stands right before everything it covers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    address: A,
    len: u8,
}

/// An IPv4 prefix.
pub type Prefix4 = Prefix<u32>;
/// An IPv6 prefix.
pub type Prefix6 = Prefix<u128>;

/// A prefix as someone wrote it: [`Prefix`] plus whether host bits had to be cleared.
///
/// Click accepts `10.0.0.1/8` and means `10.0.0.0/8`; the flag lets the caller warn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenPrefix<A: Address> {
    /// The prefix, host bits cleared.
    pub prefix: Prefix<A>,
    /// True if bits after the length were set.
    pub host_bits_set: bool,
}

impl<A: Address> Prefix<A> {
    /// The prefix of length zero, which covers everything.
    pub const DEFAULT: Prefix<A> = Prefix { address: A::ZERO, len: 0 };

    /// The prefix of `len` bits around `address`; host bits are cleared.
    ///
    /// # Errors
    /// [`PrefixError::Length`] if `len` is above [`Address::BITS`].
    pub fn new(address: A, len: u8) -> Result<Prefix<A>, PrefixError> {
        if len > A::BITS {
            return Err(PrefixError::Length { len: u32::from(len), longest: A::BITS });
        }
        Ok(Prefix { address: address & A::mask(len), len })
    }

    /// The prefix of `len` bits around `address`, with a length above the longest cut to it.
    #[inline]
    #[must_use]
    pub fn truncated(address: A, len: u8) -> Prefix<A> {
        let len = len.min(A::BITS);
        Prefix { address: address & A::mask(len), len }
    }

    /// The prefix that covers one address only.
    #[inline]
    #[must_use]
    pub fn host(address: A) -> Prefix<A> {
        Prefix { address, len: A::BITS }
    }

    /// The lowest address covered.
    #[inline]
    #[must_use]
    pub fn first(self) -> A {
        self.address
    }

    /// The highest address covered.
    #[inline]
    #[must_use]
    pub fn last(self) -> A {
        self.address | !A::mask(self.len)
    }

    /// The length in bits.
    #[inline]
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a length in bits; a prefix is never empty
    pub fn len(self) -> u8 {
        self.len
    }

    /// Whether the prefix holds `address`.
    #[inline]
    #[must_use]
    pub fn contains(self, address: A) -> bool {
        address & A::mask(self.len) == self.address
    }

    /// Whether every address of `other` is in this prefix; a prefix covers itself.
    #[inline]
    #[must_use]
    pub fn covers(self, other: Prefix<A>) -> bool {
        self.len <= other.len && self.contains(other.address)
    }
}

impl From<Ipv4Addr> for Prefix4 {
    /// The prefix that covers one address only.
    fn from(address: Ipv4Addr) -> Self {
        Prefix::host(address.into())
    }
}

impl From<Ipv6Addr> for Prefix6 {
    /// The prefix that covers one address only.
    fn from(address: Ipv6Addr) -> Self {
        Prefix::host(address.into())
    }
}

/// Those of `prefixes`, which are in order, that no other covers, each cut to `len` bits at most.
pub(crate) fn outermost<A: Address>(prefixes: &[Prefix<A>], len: u8) -> impl Iterator<Item = Prefix<A>> {
    let mut before: Option<Prefix<A>> = None;
    let cut = prefixes.iter().map(move |prefix| Prefix::truncated(prefix.first(), prefix.len().min(len)));
    cut.filter(move |&prefix| {
        let is_new = before.is_none_or(|before| !before.covers(prefix));
        if is_new {
            before = Some(prefix);
        }
        is_new
    })
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address.to_ip(), self.len)
    }
}

impl<A: Address> fmt::Debug for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn parse_address<A: Address>(text: &str) -> Result<A, PrefixError> {
    let ip: IpAddr = text.parse().map_err(|_| PrefixError::Syntax(text.to_owned()))?;
    A::from_ip(ip).ok_or_else(|| PrefixError::Family(text.to_owned()))
}

fn parse_len<A: Address>(text: &str) -> Result<u8, PrefixError> {
    if let Ok(len) = text.parse::<u32>() {
        return u8::try_from(len)
            .ok()
            .filter(|&len| len <= A::BITS)
            .ok_or(PrefixError::Length { len, longest: A::BITS });
    }
    let mask: A = parse_address(text)?;
    let len = (!mask).leading_zeros() as u8;
    if mask == A::mask(len) { Ok(len) } else { Err(PrefixError::Mask(text.to_owned())) }
}

impl<A: Address> FromStr for WrittenPrefix<A> {
    type Err = PrefixError;

    /// Reads `address`, `address/length` or `address/netmask`; a bare address is a host prefix.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (parse_address(address)?, parse_len::<A>(len)?),
            None => (parse_address(text)?, A::BITS),
        };
        let prefix = Prefix::new(address, len)?;
        Ok(WrittenPrefix { prefix, host_bits_set: prefix.address != address })
    }
}

impl<A: Address> FromStr for Prefix<A> {
    type Err = PrefixError;

    /// As [`WrittenPrefix`], dropping the note about host bits.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        text.parse::<WrittenPrefix<A>>().map(|written| written.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lengths_masks_and_hosts() {
        let written: WrittenPrefix<u32> = "10.1.2.3/8".parse().unwrap();
        assert_eq!(written.prefix.to_string(), "10.0.0.0/8");
        assert!(written.host_bits_set);
        let exact: WrittenPrefix<u32> = "10.0.0.0/255.0.0.0".parse().unwrap();
        assert_eq!(exact, WrittenPrefix { prefix: written.prefix, host_bits_set: false });
        assert_eq!("1.2.3.4".parse::<Prefix4>().unwrap().len(), 32);
        assert_eq!("2001:db8::1/32".parse::<Prefix6>().unwrap().to_string(), "2001:db8::/32");
        assert_eq!("0.0.0.0/0".parse::<Prefix4>().unwrap(), Prefix4::DEFAULT);
        assert_eq!(Prefix4::from(Ipv4Addr::new(10, 0, 0, 1)).to_string(), "10.0.0.1/32");
        assert_eq!(Prefix6::from(Ipv6Addr::LOCALHOST).to_string(), "::1/128");
    }

    #[test]
    fn refuses_what_is_not_a_prefix() {
        assert!(matches!(
            "10.0.0.0/33".parse::<Prefix4>(),
            Err(PrefixError::Length { len: 33, longest: 32 })
        ));
        assert!(matches!("10.0.0.0/255.0.255.0".parse::<Prefix4>(), Err(PrefixError::Mask(_))));
        assert!(matches!("::/0".parse::<Prefix4>(), Err(PrefixError::Family(_))));
        assert!(matches!("10.0.0/8".parse::<Prefix4>(), Err(PrefixError::Syntax(_))));
        assert!(Prefix6::new(0, 129).is_err());
    }

    #[test]
    fn a_prefix_stands_right_before_what_it_covers() {
        let outer: Prefix4 = "10.0.0.0/8".parse().unwrap();
        let inner: Prefix4 = "10.0.0.0/9".parse().unwrap();
        let next: Prefix4 = "11.0.0.0/8".parse().unwrap();
        assert!(outer < inner && inner < next);
        assert!(outer.covers(inner) && outer.covers(outer) && !inner.covers(outer) && !outer.covers(next));
        assert_eq!((outer.first(), outer.last()), (0x0a00_0000, 0x0aff_ffff));
    }
}
