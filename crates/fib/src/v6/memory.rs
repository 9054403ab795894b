//! The memory of an IPv6 table as its writer sees it: what is in use, by whom, and what is not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::FibError;
use crate::memory::blocks::Blocks;
use crate::memory::region::{Region, Written};
use crate::table::Memory;
use crate::v6::branch::WAYS;
use crate::v6::walk::{
    BRANCH, DIRECTORY, EMPTY, LEAF, Lines6Core, Lines6Layout, ROOT, WORD_BITS, block, deep_parts, pointed,
    pointer, word,
};

/// Adjacencies are below this. Leaf *n* and word *n* below it lead to adjacency *n*, as do entries 2 *n* and
/// 2 *n* + 1: what has one result shares these with all that have the same.
pub(crate) const ADJACENCIES: u32 = 1 << 15;

/// Changes that any plan is good for: bounds how often few runs are planned.
const PATIENCE_MIN: u32 = 64;

/// Memory that belongs to one table and may be freed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Entries of a first directory: the first and the bits.
    Entries(u32, u8),
    /// Words: the first and the bits.
    Words(u32, u8),
    /// Leaves: the first and their number.
    Leaves(u32, u32),
    Branch(u32),
    Deep(u32),
}

/// The units that share a leaf: of a directory of which kind, the first and the last.
type Span = (Level, u32, u32);

/// What a directory consists of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// Entries that point to words.
    Entries,
    /// Words.
    Words,
}

/// See the module.
pub(crate) struct Memory6 {
    pub(crate) core: Arc<Lines6Core>,
    /// Pages of the root.
    written: Written,
    entries: Blocks,
    words: Blocks,
    leaves: Blocks,
    branches: Blocks,
    deep: Blocks,
    /// First and last unit that a leaf serves, where units share one; from leaf [`ADJACENCIES`] on.
    spans: Vec<Span>,
    /// The adjacencies that something leads to already.
    prepared: Vec<bool>,
    /// Changes that each entry with words of its own takes before these are planned anew; from entry
    /// 2 × [`ADJACENCIES`] on.
    patience: Vec<u32>,
    /// What was allocated, and the entries that were planned and their runs, since the last [`Memory6::keep`].
    fresh: Vec<Part>,
    planned: Vec<(u32, u32)>,
}

/// Changes that a plan for so many runs is good for: by then there may be half as many more, or half as many.
pub(crate) fn patience(runs: u32) -> u32 {
    PATIENCE_MIN.max(runs / 2)
}

/// Whether a pointer or root entry leads to one result.
pub(crate) fn is_shared(pointer: u32) -> bool {
    let (first, bits) = pointed(pointer);
    first < ADJACENCIES && bits == WORD_BITS
}

pub(crate) fn is_shared_root(root: u32) -> bool {
    pointed(root).0 < 2 * ADJACENCIES
}

impl Memory6 {
    /// An empty table in a region, with room for `lines` leaves and as many branches, as far as the layout has room.
    pub(crate) fn new(layout: &Lines6Layout, region: &Arc<dyn Region>, lines: u32) -> Result<Self, FibError> {
        let core = Lines6Core::new(layout, region)?;
        let most = layout.leaves.mask + 1;
        let mut memory = Memory6 {
            written: Written::none(&core.root),
            core: Arc::new(core),
            entries: Blocks::new(2 * ADJACENCIES, layout.entries.mask + 1),
            words: Blocks::new(ADJACENCIES, layout.words.mask + 1),
            leaves: Blocks::new(ADJACENCIES, lines.saturating_add(ADJACENCIES).min(most)),
            branches: Blocks::new(0, lines.min(most)),
            deep: Blocks::new(0, layout.deep.mask + 1),
            spans: Vec::new(),
            prepared: vec![false; ADJACENCIES as usize],
            patience: Vec::new(),
            fresh: Vec::new(),
            planned: Vec::new(),
        };
        // The entry that no other is stored over; the root leads there from the beginning.
        memory.shared_root(0);
        memory.account();
        Ok(memory)
    }

    /// What the table takes.
    pub(crate) fn bytes(&self) -> Memory {
        let core = &self.core;
        let lines = self.leaves.used() + self.branches.used();
        let wide = self.words.used() + self.deep.used();
        let accounts = [&self.entries, &self.words, &self.leaves, &self.branches, &self.deep];
        let notes = self.spans.capacity() * size_of::<Span>() + self.patience.capacity() * 4;
        Memory {
            index_bytes: (ROOT + self.entries.used()) * 4 + wide * 8 + lines * 64,
            writer_bytes: accounts.map(Blocks::bytes).iter().sum::<usize>() + notes + self.prepared.len(),
            resident_bytes: self.written.bytes()
                + core.entries.resident_bytes()
                + core.words.resident_bytes()
                + core.leaves.resident_bytes()
                + core.branches.resident_bytes()
                + core.deep.resident_bytes(),
        }
    }

