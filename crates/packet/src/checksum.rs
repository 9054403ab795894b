//! The internet checksum: whole (RFC 1071), over pseudo-headers, and incremental (RFC 1624).
//!
//! A [`Sum`] is an unfinished one's-complement sum. It is kept in the machine's own byte order, because the sum
//! of byte-swapped words is the byte-swapped sum (RFC 1071 §2 (B)); only [`Sum::fold`] turns it round. Every
//! `u16` that enters or leaves the public functions is the number one reads in the header, most significant
//! byte first.
//!
//! # The two zeros
//!
//! One's complement has two zeros, 0x0000 (+0) and 0xffff (-0). Adding words gives +0 only when every word is
//! zero, which no packet's header is; otherwise a sum that vanishes comes out as -0. So a stored checksum, the
//! complement, can be 0x0000 but never 0xffff for a header with anything in it.
//!
//! * The incremental update must keep to this. RFC 1141's `HC + m + ~m'` does not (it can give 0xffff where the
//!   whole sum gives 0x0000), so [`update_u16`] follows equation 3 of RFC 1624, `~(~HC + ~m + m')`, which gives
//!   the very bits of the recomputed checksum, as long as the old one was right and the data, with the change
//!   made, are not all zero. No IP header is; nor is anything under a pseudo-header. An ICMP echo reply can be.
//! * UDP uses 0x0000 for "no checksum" and sends 0xffff in its place (RFC 768); the two verify alike. The UDP
//!   view does that substitution, here there is none.

use core::net::{Ipv4Addr, Ipv6Addr};

/// An unfinished one's-complement sum of 16-bit words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    #[inline]
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds bytes as big-endian 16-bit words, an odd last byte padded with a zero (RFC 1071 §1).
    ///
    /// A sum over several parts is right only if every part but the last has even length.
    #[inline]
    #[must_use]
    pub fn bytes(self, data: &[u8]) -> Self {
        Self(self.0 + sum_words(data))
    }

    /// Adds the words of a fixed-size piece, such as an option-less header; `N` is even.
    #[inline]
    #[must_use]
    pub fn array<const N: usize>(self, data: &[u8; N]) -> Self {
        const { assert!(N.is_multiple_of(2) && N <= 64) };
        Self(self.0 + sum_words(data))
    }

    /// Adds one 16-bit word.
    #[inline]
    #[must_use]
    pub const fn word(self, word: u16) -> Self {
        Self(self.0 + word.to_be() as u64)
    }

    /// The sum as a 16-bit number, carries brought round.
    #[inline]
    pub const fn fold(self) -> u16 {
        let sum = reduce(self.0);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        u16::from_be(sum as u16)
    }

    /// The checksum: the complement of the sum.
    #[inline]
    pub const fn finish(self) -> u16 {
        !self.fold()
    }
}

/// Brings the carries of a sum round, to 33 bits at most.
#[inline]
const fn reduce(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

/// Sums the words of `data`, eight bytes at a time, to a few bits more than 32.
///
/// Since 2^16 leaves 1 when divided by 2^16 - 1, so do 2^32 and 2^64: wide words add up like narrow ones, and
/// the upper half of a 128-bit accumulator counts the carries. The compiler makes that an add and an
/// add-with-carry; two accumulators let the two chains overlap.
#[inline]
fn sum_words(data: &[u8]) -> u64 {
    let (words, mut rest) = data.as_chunks::<8>();
    let (pairs, single) = words.as_chunks::<2>();
    let (mut even, mut odd) = (0u128, 0u128);
    for [first, second] in pairs {
        even += u128::from(u64::from_ne_bytes(*first));
        odd += u128::from(u64::from_ne_bytes(*second));
    }
    if let [word] = single {
        even += u128::from(u64::from_ne_bytes(*word));
    }
    if let Some((word, tail)) = rest.split_first_chunk::<4>() {
        odd += u128::from(u32::from_ne_bytes(*word));
        rest = tail;
    }
    if let Some((word, tail)) = rest.split_first_chunk::<2>() {
        odd += u128::from(u16::from_ne_bytes(*word));
        rest = tail;
    }
    if let [last] = rest {
        odd += u128::from(u16::from_ne_bytes([*last, 0]));
    }
    let sum = even + odd;
    reduce(sum as u64) + (sum >> 64) as u64
}

/// The checksum of `data`, with the checksum field in it taken as it stands: zero it first.
#[inline]
pub fn checksum(data: &[u8]) -> u16 {
    Sum::new().bytes(data).finish()
}

/// Whether `data`, checksum field included, sums to -0 (RFC 1071 §1 (3)).
#[inline]
pub fn verify(data: &[u8]) -> bool {
    Sum::new().bytes(data).fold() == 0xffff
}

/// As [`verify`], of an IPv4 header without options.
///
/// What wide words add up to is -0 if it is a multiple of 2^16 - 1 and not 0. The product with the inverse of 2^16 - 1
/// modulo 2^64 is the quotient of a multiple, and larger than any quotient for other numbers: no carry is brought round.
#[inline]
pub fn verify_ipv4_header(header: &[u8; 20]) -> bool {
    const GREATEST_QUOTIENT: u64 = u64::MAX / 0xffff;
    const INVERSE: u64 = GREATEST_QUOTIENT.wrapping_neg();
    const { assert!(INVERSE.wrapping_mul(0xffff) == 1) };
    let (words, _) = header.as_chunks::<4>();
    let sum: u64 = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum();
    (1..=GREATEST_QUOTIENT).contains(&sum.wrapping_mul(INVERSE))
}

/// The IPv4 pseudo-header of UDP (RFC 768) and TCP (RFC 9293 §3.1); `length` is in bytes.
#[inline]
pub const fn pseudo_header_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, length: u16) -> Sum {
    let addresses = src.to_bits().to_be() as u64 + dst.to_bits().to_be() as u64;
    Sum(addresses).word(protocol as u16).word(length)
}

/// The IPv6 pseudo-header (RFC 8200 §8.1); `length` is in bytes.
#[inline]
pub fn pseudo_header_v6(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, length: u32) -> Sum {
    let length = Sum(u64::from(length.to_be()));
    length.array(&src.octets()).array(&dst.octets()).word(u16::from(next_header))
}

/// The checksum after a 16-bit word changed from `old` to `new` (RFC 1624 equation 3).
///
/// The word must lie at an even offset of the checksummed data.
#[inline]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The checksum after a 32-bit field, such as an address, changed from `old` to `new`.
#[inline]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let sum = !checksum as u64 + !old as u64 + new as u64;
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The IPv4 header checksum after the TTL, not 0 before, went down by one.
///
/// TTL is the upper byte of its word, so `~m + m'` is `0xffff - 0x0100` whatever the word was, and [`update_u16`] comes to
/// adding 0x0100 with the carry brought round; only where that gives -0 it gives +0, one more.
#[inline]
pub const fn decrement_ttl(checksum: u16) -> u16 {
    checksum.wrapping_add(0x0100 + (checksum >= 0xfeff) as u16)
}
