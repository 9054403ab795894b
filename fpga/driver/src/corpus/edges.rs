//! Frames at the edge of every rule of [`super::table`], each on both sides of the edge.

use super::finish;
use crate::golden::ones_complement_sum;

const ROUTED: [u8; 4] = [10, 0, 1, 1];
const UNROUTED: [u8; 4] = [10, 0, 4, 1];
/// The bytes of the shortest frame on a wire, without the check sequence.
const SHORTEST: usize = 60;

/// All of them, each to card 0 unless that is the edge.
pub fn frames() -> Vec<Vec<u8>> {
    let mut frames = vec![plain(SHORTEST), plain(1514)];
    lengths(&mut frames);
    link_layer(&mut frames);
    header(&mut frames);
    checksums(&mut frames);
    classes(&mut frames);
    frames
}

/// A packet that takes the fast path to card 1 in the low class.
fn plain(length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|i| i as u8).collect();
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9]);
    frame[12..26].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0x12, 0x34, 0, 0, 64, 17, 0, 0]);
    frame[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
    frame[26..30].copy_from_slice(&[192, 0, 2, 1]);
    frame[30..34].copy_from_slice(&ROUTED);
    finish(&mut frame);
    frame
}

/// The plain packet with something changed and the checksum right.
fn with(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut frame = plain(SHORTEST);
    change(&mut frame);
    finish(&mut frame);
    frame
}

fn lengths(frames: &mut Vec<Vec<u8>>) {
    for length in 14..=80 {
        let mut cut = plain(100);
        cut.truncate(length);
        frames.push(cut);
        frames.extend((length >= 34).then(|| plain(length)));
    }
    for total_length in [0u16, 19, 20, 21, 45, 46, 47, u16::MAX] {
        frames.push(with(|f| f[16..18].copy_from_slice(&total_length.to_be_bytes())));
    }
}

/// Addresses and types one bit off; what else is on a wire.
fn link_layer(frames: &mut Vec<Vec<u8>>) {
    for bit in 0..48 {
        frames.push(with(|f| f[bit / 8] ^= 1 << (bit % 8)));
    }
    frames.push(with(|f| f[..6].fill(0xff)));
    frames.push(with(|f| f[..6].copy_from_slice(&[1, 0, 0x5e, 0, 0, 1])));
    for bit in 0..16 {
        frames.push(with(|f| f[12 + bit / 8] ^= 1 << (bit % 8)));
    }
    // ARP, IPv6, MPLS, a length instead of a type.
    for ethertype in [0x0806u16, 0x86dd, 0x8847, 0x0026] {
        frames.push(with(|f| f[12..14].copy_from_slice(&ethertype.to_be_bytes())));
    }
    let mut tagged = plain(SHORTEST);
    tagged.splice(12..12, [0x81, 0, 0, 42]);
    frames.push(tagged);
}

/// Versions, options, fragments, TTLs, destinations.
fn header(frames: &mut Vec<Vec<u8>>) {
    for version_ihl in 0..=255 {
        frames.push(with(|f| f[14] = version_ihl));
    }
    // Don't fragment, more fragments, a last fragment, the bit that must be zero.
    for flags in [0x4000u16, 0x2000, 0x20b9, 0x00b9, 0x1fff, 0x8000] {
        frames.push(with(|f| f[20..22].copy_from_slice(&flags.to_be_bytes())));
    }
    for dst in [ROUTED, UNROUTED, [10, 0, 0, 1]] {
        for ttl in [0, 1, 2, 3, 128, 255] {
            frames.push(with(|f| {
                f[22] = ttl;
                f[30..34].copy_from_slice(&dst);
            }));
        }
    }
    for network in 0..5 {
        for host in [0, 1, 127, 128, 255] {
            frames.push(with(|f| f[30..34].copy_from_slice(&[10, 0, network, host])));
        }
    }
    // Martians, each side of each edge, as destination and as source.
    for address in [
        0x0000_0000,
        0x00ff_ffff,
        0x0100_0000,
        0x7eff_ffff,
        0x7f00_0000,
        0x7fff_ffff,
        0x8000_0000,
        0xa9fd_ffff,
        0xa9fe_0000,
        0xa9fe_ffff,
        0xa9ff_0000,
        0xdfff_ffff,
        0xe000_0000,
        0xefff_ffff,
        0xf000_0000,
        0xffff_ffff,
    ] {
        for at in [26, 30] {
            frames.push(with(|f| f[at..at + 4].copy_from_slice(&u32::to_be_bytes(address))));
        }
    }
    for dst in [0, 1, 0x0900_0100, 0x0a01_0100, 0x0a00_0100 ^ 1 << 31, 0xe000_0001, u32::MAX] {
        frames.push(with(|f| f[30..34].copy_from_slice(&u32::to_be_bytes(dst))));
    }
}

/// Wrong checksums, and right ones around the carries of the update, zero in both its encodings among them.
fn checksums(frames: &mut Vec<Vec<u8>>) {
    for bit in 0..16 {
        let mut frame = plain(SHORTEST);
        frame[24 + bit / 8] ^= 1 << (bit % 8);
        frames.push(frame);
    }
    for checksum in [0u16, 1, 0x00ff, 0x0100, 0xfefe, 0xfeff, 0xff00, 0xff01, 0xfffe, 0xffff] {
        let mut frame = plain(SHORTEST);
        frame[18..20].fill(0);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        // The identification makes up for what the checksum lacks.
        let identification = !ones_complement_sum(&frame[14..34]);
        frame[18..20].copy_from_slice(&identification.to_be_bytes());
        frames.push(frame);
    }
    // Each of the four byte columns of the header adds up to 0xff: summed 32 bits at a time it is all ones, which
    // takes a second fold to 16 bits.
    frames.push(with(|f| f[26..30].copy_from_slice(&[0x5e, 0xba, 2, 1])));
}

/// Every ToS towards card 1 and the host, and the edges of card 2's rule.
fn classes(frames: &mut Vec<Vec<u8>>) {
    for dst in [ROUTED, UNROUTED] {
        for tos in 0..=255 {
            frames.push(with(|f| {
                f[15] = tos;
                f[30..34].copy_from_slice(&dst);
            }));
        }
    }
    for protocol in [1, 6, 16, 17, 18, 0x91] {
        for src in [[192, 0, 1, 255], [192, 0, 2, 0], [192, 0, 2, 127], [192, 0, 2, 128], [64, 0, 2, 1]] {
            frames.push(with(|f| {
                f[23] = protocol;
                f[26..34].copy_from_slice(&[src, [10, 0, 2, 1]].concat());
            }));
        }
    }
}
