//! The frames and tables on which NIC, golden model and BPF program are compared: deterministic. First the frames at
//! the edge of every rule, then a random stream, mostly forwardable, with every field broken now and then.

mod edges;
mod tables;

use crate::golden::ones_complement_sum;

pub use tables::{Setup, random_table, setups, table};

/// A small generator of pseudo-random numbers (xorshift64*, Vigna 2016): the same corpus everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator from a seed; equal seeds give equal streams.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// An endless stream of frames (no check sequence, 14 to 1 514 bytes) to card 0 of [`table`]: the same edge cases at
/// the beginning of every stream, then random ones. Frames below 60 bytes reach no card from a wire, whose MAC drops
/// them, but an XDP program from a virtual one.
pub fn frames(seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut random = Random::new(seed);
    edges::frames().into_iter().chain(std::iter::repeat_with(move || frame(&mut random)))
}

fn frame(random: &mut Random) -> Vec<u8> {
    let length = if random.one_in(8) { 60 + random.below(1455) } else { 60 + random.below(40) } as usize;
    let mut frame: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0]);
    frame[12..16].copy_from_slice(&[8, 0, 0x45, if random.one_in(2) { 0xb8 } else { 0 }]);
    let total_length =
        if random.one_in(4) { 20 + random.below(length as u64 - 33) } else { length as u64 - 14 };
    frame[16..18].copy_from_slice(&(total_length as u16).to_be_bytes());
    if random.one_in(8) {
        frame[22] = random.below(3) as u8;
    }
    frame[23] = if random.one_in(2) { 17 } else { 6 };
    frame[26..30].copy_from_slice(&[192, 0, 2, random.next_u64() as u8]);
    frame[30..34].copy_from_slice(&[10, 0, random.below(5) as u8, random.next_u64() as u8]);
    if random.one_in(16) {
        // Before the checksum: a wrong field under a right checksum.
        break_one_field(random, &mut frame);
    }
    let checksum = finish(&mut frame);
    if random.one_in(64) {
        // The other encoding of zero, and near misses of the right sum.
        let delta = [0xffff, 1, 0x100, 0xff00][random.below(4) as usize];
        frame[24..26].copy_from_slice(&checksum.wrapping_add(delta).to_be_bytes());
    }
    if random.one_in(16) {
        break_one_field(random, &mut frame);
    }
    if random.one_in(32) {
        frame.truncate(14 + random.below(length as u64 - 14) as usize);
    }
    frame
}

/// Writes the right header checksum and returns it.
fn finish(frame: &mut [u8]) -> u16 {
    frame[24..26].fill(0);
    let checksum = !ones_complement_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    checksum
}

fn break_one_field(random: &mut Random, frame: &mut [u8]) {
    match random.below(6) {
        0 => frame[random.below(6) as usize] ^= 1 << random.below(8),
        1 => frame[12 + random.below(2) as usize] ^= 1 << random.below(8),
        2 => frame[14] = random.next_u64() as u8,
        3 => frame[16 + random.below(2) as usize] = random.next_u64() as u8,
        4 => frame[18 + random.below(4) as usize] = random.next_u64() as u8,
        _ => frame[14 + random.below(20) as usize] ^= 1 << random.below(8),
    }
}
