//! The compact IPv4 table: a root of 65 536 entries and one cache line for each /16 that needs one.
//!
//! For many tables side by side, or small ones: an empty table touches one page, the table of the Internet 2 MB. A
//! lookup reads the root, a [`crate::v4::stride8`] line and, where the line has more than twelve runs, a leaf. /16s with
//! one result share a line for each adjacency, so that no branch depends on the address.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, BATCH_MIN, Lookup, MISS};
use crate::memory::mapping::{Isa, Mapping, lookup_by, prefetch};
use crate::memory::region::{FixedPart, Place, Region, Written};
use crate::prefix::Prefix;
use crate::reader::{InPlace, Shared};
use crate::rib::Rib;
use crate::sync::epoch::Domain;
use crate::table::{Memory, Structure};
use crate::v4::chunks::Run;
use crate::v4::stride8::{CONTINUES, Leaf, NodePool, Nodes, line_of};
use crate::v4::update::{Chunked, Writer};

/// Address bits below the ones that choose an entry of the root.
const CHUNK_BITS: u32 = 16;
const ROOT: usize = 1 << 16;
/// As a power of two, words of lines and leaves: 256 MiB of address space.
const NODE_BITS: u32 = 25;
/// Addresses whose loads are in flight together. With 32, the first loads of a group waited for the last ones of the
/// group before, and a full table took up to twice as long.
const LANES: usize = 128;

/// The part of a [`Compact16`] that readers walk.
pub struct Compact16Core {
    /// The line of each /16.
    root: FixedPart<AtomicU32, ROOT>,
    nodes: Arc<Nodes>,
    bytes: AtomicUsize,
}

impl Compact16Core {
    #[inline(always)]
    fn line(&self, address: u32) -> u32 {
        self.root[(address >> 16) as usize].load(Ordering::Acquire)
    }

    #[inline(always)]
    fn one<I: Isa>(&self, _: I, address: u32) -> AdjacencyIndex {
        let lines = self.nodes.lines();
        let position = lines.position(self.line(address), (address >> 8) as u8);
        lines.finish(lines.leaf(position), position, address as u8)
    }

    #[inline(always)]
    fn group(&self, addresses: &[u32], results: &mut [u32]) {
        let lines = self.nodes.lines();
        let mut at = [0_u32; LANES];
        for (line, &address) in at.iter_mut().zip(addresses) {
            *line = self.line(address);
            prefetch(lines.line(*line));
        }
        for (at, &address) in at.iter_mut().zip(addresses) {
            *at = lines.position(*at, (address >> 8) as u8);
            prefetch(lines.leaf_word(*at));
        }
        let mut any = 0;
        for (result, &position) in results.iter_mut().zip(&at) {
            let leaf = lines.leaf(position);
            any |= leaf;
            *result = u32::from(leaf);
        }
        if any & CONTINUES != 0 {
            lines.finish_group::<LANES>(addresses, results, |place, leaf| {
                line_of(at[place], leaf, |place| lines.leaf(place))
            });
        }
    }

    #[inline(always)]
    fn batch<I: Isa>(&self, isa: I, addresses: &[u32], results: &mut [u32]) {
        let count = addresses.len().min(results.len());
        let (groups, rest) = addresses[..count].as_chunks::<LANES>();
        let (found, left) = results[..count].as_chunks_mut::<LANES>();
        for (group, found) in groups.iter().zip(found) {
            self.group(group, found);
        }
        if rest.len() < BATCH_MIN {
            left.iter_mut().zip(rest).for_each(|(result, &address)| *result = self.one(isa, address));
        } else {
            self.group(rest, left);
        }
    }
}

lookup_by!(Compact16Core, u32: one, batch, |core| core.bytes.load(Ordering::Relaxed));

/// The compact IPv4 table's structure; see the module.
pub struct Compact16 {
    core: Arc<Compact16Core>,
    writer: Writer<u32>,
    /// Pages of the root.
    written: Written,
    pool: NodePool,
    leaves: Vec<(u8, Leaf)>,
    /// The line of each adjacency for /16s that have no other result; 0 if there is none yet.
    uniform: Vec<u32>,
}

