//! The default IPv6 table: a direct index into buckets of cache lines searched by comparison.
//!
//! The top 16 bits choose a directory, the next *b* bits (0 to 14, as dense as that /16 needs) a bucket. A bucket
//! with one result is that result; any other is a small tree of [`crate::line6`] lines, ten-way, so that a typical
//! /48 costs a root entry, a directory entry and one or two lines. Prefixes longer than a line's 32-bit window
//! continue in a line whose window starts where that one ends.
//!
//! A change compiles the buckets it touches beside the old ones and stores their directory entries, one atomic word
//! each. A /16 whose routes changed much gets a directory of another size.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::address::Address;
use crate::blocks::Blocks;
use crate::epoch::{Domain, Limbo};
use crate::error::FibError;
use crate::fib::Shared;
use crate::line6::{CHILD, Line, step};
use crate::mapping::{Mapped, multiversioned, prefetch};
use crate::prefix::Prefix;
use crate::reader::Reader;
use crate::rib::Rib;
use crate::runs::for_each_run;
use crate::table::{AdjacencyIndex, Lookup, Structure};
use crate::tree6::{LinePool, Run};

const ROOT_BITS: u8 = 16;
const ROOT: usize = 1 << ROOT_BITS;
const DIRECTORY_BITS_MAX: u8 = 14;
const ENTRIES: usize = 1 << 25;
/// Entry *n* below this holds adjacency *n*: a /16 with one result needs no directory.
const SHARED_ENTRIES: u32 = 1 << 15;
/// Room for lines: 256 MiB of address space.
pub(crate) const LINES: usize = 1 << 22;
/// Set in a directory entry that names a line.
const LINE: u32 = 1 << 31;
/// Changes of a /16 before its directory may be sized anew.
const RESIZE_AFTER: u32 = 4096;
/// Addresses whose loads are in flight together.
const LANES: usize = 64;

/// The part of a [`Lines6`] that readers walk.
pub struct Lines6Core {
    /// First directory entry (high half) and directory bits.
    root: Mapped<AtomicU64, ROOT>,
    /// Adjacencies, or lines with [`LINE`] set.
    entries: Mapped<AtomicU32, ENTRIES>,
    lines: Arc<Mapped<Line, LINES>>,
    bytes: AtomicUsize,
}

impl Lines6Core {
    #[inline(always)]
    fn root(&self, address: u128) -> &AtomicU64 {
        &self.root[(address >> 112) as usize]
    }

    #[inline(always)]
    fn entry(&self, root: u64, address: u128) -> &AtomicU32 {
        // The bits after the root's, kept as the top of a word; shifting in two steps allows zero of them.
        let next = ((address >> 64) as u64) << ROOT_BITS;
        let bucket = (next >> 1) >> (63 - (root as u8 & 63));
        &self.entries[((root >> 32) + bucket) as usize & (ENTRIES - 1)]
    }

    #[inline(always)]
    fn line(&self, line: u32) -> &Line {
        &self.lines[line as usize & (LINES - 1)]
    }

    #[inline(always)]
    fn one<const FAST: bool>(&self, address: u128) -> AdjacencyIndex {
        let root = self.root(address).load(Ordering::Acquire);
        let entry = self.entry(root, address).load(Ordering::Acquire);
        if entry & LINE == 0 {
            return entry;
        }
        let mut line = entry & !LINE;
        loop {
            let (found, child) = step::<FAST>(self.line(line), address);
            if found & CHILD == 0 {
                return u32::from(found);
            }
            line = child;
        }
    }

    #[inline(always)]
    fn group<const FAST: bool>(&self, addresses: &[u128], results: &mut [u32]) {
        let mut roots = [0_u64; LANES];
        for (root, &address) in roots.iter_mut().zip(addresses) {
            *root = self.root(address).load(Ordering::Acquire);
            prefetch(self.entry(*root, address));
        }
        // Lanes that still have a line to search: lane and line.
        let mut active = [(0_u32, 0_u32); LANES];
        let mut count = 0;
        for (lane, (result, &address)) in results.iter_mut().zip(addresses).enumerate() {
            let entry = self.entry(roots[lane & (LANES - 1)], address).load(Ordering::Acquire);
            *result = entry;
            prefetch(self.line(entry & !LINE));
            active[count & (LANES - 1)] = (lane as u32, entry & !LINE);
            count += (entry >> 31) as usize;
        }
        while count > 0 {
            let round = count;
            count = 0;
            for place in 0..round {
                let (lane, line) = active[place & (LANES - 1)];
                // No branch: whether a line is the last one is as good as random.
                let (found, child) = step::<FAST>(self.line(line), addresses[lane as usize]);
                results[lane as usize] = u32::from(found);
                prefetch(self.line(child));
                active[count & (LANES - 1)] = (lane, child);
                count += usize::from(found & CHILD != 0);
            }
        }
    }

