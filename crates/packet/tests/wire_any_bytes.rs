//! The views on arbitrary, plausible, corrupt and truncated bytes.

mod exercise;

use proptest::prelude::*;
use std::cell::Cell;

/// Bytes whose first ones are drawn near what `prefix` says, so that views accept a good part of them.
fn near(prefix: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let corrupt = prop::collection::vec((0usize..128, any::<u8>()), 0..3);
    let tail = prop::collection::vec(prop_oneof![any::<u8>(), 0u8..9], 0..128);
    (tail, corrupt, 0usize..200).prop_map(move |(tail, corrupt, cut)| {
        let mut bytes = [prefix, &tail].concat();
        for (at, value) in corrupt {
            let len = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at % len) {
                *byte = value;
            }
        }
        bytes.truncate(cut);
        bytes
    })
}

/// Runs `exercise` on bytes near each prefix, and demands that some were accepted and some were not.
fn check(prefixes: &[&'static [u8]], exercise: impl Fn(&[u8]) -> bool) {
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    for &prefix in prefixes {
        let config = ProptestConfig { cases: 2000, ..ProptestConfig::default() };
        proptest!(config, |(bytes in near(prefix))| {
            let count = if exercise(&bytes) { &accepted } else { &refused };
            count.set(count.get() + 1);
        });
        assert!(accepted.take() > 20, "nothing near {prefix:x?} was accepted");
    }
    assert!(refused.get() > 20, "nothing was refused");
}

#[test]
fn ethernet() {
    check(
        &[&[2; 12], b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x81\0\0\x05\x88\xa8\0\x06\x81\0"],
        exercise::ethernet,
    );
}

#[test]
fn vlan() {
    check(&[&[]], exercise::vlan);
}

#[test]
fn arp() {
    check(&[&[0, 1, 8, 0, 6, 4, 0, 1]], exercise::arp);
}

#[test]
fn ipv4() {
    let with_options = b"\x4f\0\0\x3c\0\0\0\0\x40\x01\0\0\x0a\0\0\x01\x0a\0\0\x02";
    let route = b"\x49\0\0\x28\0\0\0\0\x40\x01\0\0\x0a\0\0\x01\x0a\0\0\x02\x07\x0b\x04";
    let timestamp = b"\x49\0\0\x28\0\0\0\0\x40\x01\0\0\x0a\0\0\x01\x0a\0\0\x02\x44\x0c\x05\x01";
    check(&[&[0x45, 0, 0, 20], with_options, route, timestamp], exercise::ipv4);
}

#[test]
fn ipv6() {
    const FIXED: [u8; 8] = [0x6f, 0xf9, 0, 0, 0, 8, 0, 64];
    const CHAIN: &[u8] = b"\x60\0\0\0\0\x30\0\x40\
        \xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\
        \x3c\0\x05\x02\0\0\x01\0\x2c\0\x01\x04\0\0\0\0\x33\0\0\x01\0\0\0\x07\x2b\x01";
    check(&[&FIXED, CHAIN], exercise::ipv6);
}

#[test]
fn icmpv4() {
    check(&[&[8, 0]], exercise::icmpv4);
}

#[test]
fn icmpv6() {
    check(&[&[128, 0]], exercise::icmpv6);
}

#[test]
fn ndisc() {
    const NS: [u8; 26] =
        [135, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1];
    const NA: [u8; 26] =
        [136, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1];
    const RA: [u8; 18] = [134, 0, 0, 0, 64, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4];
    const REDIRECT: [u8; 42] = {
        let mut redirect = [0; 42];
        (redirect[0], redirect[40], redirect[41]) = (137, 4, 1);
        redirect
    };
    check(&[&NS, &NA, &[133, 0, 0, 0, 0, 0, 0, 0, 5, 1], &RA, &REDIRECT], exercise::ndisc);
}

#[test]
fn udp() {
    check(&[&[0, 53, 0, 53, 0, 12]], exercise::udp);
}

#[test]
fn tcp() {
    check(&[&[0, 80, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x80, 0x12]], exercise::tcp);
}

#[test]
fn icmp_error() {
    const V6: [u8; 8] = [0x60, 0, 0, 0, 0, 8, 17, 64];
    check(&[b"\x45\0\0\x14\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02", &V6], exercise::icmp_error);
}

/// A view of nothing, and the views' behaviour when the buffer shrinks behind their back.
#[test]
fn short_buffers_read_zero() {
    use causeway_packet::wire::Ipv4;
    use std::cell::Cell;

    struct Shrinking(Cell<usize>, [u8; 20]);
    impl AsRef<[u8]> for Shrinking {
        fn as_ref(&self) -> &[u8] {
            let len = self.0.replace(self.0.get().saturating_sub(5));
            &self.1[..len]
        }
    }
    let mut header = [7; 20];
    header[0] = 0x45;
    let view = Ipv4::new_quoted(Shrinking(Cell::new(20), header));
    // The second look finds 15 bytes: the version reads as zero.
    assert_eq!(view.err(), Some(causeway_packet::wire::Malformed::Version));
}

#[test]
fn mac_addresses() {
    use causeway_packet::wire::MacAddr;
    assert_eq!("02:00:00:00:00:0a".parse(), Ok(MacAddr([2, 0, 0, 0, 0, 10])));
    assert_eq!("2-0-0-0-0-A".parse(), Ok(MacAddr([2, 0, 0, 0, 0, 10])));
    for text in
        ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00-00:00:00", "+2:0:0:0:0:0", "002:0:0:0:0:0"]
    {
        assert!(text.parse::<MacAddr>().is_err(), "{text}");
    }
    proptest!(|(text in "[0-9a-f:+-]{0,20}")| { exercise::mac_addr(&text); });
}

proptest! {
    #[test]
    fn checksum_of(data in prop::collection::vec(any::<u8>(), 0..400)) {
        exercise::checksum_of(&data);
    }
}
