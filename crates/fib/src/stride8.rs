//! Nodes that resolve eight bits of an address in one cache line: a bitmap of where the result changes, and ranks.
//!
//! A line is eight words: a 256-bit bitmap (four words; bit *b* set if byte *b* starts a run, bit 0 never), a word
//! with the position of the first leaf and the number of bits set before each bitmap word, and twelve leaves inline.
//! Lines with more runs keep their leaves elsewhere in the same array; the position says where, so a lookup takes
//! the same instructions either way. A leaf is an adjacency, or with the high bit set a line for the next byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::blocks::Blocks;
use crate::chunks::Run;
use crate::mapping::Mapped;

/// Set in a leaf that continues in a line.
pub(crate) const CONTINUES: u16 = 0x8000;

const WORDS: usize = 1 << 23;
const LINE_WORDS: u32 = 8;
const INLINE: usize = 12;
/// Lines that a leaf can name.
const NEAR_LINES: u32 = 1 << 15;
const LINES: u32 = 1 << 18;

/// The array of lines and leaves that readers walk.
pub(crate) struct Nodes(Mapped<AtomicU64, WORDS>);

impl Nodes {
    pub(crate) fn new() -> Self {
        Nodes(Mapped::new())
    }

    #[inline(always)]
    fn word(&self, index: usize) -> &AtomicU64 {
        // Indices come from words written here and are in range; the mask lets the compiler know.
        &self.0[index & (WORDS - 1)]
    }

    /// The first word of a line, to prefetch.
    #[inline(always)]
    pub(crate) fn line(&self, line: u32) -> &AtomicU64 {
        self.word(line as usize * LINE_WORDS as usize)
    }

    /// Where the leaf of `byte` is.
    #[inline(always)]
    pub(crate) fn position(&self, line: u32, byte: u8) -> u32 {
        let at = line as usize * LINE_WORDS as usize;
        let part = usize::from(byte >> 6);
        let bits = self.word(at + part).load(Ordering::Relaxed);
        let head = self.word(at + 4).load(Ordering::Relaxed);
        let before = (head >> (32 + 8 * part)) as u8;
        let rank = (bits << (63 - (byte & 63))).count_ones() + u32::from(before);
        (head as u32).wrapping_add(rank)
    }

    /// The word that holds a leaf, to prefetch.
    #[inline(always)]
    pub(crate) fn leaf_word(&self, position: u32) -> &AtomicU64 {
        self.word((position >> 2) as usize)
    }

    /// The leaf at a position.
    #[inline(always)]
    pub(crate) fn leaf(&self, position: u32) -> u16 {
        (self.leaf_word(position).load(Ordering::Relaxed) >> (16 * (position & 3))) as u16
    }

    /// The adjacency at the end of a leaf that may continue, for the last byte of an address.
    #[inline(always)]
    pub(crate) fn finish(&self, leaf: u16, byte: u8) -> u32 {
        if leaf & CONTINUES == 0 {
            return u32::from(leaf);
        }
        u32::from(self.leaf(self.position(u32::from(leaf & !CONTINUES), byte)))
    }

    fn count(&self, line: u32) -> usize {
        let at = (line * LINE_WORDS) as usize;
        1 + (at..at + 4).map(|i| self.word(i).load(Ordering::Relaxed).count_ones() as usize).sum::<usize>()
    }
}

/// The writer's side of [`Nodes`].
pub(crate) struct NodePool {
    nodes: Arc<Nodes>,
    near: Blocks,
    far: Blocks,
    leaves: Blocks,
}

/// Which lines to take: those a leaf can name, or the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Near,
    Far,
}

impl NodePool {
    pub(crate) fn new(nodes: Arc<Nodes>) -> Self {
        NodePool {
            nodes,
            near: Blocks::new(1, NEAR_LINES), // line 0 reads as all misses
            far: Blocks::new(NEAR_LINES, LINES),
            leaves: Blocks::new(LINES * LINE_WORDS, WORDS as u32),
        }
    }

    /// Bytes of lines and leaves ever used.
    pub(crate) fn bytes(&self) -> usize {
        (self.near.used() + self.far.used()) * 64 + self.leaves.used() * 8
    }

