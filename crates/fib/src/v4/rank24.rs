//! The default IPv4 table: DIR-24 compressed by rank.
//!
//! DIR-24-8 (Gupta, Lin and McKeown, INFOCOM 1998) spends a leaf on each of the 2^24 /24 prefixes and so lives in
//! DRAM. Here one 64-bit word stands for the 32 leaves under a /19: a bitmap of the /24s where the result changes and
//! the place of the leaves that remain, so the table of the Internet takes some 5 MB and a lookup two loads. A /24
//! with longer routes inside continues in a [`crate::v4::stride8`] line.
//!
//! A change compiles the words it touches beside the old ones, stores them one by one (each an atomic word: a lookup
//! sees the route before or after, never between) and reuses the old leaves when no reader can see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, BATCH_MIN, Lookup};
use crate::memory::blocks::Blocks;
use crate::memory::mapping::{Isa, Mapping, lookup_by, prefetch};
use crate::memory::region::{Elements, FixedPart, Part, Place, Region, Written};
use crate::prefix::Prefix;
use crate::reader::{InPlace, Shared};
use crate::rib::Rib;
use crate::sync::epoch::Domain;
use crate::table::{Memory, Structure};
use crate::v4::chunks::Run;
use crate::v4::stride8::{CONTINUES, Leaf, NodePool, Nodes, line_of, lines_of, pack};
use crate::v4::update::{Chunked, Writer};

/// Address bits below the ones that choose a word.
const CHUNK_BITS: u32 = 13;
const CHUNKS: usize = 1 << 19;
/// As a power of two, room for 2^24 leaves in runs of any size, with as much again for what waits to be reused.
const LEAF_BITS_MAX: u32 = 26;
/// And for as many leaves that [`SHARED_LEAVES`] are as others.
const LEAF_BITS_MIN: u32 = 16;
/// Leaf *n* below this holds adjacency *n*: a /19 with one result needs no leaf of its own.
const SHARED_LEAVES: u32 = 1 << 15;
/// With so many routes, words are in use on every page.
const ROUTES_EVERYWHERE: usize = 1 << 14;
/// Addresses whose loads are in flight together; fewer and more were slower on full tables.
const LANES: usize = 64;

/// Where the parts of a [`Rank24`] are in its region, and all that a reader has to know of it besides what
/// `v4` tells of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank24Layout {
    /// 16 bits each.
    pub leaves: Place,
    /// Lines and their leaves, 64 bits each.
    pub nodes: Place,
    /// One for each /19, 64 bits each.
    pub words: Place,
    bytes: u32,
}

impl Rank24Layout {
    /// With room for 2^`bits` leaves, 16 to 26 (others count as the nearest), and for routes longer than /24 as many
    /// bytes again, doubled. Of the leaves 2^15 are set aside; half of the others should be left for what changes replace.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        let bits = match bits {
            ..LEAF_BITS_MIN => LEAF_BITS_MIN,
            LEAF_BITS_MAX.. => LEAF_BITS_MAX,
            _ => bits,
        };
        let (leaves, end) = Place::after(0, bits, 2);
        let (nodes, end) = Place::after(end, bits - 1, 8);
        let (words, bytes) = Place::after(end, CHUNKS.ilog2(), 8);
        Rank24Layout { leaves, nodes, words, bytes }
    }

    /// How long the region has to be.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

/// The part of a [`Rank24`] that readers walk.
pub struct Rank24Core {
    /// Position of the first leaf (high half) and bitmap of the /24s that start a run (bit 0 never set).
    words: FixedPart<AtomicU64, CHUNKS>,
    leaves: Part<AtomicU16>,
    nodes: Arc<Nodes>,
    bytes: AtomicUsize,
}

impl Rank24Core {
    #[inline(always)]
    fn word(&self, address: u32) -> &AtomicU64 {
        &self.words[(address >> CHUNK_BITS) as usize]
    }