    /// Tells readers how much memory is in use, and the system what is large.
    pub(crate) fn account(&self) {
        let shared = ADJACENCIES as usize;
        self.core.entries.grow(2 * shared, self.entries.touched());
        self.core.words.grow(shared, self.words.touched());
        self.core.leaves.grow(shared, self.leaves.touched());
        self.core.branches.grow(0, self.branches.touched());
        let lines = self.leaves.touched() + self.branches.touched();
        let wide = self.words.touched() + self.deep.touched();
        let bytes = (ROOT + self.entries.touched()) * 4 + wide * 8 + lines * 64;
        self.core.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Writes what leads to an adjacency, before anything refers to it.
    fn prepare(&mut self, adjacency: u16) {
        if std::mem::replace(&mut self.prepared[usize::from(adjacency)], true) {
            return;
        }
        let number = u32::from(adjacency);
        self.core.leaf(number).write(&[(0, adjacency)], 0);
        self.core.words[usize::from(adjacency)].store(word(number, 1), Ordering::Relaxed);
        // A root entry names a directory of one bit at least, for a shift by 64 is none: both entries say the same.
        for index in [2 * number, 2 * number + 1] {
            self.core.entries[index as usize].store(pointer(number, WORD_BITS), Ordering::Relaxed);
        }
    }

    /// The word of a unit with one result.
    pub(crate) fn shared_word(&mut self, adjacency: u16) -> u64 {
        self.prepare(adjacency);
        word(adjacency.into(), 1)
    }

    /// The pointer of an entry with one result.
    pub(crate) fn shared_pointer(&mut self, adjacency: u16) -> u32 {
        self.prepare(adjacency);
        pointer(adjacency.into(), WORD_BITS)
    }

    /// The root entry of a /16 with one result.
    pub(crate) fn shared_root(&mut self, adjacency: u16) -> u32 {
        self.prepare(adjacency);
        pointer(2 * u32::from(adjacency), 1)
    }

    /// The root entry of a /16.
    pub(crate) fn root(&self, chunk: u32) -> u32 {
        if self.written.has(chunk as usize) { self.core.root(chunk as usize) } else { EMPTY }
    }

    /// Makes another root entry visible; returns the one before.
    pub(crate) fn set_root(&mut self, chunk: u32, root: u32) -> u32 {
        self.written.set(chunk as usize);
        // Release: whoever reads the entry reads what lies below it, which was written before.
        self.core.root[chunk as usize].swap(root ^ EMPTY, Ordering::AcqRel) ^ EMPTY
    }

    /// 2^`bits` entries.
    pub(crate) fn allocate_entries(&mut self, bits: u8) -> Option<u32> {
        let first = self.entries.allocate(1 << bits)?;
        self.fresh.push(Part::Entries(first, bits));
        Some(first)
    }

    /// 2^`bits` words.
    pub(crate) fn allocate_words(&mut self, bits: u8) -> Option<u32> {
        let first = self.words.allocate(1 << bits)?;
        self.fresh.push(Part::Words(first, bits));
        Some(first)
    }

    pub(crate) fn allocate_leaves(&mut self, count: usize) -> Option<u32> {
        let first = self.leaves.allocate(count)?;
        self.fresh.push(Part::Leaves(first, count as u32));
        Some(first)
    }

    pub(crate) fn allocate_branch(&mut self) -> Option<u32> {
        let branch = self.branches.allocate(1)?;
        self.fresh.push(Part::Branch(branch));
        Some(branch)
    }

    /// A further directory.
    pub(crate) fn allocate_deep(&mut self, deep: u64) -> Option<u32> {
        let at = self.deep.allocate(1)?;
        self.fresh.push(Part::Deep(at));
        self.core.deep[at as usize].store(deep, Ordering::Relaxed);
        Some(at)
    }

    /// Notes how many runs the words of an entry were planned for.
    pub(crate) fn plan(&mut self, entry: u32, runs: usize) {
        self.planned.push((entry, runs as u32));
    }

    /// Whether an entry with words of its own has seen as many changes as it was planned for; counts one more.
    pub(crate) fn is_due(&mut self, entry: u32) -> bool {
        let place = entry.wrapping_sub(2 * ADJACENCIES) as usize;
        let Some(patience) = self.patience.get_mut(place) else { return false };
        let left = patience.checked_sub(1);
        *patience = left.unwrap_or(0);
        left.is_none()
    }

    /// What was compiled is in use now.
    pub(crate) fn keep(&mut self) {
        self.fresh.clear();
        for (entry, runs) in self.planned.drain(..) {
            let place = (entry - 2 * ADJACENCIES) as usize;
            let entries = self.patience.len().max(place + 1);
            self.patience.resize(entries, 0);
            self.patience[place] = patience(runs);
        }
    }

    /// What was compiled shall not be used: there was no room for all of it.
    pub(crate) fn discard(&mut self) {
        self.planned.clear();
        let fresh = std::mem::take(&mut self.fresh);
        fresh.into_iter().for_each(|part| self.free(part));
    }

    pub(crate) fn free(&mut self, part: Part) {
        match part {
            Part::Entries(first, bits) => self.entries.release(first, 1 << bits),
            Part::Words(first, bits) => self.words.release(first, 1 << bits),
            Part::Leaves(first, count) => self.leaves.release(first, count as usize),
            Part::Branch(branch) => self.branches.release(branch, 1),
            Part::Deep(deep) => self.deep.release(deep, 1),
        }
    }

    /// Notes the units that a leaf serves; none share it if the first of them is [`u32::MAX`].
    pub(crate) fn set_span(&mut self, leaf: u32, level: Level, (first, last): (u32, u32)) {
        let place = (leaf - ADJACENCIES) as usize;
        let spans = self.spans.len().max(place + 1);
        self.spans.resize(spans, (Level::Words, u32::MAX, u32::MAX));
        self.spans[place] = (level, first, last);
    }

    /// What a unit holds.
    pub(crate) fn unit(&self, level: Level, index: u32) -> u64 {
        match level {
            Level::Entries => self.core.entries[index as usize].load(Ordering::Relaxed).into(),
            Level::Words => self.core.words[index as usize].load(Ordering::Relaxed),
        }
    }

    /// The first and the last of the units that share a leaf with one, if it shares its leaf.
    pub(crate) fn span(&self, level: Level, unit: u64) -> Option<(u32, u32)> {
        let word = match level {
            Level::Words => unit,
            Level::Entries if is_shared(unit as u32) || pointed(unit as u32).1 != WORD_BITS => return None,
            Level::Entries => self.unit(Level::Words, pointed(unit as u32).0),
        };
        let place = block(word).0.checked_sub(ADJACENCIES)?;
        let &(of, first, last) = self.spans.get(place as usize)?;
        (of == level && first != u32::MAX).then_some((first, last))
    }

    /// Adds to `parts` what a root entry holds.
    pub(crate) fn parts_of_root(&self, root: u32, parts: &mut Vec<Part>) {
        if is_shared_root(root) {
            return;
        }
        let (first, bits) = pointed(root);
        for index in first..first + (1 << bits) {
            self.parts_of_unit(Level::Entries, index, self.unit(Level::Entries, index), parts);
        }
        parts.push(Part::Entries(first, bits));
    }

    /// Adds what the unit at `index` held; what units share belongs to the first of them.
    pub(crate) fn parts_of_unit(&self, level: Level, index: u32, unit: u64, parts: &mut Vec<Part>) {
        let span = self.span(level, unit);
        if span.is_some_and(|span| span.0 != index) {
            return;
        }
        match level {
            Level::Words => self.parts_of_word(unit, parts),
            Level::Entries if is_shared(unit as u32) => {}
            Level::Entries => {
                let (first, bits) = pointed(unit as u32);
                match span {
                    Some(_) => {
                        self.parts_of_word(self.unit(Level::Words, first), parts);
                        parts.push(Part::Words(first, 0));
                    }
                    None => self.parts_of_words(first, bits, parts),
                }
            }
        }
    }

    fn parts_of_words(&self, first: u32, bits: u8, parts: &mut Vec<Part>) {
        let bits = bits - WORD_BITS;
        for index in first..first + (1 << bits) {
            self.parts_of_unit(Level::Words, index, self.unit(Level::Words, index), parts);
        }
        parts.push(Part::Words(first, bits));
    }

    fn parts_of_word(&self, word: u64, parts: &mut Vec<Part>) {
        let (first, count) = block(word);
        if first >= ADJACENCIES {
            self.parts_of_leaves(first, count, parts);
        }
    }

    fn parts_of_leaves(&self, first: u32, count: u32, parts: &mut Vec<Part>) {
        (first..first + count).for_each(|leaf| self.parts_below_leaf(leaf, parts));
        parts.push(Part::Leaves(first, count));
    }

    fn parts_below_leaf(&self, leaf: u32, parts: &mut Vec<Part>) {
        let leaf = self.core.leaf(leaf);
        if let Some(entry) = leaf.boxed() {
            self.parts_of_entry(entry, parts);
        } else if let Some((first, count)) = leaf.children() {
            self.parts_of_leaves(first, count, parts);
        }
    }

    /// Adds the block of a word of which all but one leaf are in use elsewhere now.
    pub(crate) fn parts_of_patched(&self, word: u64, number: u32, parts: &mut Vec<Part>) {
        let (first, count) = block(word);
        self.parts_below_leaf(first + number, parts);
        parts.push(Part::Leaves(first, count));
    }

    /// What lies below a branch or in a box.
    fn parts_of_entry(&self, entry: u32, parts: &mut Vec<Part>) {
        if entry & LEAF != 0 {
            self.parts_of_leaves(entry & !LEAF, 1, parts);
        } else if entry & DIRECTORY == DIRECTORY {
            let at = entry & !DIRECTORY;
            let (first, _, bits) = deep_parts(self.core.deep[at as usize].load(Ordering::Relaxed));
            self.parts_of_words(first, bits, parts);
            parts.push(Part::Deep(at));
        } else if entry & BRANCH != 0 {
            let branch = self.core.branch(entry);
            (0..WAYS).for_each(|rank| self.parts_of_entry(branch.entry(rank), parts));
            parts.push(Part::Branch(entry & !BRANCH));
        }
    }
}
