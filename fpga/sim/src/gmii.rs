//! Frames on GMII: preamble, check sequence and gap (IEEE 802.3 clauses 3, 4.2 and 35).

use std::collections::VecDeque;

/// A byte time at 1 Gbit/s.
pub const BYTE_PS: u64 = 8_000;
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
    queue: VecDeque<Line>,
    current: Line,
    position: usize,
    gap: u32,
}

/// Bytes of a carrier, where the line has an error, and idle byte times after it.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    error_at: Option<usize>,
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
        self.send_line(bytes, None, GAP_BYTES);
    }

    /// Queues a carrier of any bytes, with an error signalled at one of them, and so many idle byte times after it.
    pub fn send_line(&mut self, bytes: Vec<u8>, error_at: Option<usize>, gap: u32) {
        self.queue.push_back(Line { bytes, error_at, gap });
    }

    /// Whether so many frames wait.
    pub fn has_queued(&self, frames: usize) -> bool {
        self.queue.len() >= frames
    }

    /// Whether nothing is queued and the line would be free for the next frame.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.position == self.current.bytes.len() && self.gap == 0
    }

    /// The next byte time: data, data-valid, error.
    #[inline]
    pub fn tick(&mut self) -> (u8, bool, bool) {
        if let Some(&byte) = self.current.bytes.get(self.position) {
            let error = self.current.error_at == Some(self.position);
            self.position += 1;
            if self.position == self.current.bytes.len() {
                self.gap = self.current.gap;
            }
            return (byte, true, error);
        }
        if self.gap > 0 {
            self.gap -= 1;
            if self.gap > 0 {
                return (0, false, false);
            }
        }
        if let Some(next) = self.queue.pop_front() {
            self.current = next;
            self.position = 0;
        }
        (0, false, false)
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
    /// The sender signalled an error.
    Signalled,
}

/// Collects frames from GMII and checks what a receiver can check.
#[derive(Debug, Default)]
pub struct Receiver {
    bytes: Vec<u8>,
    error: bool,
    idle: u32,
    gap_before: u32,
    seen_one: bool,
}

impl Receiver {
    /// Takes one byte time; gives a frame without check sequence when one ends.
    #[inline]
    pub fn tick(&mut self, data: u8, enable: bool, error: bool) -> Option<Result<Vec<u8>, LineError>> {
        if enable {
            if self.bytes.is_empty() {
                self.gap_before = self.idle;
            }
            self.bytes.push(data);
            self.error |= error;
            self.idle = 0;
            return None;
        }
        self.idle = self.idle.saturating_add(1);
        if self.bytes.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let first = !std::mem::replace(&mut self.seen_one, true);
        if std::mem::take(&mut self.error) {
            return Some(Err(LineError::Signalled));
        }
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
