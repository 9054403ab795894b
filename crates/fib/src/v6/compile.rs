//! From runs to what [`crate::v6::walk`] walks: entries, words, leaves and branches, written where no reader looks yet.

use std::sync::atomic::Ordering;

use crate::address::Address;
use crate::prefix::Prefix;
use crate::v6::branch::WAYS;
use crate::v6::leaf::{CHILD, FAN_OUT, NARROW_FAN_OUT, PARENT_LESS, one_leaf, one_parent};
use crate::v6::memory::{Level, Memory6};
use crate::v6::plan::{divides, entries, marks, words};
use crate::v6::walk::{BRANCH, DIRECTORY, LEAF, ROOT_BITS, Run, WORD_BITS, block, deep, pointer, word};

/// Units that one leaf may serve: bounds what a change has to look at.
const SPAN_MAX: u32 = 64;
/// Runs below one slot for which leaves of leaves are better than a directory.
const PARENT_MAX: usize = 512;

/// First and last address.
pub(crate) type Range = (u128, u128);

/// Neighbouring entries or words of a directory: units, for short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub(crate) level: Level,
    /// The first of them.
    pub(crate) first: u32,
    pub(crate) range: Range,
    /// The bit after the last that chooses a unit.
    pub(crate) end: u8,
}

/// Neighbouring units whose runs fit one leaf, or one unit that is too large for that.
struct Span {
    first: u32,
    /// Which of the units from `first` on have more than one result.
    units: u64,
    range: Range,
    /// The runs: the one that holds the first address, up to the end.
    runs: (usize, usize),
}

/// A stretch of a word's slots that gets a leaf: slot, range and runs.
struct Stretch {
    slot: u32,
    range: Range,
    runs: (usize, usize),
}

/// Compiles into a table's memory.
pub(crate) struct Compiler<'a> {
    pub(crate) memory: &'a mut Memory6,
}

