//! Which parts of an IPv6 table a change touches.

use std::sync::atomic::Ordering;

use super::compile::{Range, Units, around};
use super::memory::{ADJACENCIES, Level, Memory6, is_shared};
use super::walk::{BRANCH, DIRECTORY, LEAF, ROOT_BITS, WORD_BITS, block, deep_parts, leaf_of, pointed};
use crate::address::Address;
use crate::prefix::Prefix;

/// A directory on the way to where a change goes: its first unit, and the bits that choose one.
#[derive(Clone, Copy)]
struct Directory {
    level: Level,
    first: u32,
    position: u8,
    bits: u8,
}

/// The units that a change of `changed` touches, which is longer than a /16 whose entry is not shared. Counts the change,
/// and touches all of an entry that is due to be planned anew, if it may be.
pub(crate) fn touched(memory: &mut Memory6, changed: Prefix<u128>, plans_anew: bool) -> Units {
    let (first, bits) = pointed(memory.root((changed.first() >> 112) as u32));
    let entries = Directory { level: Level::Entries, first, position: ROOT_BITS, bits };
    let mut directory = entries;
    while let Some(next) = below(memory, directory, changed) {
        directory = next;
    }
    let entry = first + changed.first().bits(ROOT_BITS, bits);
    if directory.level == Level::Words && memory.is_due(entry) && plans_anew {
        directory = entries;
    }
    within(memory, directory, changed)
}

/// The directory behind the one unit of another that a change touches, if there is one and all of the change is
/// inside.
fn below(memory: &Memory6, directory: Directory, changed: Prefix<u128>) -> Option<Directory> {
    let Directory { level, first, position, bits } = directory;
    let end = position + bits;
    if changed.len() <= end {
        return None;
    }
    let unit = memory.unit(level, first + changed.first().bits(position, bits));
    if level == Level::Entries {
        let (first, bits) = pointed(unit as u32);
        let below = Directory { level: Level::Words, first, position: end, bits: bits - WORD_BITS };
        return (!is_shared(unit as u32) && memory.span(level, unit).is_none()).then_some(below);
    }
    if changed.len() <= end + WORD_BITS || block(unit).0 < ADJACENCIES {
        return None;
    }
    let leaf = leaf_of(unit, changed.first().bits(end, WORD_BITS));
    let mut entry = memory.core.leaf(leaf).boxed()?;
    while entry & (LEAF | DIRECTORY) == BRANCH {
        let branch = memory.core.branch(entry);
        let rank = branch.rank(changed.first());
        if rank != branch.rank(changed.last()) {
            return None;
        }
        entry = branch.entry(rank);
    }
    (entry & (LEAF | DIRECTORY) == DIRECTORY).then(|| {
        let deep = memory.core.deep[(entry & !DIRECTORY) as usize].load(Ordering::Relaxed);
        let (first, position, bits) = deep_parts(deep);
        Directory { level, first, position, bits: bits - WORD_BITS }
    })
}

/// The units of a directory that a change touches, and all that share leaves with them.
fn within(memory: &Memory6, directory: Directory, changed: Prefix<u128>) -> Units {
    let Directory { level, first, position, bits } = directory;
    let index = |address: u128| first + address.bits(position, bits);
    let (mut low, mut high) = match changed.len() <= position {
        true => (first, first + (1 << bits) - 1),
        false => (index(changed.first()), index(changed.last())),
    };
    let mut next = low;
    while next <= high {
        let span = memory.span(level, memory.unit(level, next)).unwrap_or((next, next));
        high = high.max(span.1);
        next = if span.0 < low { span.0 } else { next + 1 };
        low = low.min(span.0);
    }
    let start = around(changed.first(), position).0;
    let end = position + bits;
    let address = |index: u32| match bits {
        0 => start,
        _ => start | u128::from(index - first) << (128 - end),
    };
    Units { level, first: low, range: (address(low), around(address(high), end).1), end }
}

/// The slots of a word that share a leaf.
pub(crate) struct Stretch {
    pub(crate) word: u64,
    pub(crate) leaf: u32,
    pub(crate) slots: u32,
    pub(crate) range: Range,
}

/// The one leaf of a word that a change touches, if the word has others too.
pub(crate) fn stretch(memory: &Memory6, changed: Prefix<u128>, units: Units) -> Option<Stretch> {
    let Units { level, first, range, end } = units;
    if level != Level::Words || range != around(range.0, end) || changed.len() <= end {
        return None;
    }
    let word = memory.unit(level, first);
    let (block, count) = block(word);
    let leaf = |address: u128| leaf_of(word, address.bits(end, WORD_BITS)).wrapping_sub(block);
    let number = leaf(changed.first());
    if block < ADJACENCIES || count == 1 || number != leaf(changed.last()) {
        return None;
    }
    let mut starts = word as u32;
    (0..number).for_each(|_| starts &= starts - 1);
    let (low, next) = (starts.trailing_zeros(), (starts & (starts - 1)).trailing_zeros());
    let address = |slot: u32| range.0 | u128::from(slot) << (128 - end - WORD_BITS);
    let range = (address(low), around(address(next - 1), end + WORD_BITS).1);
    Some(Stretch { word, leaf: number, slots: next - low, range })
}
