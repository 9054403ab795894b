//! Traffic: per port a source with a load, a frame size and a mix of destinations and classes. Every frame carries a
//! stamp (source port, flow, sequence number, time), from which it can be made again, so that the scoreboard needs
//! no copies.

use causeway_model::enhanced;
use causeway_nic_driver::Mac;
use causeway_nic_driver::golden::ones_complement_sum;

pub use causeway_model::enhanced::{Source, Spacing};

/// The ToS byte of high-class packets (DSCP expedited forwarding).
pub const TOS_HIGH: u8 = 0xb8;
const STAMP_MAGIC: u16 = 0xca5e;
const STAMP_AT: usize = 42;

/// What identifies a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The port it was sent into.
    pub port: u8,
    /// The network it is for: 10.0.`dest`.0/24.
    pub dest: u8,
    /// Whether it carries the high class's ToS.
    pub high: bool,
    /// Counts the frames of (port, dest, high) from 0.
    pub sequence: u32,
    /// When its first bit was sent.
    pub sent_ns: u64,
    /// Bytes with check sequence.
    pub frame_bytes: u16,
}

impl Stamp {
    /// Builds the frame, without check sequence, addressed to the router's card at `router_mac`.
    pub fn frame(&self, router_mac: Mac) -> Vec<u8> {
        let length = usize::from(self.frame_bytes) - 4;
        let mut frame = vec![0; length];
        frame[..6].copy_from_slice(&router_mac.0);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 1, self.port]);
        frame[12..16].copy_from_slice(&[8, 0, 0x45, if self.high { TOS_HIGH } else { 0 }]);
        frame[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
        frame[18..20].copy_from_slice(&(self.sequence as u16).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[10, 0, self.port, 2, 10, 0, self.dest, 2]);
        let checksum = !ones_complement_sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame[36..38].copy_from_slice(&9u16.to_be_bytes());
        frame[38..40].copy_from_slice(&(length as u16 - 34).to_be_bytes());
        let stamp = &mut frame[STAMP_AT..];
        stamp[..2].copy_from_slice(&STAMP_MAGIC.to_be_bytes());
        stamp[2] = self.port;
        stamp[3] = self.dest | if self.high { 0x80 } else { 0 };
        stamp[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        stamp[8..16].copy_from_slice(&self.sent_ns.to_be_bytes());
        for (i, byte) in stamp[16..].iter_mut().enumerate() {
            *byte = (self.sequence as u8).wrapping_add(i as u8);
        }
        frame
    }

    /// Reads the stamp of a received frame.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let stamp = frame.get(STAMP_AT..STAMP_AT + 16)?;
        if stamp[..2] != STAMP_MAGIC.to_be_bytes() {
            return None;
        }
        let mut time = [0; 8];
        time.copy_from_slice(&stamp[8..16]);
        Some(Self {
            port: stamp[2],
            dest: stamp[3] & 0x7f,
            high: stamp[3] & 0x80 != 0,
            sequence: u32::from_be_bytes([stamp[4], stamp[5], stamp[6], stamp[7]]),
            sent_ns: u64::from_be_bytes(time),
            frame_bytes: frame.len() as u16 + 4,
        })
    }
}

/// Makes the frames of a [`Source`] as their times come, each with its stamp.
#[derive(Debug)]
pub struct Generator {
    times: enhanced::Generator,
    sequences: [[u32; 2]; 8],
}

impl Generator {
    /// A generator; the seed matters for random spacing only.
    pub fn new(source: Source, seed: u64) -> Self {
        Self { times: enhanced::Generator::new(source, seed), sequences: [[0; 2]; 8] }
    }

    /// The port that is fed.
    pub fn port(&self) -> u8 {
        self.times.source().port
    }

    /// The next frame's stamp, if it is due; the caller sends it now.
    pub fn due(&mut self, now_ns: u64) -> Option<Stamp> {
        let enhanced::Due { dest, high } = self.times.due(now_ns)?;
        let counter = &mut self.sequences[usize::from(dest & 7)][usize::from(high)];
        let sequence = *counter;
        *counter += 1;
        let &Source { port, frame_bytes, .. } = self.times.source();
        Some(Stamp { port, dest, high, sequence, sent_ns: now_ns, frame_bytes })
    }
}