impl Compiler<'_> {
    /// The root entry for the runs of a /16.
    pub(crate) fn root(&mut self, runs: &[Run], range: Range) -> Option<u32> {
        if let [(_, adjacency)] = *runs {
            return Some(self.memory.shared_root(adjacency));
        }
        let bits = entries(&marks(runs), ROOT_BITS).bits;
        let first = self.memory.allocate_entries(bits)?;
        let core = self.memory.core.clone();
        let units = Units { level: Level::Entries, first, range, end: ROOT_BITS + bits };
        self.units(runs, units, &mut |index, entry| {
            core.entries[index as usize].store(entry as u32, Ordering::Relaxed);
        })?;
        Some(pointer(first, bits))
    }

    /// A directory of words; returns the first of them.
    fn words(&mut self, runs: &[Run], range: Range, position: u8, bits: u8) -> Option<u32> {
        let first = self.memory.allocate_words(bits - WORD_BITS)?;
        let core = self.memory.core.clone();
        let units = Units { level: Level::Words, first, range, end: position + bits - WORD_BITS };
        self.units(runs, units, &mut |index, word| {
            core.words[index as usize].store(word, Ordering::Relaxed);
        })?;
        Some(first)
    }

    /// Compiles the runs of neighbouring units and hands each unit to `put`. The first run starts at or before their
    /// range.
    pub(crate) fn units(&mut self, runs: &[Run], units: Units, put: &mut impl FnMut(u32, u64)) -> Option<()> {
        let Units { level, first, range, end } = units;
        let mut span: Option<Span> = None;
        let (mut index, mut start, mut at) = (first, range.0, 0);
        loop {
            let last = start | !u128::mask(end);
            let until = within_from(runs, &mut at, (start, last));
            if until - at == 1 {
                let adjacency = runs[at].1;
                put(
                    index,
                    match level {
                        Level::Entries => self.memory.shared_pointer(adjacency).into(),
                        Level::Words => self.memory.shared_word(adjacency),
                    },
                );
            } else if let Some(span) = span.as_mut().filter(|span| span.takes(runs, index, last, until)) {
                span.units |= 1 << (index - span.first);
                (span.range.1, span.runs.1) = (last, until);
            } else {
                let next = Span { first: index, units: 1, range: (start, last), runs: (at, until) };
                if let Some(full) = span.replace(next) {
                    self.close(runs, level, &full, put)?;
                }
            }
            match last.successor() {
                Some(next) if next <= range.1 => (index, start) = (index + 1, next),
                _ => break,
            }
        }
        span.map_or(Some(()), |span| self.close(runs, level, &span, put))
    }

    /// Compiles what a span of units leads to.
    fn close(
        &mut self,
        runs: &[Run],
        level: Level,
        span: &Span,
        put: &mut impl FnMut(u32, u64),
    ) -> Option<()> {
        let runs = &runs[span.runs.0..span.runs.1];
        let position = span.range.0.common_bits(span.range.1);
        let unit = if let Some(window) = one_leaf(runs, position) {
            let leaf = self.memory.allocate_leaves(1)?;
            self.memory.core.leaf(leaf).write(runs, window);
            self.memory.set_span(leaf, level, (span.first, span.first + span.units.ilog2()));
            let word = word(leaf, 1);
            match level {
                Level::Words => word,
                // Entries lead to words, so one stands between: all of its slots have the leaf.
                Level::Entries => {
                    let first = self.memory.allocate_words(0)?;
                    self.memory.core.words[first as usize].store(word, Ordering::Relaxed);
                    pointer(first, WORD_BITS).into()
                }
            }
        } else if level == Level::Words {
            self.word(runs, span.range)?
        } else {
            self.memory.plan(span.first, runs.len());
            let bits = words(&marks(runs), position).bits;
            pointer(self.words(runs, span.range, position, bits)?, bits).into()
        };
        let mut units = span.units;
        while units != 0 {
            put(span.first + units.trailing_zeros(), unit);
            units &= units - 1;
        }
        Some(())
    }

    /// A word with leaves of its own.
    fn word(&mut self, runs: &[Run], range: Range) -> Option<u64> {
        let stretches = stretches(runs, range);
        let block = self.memory.allocate_leaves(stretches.len())?;
        self.memory.set_span(block, Level::Words, (u32::MAX, u32::MAX));
        let mut starts = 0;
        for (leaf, stretch) in (block..).zip(&stretches) {
            starts |= 1 << stretch.slot;
            self.leaf(leaf, &runs[stretch.runs.0..stretch.runs.1], stretch.range)?;
        }
        Some(word(block, starts))
    }

    /// Writes a leaf for any runs.
    fn leaf(&mut self, leaf: u32, runs: &[Run], range: Range) -> Option<()> {
        let position = range.0.common_bits(range.1);
        if let Some(window) = one_leaf(runs, position) {
            self.memory.core.leaf(leaf).write(runs, window);
            return Some(());
        }
        // Leaves of equal size below this one; failing that, parts that may need more than a leaf themselves.
        let counts = [NARROW_FAN_OUT, FAN_OUT].map(|fan_out| (runs.len().div_ceil(fan_out), true));
        let parts = (FAN_OUT - PARENT_LESS, false);
        for (count, exact) in counts.into_iter().chain([parts]) {
            if runs.len() <= FAN_OUT || runs.len() > PARENT_MAX {
                break;
            }
            let cuts: Vec<_> = (1..count).map(|part| runs[runs.len() * part / count].0).collect();
            let window = one_parent(&cuts, position);
            if let Some(window) = window.filter(|_| !exact || leaves_suffice(runs, range, &cuts)) {
                return self.parent(leaf, runs, range, &cuts, window);
            }
        }
        let entry = self.crowd(runs, range)?;
        self.memory.core.leaf(leaf).write_box(entry);
        Some(())
    }

    /// The word that has other runs for one of its leaves, which serves `range`: a copy but for that one. Says
    /// nothing if they would have to be cut into several.
    pub(crate) fn patch(
        &mut self,
        old: u64,
        number: u32,
        runs: &[Run],
        range: Range,
        slots: u32,
    ) -> Option<Option<u64>> {
        if slots > 1 && one_leaf(runs, range.0.common_bits(range.1)).is_none() {
            return Some(None);
        }
        let (from, count) = block(old);
        let to = self.memory.allocate_leaves(count as usize)?;
        self.memory.set_span(to, Level::Words, (u32::MAX, u32::MAX));
        for other in (0..count).filter(|&other| other != number) {
            self.memory.core.leaf(to + other).copy(self.memory.core.leaf(from + other));
        }
        self.leaf(to + number, runs, range)?;
        Some(Some(word(to, old as u32)))
    }

    /// Writes a leaf of leaves.
    fn parent(&mut self, leaf: u32, runs: &[Run], range: Range, cuts: &[u128], window: u16) -> Option<()> {
        let block = self.memory.allocate_leaves(cuts.len() + 1)?;
        let mut children = [(0, 0); NARROW_FAN_OUT];
        for ((part, child), number) in parts(range, cuts).zip(&mut children).zip(0..) {
            self.leaf(block + number, within(runs, part), part)?;
            *child = (part.0, CHILD | number as u16);
        }
        self.memory.core.leaf(leaf).write_parent(&children[..=cuts.len()], window, block);
        Some(())
    }

    /// The entry for runs behind a branch.
    fn entry(&mut self, runs: &[Run], range: Range) -> Option<u32> {
        if let [(_, adjacency)] = *runs {
            return Some(adjacency.into());
        }
        if let Some(window) = one_leaf(runs, range.0.common_bits(range.1)) {
            let leaf = self.memory.allocate_leaves(1)?;
            self.memory.core.leaf(leaf).write(runs, window);
            return Some(LEAF | leaf);
        }
        self.crowd(runs, range)
    }

    /// The entry for runs that no leaf can tell apart. Each step halves them at least, but for a branch that passes
    /// what they have in common before a directory that does; so the steps are bounded by their logarithm.
    fn crowd(&mut self, runs: &[Run], range: Range) -> Option<u32> {
        let starts: Vec<u128> = runs[1..].iter().map(|run| run.0).collect();
        if starts.len() < WAYS {
            return self.branch(runs, range, &starts);
        }
        let quarters: Vec<_> = (1..WAYS).map(|part| starts[runs.len() * part / WAYS - 1]).collect();
        if runs.len() <= WAYS * FAN_OUT && leaves_suffice(runs, range, &quarters) {
            return self.branch(runs, range, &quarters);
        }
        let plan = |runs: &[Run], position| {
            let marks = marks(runs);
            let bits = words(&marks, position).bits;
            divides(&marks, position, bits).then_some(bits)
        };
        let position = range.0.common_bits(range.1);
        if let Some(bits) = plan(runs, position).filter(|_| range == around(range.0, position)) {
            let first = self.words(runs, range, position, bits)?;
            return self.memory.allocate_deep(deep(first, position, bits)).map(|at| DIRECTORY | at);
        }
        // The first and the last start may be those of a route around all others.
        let inner = &starts[1..starts.len() - 1];
        let shared = inner[0].common_bits(inner[inner.len() - 1]);
        let cluster = around(inner[0], shared);
        let inside = range.0 <= cluster.0 && cluster.1 <= range.1 && cluster != range;
        if inside && plan(within(runs, cluster), shared).is_some() {
            let start = Some(cluster.0).filter(|&start| start > range.0);
            let end = cluster.1.successor().filter(|_| cluster.1 < range.1);
            let ends: Vec<_> = start.into_iter().chain(end).collect();
            return self.branch(runs, range, &ends);
        }
        self.branch(runs, range, &quarters)
    }

    fn branch(&mut self, runs: &[Run], range: Range, boundaries: &[u128]) -> Option<u32> {
        let branch = self.memory.allocate_branch()?;
        let mut entries = [0; WAYS];
        for (entry, part) in entries.iter_mut().zip(parts(range, boundaries)) {
            *entry = self.entry(within(runs, part), part)?;
        }
        self.memory.core.branch(branch).write(boundaries, &entries);
        Some(BRANCH | branch)
    }
}

