//! The rates of an address or a network: averages that each epoch moves.

use super::NIL;

/// Nanoseconds of an epoch: what came in one moves the averages once.
const EPOCH_NS: u64 = 8_000_000;
/// Epochs a second.
pub(in crate::ip) const EPOCHS_PER_S: u64 = 1_000_000_000 / EPOCH_NS;
/// Each epoch weighs 1/2^STABILITY.
const STABILITY: u32 = 5;
/// Bits behind the point of averages.
pub(super) const SCALE: u32 = 10;
/// So many epochs without events, and an average is zero.
const FORGOTTEN: u32 = 100;

/// The number of the epoch of a time.
pub(in crate::ip) fn epoch(now_ns: u64) -> u32 {
    (now_ns / EPOCH_NS) as u32
}

/// Packets or bytes from an address, and to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ip) enum Way {
    Forward,
    Reverse,
}

/// Both rates of an address or a network.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    epoch: u32,
    gathered: [i32; 2],
    pub average: [i32; 2],
    /// The level of the next byte, or `NIL`.
    pub next_level: u32,
    /// Until this epoch there is to be none.
    pub closed_until: u32,
}

impl Counter {
    pub fn new(epoch: u32) -> Counter {
        Counter { epoch, gathered: [0; 2], average: [0; 2], next_level: NIL, closed_until: 0 }
    }

    /// What the first below begins with: the rates of all.
    pub fn first_below(self) -> Counter {
        Counter { next_level: NIL, closed_until: 0, ..self }
    }

    /// Ends the epochs before `now`, of which the first has the events and the others have none.
    pub fn pass(&mut self, now: u32) {
        let epochs = now.wrapping_sub(self.epoch);
        if epochs == 0 {
            return;
        }
        for (average, gathered) in self.average.iter_mut().zip(&mut self.gathered) {
            *average = moved(*average, std::mem::take(gathered).wrapping_shl(SCALE));
            match epochs - 1 {
                FORGOTTEN.. => *average = 0,
                empty => (0..empty).for_each(|_| *average = moved(*average, 0)),
            }
        }
        self.epoch = now;
    }

    pub fn add(&mut self, n: u32, way: Way, now: u32) {
        self.pass(now);
        let gathered = &mut self.gathered[way as usize];
        *gathered = gathered.saturating_add_unsigned(n);
    }

    /// Both rates a second, in whole numbers.
    pub fn per_s(&self) -> [i32; 2] {
        self.average.map(|average| ((i64::from(average) * EPOCHS_PER_S as i64) >> SCALE) as i32)
    }
}

/// The average when it has been moved towards `to`, rounded to the nearest.
fn moved(average: i32, to: i32) -> i32 {
    average.wrapping_add(to.wrapping_add(1 << (STABILITY - 1)).wrapping_sub(average) >> STABILITY)
}
