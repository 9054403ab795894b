//! How many bits an IPv6 directory takes: what is cheapest for the runs it is made for.

use crate::address::Address;
use crate::leaf6::{CHILDREN, FAN_OUT};
use crate::lines6::{Run, WORD_BITS};

/// The most bits of a first directory.
const ENTRY_BITS_MAX: u8 = 14;
/// The most bits of a second or further directory: 2^15 words.
pub(crate) const SLOT_BITS_MAX: u8 = 20;
/// What a run costs that is not in the first leaf, beside its share of a leaf, in bytes: memory against the time of
/// another step.
const DEEP_RUN_BYTES: usize = 24;
const LEAF_BYTES: usize = 64;

/// Where a run starts: how many bits it has in common with the run before, and how many bits it takes to say.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    shared: u8,
    depth: u8,
}

/// Marks of runs that all lie behind one entry; the first may start before it.
pub(crate) fn marks(runs: &[Run]) -> Vec<Mark> {
    let first = Mark { shared: 0, depth: 0 };
    let others = runs.windows(2).map(|pair| Mark {
        shared: pair[0].0.common_bits(pair[1].0),
        depth: 128 - pair[1].0.trailing_zeros() as u8,
    });
    std::iter::once(first).chain(others).collect()
}

/// A directory's size and what it costs in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Plan {
    bytes: usize,
    pub(crate) bits: u8,
}

/// A directory of words, from bit `position` on.
pub(crate) fn words(marks: &[Mark], position: u8) -> Plan {
    let log = marks.len().ilog2() as u8;
    let most = (log + 5).min(SLOT_BITS_MAX).min(128 - position).max(WORD_BITS);
    let own = |bits| 8_usize << (bits - WORD_BITS);
    cheapest(log.saturating_sub(3).clamp(WORD_BITS, most), most, own, |bits| {
        words_below(marks, position, bits)
    })
}

/// A directory of entries that point to words.
pub(crate) fn entries(marks: &[Mark], position: u8) -> Plan {
    let log = marks.len().ilog2() as u8;
    let (least, most) = (log.saturating_sub(9).max(1), (log + 1).min(ENTRY_BITS_MAX));
    cheapest(least, most, |bits| 4 << bits, |bits| entries_below(marks, position, bits))
}

/// The cheapest number of bits, by the bytes of the directory, which grow with the bits, and those below it.
fn cheapest(least: u8, most: u8, own: impl Fn(u8) -> usize, below: impl Fn(u8) -> usize) -> Plan {
    let mut best = Plan { bytes: usize::MAX, bits: least };
    for bits in least..=most {
        if own(bits) >= best.bytes {
            break;
        }
        best = best.min(Plan { bytes: own(bits) + below(bits), bits });
    }
    best
}

/// Leaves that neighbours share while their runs fit.
struct Sharing {
    bytes: usize,
    room: usize,
}

impl Sharing {
    /// Runs that fit a leaf.
    fn add(&mut self, runs: usize, leaf_bytes: usize) {
        if runs == 1 {
            self.room = self.room.saturating_sub(1);
        } else if runs <= self.room {
            self.room -= runs;
        } else {
            self.bytes += leaf_bytes;
            self.room = FAN_OUT - runs;
        }
    }

    /// Something with leaves of its own.
    fn interrupt(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.room = 0;
    }
}

/// How many runs an entry or slot that ends at bit `end` holds, counting the one it starts with.
fn count(marks: &[Mark], end: u8) -> usize {
    marks.len() + usize::from(marks[0].depth > end)
}

fn fits(marks: &[Mark], runs: usize, end: u8) -> bool {
    runs <= FAN_OUT && marks.iter().all(|mark| mark.depth <= (end & !7) + 32)
}

/// Bytes below a directory of entries.
fn entries_below(marks: &[Mark], position: u8, bits: u8) -> usize {
    let end = position + bits;
    let mut leaves = Sharing { bytes: 0, room: 0 };
    for entry in marks.chunk_by(|_, next| next.shared >= end) {
        let runs = count(entry, end);
        if fits(entry, runs, end) {
            leaves.add(runs, LEAF_BYTES + 8);
        } else {
            leaves.interrupt(words(entry, end).bytes);
        }
    }
    leaves.bytes
}

/// Bytes below a directory of words.
fn words_below(marks: &[Mark], position: u8, bits: u8) -> usize {
    let (end, word_end) = (position + bits, position + bits - WORD_BITS);
    let mut leaves = Sharing { bytes: 0, room: 0 };
    for word in marks.chunk_by(|_, next| next.shared >= word_end) {
        let runs = count(word, word_end);
        if fits(word, runs, word_end) {
            leaves.add(runs, LEAF_BYTES);
            continue;
        }
        leaves.interrupt(0);
        for slot in word.chunk_by(|_, next| next.shared >= end) {
            let runs = count(slot, end);
            if fits(slot, runs, end) {
                leaves.add(runs, LEAF_BYTES);
            } else {
                let steps = runs.ilog(CHILDREN * FAN_OUT) as usize + 1;
                leaves.interrupt(LEAF_BYTES + runs * (LEAF_BYTES / FAN_OUT + steps * DEEP_RUN_BYTES));
            }
        }
        leaves.interrupt(0);
    }
    leaves.bytes
}

/// Whether a directory of `bits` bits tells the runs apart: no slot is left with more than half of them.
pub(crate) fn divides(marks: &[Mark], position: u8, bits: u8) -> bool {
    let mut slots = marks.chunk_by(|_, next| next.shared >= position + bits);
    slots.all(|slot| slot.len() * 2 <= marks.len())
}
