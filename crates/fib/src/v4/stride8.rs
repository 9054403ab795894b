//! Nodes that resolve eight bits of an address in one cache line: a bitmap of where the result changes, and ranks.
//!
//! A line is eight words: a 256-bit bitmap (four words; bit *b* set if byte *b* starts a run, bit 0 never), a word
//! with the position of the first leaf and the number of bits set before each bitmap word, and twelve leaves inline.
//! Lines with more runs keep their leaves elsewhere in the same array; the position says where, so a lookup takes
//! the same instructions either way. A leaf is an adjacency; with the high bit set it continues in a line for the next
//! byte, and the rest says how many places after the leaf the two halves of that line's number are. So 16 bits a leaf
//! do not limit how many lines there can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::FibError;
use crate::memory::blocks::Blocks;
use crate::memory::mapping::prefetch;
use crate::memory::region::{Elements, Part, Place, Region};
use crate::v4::chunks::Run;

/// Set in a leaf that continues in a line.
pub(crate) const CONTINUES: u16 = 0x8000;

const LINE_WORDS: u32 = 8;
/// Of the words, lines take a quarter.
const WORDS_BY_LINE: u32 = 4 * LINE_WORDS;
const INLINE: usize = 12;

/// What a leaf leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    Adjacency(u16),
    /// A line for the next byte.
    Line(u32),
}

/// Leaves as they are stored: in order, and after them the numbers of the lines that some continue in.
pub(crate) fn pack(leaves: &[(u8, Leaf)], packed: &mut Vec<u16>) {
    packed.clear();
    let mut lines = 0;
    for (place, &(_, leaf)) in leaves.iter().enumerate() {
        packed.push(match leaf {
            Leaf::Adjacency(adjacency) => adjacency,
            Leaf::Line(_) => {
                lines += 1;
                CONTINUES | (leaves.len() + 2 * (lines - 1) - place) as u16 // at most 3 × 256
            }
        });
    }
    for &(_, leaf) in leaves {
        if let Leaf::Line(line) = leaf {
            packed.extend([line as u16, (line >> 16) as u16]);
        }
    }
}

/// The lines among the `count` stored leaves that start at `first`; `leaf` reads one.
pub(crate) fn lines_of(
    first: u32,
    count: u32,
    leaf: impl Fn(u32) -> u16 + Copy,
) -> impl Iterator<Item = u32> {
    (first..first + count).filter_map(move |at| line_of(at, leaf(at), leaf))
}

/// The line that a leaf stored at `at` continues in, if it does.
#[inline(always)]
pub(crate) fn line_of(at: u32, value: u16, leaf: impl Fn(u32) -> u16) -> Option<u32> {
    if value & CONTINUES == 0 {
        return None;
    }
    let number = at.wrapping_add(u32::from(value & !CONTINUES));
    Some(u32::from(leaf(number)) | u32::from(leaf(number.wrapping_add(1))) << 16)
}

/// The array of lines and leaves that readers walk.
pub(crate) struct Nodes(Part<AtomicU64>);

/// The same, to be kept in registers.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a>(Elements<'a, AtomicU64>);

impl Nodes {
    pub(crate) fn new(region: &Arc<dyn Region>, place: Place) -> Result<Self, FibError> {
        Part::of(region, place).map(Nodes)
    }

    #[inline(always)]
    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines(self.0.elements())
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        &self.0[index]
    }

    /// Position of the first leaf of a line.
    fn first(&self, line: u32) -> u32 {
        self.word((line * LINE_WORDS + 4) as usize).load(Ordering::Relaxed) as u32
    }

    fn count(&self, line: u32) -> usize {
        let at = (line * LINE_WORDS) as usize;
        1 + (at..at + 4).map(|i| self.word(i).load(Ordering::Relaxed).count_ones() as usize).sum::<usize>()
    }
}

