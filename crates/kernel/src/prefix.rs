//! A prefix of either family.

use std::fmt;
use std::net::IpAddr;

use causeway_fib::{Prefix4, Prefix6};

use crate::model::Family;

/// A prefix of either family, as the tables take it.
///
/// The order is by family, then address, then length, so that all prefixes inside one are a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Prefix {
    /// Of IPv4.
    V4(Prefix4),
    /// Of IPv6.
    V6(Prefix6),
}

impl Prefix {
    /// The prefix of `len` bits that `address` is in; lengths beyond the address's are cut to it.
    pub fn new(address: IpAddr, len: u8) -> Self {
        match address {
            IpAddr::V4(v4) => Prefix::V4(Prefix4::truncated(v4.to_bits(), len)),
            IpAddr::V6(v6) => Prefix::V6(Prefix6::truncated(v6.to_bits(), len)),
        }
    }

    /// The prefix that holds this one address.
    pub fn host(address: IpAddr) -> Self {
        Prefix::new(address, u8::MAX)
    }

    /// The prefix that holds every address of a family.
    pub fn all(family: Family) -> Self {
        match family {
            Family::V4 => Prefix::V4(Prefix4::DEFAULT),
            Family::V6 => Prefix::V6(Prefix6::DEFAULT),
        }
    }

    /// The first address.
    pub fn address(self) -> IpAddr {
        match self {
            Prefix::V4(prefix) => IpAddr::V4(prefix.first().into()),
            Prefix::V6(prefix) => IpAddr::V6(prefix.first().into()),
        }
    }

    /// The last address.
    pub fn last(self) -> IpAddr {
        match self {
            Prefix::V4(prefix) => IpAddr::V4(prefix.last().into()),
            Prefix::V6(prefix) => IpAddr::V6(prefix.last().into()),
        }
    }

    /// Length in bits.
    #[allow(clippy::len_without_is_empty)] // A length in bits; a prefix is never empty.
    pub fn len(self) -> u8 {
        match self {
            Prefix::V4(prefix) => prefix.len(),
            Prefix::V6(prefix) => prefix.len(),
        }
    }

    /// The family.
    pub fn family(self) -> Family {
        match self {
            Prefix::V4(_) => Family::V4,
            Prefix::V6(_) => Family::V6,
        }
    }

    /// Whether the prefix holds one address only.
    pub fn is_host(self) -> bool {
        self.len() == self.family().bits()
    }

    /// Whether all of `other` is in the prefix.
    pub fn covers(self, other: Prefix) -> bool {
        self.len() <= other.len() && self.contains(other.address())
    }

    /// Whether `address` is in the prefix.
    pub fn contains(self, address: IpAddr) -> bool {
        Prefix::new(address, self.len()) == self
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prefix::V4(prefix) => prefix.fmt(f),
            Prefix::V6(prefix) => prefix.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_is_a_range() {
        let outer = Prefix::new("10.1.0.0".parse().unwrap(), 16);
        let last = Prefix::host(outer.last());
        for (text, len, inside) in [
            ("10.1.0.0", 17, true),
            ("10.1.255.255", 32, true),
            ("10.0.0.0", 8, false),
            ("10.2.0.0", 16, false),
        ] {
            let inner = Prefix::new(text.parse().unwrap(), len);
            assert_eq!(inner > outer && inner <= last, inside, "{inner}");
            assert_eq!(outer.contains(inner.address()) && inner.len() > 16, inside, "{inner}");
        }
        assert!(!outer.contains("a01::".parse().unwrap()), "the families are apart");
    }

    #[test]
    fn a_host_is_the_longest_prefix() {
        assert_eq!(Prefix::host("10.0.0.1".parse().unwrap()).to_string(), "10.0.0.1/32");
        assert!(Prefix::new("2001:db8::1".parse().unwrap(), 128).is_host());
        assert!(!Prefix::all(Family::V6).is_host());
    }
}
