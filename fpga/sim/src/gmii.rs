//! Frames on GMII: preamble, check sequence and gap (IEEE 802.3 clauses 3, 4.2 and 35).

use std::collections::VecDeque;

/// Byte times of preamble, start delimiter and gap around a frame.
pub const OVERHEAD_BYTES: u64 = 20;
/// A byte time at 1 Gbit/s.
pub const BYTE_NS: u64 = 8;
const GAP_BYTES: u32 = 12;

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut c = n as u32;
        let mut bit = 0;
        while bit < 8 {
            c = if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
            bit += 1;
        }
        table[n] = c;
        n += 1;
    }
    table
}

static CRC_TABLE: [u32; 256] = crc_table();

/// The Ethernet frame check sequence of a frame (IEEE 802.3 clause 3.2.9).
pub fn check_sequence(frame: &[u8]) -> u32 {
    !frame.iter().fold(!0, |crc: u32, &b| CRC_TABLE[usize::from(crc as u8 ^ b)] ^ (crc >> 8))
}

/// Sends frames a byte a clock, never closer than the gap.
#[derive(Debug, Default)]
pub struct Transmitter {
    queue: VecDeque<Vec<u8>>,
    current: Vec<u8>,
    position: usize,
    gap: u32,
}

impl Transmitter {
    /// Queues a frame without check sequence; preamble and check sequence are added.
    pub fn send(&mut self, frame: &[u8]) {
        let fcs = check_sequence(frame);
        self.send_with_fcs(frame, fcs);
    }

    /// Queues a frame with a check sequence of the caller's choice.
    pub fn send_with_fcs(&mut self, frame: &[u8], fcs: u32) {
        let mut bytes = Vec::with_capacity(frame.len() + 12);
        bytes.extend_from_slice(&[0x55; 7]);
        bytes.push(0xd5);
        bytes.extend_from_slice(frame);
        bytes.extend_from_slice(&fcs.to_le_bytes());
        self.queue.push_back(bytes);
    }

    /// Whether nothing is queued and the line would be free for the next frame.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.position == self.current.len() && self.gap == 0
    }

    /// The next byte time: data and data-valid.
    #[inline]
    pub fn tick(&mut self) -> (u8, bool) {
        if self.position < self.current.len() {
            let byte = self.current[self.position];
            self.position += 1;
            if self.position == self.current.len() {
                self.gap = GAP_BYTES;
            }
            return (byte, true);
        }
        if self.gap > 0 {
            self.gap -= 1;
            if self.gap > 0 {
                return (0, false);
            }
        }
        if let Some(next) = self.queue.pop_front() {
            self.current = next;
            self.position = 0;
        }
        (0, false)
    }
}

/// What went wrong with a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// Preamble or start delimiter wrong.
    Preamble,
    /// Shorter than 64 bytes with check sequence.
    Runt,
    /// Check sequence wrong.
    CheckSequence,
    /// Less than twelve byte times after the frame before.
    Gap,
}

/// Collects frames from GMII and checks what a receiver can check.
#[derive(Debug, Default)]
pub struct Receiver {
    bytes: Vec<u8>,
    idle: u32,
    gap_before: u32,
    seen_one: bool,
}

impl Receiver {
    /// Takes one byte time; gives a frame without check sequence when one ends.
    #[inline]
    pub fn tick(&mut self, data: u8, enable: bool) -> Option<Result<Vec<u8>, LineError>> {
        if enable {
            if self.bytes.is_empty() {
                self.gap_before = self.idle;
            }
            self.bytes.push(data);
            self.idle = 0;
            return None;
        }
        self.idle = self.idle.saturating_add(1);
        if self.bytes.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let first = !std::mem::replace(&mut self.seen_one, true);
        Some(check(&bytes, first || self.gap_before >= GAP_BYTES))
    }
}

fn check(bytes: &[u8], gap_kept: bool) -> Result<Vec<u8>, LineError> {
    let body =
        bytes.strip_prefix(&[0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5]).ok_or(LineError::Preamble)?;
    if !gap_kept {
        return Err(LineError::Gap);
    }
    if body.len() < 64 {
        return Err(LineError::Runt);
    }
    let (frame, fcs) = body.split_at(body.len() - 4);
    if check_sequence(frame).to_le_bytes() != fcs {
        return Err(LineError::CheckSequence);
    }
    Ok(frame.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_the_known_check_value_holds() {
        assert_eq!(check_sequence(b"123456789"), 0xcbf4_3926);
        let (mut tx, mut rx) = (Transmitter::default(), Receiver::default());
        let frames: Vec<Vec<u8>> = (60..70).map(|n| (0..n).collect()).collect();
        frames.iter().for_each(|f| tx.send(f));
        let mut seen = Vec::new();
        let mut ticks = 0;
        while seen.len() < frames.len() {
            let (data, enable) = tx.tick();
            seen.extend(rx.tick(data, enable).map(|r| r.unwrap()));
            ticks += 1;
        }
        assert_eq!(seen, frames);
        // Back to back: 24 bytes of overhead each with check sequence, at most one to begin and one to see the end.
        let exact: usize = frames.iter().map(|f| f.len() + 24).sum::<usize>() - 12;
        assert!(ticks <= exact + 2, "{ticks} {exact}");
    }
}
