//! The corpus: frames that are in order, that are nearly so, and that are noise.

use causeway_packet::wire::ipv4::Ipv4;
use fastrand::Rng;

/// The link-layer address of the interface that frames come in by.
pub const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A frame of the corpus, 14 to some hundred bytes.
pub fn frame(rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..10) {
        0 => noise(rng),
        1..=3 => broken(rng),
        _ => good(rng),
    }
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.usize(14..120)];
    bytes.iter_mut().for_each(|b| *b = if rng.bool() { rng.u8(..) } else { rng.u8(..4) });
    bytes
}

fn broken(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = good(rng);
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..bytes.len().min(44));
        bytes[at] = if rng.bool() { rng.u8(..) } else { bytes[at] ^ 1 << rng.u8(..8) };
    }
    if rng.u8(..3) == 0 {
        bytes.truncate(rng.usize(14..=bytes.len()));
    }
    bytes
}

fn good(rng: &mut Rng) -> Vec<u8> {
    let to = match rng.u8(..8) {
        0 => [0xff; 6],
        1 => [1, 0, 0x5e, 0, 0, rng.u8(..)],
        2 => [2, 0, 0, 0, 0, 9],
        _ => OURS,
    };
    let mut bytes = to.to_vec();
    bytes.extend([2, 0, 0, 0, 0, 2]);
    if rng.u8(..8) == 0 {
        bytes.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, rng.u8(1..3)]);
        bytes.extend((0..rng.usize(20..40)).map(|_| rng.u8(..)));
        return bytes;
    }
    bytes.extend([8, 0]);
    let (options, payload) = (if rng.u8(..6) == 0 { 4 * rng.usize(1..11) } else { 0 }, rng.usize(8..60));
    let (header, total) = (20 + options, 20 + options + payload);
    let start = bytes.len();
    bytes.resize(start + total, 0);
    let ip = &mut bytes[start..];
    ip[0] = 0x40 | (header / 4) as u8;
    ip[1] = if rng.u8(..4) == 0 { rng.u8(..) } else { 0 };
    ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&rng.u16(..).to_be_bytes());
    if rng.u8(..8) == 0 {
        ip[6..8].copy_from_slice(&rng.u16(..).to_be_bytes());
    }
    ip[8] = if rng.u8(..4) == 0 { rng.u8(..3) } else { 64 };
    ip[9] = *rng.choice(&[1, 6, 6, 17, 17, 89]).unwrap_or(&6);
    ip[12..16].copy_from_slice(&address(rng));
    ip[16..20].copy_from_slice(&address(rng));
    if options > 0 {
        ip[20..header].iter_mut().for_each(|b| *b = rng.u8(..3));
    }
    ip[header..].iter_mut().for_each(|b| *b = rng.u8(..));
    ip[header + 2..header + 4].copy_from_slice(&[53, 80, 443].map(u16::to_be_bytes)[rng.usize(..3)]);
    if let Ok(mut view) = Ipv4::new_checked(ip) {
        view.fill_checksum();
    }
    // Short frames are padded by whoever sends them.
    if rng.bool() {
        bytes.resize(bytes.len().max(60), 0);
    }
    bytes
}

fn address(rng: &mut Rng) -> [u8; 4] {
    match rng.u8(..8) {
        0 => [255; 4],
        1 => [10, 0, 255, 255],
        2 => rng.u32(..).to_be_bytes(),
        _ => [10, rng.u8(..4), rng.u8(..4), rng.u8(..8)],
    }
}