impl<'a> Lines<'a> {
    #[inline(always)]
    fn word(self, index: u32) -> &'a AtomicU64 {
        self.0.get(index)
    }

    #[inline(always)]
    fn words(self, line: u32) -> &'a [AtomicU64; LINE_WORDS as usize] {
        self.0.block(line.wrapping_mul(LINE_WORDS))
    }

    /// The first word of a line, to prefetch.
    #[inline(always)]
    pub(crate) fn line(self, line: u32) -> &'a AtomicU64 {
        &self.words(line)[0]
    }

    /// Where the leaf of `byte` is.
    #[inline(always)]
    pub(crate) fn position(self, line: u32, byte: u8) -> u32 {
        let words = self.words(line);
        let part = usize::from(byte >> 6);
        let bits = words[part].load(Ordering::Relaxed);
        let head = words[4].load(Ordering::Relaxed);
        let before = (head >> (32 + 8 * part)) as u8;
        let rank = (bits << (63 - (byte & 63))).count_ones() + u32::from(before);
        (head as u32).wrapping_add(rank)
    }

    /// The word that holds a leaf, to prefetch.
    #[inline(always)]
    pub(crate) fn leaf_word(self, position: u32) -> &'a AtomicU64 {
        self.word(position >> 2)
    }

    /// The leaf at a position.
    #[inline(always)]
    pub(crate) fn leaf(self, position: u32) -> u16 {
        (self.leaf_word(position).load(Ordering::Relaxed) >> (16 * (position & 3))) as u16
    }

    /// The adjacency at the end of the leaf at a position, which may continue, for the last byte of an address.
    #[inline(always)]
    pub(crate) fn finish(self, leaf: u16, position: u32, byte: u8) -> u32 {
        match line_of(position, leaf, |at| self.leaf(at)) {
            None => u32::from(leaf),
            Some(line) => self.last(line, byte),
        }
    }

    /// The same for addresses looked up together: `line` gives the line that the leaf in the result of a place
    /// continues in, and `N` is at least their number.
    #[inline(always)]
    pub(crate) fn finish_group<const N: usize>(
        self,
        addresses: &[u32],
        results: &mut [u32],
        line: impl Fn(usize, u16) -> Option<u32>,
    ) {
        let mut lines = [0; N];
        for (place, (at, result)) in lines.iter_mut().zip(&*results).enumerate() {
            // No leaf names line 0.
            *at = line(place, *result as u16).unwrap_or(0);
            prefetch(self.line(*at));
        }
        for ((result, &address), &at) in results.iter_mut().zip(addresses).zip(&lines) {
            if at != 0 {
                *result = self.last(at, address as u8);
            }
        }
    }

    /// The adjacency of the last byte of an address in a line whose leaves all end there.
    #[inline(always)]
    pub(crate) fn last(self, line: u32, byte: u8) -> u32 {
        u32::from(self.leaf(self.position(line, byte)))
    }
}

/// The writer's side of [`Nodes`].
pub(crate) struct NodePool {
    nodes: Arc<Nodes>,
    lines: Blocks,
    /// Words of leaves.
    leaves: Blocks,
    packed: Vec<u16>,
}

impl NodePool {
    pub(crate) fn new(nodes: Arc<Nodes>) -> Self {
        let words = nodes.0.len() as u32; // at most 2^25
        let lines = words / WORDS_BY_LINE;
        NodePool {
            nodes,
            lines: Blocks::new(1, lines), // line 0 reads as all misses
            leaves: Blocks::new(lines * LINE_WORDS, words),
            packed: Vec::new(),
        }
    }

