//! The checksum against a word-at-a-time implementation straight from RFC 1071, and the RFCs' own examples.

use causeway_packet::checksum::{self, Sum};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// RFC 1071 §1 to the letter: add 16-bit words, bring each carry round at once.
fn naive_sum(data: &[u8]) -> u16 {
    data.chunks(2).fold(0u16, |sum, pair| {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

/// `header` with a right checksum at offset 10.
fn filled(mut header: [u8; 20]) -> [u8; 20] {
    header[10..12].fill(0);
    let sum = !naive_sum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

fn word(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

#[test]
fn example_of_rfc_1071() {
    // §3: the sum of these bytes is ddf2.
    let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::new().bytes(&data).fold(), 0xddf2);
    assert_eq!(checksum::checksum(&data), !0xddf2);
}

#[test]
fn example_of_rfc_1624() {
    // §4: equation 3 gives 0000 where RFC 1141 gives ffff.
    assert_eq!(checksum::update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
}

#[test]
fn empty_and_all_ones() {
    assert_eq!(Sum::new().fold(), 0);
    assert_eq!(checksum::checksum(&[]), 0xffff);
    // The longest runs of the largest words: every carry there is.
    for len in [1, 2, 3, 7, 20, 63, 64, 65, 1500, 65_535, 65_536, 1 << 20] {
        let data = vec![0xff; len];
        assert_eq!(Sum::new().bytes(&data).fold(), naive_sum(&data), "{len} bytes");
    }
}

#[test]
fn ttl_decrement_of_every_checksum() {
    for check in 0..=u16::MAX {
        for ttl_protocol in [0x0100, 0x01ff, 0x4011, 0xff00, 0xffff] {
            let general = checksum::update_u16(check, ttl_protocol, ttl_protocol - 0x100);
            assert_eq!(checksum::decrement_ttl(check), general, "{check:04x} {ttl_protocol:04x}");
        }
    }
}

#[test]
fn headers_verify_at_both_ends_of_the_sums() {
    assert!(!checksum::verify_ipv4_header(&[0; 20]), "+0 is no header's sum");
    assert!(checksum::verify_ipv4_header(&[0xff; 20]));
    for byte in 0..20 {
        let mut header = [0xff; 20];
        header[byte] = 0;
        assert!(!checksum::verify_ipv4_header(&header), "{byte}");
    }
}

proptest! {
    #[test]
    fn a_header_verifies_like_other_bytes(mut header in any::<[u8; 20]>(), flip in prop::option::of((0..20usize, 0..8))) {
        header[10..12].fill(0);
        let sum = checksum::checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        if let Some((byte, bit)) = flip {
            header[byte] ^= 1u8 << bit;
        }
        prop_assert_eq!(checksum::verify_ipv4_header(&header), checksum::verify(&header));
        prop_assert_eq!(checksum::verify_ipv4_header(&header), flip.is_none());
    }

    #[test]
    fn sum_is_the_naive_sum(data in prop::collection::vec(any::<u8>(), 0..2100), from in 0usize..9) {
        let data = &data[from.min(data.len())..];
        prop_assert_eq!(Sum::new().bytes(data).fold(), naive_sum(data));
        prop_assert_eq!(checksum::checksum(data), !naive_sum(data));
    }

    #[test]
    fn array_is_bytes(data: [u8; 20]) {
        prop_assert_eq!(Sum::new().array(&data).fold(), naive_sum(&data));
    }

    #[test]
    fn sum_in_parts(data in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..150, more: u16) {
        let (head, tail) = data.split_at((cut * 2).min(data.len() & !1));
        let parts = Sum::new().bytes(head).word(more).bytes(tail).fold();
        let whole = [head, &more.to_be_bytes(), tail].concat();
        prop_assert_eq!(parts, naive_sum(&whole));
    }

    #[test]
    fn verify_accepts_the_right_checksum_only(header: [u8; 20], bit in 0usize..160) {
        let mut header = filled(header);
        prop_assert!(checksum::verify(&header));
        header[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!checksum::verify(&header));
    }

    #[test]
    fn pseudo_headers(src4: u32, dst4: u32, src6: u128, dst6: u128, protocol: u8, length: u32) {
        let (src, dst) = (Ipv4Addr::from(src4), Ipv4Addr::from(dst4));
        let length4 = length as u16;
        let bytes = [&src.octets()[..], &dst.octets(), &[0, protocol], &length4.to_be_bytes()].concat();
        let sum = checksum::pseudo_header_v4(src, dst, protocol, length4);
        prop_assert_eq!(sum.fold(), naive_sum(&bytes));

        let (src, dst) = (Ipv6Addr::from(src6), Ipv6Addr::from(dst6));
        let bytes =
            [&src.octets()[..], &dst.octets(), &length.to_be_bytes(), &[0, 0, 0, protocol]].concat();
        let sum = checksum::pseudo_header_v6(src, dst, protocol, length);
        prop_assert_eq!(sum.fold(), naive_sum(&bytes));
    }

    /// Incremental updates give the very bits of the recomputed checksum. The header's first byte is 0x45, so
    /// that it is not all zero, the one case RFC 1624 excepts.
    #[test]
    fn updates_are_recomputations(mut header: [u8; 20], new: u32, at in 0usize..4) {
        header[0] = 0x45;
        let old = filled(header);
        let check = word(&old, 10);

        let at16 = 2 + 2 * at;
        let mut changed = old;
        changed[at16..at16 + 2].copy_from_slice(&(new as u16).to_be_bytes());
        let expected = word(&filled(changed), 10);
        prop_assert_eq!(checksum::update_u16(check, word(&old, at16), new as u16), expected);

        let at32 = if at % 2 == 0 { 12 } else { 16 };
        let mut changed = old;
        changed[at32..at32 + 4].copy_from_slice(&new.to_be_bytes());
        let expected = word(&filled(changed), 10);
        let old32 = u32::from_be_bytes(old[at32..at32 + 4].try_into().unwrap());
        prop_assert_eq!(checksum::update_u32(check, old32, new), expected);

        if old[8] > 0 {
            let mut changed = old;
            changed[8] -= 1;
            prop_assert_eq!(checksum::decrement_ttl(check), word(&filled(changed), 10));
        }
    }

    /// As above where the carries are: words of mostly zeros or ones.
    #[test]
    fn updates_at_the_zeros(check in edge(), old in edge(), new in edge()) {
        // Any other word the header could hold so that `check` is right.
        let rest = checksum::update_u16(0, !check, old);
        let recomputed = |changed: u16| {
            !naive_sum(&[rest.to_be_bytes(), changed.to_be_bytes(), [0x45, 0]].concat())
        };
        prop_assert_eq!(checksum::update_u16(recomputed(old), old, new), recomputed(new));
        let wide = |word: u16| u32::from(word) << 16;
        prop_assert_eq!(checksum::update_u32(recomputed(old), wide(old), wide(new)), recomputed(new));
    }
}

/// The rare words whose sum carries once more after every carry but the last was added.
#[test]
fn updates_carry_to_the_end() {
    assert_eq!(checksum::update_u16(0, 0xfffe, 0xffff), 0xfffe);
    assert_eq!(checksum::update_u32(0xfffe, 0, 0xffff_ffff), 0xfffe);
}

fn edge() -> impl Strategy<Value = u16> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(0xff),
        Just(0x100),
        Just(0xfeff),
        Just(0xfffe),
        Just(0xffff),
        any::<u16>()
    ]
}
