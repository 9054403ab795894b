//! The writer's side of an IPv6 bucket: a tree of [`crate::line6`] lines, built whole and freed whole.

use std::sync::Arc;

use crate::address::Address;
use crate::blocks::Blocks;
use crate::line6::{CHILD, FAN_OUT, Line, children, write};
use crate::lines6::LINES;
use crate::mapping::Mapped;

/// The first address of a run and its adjacency.
pub(crate) type Run = (u128, u16);

/// What a key of a window leads to.
#[derive(Clone, Copy)]
enum Target<'a> {
    Adjacency(u16),
    /// Runs that start inside the one window value; the first may start before it.
    Deeper(&'a [Run], u16),
}

/// Lines and which of them are free.
pub(crate) struct LinePool {
    lines: Arc<Mapped<Line, LINES>>,
    blocks: Blocks,
}

impl LinePool {
    pub(crate) fn new(lines: Arc<Mapped<Line, LINES>>, count: u32) -> Self {
        LinePool { lines, blocks: Blocks::new(0, count, FAN_OUT) }
    }

    /// Bytes of lines ever used.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.used() * 64
    }

    pub(crate) fn release(&mut self, first: u32, count: u32) {
        self.blocks.release(first, count as usize);
    }

    /// Builds the tree of a bucket whose window starts at bit `window`; returns its first line.
    pub(crate) fn build(&mut self, runs: &[Run], window: u8) -> Option<u32> {
        let line = self.blocks.allocate(1)?;
        if self.fill(line, &targets(runs, runs[0].1, window), window).is_none() {
            self.blocks.release(line, 1);
            return None;
        }
        Some(line)
    }

    /// The blocks of the tree that starts at a line.
    pub(crate) fn blocks_of(&self, line: u32) -> Vec<(u32, u32)> {
        let mut blocks = vec![(line, 1)];
        let mut next = 0;
        while let Some(&(first, count)) = blocks.get(next) {
            blocks.extend((first..first + count).filter_map(|line| children(&self.lines[line as usize])));
            next += 1;
        }
        blocks
    }

    fn free_below(&mut self, line: u32) {
        let blocks = self.blocks_of(line);
        blocks[1..].iter().for_each(|&(first, count)| self.release(first, count));
    }

    /// Writes `line` and all below it; on failure nothing below it stays allocated.
    fn fill(&mut self, line: u32, targets: &[(u32, Target)], window: u8) -> Option<()> {
        if targets.len() > FAN_OUT {
            return self.fill_header(line, targets, window);
        }
        let deeper = targets.iter().filter(|target| matches!(target.1, Target::Deeper(..))).count();
        let block = if deeper > 0 { self.blocks.allocate(deeper)? } else { 0 };
        let mut results = [(0, 0); FAN_OUT];
        let mut child = 0;
        for (result, &(key, target)) in results.iter_mut().zip(targets) {
            *result = match target {
                Target::Adjacency(adjacency) => (key, adjacency),
                Target::Deeper(runs, before) => {
                    let window = window + 32;
                    let below = self::targets(runs, before, window);
                    if self.fill(block + child, &below, window).is_none() {
                        self.undo(block, child, deeper);
                        return None;
                    }
                    child += 1;
                    (key, CHILD | (child - 1) as u16)
                }
            };
        }
        write(&self.lines[line as usize], window, block, &results[..targets.len()]);
        Some(())
    }

    /// More targets than a line holds: a line that only leads to others.
    fn fill_header(&mut self, line: u32, targets: &[(u32, Target)], window: u8) -> Option<()> {
        let mut capacity = FAN_OUT;
        while capacity * FAN_OUT < targets.len() {
            capacity *= FAN_OUT;
        }
        let count = targets.len().div_ceil(capacity);
        let block = self.blocks.allocate(count)?;
        let mut results = [(0, 0); FAN_OUT];
        for child in 0..count {
            let part = &targets[targets.len() * child / count..targets.len() * (child + 1) / count];
            results[child] = (part[0].0, CHILD | child as u16);
            if self.fill(block + child as u32, part, window).is_none() {
                self.undo(block, child as u32, count);
                return None;
            }
        }
        results[0].0 = 0;
        write(&self.lines[line as usize], window, block, &results[..count]);
        Some(())
    }

    fn undo(&mut self, block: u32, filled: u32, count: usize) {
        (block..block + filled).for_each(|line| self.free_below(line));
        self.blocks.release(block, count);
    }
}

/// Runs as keys of a window: one where the result changes, and around a value with runs inside it.
fn targets(runs: &[Run], before: u16, window: u8) -> Vec<(u32, Target<'_>)> {
    let mut found: Vec<(u32, Target)> = Vec::with_capacity(runs.len() + 2);
    let mut current = before;
    let mut rest = runs;
    let key = |run: &Run| run.0.bits(window, 32);
    if key(&runs[0]) != 0 {
        found.push((0, Target::Adjacency(before)));
    }
    while let Some(first) = rest.first() {
        let value = key(first);
        let (here, after) = rest.split_at(rest.iter().take_while(|run| key(run) == value).count());
        rest = after;
        let clean = first.0 & !u128::mask(window.saturating_add(32).min(128)) == 0;
        if here.len() == 1 && clean {
            found.push((value, Target::Adjacency(first.1)));
            current = first.1;
            continue;
        }
        found.push((value, Target::Deeper(here, current)));
        current = here[here.len() - 1].1;
        if let Some(next) = value.checked_add(1)
            && rest.first().is_none_or(|run| key(run) != next)
        {
            found.push((next, Target::Adjacency(current)));
        }
    }
    found
}
