//! Packets for the router's routes.

use crate::frames::{self, OURS};
use fastrand::Rng;

/// Addresses of which many are alike.
pub fn address(rng: &mut Rng) -> u32 {
    let byte = |rng: &mut Rng| [1, 2, 3, 130][rng.usize(..4)];
    u32::from_be_bytes([10 + rng.u8(..2), byte(rng), byte(rng), byte(rng)])
}

/// The same of IPv6, near routes of all lengths.
pub fn address6(rng: &mut Rng) -> u128 {
    let group = |rng: &mut Rng, most: u16| u128::from(rng.u16(..most));
    let most = [3, 64][rng.usize(..2)];
    let upper = 0x2001_0db8_u128 << 32 | group(rng, 4) << 16 | group(rng, most);
    let lower = match rng.u8(..3) {
        0 => group(rng, 6),
        1 => group(rng, 3) << 48 | group(rng, 3) << 32 | group(rng, 3) << 16 | group(rng, 3),
        _ => u128::from(rng.u64(..)),
    };
    upper << 64 | lower
}

/// An IPv6 packet in a frame, or nearly one.
fn frame6(rng: &mut Rng) -> Vec<u8> {
    let payload = rng.usize(0..60);
    let mut ip = vec![0; 40 + payload];
    ip.fill_with(|| rng.u8(..));
    ip[0] = 0x60 | ip[0] & 15;
    ip[4..6].copy_from_slice(&(payload as u16).to_be_bytes());
    let next = match rng.u8(..8) {
        0 => [0, 43, 44][rng.usize(..3)],
        1 => [4, 33, 41, 47, 50, 51, 89, 132, 136][rng.usize(..9)],
        _ => [6, 17, 58, 59, 60][rng.usize(..5)],
    };
    (ip[6], ip[7]) = (next, if rng.u8(..16) == 0 { rng.u8(..2) } else { rng.u8(2..) });
    if payload > 0 && rng.bool() {
        ip[40] = [rng.u8(130..140), rng.u8(..6)][rng.usize(..2)];
    }
    ip[8..24].copy_from_slice(&address6(rng).to_be_bytes());
    ip[24..40].copy_from_slice(&address6(rng).to_be_bytes());
    if rng.u8(..16) == 0 {
        ip[rng.usize(..8)] ^= 1 << rng.u8(..8);
    }
    let mut frame = [&OURS[..], &[2, 0, 0, 0, 0, 9], &[0x86, 0xdd], &ip].concat();
    match rng.u8(..8) {
        0 => frame.resize(frame.len() + rng.usize(1..20), 0xee),
        1 => frame.truncate(rng.usize(14..frame.len())),
        _ => {}
    }
    frame
}

/// A packet in a frame, as good as any, or with something wrong.
pub fn frame(rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..8) {
        0 => return frames::frame(rng),
        1..4 => return frame6(rng),
        _ => {}
    }
    let len = rng.usize(22..80);
    let mut ip = vec![0; len];
    let protocol = [17, 17, 6, 1, 47, 50, 51, 89][rng.usize(..8)];
    (ip[0], ip[8], ip[9]) = (0x45, rng.u8(1..5), protocol);
    ip[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&rng.u16(..).to_be_bytes());
    if rng.u8(..8) == 0 {
        ip[6] = [0x40, 0x20, 0x80][rng.usize(..3)];
    }
    ip[12..16].copy_from_slice(&address(rng).to_be_bytes());
    ip[16..20].copy_from_slice(&address(rng).to_be_bytes());
    ip[20..].fill_with(|| rng.u8(..));
    let sum = ip[..20].as_chunks::<2>().0.iter().map(|&w| u32::from(u16::from_be_bytes(w))).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    if rng.u8(..16) == 0 {
        let at = rng.usize(..20);
        ip[at] ^= 1 << rng.u8(..8);
    }
    let mut frame = [&OURS[..], &[2, 0, 0, 0, 0, 9], &[8, 0], &ip].concat();
    match rng.u8(..8) {
        0 => frame.resize(frame.len() + rng.usize(1..20), 0xee),
        1 => frame.truncate(rng.usize(14..frame.len())),
        _ => {}
    }
    frame
}