impl Span {
    /// Whether the runs up to `until` fit the same leaf, when the unit at `index` with `last` as its last address
    /// joins.
    fn takes(&self, runs: &[Run], index: u32, last: u128, until: usize) -> bool {
        index - self.first < SPAN_MAX
            && one_leaf(&runs[self.runs.0..until], self.range.0.common_bits(last)).is_some()
    }
}

/// Cuts the slots of a word into stretches that fit a leaf each, where one slot does.
fn stretches(runs: &[Run], range: Range) -> Vec<Stretch> {
    let end = range.0.common_bits(range.1) + WORD_BITS;
    let mut stretches: Vec<Stretch> = Vec::new();
    let (mut slot, mut start, mut at) = (0, range.0, 0);
    while slot < 1 << WORD_BITS {
        let last = start | !u128::mask(end);
        let until = within_from(runs, &mut at, (start, last));
        match stretches.last_mut() {
            Some(stretch)
                if one_leaf(&runs[stretch.runs.0..until], stretch.range.0.common_bits(last)).is_some() =>
            {
                (stretch.range.1, stretch.runs.1) = (last, until);
            }
            _ => stretches.push(Stretch { slot, range: (start, last), runs: (at, until) }),
        }
        slot += 1;
        match last.successor() {
            Some(next) => start = next,
            None => break,
        }
    }
    stretches
}

/// The range of all addresses that have the first `position` bits of one.
pub(crate) fn around(address: u128, position: u8) -> Range {
    let prefix = Prefix::truncated(address, position);
    (prefix.first(), prefix.last())
}

/// The runs of a part of a range; the first may start before it.
fn within(runs: &[Run], part: Range) -> &[Run] {
    let until = runs.partition_point(|run| run.0 <= part.1);
    // The first run counts from wherever the range starts.
    let at = runs[1..until].partition_point(|run| run.0 <= part.0);
    &runs[at..until]
}

/// The same where parts come one after the other: moves `at` on to the first run and returns the end.
fn within_from(runs: &[Run], at: &mut usize, part: Range) -> usize {
    *at += runs[*at + 1..].iter().take_while(|run| run.0 <= part.0).count();
    *at + 1 + runs[*at + 1..].iter().take_while(|run| run.0 <= part.1).count()
}

/// A range cut at boundaries inside it.
fn parts(range: Range, boundaries: &[u128]) -> impl Iterator<Item = Range> {
    let starts = std::iter::once(range.0).chain(boundaries.iter().copied());
    let ends = boundaries.iter().map(|&boundary| boundary - 1).chain([range.1]);
    starts.zip(ends)
}

fn leaves_suffice(runs: &[Run], range: Range, boundaries: &[u128]) -> bool {
    parts(range, boundaries).all(|part| one_leaf(within(runs, part), part.0.common_bits(part.1)).is_some())
}