    #[inline(always)]
    fn leaf(&self, index: u32) -> &AtomicU16 {
        &self.leaves[index as usize]
    }

    #[inline(always)]
    fn leaf_index(&self, address: u32) -> u32 {
        let word = self.word(address).load(Ordering::Acquire);
        let slot = (address >> 8) & 31;
        ((word >> 32) as u32).wrapping_add(((word as u32) << (31 - slot)).count_ones())
    }

    #[inline(always)]
    fn one<I: Isa>(&self, _: I, address: u32) -> AdjacencyIndex {
        let index = self.leaf_index(address);
        self.finish(self.value(index), index, address as u8)
    }

    #[inline(always)]
    fn value(&self, index: u32) -> u16 {
        self.leaf(index).load(Ordering::Relaxed)
    }

    /// The adjacency at the end of a leaf that may continue, for the last byte of an address.
    #[inline(always)]
    fn finish(&self, leaf: u16, index: u32, byte: u8) -> AdjacencyIndex {
        match line_of(index, leaf, |at| self.value(at)) {
            None => u32::from(leaf),
            Some(line) => self.nodes.lines().last(line, byte),
        }
    }

    #[inline(always)]
    fn group(&self, leaves: Elements<'_, AtomicU16>, addresses: &[u32], results: &mut [u32]) {
        let value = |index: u32| leaves.get(index).load(Ordering::Relaxed);
        let mut indices = [0_u32; LANES];
        for (index, &address) in indices.iter_mut().zip(addresses) {
            *index = self.leaf_index(address);
            prefetch(leaves.get(*index));
        }
        let mut any = 0;
        for (result, &index) in results.iter_mut().zip(&indices) {
            let leaf = value(index);
            any |= leaf;
            *result = u32::from(leaf);
        }
        if any & CONTINUES != 0 {
            self.nodes.lines().finish_group::<LANES>(addresses, results, |place, leaf| {
                line_of(indices[place], leaf, value)
            });
        }
    }

    #[inline(always)]
    fn batch<I: Isa>(&self, isa: I, addresses: &[u32], results: &mut [u32]) {
        // Where the leaves are stays in registers.
        let leaves = self.leaves.elements();
        let count = addresses.len().min(results.len());
        let (groups, rest) = addresses[..count].as_chunks::<LANES>();
        let (found, left) = results[..count].as_chunks_mut::<LANES>();
        for (number, (group, found)) in groups.iter().zip(found).enumerate() {
            for &address in groups.get(number + 1).map_or(rest, |next| next) {
                prefetch(self.word(address));
            }
            self.group(leaves, group, found);
        }
        if rest.len() < BATCH_MIN {
            left.iter_mut().zip(rest).for_each(|(result, &address)| *result = self.one(isa, address));
        } else {
            self.group(leaves, rest, left);
        }
    }
}

lookup_by!(Rank24Core, u32: one, batch, |core| core.bytes.load(Ordering::Relaxed));

/// Something taken out of readers' sight.
#[derive(Debug)]
pub(crate) enum Retired {
    Run { first: u32, count: usize },
    Line(u32),
}

/// The default IPv4 table's structure; see the module.
pub struct Rank24 {
    core: Arc<Rank24Core>,
    writer: Writer<Retired>,
    /// Pages of words.
    written: Written,
    blocks: Blocks,
    pool: NodePool,
    leaves: Vec<(u8, Leaf)>,
    packed: Vec<u16>,
}

impl Rank24 {
    /// An empty structure with room for `leaves` results beyond one for each adjacency (at most 2^26 − 2^15).
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn with_capacity(leaves: u32) -> Result<Self, FibError> {
        Self::make(leaves, &Domain::new())
    }

    fn make(leaves: u32, domain: &Domain) -> Result<Self, FibError> {
        let layout = Rank24Layout::new(LEAF_BITS_MAX);
        Self::place(layout, Arc::new(Mapping::new(layout.bytes())?), leaves, domain)
    }

