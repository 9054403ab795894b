//! The two address families behind one trait, so that every table is written once.

use std::fmt::Debug;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

/// An IP address as an unsigned integer in host order: `u32` for IPv4, `u128` for IPv6.
///
/// Bit 0 is the most significant one, as prefix lengths count. An `Ipv4Addr` or `Ipv6Addr` turns into one by `into`, and
/// what a packet holds by `from_be_bytes`.
pub trait Address:
    Copy
    + Ord
    + Hash
    + Debug
    + Default
    + Send
    + Sync
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + 'static
{
    /// Width of an address in bits, which is also the longest prefix length.
    const BITS: u8;
    /// The lowest address.
    const ZERO: Self;
    /// The highest address.
    const MAX: Self;

    /// Number of leading zero bits.
    fn leading_zeros(self) -> u32;

    /// Number of trailing zero bits.
    fn trailing_zeros(self) -> u32;

    /// The next address, or `None` past the highest.
    fn successor(self) -> Option<Self>;

    /// The low 32 bits.
    fn low_u32(self) -> u32;

    /// An address whose low bits are `value`.
    fn from_u32(value: u32) -> Self;

    /// The address for display.
    fn to_ip(self) -> IpAddr;

    /// The address out of its textual family, or `None` for the other family.
    fn from_ip(ip: IpAddr) -> Option<Self>;

    /// The network mask of a prefix length; lengths above [`Self::BITS`] count as [`Self::BITS`].
    #[inline]
    fn mask(len: u8) -> Self {
        match len {
            0 => Self::ZERO,
            n if n >= Self::BITS => Self::MAX,
            n => Self::MAX << u32::from(Self::BITS - n),
        }
    }

    /// Number of leading bits two addresses share.
    #[inline]
    fn common_bits(self, other: Self) -> u8 {
        (self ^ other).leading_zeros() as u8
    }

    /// Bits `from .. from + width` as a number; bits past the end read as zero, `width` is at most 32.
    #[inline]
    fn bits(self, from: u8, width: u8) -> u32 {
        if width == 0 || from >= Self::BITS {
            return 0;
        }
        let left = self << u32::from(from);
        (left >> u32::from(Self::BITS - width)).low_u32()
    }
}

impl Address for u32 {
    const BITS: u8 = 32;
    const ZERO: u32 = 0;
    const MAX: u32 = u32::MAX;

    #[inline]
    fn leading_zeros(self) -> u32 {
        u32::leading_zeros(self)
    }

    #[inline]
    fn trailing_zeros(self) -> u32 {
        u32::trailing_zeros(self)
    }

    #[inline]
    fn successor(self) -> Option<u32> {
        self.checked_add(1)
    }

    #[inline]
    fn low_u32(self) -> u32 {
        self
    }

    #[inline]
    fn from_u32(value: u32) -> u32 {
        value
    }

    fn to_ip(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(self))
    }

    fn from_ip(ip: IpAddr) -> Option<u32> {
        match ip {
            IpAddr::V4(v4) => Some(v4.into()),
            IpAddr::V6(_) => None,
        }
    }
}

impl Address for u128 {
    const BITS: u8 = 128;
    const ZERO: u128 = 0;
    const MAX: u128 = u128::MAX;

    #[inline]
    fn leading_zeros(self) -> u32 {
        u128::leading_zeros(self)
    }

    #[inline]
    fn trailing_zeros(self) -> u32 {
        u128::trailing_zeros(self)
    }

    #[inline]
    fn successor(self) -> Option<u128> {
        self.checked_add(1)
    }

    #[inline]
    fn low_u32(self) -> u32 {
        self as u32
    }

    #[inline]
    fn from_u32(value: u32) -> u128 {
        u128::from(value)
    }

    fn to_ip(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from(self))
    }

    fn from_ip(ip: IpAddr) -> Option<u128> {
        match ip {
            IpAddr::V4(_) => None,
            IpAddr::V6(v6) => Some(v6.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_bit_fields_hold_at_both_ends() {
        assert_eq!(u32::mask(0), 0);
        assert_eq!(u32::mask(1), 0x8000_0000);
        assert_eq!(u32::mask(32), u32::MAX);
        assert_eq!(u128::mask(128), u128::MAX);
        assert_eq!(0x1234_5678_u32.bits(0, 16), 0x1234);
        assert_eq!(0x1234_5678_u32.bits(28, 4), 0x8);
        assert_eq!(0x1234_5678_u32.bits(28, 8), 0x80, "bits past the end read as zero");
        assert_eq!(0x1234_5678_u32.bits(32, 8), 0);
        assert_eq!((1_u128 << 64).bits(32, 32), 1);
    }
}