    /// Bytes of lines and leaves ever used.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.touched() * 64 + self.leaves.touched() * 8
    }

    /// Bytes of those in use.
    pub(crate) fn used_bytes(&self) -> usize {
        self.lines.used() * 64 + self.leaves.used() * 8
    }

    /// Bytes of memory behind them.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.nodes.0.resident_bytes()
    }

    /// Bytes of the account of them.
    pub(crate) fn writer_bytes(&self) -> usize {
        self.lines.bytes() + self.leaves.bytes()
    }

    /// Asks for huge pages if there are enough lines.
    pub(crate) fn grow(&self) {
        self.nodes.0.grow(0, self.lines.touched() * LINE_WORDS as usize);
    }

    /// Writes a line of `leaves`, each with the byte it starts at, sorted, the first at byte 0. `None` if there is no
    /// room.
    pub(crate) fn write_line(&mut self, leaves: &[(u8, Leaf)]) -> Option<u32> {
        let mut packed = std::mem::take(&mut self.packed);
        pack(leaves, &mut packed);
        let line = self.write_packed(leaves, &packed);
        self.packed = packed;
        line
    }

    fn write_packed(&mut self, leaves: &[(u8, Leaf)], packed: &[u16]) -> Option<u32> {
        let line = self.lines.allocate(1)?;
        let at = line * LINE_WORDS;
        let first = if packed.len() <= INLINE {
            at + 5
        } else if let Some(first) = self.leaves.allocate(packed.len().div_ceil(4)) {
            first
        } else {
            self.lines.release(line, 1);
            return None;
        };
        let mut bitmap = [0_u64; 4];
        for &(byte, _) in &leaves[1..] {
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
        for (word, four) in packed.chunks(4).enumerate() {
            let packed = four.iter().rev().fold(0, |packed, &leaf| packed << 16 | u64::from(leaf));
            self.nodes.word(first as usize + word).store(packed, Ordering::Relaxed);
        }
        Some(line)
    }

    /// Frees a line and its leaves, not the lines its leaves name.
    pub(crate) fn free_line(&mut self, line: u32) {
        let first = self.nodes.first(line) / 4;
        if first != line * LINE_WORDS + 5 {
            let places = self.nodes.count(line) + 2 * self.continuations(line).count();
            self.leaves.release(first, places.div_ceil(4));
        }
        self.lines.release(line, 1);
    }

    /// The lines that the leaves of a line name.
    pub(crate) fn continuations(&self, line: u32) -> impl Iterator<Item = u32> + '_ {
        lines_of(self.nodes.first(line), self.nodes.count(line) as u32, |at| self.nodes.lines().leaf(at))
    }

    /// Frees the lines that leaves name, for a caller that found no room to store them.
    pub(crate) fn free_lines(&mut self, leaves: &[(u8, Leaf)]) {
        for &(_, leaf) in leaves {
            if let Leaf::Line(line) = leaf {
                self.free_line(line);
            }
        }
    }

    /// Turns runs over a chunk into leaves, one for each 256 addresses that differ from those before; where a run
    /// starts inside 256 addresses the leaf continues in a new line. On failure the lines already written are in
    /// `leaves` and the caller frees them ([`NodePool::free_lines`]).
    pub(crate) fn leaves_of(&mut self, runs: &[Run], slots: u32, leaves: &mut Vec<(u8, Leaf)>) -> Option<()> {
        leaves.clear();
        let mut current = 0;
        let mut rest = runs;
        while let Some(&(start, adjacency)) = rest.first() {
            let slot = start >> 8;
            let inside = rest.iter().take_while(|run| run.0 >> 8 == slot).count();
            let (here, after) = rest.split_at(inside);
            rest = after;
            if inside == 1 && start & 255 == 0 {
                leaves.push((slot as u8, Leaf::Adjacency(adjacency)));
                current = adjacency;
                continue;
            }
            let line = self.write_slot(current, here)?;
            leaves.push((slot as u8, Leaf::Line(line)));
            current = here[inside - 1].1;
            let next_starts = rest.first().map_or(slots, |run| run.0 >> 8);
            if next_starts > slot + 1 {
                leaves.push((slot as u8 + 1, Leaf::Adjacency(current)));
            }
        }
        Some(())
    }

    fn write_slot(&mut self, before: u16, here: &[Run]) -> Option<u32> {
        let mut bytes = [(0_u8, Leaf::Adjacency(before)); 256];
        let mut count = usize::from(here[0].0 & 255 != 0);
        for &(start, adjacency) in here {
            bytes[count] = (start as u8, Leaf::Adjacency(adjacency));
            count += 1;
        }
        self.write_line(&bytes[..count])
    }
}