    /// An empty structure in a region of the caller's, read under the announcements of a domain.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the region is shorter than the layout or does not begin at a cache line.
    pub fn in_region(
        layout: Rank24Layout,
        region: Arc<dyn Region>,
        domain: &Domain,
    ) -> Result<Self, FibError> {
        Self::place(layout, region, u32::MAX, domain)
    }

    fn place(
        layout: Rank24Layout,
        region: Arc<dyn Region>,
        leaves: u32,
        domain: &Domain,
    ) -> Result<Self, FibError> {
        let nodes = Arc::new(Nodes::new(&region, layout.nodes)?);
        let core = Rank24Core {
            words: FixedPart::of(&region, layout.words)?,
            leaves: Part::of(&region, layout.leaves)?,
            nodes: nodes.clone(),
            bytes: AtomicUsize::new(CHUNKS * 8),
        };
        let end = SHARED_LEAVES + leaves.min(layout.leaves.mask + 1 - SHARED_LEAVES);
        Ok(Rank24 {
            written: Written::none(&core.words),
            core: Arc::new(core),
            writer: Writer::new(domain),
            blocks: Blocks::new(SHARED_LEAVES, end),
            pool: NodePool::new(nodes),
            leaves: Vec::new(),
            packed: Vec::new(),
        })
    }

    fn write_leaves(&mut self, chunk: u32, leaves: &[(u8, Leaf)]) -> Option<u64> {
        let bitmap = leaves[1..].iter().fold(0_u32, |bitmap, &(slot, _)| bitmap | 1 << slot);
        let old = self.word(chunk);
        let first = (old >> 32) as u32;
        let same =
            |(rank, leaf): (u32, &(u8, Leaf))| leaf.1 == Leaf::Adjacency(self.core.value(first + rank));
        if old as u32 == bitmap && (0..).zip(leaves).all(same) {
            return Some(old);
        }
        pack(leaves, &mut self.packed);
        let first = self.blocks.allocate(self.packed.len())?;
        for (place, &leaf) in (0..).zip(&self.packed) {
            self.core.leaf(first + place).store(leaf, Ordering::Relaxed);
        }
        Some(u64::from(first) << 32 | u64::from(bitmap))
    }
}

impl Chunked for Rank24 {
    const CHUNK_BITS: u32 = CHUNK_BITS;
    type Word = u64;
    type Part = Retired;

    fn writer(&mut self) -> &mut Writer<Retired> {
        &mut self.writer
    }

    fn word(&self, chunk: u32) -> u64 {
        let chunk = chunk as usize;
        if self.written.has(chunk) { self.core.words[chunk].load(Ordering::Relaxed) } else { 0 }
    }

    fn swap(&mut self, chunk: u32, word: u64) -> u64 {
        self.written.set(chunk as usize);
        // Release: whoever reads the word reads the leaves written before.
        self.core.words[chunk as usize].swap(word, Ordering::AcqRel)
    }

    fn compile(&mut self, chunk: u32, runs: &[Run]) -> Option<u64> {
        if let [(_, adjacency)] = *runs {
            self.core.leaf(u32::from(adjacency)).store(adjacency, Ordering::Relaxed);
            return Some(u64::from(adjacency) << 32);
        }
        let mut leaves = std::mem::take(&mut self.leaves);
        let word =
            self.pool.leaves_of(runs, 32, &mut leaves).and_then(|()| self.write_leaves(chunk, &leaves));
        if word.is_none() {
            self.pool.free_lines(&leaves);
        }
        self.leaves = leaves;
        word
    }

    fn parts(&self, word: u64, parts: &mut Vec<Retired>) {
        let first = (word >> 32) as u32;
        if first < SHARED_LEAVES {
            return;
        }
        let count = (word as u32).count_ones() + 1;
        let before = parts.len();
        parts.extend(lines_of(first, count, |at| self.core.value(at)).map(Retired::Line));
        let lines = parts.len() - before;
        parts.push(Retired::Run { first, count: count as usize + 2 * lines });
    }

