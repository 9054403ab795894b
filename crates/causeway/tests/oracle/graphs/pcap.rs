//! Capture files, as far as they are needed here.

/// Microseconds, this machine's order of bytes.
const MAGIC: u32 = 0xa1b2_c3d4;
const ETHERNET: u32 = 1;

/// A file of these frames.
pub fn write<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(MAGIC.to_ne_bytes());
    file.extend([2u16, 4].map(u16::to_ne_bytes).concat());
    file.extend([0, 0, 65_535, ETHERNET].map(u32::to_ne_bytes).concat());
    for (second, frame) in (1u32..).zip(frames) {
        let len = frame.len() as u32;
        file.extend([second, 0, len, len].map(u32::to_ne_bytes).concat());
        file.extend(frame);
    }
    file
}

/// The frames of a file.
pub fn read(file: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut left = file.get(24..).unwrap_or_default();
    while let Some((head, rest)) = left.split_at_checked(16) {
        let len = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let Some((frame, rest)) = rest.split_at_checked(len) else { break };
        frames.push(frame.to_vec());
        left = rest;
    }
    frames
}
