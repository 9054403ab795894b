//! Checksums that are left to hardware.

use super::*;

/// The folded sum of a packet's pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1), as a sender leaves it in the place of a
/// checksum that hardware is to finish.
fn pseudo_sum(frame: &[u8]) -> [u8; 2] {
    let ip = &frame[14..];
    let (addresses, protocol, len) = match ip[0] >> 4 {
        4 => (&ip[12..20], ip[9], u16::from_be_bytes([ip[2], ip[3]]) - 20),
        _ => (&ip[8..40], ip[6], u16::from_be_bytes([ip[4], ip[5]])),
    };
    let words = addresses.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum = words.sum::<u32>() + u32::from(protocol) + u32::from(len);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (sum as u16).to_be_bytes()
}

/// A packet of `protocol` in either version, long enough for a TCP header.
pub fn transport(version: u8, protocol: u8) -> Vec<u8> {
    match version {
        4 => v4(|p| p[9] = protocol),
        _ => v6(|p| p[6] = protocol),
    }
}

fn checksum_at(version: u8, protocol: u8) -> usize {
    14 + if version == 4 { 20 } else { 40 } + if protocol == 6 { 16 } else { 6 }
}

#[test]
fn what_may_carry_an_unfinished_checksum_is_the_kernels() {
    let guarded = |frame: &[u8]| interpret(GUARDED, frame, WITH_SOCKET).1;
    for version in [4, 6] {
        for protocol in [6, 17] {
            let at = checksum_at(version, protocol);
            let mut frame = transport(version, protocol);
            assert_eq!(guarded(&frame), Reason::Taken, "a checksum like any other");
            let partial = pseudo_sum(&frame);
            frame[at..at + 2].copy_from_slice(&partial);
            assert_eq!(guarded(&frame), Reason::PartialChecksum, "version {version}, protocol {protocol}");
            let unguarded = interpret(rules(Take::TRANSIT), &frame, WITH_SOCKET).1;
            assert_eq!(unguarded, Reason::Taken, "hardware finishes checksums");
            frame[at] ^= 1;
            assert_eq!(guarded(&frame), Reason::Taken);
        }
        for port in [4789u16, 8472, 6081, 4754, 4755] {
            let mut tunnel = transport(version, 17);
            tunnel[checksum_at(version, 17) - 4..][..2].copy_from_slice(&port.to_be_bytes());
            assert_eq!(guarded(&tunnel), Reason::Transport, "a tunnel, {port}");
        }
        let icmp = if version == 4 { 1 } else { 58 };
        assert_eq!(guarded(&transport(version, icmp)), Reason::Taken);
        for protocol in [4, 41, 47, 132] {
            assert_eq!(guarded(&transport(version, protocol)), Reason::Transport, "protocol {protocol}");
        }
    }
    // Fragments were made after the checksum was finished.
    let mut fragment = v4(|p| (p[6], p[9]) = (0x20, 17));
    let partial = pseudo_sum(&fragment);
    fragment[checksum_at(4, 17)..][..2].copy_from_slice(&partial);
    assert_eq!(guarded(&fragment), Reason::Taken);
    assert_eq!(guarded(&v6(|p| p[6] = 44)), Reason::Taken);
    // A header that is cut has no checksum to judge.
    let cut = ethernet(0x0800, &v4(|p| (p[3], p[9]) = (30, 6))[14..44]);
    assert_eq!(guarded(&cut), Reason::Malformed);
}