    fn free(&mut self, part: Retired) {
        match part {
            Retired::Run { first, count } => self.blocks.release(first, count),
            Retired::Line(line) => self.pool.free_line(line),
        }
    }
}

impl Lookup<u32> for Rank24 {
    #[inline]
    fn lookup(&self, address: u32) -> AdjacencyIndex {
        self.core.lookup(address)
    }

    #[inline]
    fn lookup_batch(&self, addresses: &[u32], results: &mut [AdjacencyIndex]) {
        self.core.lookup_batch(addresses, results);
    }

    fn bytes(&self) -> usize {
        self.core.bytes()
    }
}

impl Structure<u32> for Rank24 {
    const NAME: &'static str = "rank24";
    const ADJACENCY_MAX: AdjacencyIndex = SHARED_LEAVES - 1;

    fn empty() -> Result<Self, FibError> {
        Self::with_capacity(u32::MAX)
    }

    fn memory(&self) -> Memory {
        let index_bytes = CHUNKS * 8 + self.blocks.used() * 2 + self.pool.used_bytes();
        let resident_bytes =
            self.written.bytes() + self.core.leaves.resident_bytes() + self.pool.resident_bytes();
        let writer_bytes = self.blocks.bytes() + self.pool.writer_bytes() + self.writer.limbo.bytes();
        Memory { index_bytes, writer_bytes, resident_bytes }
    }

    fn update(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Result<(), FibError> {
        self.bring_in_step(rib, changed)?;
        if rib.len() > ROUTES_EVERYWHERE {
            self.core.words.grow(0, CHUNKS);
            self.written.set_all();
        }
        self.core.leaves.grow(SHARED_LEAVES as usize, self.blocks.touched());
        self.pool.grow();
        let bytes = CHUNKS * 8 + self.blocks.touched() * 2 + self.pool.bytes();
        self.core.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<u32>) -> Result<(), FibError> {
        self.update(rib, &[Prefix::DEFAULT])
    }

    fn forget(&mut self, _rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Vec<Prefix<u32>> {
        self.clear(changed)
    }
}

impl Shared<u32> for Rank24 {
    type Handle = InPlace<Rank24Core>;

    fn in_domain(domain: &Domain) -> Result<Self, FibError> {
        Self::make(u32::MAX, domain)
    }

    fn handle(&self) -> Self::Handle {
        InPlace::new(&self.core, &self.writer.domain)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::fib::Fib;
    use crate::table::Table;

    /// Bitmap and leaves of 10.0.0.0/19.
    fn word(fib: &Fib<u32, Rank24>, leaves: u32) -> (u32, Vec<u16>) {
        let (core, word) = (&fib.structure().core, fib.structure().word(0x0a00_0000 >> CHUNK_BITS));
        let first = (word >> 32) as u32;
        (word as u32, (first..first + leaves).map(|at| core.value(at)).collect())
    }

    #[test]
    fn the_update_told_in_v4_is_what_happens() {
        let mut fib = Fib::<u32, Rank24>::new().unwrap();
        for (prefix, adjacency) in [("10.0.0.0/8", 1), ("10.0.3.0/24", 2), ("10.0.4.0/22", 3)] {
            fib.insert(prefix.parse().unwrap(), adjacency).unwrap();
        }
        assert_eq!(word(&fib, 4), (1 << 3 | 1 << 4 | 1 << 8, vec![1, 2, 3, 1]));
        fib.insert("10.0.5.128/25".parse().unwrap(), 4).unwrap();
        let (bitmap, leaves) = word(&fib, 8);
        assert_eq!(bitmap, 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8);
        assert_eq!(leaves[..6], [1, 2, 3, CONTINUES | 3, 3, 1]);
        let line = u32::from(leaves[6]) | u32::from(leaves[7]) << 16;
        assert_eq!([127, 128].map(|byte| fib.structure().core.nodes.lines().last(line, byte)), [3, 4]);
    }
}