    #[inline(always)]
    fn batch<const FAST: bool>(&self, addresses: &[u128], results: &mut [u32]) {
        let count = addresses.len().min(results.len());
        let groups = addresses[..count].chunks(LANES).zip(results[..count].chunks_mut(LANES));
        groups.for_each(|(group, found)| self.group::<FAST>(group, found));
    }
}

multiversioned!(fn lookup_one(core: &Lines6Core, address: u128) -> u32 = one);
multiversioned!(fn lookup_many(core: &Lines6Core, addresses: &[u128], results: &mut [u32]) = batch);

impl Lookup<u128> for Lines6Core {
    #[inline]
    fn lookup(&self, address: u128) -> AdjacencyIndex {
        lookup_one(self, address)
    }

    #[inline]
    fn lookup_batch(&self, addresses: &[u128], results: &mut [AdjacencyIndex]) {
        lookup_many(self, addresses, results);
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A block taken out of readers' sight.
#[derive(Clone, Copy, Debug)]
enum Retired {
    Directory(u32, u8),
    Lines(u32, u32),
}

/// A store that makes a change visible.
#[derive(Clone, Copy)]
enum Publish {
    Root(u32, u64),
    Entry(u32, u32),
}

/// The default IPv6 table's structure; see the module.
pub struct Lines6 {
    core: Arc<Lines6Core>,
    domain: Arc<Domain>,
    directories: Blocks,
    pool: LinePool,
    limbo: Limbo<Retired>,
    runs: Vec<Run>,
    /// Changes of each /16 since its directory was sized.
    changes: Vec<u32>,
}

impl Lines6 {
    /// An empty structure with room for `lines` lines (at most 2^22).
    #[must_use]
    pub fn with_capacity(lines: u32) -> Self {
        let mapped = Arc::new(Mapped::new());
        let core = Lines6Core {
            root: Mapped::new(),
            entries: Mapped::new(),
            lines: mapped.clone(),
            bytes: AtomicUsize::new(ROOT * 8),
        };
        Lines6 {
            core: Arc::new(core),
            domain: Domain::new(),
            directories: Blocks::new(SHARED_ENTRIES, ENTRIES as u32, 1 << DIRECTORY_BITS_MAX),
            pool: LinePool::new(mapped, lines.min(LINES as u32)),
            limbo: Limbo::new(),
            runs: Vec::new(),
            changes: vec![0; ROOT],
        }
    }

    /// The entry for one bucket of runs.
    fn compile_bucket(&mut self, runs: &[Run], bits: u8) -> Option<u32> {
        match *runs {
            [(_, adjacency)] => Some(u32::from(adjacency)),
            _ => self.pool.build(runs, ROOT_BITS + bits).map(|line| LINE | line),
        }
    }

    fn free_entry(&mut self, entry: u32) {
        if entry & LINE != 0 {
            let blocks = self.pool.blocks_of(entry & !LINE);
            blocks.into_iter().for_each(|(first, count)| self.pool.release(first, count));
        }
    }

    /// A directory for one /16 of runs, written and not yet visible.
    fn compile_directory(&mut self, runs: &[Run]) -> Option<u64> {
        if let [(_, adjacency)] = *runs {
            self.core.entries[usize::from(adjacency)].store(u32::from(adjacency), Ordering::Relaxed);
            return Some(u64::from(adjacency) << 32);
        }
        let bits = directory_bits(runs);
        let first = self.directories.allocate(1 << bits)?;
        let mut written = 0;
        let full = for_each_bucket(runs, ROOT_BITS + bits, |bucket, runs| {
            let entry = self.compile_bucket(runs, bits)?;
            debug_assert_eq!(bucket & ((1 << bits) - 1), written);
            self.core.entries[(first + written) as usize].store(entry, Ordering::Relaxed);
            written += 1;
            Some(())
        })
        .is_none();
        if full {
            for entry in first..first + written {
                self.free_entry(self.core.entries[entry as usize].load(Ordering::Relaxed));
            }
            self.directories.release(first, 1 << bits);
            return None;
        }
        Some(u64::from(first) << 32 | u64::from(bits))
    }

    /// What a root entry holds.
    fn parts_of_root(&self, root: u64) -> Vec<Retired> {
        let (first, bits) = ((root >> 32) as u32, root as u8);
        if first < SHARED_ENTRIES {
            return Vec::new();
        }
        let entries = first..first + (1 << bits);
        let mut parts: Vec<_> = entries
            .flat_map(|entry| self.parts_of_entry(self.core.entries[entry as usize].load(Ordering::Relaxed)))
            .collect();
        parts.push(Retired::Directory(first, bits));
        parts
    }

    fn parts_of_entry(&self, entry: u32) -> Vec<Retired> {
        if entry & LINE == 0 {
            return Vec::new();
        }
        let blocks = self.pool.blocks_of(entry & !LINE);
        blocks.into_iter().map(|(first, count)| Retired::Lines(first, count)).collect()
    }

    fn free(&mut self, retired: Retired) {
        match retired {
            Retired::Directory(first, bits) => self.directories.release(first, 1 << bits),
            Retired::Lines(first, count) => self.pool.release(first, count),
        }
    }

    fn reclaim(&mut self, now: bool) {
        let mut free = Vec::new();
        self.limbo.reclaim(&self.domain, now, |retired| free.push(retired));
        free.into_iter().for_each(|retired| self.free(retired));
    }

    /// Whether a change of `changed` fits the directory in place: then the first bucket's entry and the bits.
    fn in_place(&mut self, changed: Prefix<u128>) -> Option<(u32, u8)> {
        let chunk = (changed.first() >> 112) as usize;
        let root = self.core.root[chunk].load(Ordering::Relaxed);
        let (first, bits) = ((root >> 32) as u32, root as u8);
        if first < SHARED_ENTRIES || changed.len() <= ROOT_BITS {
            return None;
        }
        self.changes[chunk] += 1;
        // Sizing a directory anew costs about as much as a few changes for each of its buckets.
        let due = self.changes[chunk] > RESIZE_AFTER + (4 << bits);
        (!due).then(|| (first + changed.first().bits(ROOT_BITS, bits), bits))
    }

    /// Compiles what `changed` touches; `None` if there is no room, and nothing is left behind then.
    fn compile(&mut self, rib: &Rib<u128>, changed: Prefix<u128>, publish: &mut Vec<Publish>) -> Option<()> {
        let mut runs = std::mem::take(&mut self.runs);
        runs.clear();
        let in_place = self.in_place(changed);
        let bits = in_place.map_or(0, |(_, bits)| bits);
        let unit = ROOT_BITS + bits;
        let range = Prefix::truncated(changed.first(), changed.len().min(unit));
        for_each_run(rib, range, |start, adjacency| runs.push((start, adjacency as u16)));
        let mut next = in_place.map_or((range.first() >> 112) as u32, |(entry, _)| entry);
        let done = for_each_chunk(&runs, range, unit, |runs| {
            let change = match in_place {
                Some(_) => Publish::Entry(next, self.compile_bucket(runs, bits)?),
                None => Publish::Root(next, self.compile_directory(runs)?),
            };
            publish.push(change);
            next += 1;
            Some(())
        });
        self.runs = runs;
        if done.is_none() {
            for change in publish.drain(..) {
                let parts = match change {
                    Publish::Root(_, root) => self.parts_of_root(root),
                    Publish::Entry(_, entry) => self.parts_of_entry(entry),
                };
                parts.into_iter().for_each(|part| self.free(part));
            }
        }
        done
    }

    fn publish(&mut self, changes: &[Publish]) {
        let mut retired = Vec::new();
        for &change in changes {
            // Release: whoever reads the word reads the lines and entries written before.
            match change {
                Publish::Root(chunk, root) => {
                    self.changes[chunk as usize] = 0;
                    let old = self.core.root[chunk as usize].swap(root, Ordering::AcqRel);
                    retired.extend(self.parts_of_root(old));
                }
                Publish::Entry(index, entry) => {
                    let old = self.core.entries[index as usize].swap(entry, Ordering::AcqRel);
                    retired.extend(self.parts_of_entry(old));
                }
            }
        }
        self.limbo.retire(&self.domain, retired);
    }
}

/// Cuts sorted runs over `range` at the boundaries of prefixes of length `unit`; each chunk starts with a run.
/// Stops when `close` says `None`.
fn for_each_chunk(
    runs: &[Run],
    range: Prefix<u128>,
    unit: u8,
    mut close: impl FnMut(&[Run]) -> Option<()>,
) -> Option<()> {
    let mut chunk = Prefix::truncated(range.first(), unit);
    let mut rest = runs;
    let mut cut = Vec::new();
    let mut last = 0;
    loop {
        let inside = rest.partition_point(|run| run.0 <= chunk.last());
        let (here, after) = rest.split_at(inside);
        rest = after;
        if here.first().is_some_and(|run| run.0 == chunk.first()) {
            close(here)?;
        } else {
            cut.clear();
            cut.push((chunk.first(), last));
            cut.extend_from_slice(here);
            close(&cut)?;
        }
        last = here.last().map_or(last, |run| run.1);
        match chunk.last().successor() {
            Some(next) if next <= range.last() => chunk = Prefix::truncated(next, unit),
            _ => return Some(()),
        }
    }
}

/// As [`for_each_chunk`] over one /16, numbering the buckets.
fn for_each_bucket(runs: &[Run], unit: u8, mut close: impl FnMut(u32, &[Run]) -> Option<()>) -> Option<()> {
    let range = Prefix::truncated(runs[0].0, ROOT_BITS);
    let mut bucket = 0;
    for_each_chunk(runs, range, unit, |runs| {
        close(bucket, runs)?;
        bucket += 1;
        Some(())
    })
}

/// How many bits to index a /16 by: the fewest bytes, where a run that costs a lookup one line more counts as
/// [`DEEP_RUN_BYTES`]. Raising that trades memory for speed; at 24 the table of the Internet stays under 15 bytes a
/// prefix whatever its next hops.
fn directory_bits(runs: &[Run]) -> u8 {
    const DEEP_RUN_BYTES: usize = 24;
    let mut counts = vec![0_usize; 1 << DIRECTORY_BITS_MAX];
    for run in runs {
        counts[run.0.bits(ROOT_BITS, DIRECTORY_BITS_MAX) as usize] += 1;
    }
    let mut best = (usize::MAX, 0);
    for bits in (0..=DIRECTORY_BITS_MAX).rev() {
        let bytes = |&count: &usize| match count {
            0 | 1 => 0,
            2..10 => 64,
            _ => 64 + count * 64 / 9 + count * DEEP_RUN_BYTES,
        };
        let cost = (4 << bits) + counts.iter().map(bytes).sum::<usize>();
        if cost < best.0 {
            best = (cost, bits);
        }
        counts = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
    }
    best.1
}

impl Lookup<u128> for Lines6 {
    #[inline]
    fn lookup(&self, address: u128) -> AdjacencyIndex {
        lookup_one(&self.core, address)
    }

    #[inline]
    fn lookup_batch(&self, addresses: &[u128], results: &mut [AdjacencyIndex]) {
        lookup_many(&self.core, addresses, results);
    }

    fn bytes(&self) -> usize {
        self.core.bytes()
    }
}

impl Structure<u128> for Lines6 {
    const NAME: &'static str = "lines6";
    const ADJACENCY_MAX: AdjacencyIndex = SHARED_ENTRIES - 1;

    fn empty() -> Self {
        Self::with_capacity(u32::MAX)
    }

    fn update(&mut self, rib: &Rib<u128>, changed: Prefix<u128>) -> Result<(), FibError> {
        let mut changes = Vec::new();
        if self.compile(rib, changed, &mut changes).is_none() {
            // What readers have left by now may be enough.
            self.reclaim(true);
            self.compile(rib, changed, &mut changes).ok_or(FibError::Full)?;
        }
        self.publish(&changes);
        self.reclaim(false);
        let bytes = ROOT * 8 + self.directories.used() * 4 + self.pool.bytes();
        self.core.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Shared<u128> for Lines6 {
    type Reader = Reader<Lines6Core>;

    fn reader(&self) -> Self::Reader {
        Reader::new(&self.core, &self.domain)
    }
}
