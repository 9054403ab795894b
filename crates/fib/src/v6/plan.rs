//! How many bits an IPv6 directory takes: what is cheapest for the runs it is made for.

use crate::address::Address;
use crate::v6::leaf::{FAN_OUT, NARROW_FAN_OUT, PARENT_LESS, window_ends};
use crate::v6::walk::{Run, WORD_BITS};

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
    let most = (log + 4).min(SLOT_BITS_MAX).min(128 - position).max(WORD_BITS);
    let own = |bits| 8_usize << (bits - WORD_BITS);
    cheapest(log.saturating_sub(1).clamp(WORD_BITS, most), most, own, |bits| {
        words_below(marks, position, bits)
    })
}

/// A directory of entries that point to words.
pub(crate) fn entries(marks: &[Mark], position: u8) -> Plan {
    let log = marks.len().ilog2() as u8;
    let (least, most) = (log.saturating_sub(7).max(1), (log + 1).min(ENTRY_BITS_MAX));
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

/// How much of a leaf a run takes, in these units.
const LEAF_ROOM: usize = FAN_OUT * NARROW_FAN_OUT;

/// Leaves that neighbours share while their runs fit.
struct Sharing {
    bytes: usize,
    room: usize,
}

impl Sharing {
    /// Runs that fit a leaf, of which each takes `room`.
    fn add(&mut self, runs: usize, room: usize, leaf_bytes: usize) {
        let taken = runs * room;
        if runs == 1 {
            self.room = self.room.saturating_sub(taken);
        } else if taken <= self.room {
            self.room -= taken;
        } else {
            self.bytes += leaf_bytes;
            self.room = LEAF_ROOM - taken;
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

/// How much of a leaf each run takes if all these fit one.
fn room(marks: &[Mark], runs: usize, end: u8) -> Option<usize> {
    if runs > NARROW_FAN_OUT {
        return None;
    }
    let (wide, narrow) = window_ends(end);
    let deepest = marks.iter().map(|mark| mark.depth).max().unwrap_or(0);
    if deepest <= narrow {
        return Some(LEAF_ROOM / NARROW_FAN_OUT);
    }
    (runs <= FAN_OUT && deepest <= wide).then_some(LEAF_ROOM / FAN_OUT)
}

/// Bytes below a directory of entries.
fn entries_below(marks: &[Mark], position: u8, bits: u8) -> usize {
    let end = position + bits;
    let mut leaves = Sharing { bytes: 0, room: 0 };
    for entry in marks.chunk_by(|_, next| next.shared >= end) {
        let runs = count(entry, end);
        match room(entry, runs, end) {
            Some(room) => leaves.add(runs, room, LEAF_BYTES + 8),
            None => leaves.interrupt(words(entry, end).bytes),
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
        if let Some(room) = room(word, runs, word_end) {
            leaves.add(runs, room, LEAF_BYTES);
            continue;
        }
        leaves.interrupt(0);
        for slot in word.chunk_by(|_, next| next.shared >= end) {
            let runs = count(slot, end);
            match room(slot, runs, end) {
                Some(room) => leaves.add(runs, room, LEAF_BYTES),
                None => leaves.interrupt(LEAF_BYTES + crowd_bytes(runs)),
            }
        }
        leaves.interrupt(0);
    }
    leaves.bytes
}

/// The leaves below a first one, and what the steps to them cost.
fn crowd_bytes(runs: usize) -> usize {
    let steps = runs.ilog((NARROW_FAN_OUT - PARENT_LESS) * FAN_OUT) as usize + 1;
    runs * (LEAF_BYTES / FAN_OUT + steps * DEEP_RUN_BYTES)
}

/// Whether a directory of `bits` bits tells the runs apart: no slot is left with more than half of them.
pub(crate) fn divides(marks: &[Mark], position: u8, bits: u8) -> bool {
    let mut slots = marks.chunk_by(|_, next| next.shared >= position + bits);
    slots.all(|slot| slot.len() * 2 <= marks.len())
}
