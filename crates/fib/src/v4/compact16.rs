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
use crate::prefix::{Prefix, outermost};
use crate::reader::InPlace;
use crate::reader::Shared;
use crate::rib::Rib;
use crate::sync::epoch::{Domain, Limbo};
use crate::table::{Memory, Structure};
use crate::v4::chunks::{Run, for_each_chunk};
use crate::v4::stride8::{CONTINUES, Leaf, NodePool, Nodes, line_of};

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
    domain: Domain,
    /// Pages of the root.
    written: Written,
    pool: NodePool,
    limbo: Limbo<u32>,
    runs: Vec<Run>,
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
            domain: domain.clone(),
            pool: NodePool::new(nodes),
            limbo: Limbo::new(),
            runs: Vec::new(),
            leaves: Vec::new(),
            uniform: Vec::new(),
        })
    }

    fn entry(&self, chunk: u32) -> u32 {
        let chunk = chunk as usize;
        if self.written.has(chunk) { self.core.root[chunk].load(Ordering::Relaxed) } else { 0 }
    }

    fn compile(&mut self, runs: &[Run]) -> Option<u32> {
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

    /// The lines to free with a root entry.
    fn parts(&self, line: u32) -> Vec<u32> {
        if self.is_uniform(line) {
            return Vec::new();
        }
        self.pool.continuations(line).chain([line]).collect()
    }

    fn reclaim(&mut self, now: bool) {
        let pool = &mut self.pool;
        self.limbo.reclaim(&self.domain, now, |line| pool.free_line(line));
    }

    /// Compiles the /16s that change. `None` if there is no room; nothing is left behind then.
    fn compile_all(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Option<Vec<(u32, u32)>> {
        let mut changes = Vec::new();
        let mut full = false;
        let mut runs = std::mem::take(&mut self.runs);
        for range in outermost(changed, 16) {
            for_each_chunk(rib, range, 16, &mut runs, |chunk, runs| {
                if full {
                    return;
                }
                match self.compile(runs) {
                    Some(line) if line == self.entry(chunk) => {}
                    Some(line) => changes.push((chunk, line)),
                    None => full = true,
                }
            });
        }
        self.runs = runs;
        if full {
            for (_, line) in changes {
                self.parts(line).into_iter().for_each(|line| self.pool.free_line(line));
            }
            return None;
        }
        Some(changes)
    }

    /// Makes entries visible, and what they replace wait for the readers.
    fn publish(&mut self, changes: Vec<(u32, u32)>) {
        let mut retired = Vec::new();
        for (chunk, line) in changes {
            self.written.set(chunk as usize);
            // Release: whoever reads the entry reads the line written before.
            let old = self.core.root[chunk as usize].swap(line, Ordering::AcqRel);
            retired.extend(self.parts(old));
        }
        self.limbo.retire(&self.domain, retired);
        self.reclaim(false);
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
        let writer_bytes = self.uniform.capacity() * 4 + self.pool.writer_bytes() + self.limbo.bytes();
        Memory { index_bytes, writer_bytes, resident_bytes }
    }

    fn update(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Result<(), FibError> {
        let changes = match self.compile_all(rib, changed) {
            Some(changes) => changes,
            None => {
                // What readers have left by now may be enough.
                self.reclaim(true);
                self.compile_all(rib, changed).ok_or_else(|| self.limbo.refusal())?
            }
        };
        self.publish(changes);
        self.pool.grow();
        self.core.bytes.store(ROOT * 4 + self.pool.bytes(), Ordering::Relaxed);
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<u32>) -> Result<(), FibError> {
        self.update(rib, &[Prefix::DEFAULT])
    }

    fn forget(&mut self, _rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Vec<Prefix<u32>> {
        let ranges: Vec<_> = outermost(changed, 16).collect();
        let chunks = ranges.iter().flat_map(|range| range.first() >> 16..=range.last() >> 16);
        let changes = chunks.filter(|&chunk| self.entry(chunk) != 0).map(|chunk| (chunk, 0)).collect();
        self.publish(changes);
        ranges
    }
}

impl Shared<u32> for Compact16 {
    type Handle = InPlace<Compact16Core>;

    fn in_domain(domain: &Domain) -> Result<Self, FibError> {
        Self::make(domain)
    }

    fn handle(&self) -> Self::Handle {
        InPlace::new(&self.core, &self.domain)
    }
}