    /// Writes a line of `runs` (byte, leaf), sorted, the first at byte 0. `None` if there is no room.
    pub(crate) fn write_line(&mut self, reach: Reach, runs: &[(u8, u16)]) -> Option<u32> {
        let blocks = if reach == Reach::Near { &mut self.near } else { &mut self.far };
        let line = blocks.allocate(1)?;
        let at = line * LINE_WORDS;
        let leaf_words = runs.len().div_ceil(4);
        let first = if runs.len() <= INLINE {
            at + 5
        } else if let Some(first) = self.leaves.allocate(leaf_words) {
            first
        } else {
            blocks.release(line, 1);
            return None;
        };
        let mut bitmap = [0_u64; 4];
        for &(byte, _) in &runs[1..] {
            bitmap[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
        let mut head = u64::from(first) * 4;
        let mut before = 0;
        for (part, bits) in bitmap.iter().enumerate() {
            self.nodes.word(at as usize + part).store(*bits, Ordering::Relaxed);
            head |= before << (32 + 8 * part);
            before += u64::from(bits.count_ones());
        }
        self.nodes.word(at as usize + 4).store(head, Ordering::Relaxed);
        for (word, four) in runs.chunks(4).enumerate() {
            let packed = four.iter().rev().fold(0, |packed, run| packed << 16 | u64::from(run.1));
            self.nodes.word(first as usize + word).store(packed, Ordering::Relaxed);
        }
        Some(line)
    }

    /// Frees a line and its leaves, not the lines its leaves name.
    pub(crate) fn free_line(&mut self, line: u32) {
        let count = self.nodes.count(line);
        if count > INLINE {
            let first = self.nodes.word((line * LINE_WORDS + 4) as usize).load(Ordering::Relaxed) as u32 / 4;
            self.leaves.release(first, count.div_ceil(4));
        }
        let blocks = if line < NEAR_LINES { &mut self.near } else { &mut self.far };
        blocks.release(line, 1);
    }

    /// The lines that the leaves of a line name.
    pub(crate) fn continuations(&self, line: u32) -> impl Iterator<Item = u32> + use<> {
        let nodes = self.nodes.clone();
        let first = nodes.word((line * LINE_WORDS + 4) as usize).load(Ordering::Relaxed) as u32;
        (0..nodes.count(line) as u32)
            .map(move |rank| nodes.leaf(first + rank))
            .filter_map(|leaf| (leaf & CONTINUES != 0).then_some(u32::from(leaf & !CONTINUES)))
    }

    /// Turns runs over a chunk into leaves, one for each 256 addresses that differ from those before; where a run
    /// starts inside 256 addresses the leaf continues in a new line. On failure the lines already written are in
    /// `leaves` and the caller frees them.
    pub(crate) fn leaves_of(&mut self, runs: &[Run], slots: u32, leaves: &mut Vec<(u8, u16)>) -> Option<()> {
        leaves.clear();
        let mut current = 0;
        let mut rest = runs;
        while let Some(&(start, adjacency)) = rest.first() {
            let slot = start >> 8;
            let inside = rest.iter().take_while(|run| run.0 >> 8 == slot).count();
            let (here, after) = rest.split_at(inside);
            rest = after;
            if inside == 1 && start & 255 == 0 {
                leaves.push((slot as u8, adjacency));
                current = adjacency;
                continue;
            }
            let line = self.write_slot(current, here)?;
            leaves.push((slot as u8, CONTINUES | line as u16));
            current = here[inside - 1].1;
            let next_starts = rest.first().map_or(slots, |run| run.0 >> 8);
            if next_starts > slot + 1 {
                leaves.push((slot as u8 + 1, current));
            }
        }
        Some(())
    }

    fn write_slot(&mut self, before: u16, here: &[Run]) -> Option<u32> {
        let mut bytes = [(0_u8, before); 256];
        let mut count = usize::from(here[0].0 & 255 != 0);
        for &(start, adjacency) in here {
            bytes[count] = (start as u8, adjacency);
            count += 1;
        }
        self.write_line(Reach::Near, &bytes[..count])
    }
}