impl Compact16 {
    fn make(domain: &Domain) -> Result<Self, FibError> {
        let (nodes, end) = Place::after(0, NODE_BITS, 8);
        let (root, bytes) = Place::after(end, ROOT.ilog2(), 4);
        let region: Arc<dyn Region> = Arc::new(Mapping::new(bytes as usize)?);
        let nodes = Arc::new(Nodes::new(&region, nodes)?);
        let root = FixedPart::of(&region, root)?;
        let core = Compact16Core { root, nodes: nodes.clone(), bytes: AtomicUsize::new(ROOT * 4) };
        Ok(Compact16 {
            written: Written::none(&core.root),
            core: Arc::new(core),
            writer: Writer::new(domain),
            pool: NodePool::new(nodes),
            leaves: Vec::new(),
            uniform: Vec::new(),
        })
    }

    /// Shared lines are never freed: there is at most one for each adjacency.
    fn uniform_line(&mut self, adjacency: u16) -> Option<u32> {
        if u32::from(adjacency) == MISS {
            return Some(0);
        }
        let index = usize::from(adjacency);
        if self.uniform.len() <= index {
            self.uniform.resize(index + 1, 0);
        }
        if self.uniform[index] == 0 {
            self.uniform[index] = self.pool.write_line(&[(0, Leaf::Adjacency(adjacency))])?;
        }
        Some(self.uniform[index])
    }

    fn is_uniform(&self, line: u32) -> bool {
        let lines = self.core.nodes.lines();
        let adjacency = lines.leaf(lines.position(line, 0));
        line == 0 || self.uniform.get(usize::from(adjacency)) == Some(&line)
    }
}

/// A word is the number of a line, and leads to lines alone.
impl Chunked for Compact16 {
    const CHUNK_BITS: u32 = CHUNK_BITS;
    type Word = u32;
    type Part = u32;

    fn writer(&mut self) -> &mut Writer<u32> {
        &mut self.writer
    }

    fn word(&self, chunk: u32) -> u32 {
        let chunk = chunk as usize;
        if self.written.has(chunk) { self.core.root[chunk].load(Ordering::Relaxed) } else { 0 }
    }

    fn swap(&mut self, chunk: u32, line: u32) -> u32 {
        self.written.set(chunk as usize);
        // Release: whoever reads the entry reads the line written before.
        self.core.root[chunk as usize].swap(line, Ordering::AcqRel)
    }

    fn compile(&mut self, _chunk: u32, runs: &[Run]) -> Option<u32> {
        if let [(_, adjacency)] = *runs {
            return self.uniform_line(adjacency);
        }
        let mut leaves = std::mem::take(&mut self.leaves);
        let done = self.pool.leaves_of(runs, 256, &mut leaves);
        let line = done.and_then(|()| self.pool.write_line(&leaves));
        if line.is_none() {
            self.pool.free_lines(&leaves);
        }
        self.leaves = leaves;
        line
    }

    fn parts(&self, line: u32, parts: &mut Vec<u32>) {
        if !self.is_uniform(line) {
            parts.extend(self.pool.continuations(line).chain([line]));
        }
    }

    fn free(&mut self, line: u32) {
        self.pool.free_line(line);
    }
}

impl Lookup<u32> for Compact16 {
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

impl Structure<u32> for Compact16 {
    const NAME: &'static str = "compact16";
    const ADJACENCY_MAX: AdjacencyIndex = CONTINUES as u32 - 1;

    fn empty() -> Result<Self, FibError> {
        Self::make(&Domain::new())
    }

    fn memory(&self) -> Memory {
        let index_bytes = ROOT * 4 + self.pool.used_bytes();
        let resident_bytes = self.written.bytes() + self.pool.resident_bytes();
        let writer_bytes = self.uniform.capacity() * 4 + self.pool.writer_bytes() + self.writer.limbo.bytes();
        Memory { index_bytes, writer_bytes, resident_bytes }
    }

    fn update(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Result<(), FibError> {
        self.bring_in_step(rib, changed)?;
        self.pool.grow();
        self.core.bytes.store(ROOT * 4 + self.pool.bytes(), Ordering::Relaxed);
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<u32>) -> Result<(), FibError> {
        self.update(rib, &[Prefix::DEFAULT])
    }

    fn forget(&mut self, _rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Vec<Prefix<u32>> {
        self.clear(changed)
    }
}

impl Shared<u32> for Compact16 {
    type Handle = InPlace<Compact16Core>;

    fn in_domain(domain: &Domain) -> Result<Self, FibError> {
        Self::make(domain)
    }

    fn handle(&self) -> Self::Handle {
        InPlace::new(&self.core, &self.writer.domain)
    }
}
