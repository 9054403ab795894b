//! The writer's side of [`crate::lines6`]: compiles directories and buckets, publishes and reclaims them.
//!
//! A change compiles the buckets it touches beside the old ones and stores their directory entries, one atomic word
//! each. A /16 whose buckets became crowded gets directories of another size.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::address::Address;
use crate::blocks::Blocks;
use crate::epoch::{Domain, Limbo};
use crate::error::FibError;
use crate::fib::Shared;
use crate::line6::FAN_OUT;
use crate::lines6::{DIRECTORY, ENTRIES, LINE, LINES, Lines6Core, ROOT, ROOT_BITS, second};
use crate::mapping::Mapped;
use crate::prefix::Prefix;
use crate::reader::Reader;
use crate::rib::Rib;
use crate::runs::for_each_run;
use crate::table::{AdjacencyIndex, Lookup, Structure};
use crate::tree6::{LinePool, Run};

/// Runs from which a bucket counts as crowded: it takes two levels of lines.
const CROWDED: usize = 2 * FAN_OUT;
/// Changes of crowded buckets before the directories of a /16 may be sized anew.
const RESIZE_AFTER: u32 = 64;
const DIRECTORY_BITS_MAX: u8 = 14;
/// Entry *n* below this holds adjacency *n*: a /16 with one result needs no directory.
const SHARED_ENTRIES: u32 = 1 << 15;

/// A block taken out of readers' sight.
#[derive(Clone, Copy, Debug)]
enum Retired {
    Directory(u32, u8),
    Lines(u32, u32),
}

/// Where a change goes: the first entry, the bit where its bucket starts, and whether it may become a directory.
#[derive(Clone, Copy)]
struct Place {
    index: u32,
    position: u8,
    may_split: bool,
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
    /// Changes of each /16 that met a crowded bucket since its directories were sized, and how many may.
    crowded: Vec<u32>,
    patience: Vec<u32>,
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
            crowded: vec![0; ROOT],
            patience: vec![RESIZE_AFTER; ROOT],
        }
    }

    /// The entry for one bucket of runs that starts at bit `position`; a second directory only if `may_split`.
    fn compile_bucket(&mut self, runs: &[Run], position: u8, may_split: bool) -> Option<u32> {
        if let [(_, adjacency)] = *runs {
            return Some(u32::from(adjacency));
        }
        let bits = if may_split && runs.len() > FAN_OUT {
            directory_bits(&shared_bits(runs), position, false).1
        } else {
            0
        };
        if bits == 0 {
            return self.pool.build(runs, position).map(|line| LINE | line);
        }
        let first = self.compile_directory(runs, position, bits, false)?;
        Some(LINE | DIRECTORY | u32::from(bits - 1) << 26 | first)
    }

    /// A directory of `bits` bits from bit `position` on, written and not yet visible; returns its first entry.
    fn compile_directory(&mut self, runs: &[Run], position: u8, bits: u8, may_split: bool) -> Option<u32> {
        let first = self.directories.allocate(1 << bits)?;
        let mut next = first;
        let range = Prefix::truncated(runs[0].0, position);
        let done = for_each_chunk(runs, range, position + bits, |runs| {
            let entry = self.compile_bucket(runs, position + bits, may_split)?;
            self.core.entries[next as usize].store(entry, Ordering::Relaxed);
            next += 1;
            Some(())
        });
        if done.is_none() {
            let parts: Vec<_> =
                (first..next).flat_map(|index| self.parts_of_entry(self.entry(index))).collect();
            parts.into_iter().for_each(|part| self.free(part));
            self.directories.release(first, 1 << bits);
        }
        done.map(|()| first)
    }

    /// The root entry for one /16 of runs.
    fn compile_root(&mut self, runs: &[Run]) -> Option<u64> {
        if let [(_, adjacency)] = *runs {
            self.core.entries[usize::from(adjacency)].store(u32::from(adjacency), Ordering::Relaxed);
            return Some(u64::from(adjacency) << 32);
        }
        let bits = directory_bits(&shared_bits(runs), ROOT_BITS, true).1;
        let first = self.compile_directory(runs, ROOT_BITS, bits, true)?;
        Some(u64::from(first) << 32 | u64::from(bits))
    }

    fn entry(&self, index: u32) -> u32 {
        self.core.entries[index as usize].load(Ordering::Relaxed)
    }

    /// What a root entry holds.
    fn parts_of_root(&self, root: u64) -> Vec<Retired> {
        let (first, bits) = ((root >> 32) as u32, root as u8);
        if first < SHARED_ENTRIES { Vec::new() } else { self.parts_of_directory(first, bits) }
    }

    fn parts_of_directory(&self, first: u32, bits: u8) -> Vec<Retired> {
        let entries = first..first + (1 << bits);
        let inside = entries.flat_map(|index| self.parts_of_entry(self.entry(index)));
        inside.chain([Retired::Directory(first, bits)]).collect()
    }

    fn parts_of_entry(&self, entry: u32) -> Vec<Retired> {
        match entry >> 30 {
            0 | 1 => Vec::new(),
            2 => {
                let blocks = self.pool.blocks_of(entry & !LINE);
                blocks.into_iter().map(|(first, count)| Retired::Lines(first, count)).collect()
            }
            _ => {
                let (first, bits) = second(entry);
                self.parts_of_directory(first, bits)
            }
        }
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

    /// The entries that a change of `changed` touches if the directories can stay as they are.
    fn in_place(&self, changed: Prefix<u128>) -> Option<Place> {
        let chunk = (changed.first() >> 112) as usize;
        let root = self.core.root[chunk].load(Ordering::Relaxed);
        let (first, bits) = ((root >> 32) as u32, root as u8);
        let due = self.crowded[chunk] > self.patience[chunk];
        if first < SHARED_ENTRIES || changed.len() <= ROOT_BITS || due {
            return None;
        }
        let index = first + changed.first().bits(ROOT_BITS, bits);
        let position = ROOT_BITS + bits;
        let entry = self.entry(index);
        if entry >> 30 < 3 || changed.len() <= position {
            return Some(Place { index, position, may_split: true });
        }
        let (first, bits) = second(entry);
        let index = first + changed.first().bits(position, bits);
        Some(Place { index, position: position + bits, may_split: false })
    }

    /// Compiles what `changed` touches; `None` if there is no room, and nothing is left behind then.
    fn compile(&mut self, rib: &Rib<u128>, changed: Prefix<u128>, publish: &mut Vec<Publish>) -> Option<()> {
        let mut runs = std::mem::take(&mut self.runs);
        runs.clear();
        let place = self.in_place(changed);
        let unit = place.map_or(ROOT_BITS, |place| place.position);
        let range = Prefix::truncated(changed.first(), changed.len().min(unit));
        for_each_run(rib, range, |start, adjacency| runs.push((start, adjacency as u16)));
        let mut next = place.map_or((range.first() >> 112) as u32, |place| place.index);
        let done = for_each_chunk(&runs, range, unit, |runs| {
            let change = match place {
                Some(place) => {
                    self.crowded[(changed.first() >> 112) as usize] += u32::from(runs.len() > CROWDED);
                    Publish::Entry(next, self.compile_bucket(runs, unit, place.may_split)?)
                }
                None => {
                    self.crowded[next as usize] = 0;
                    let patience = &mut self.patience[next as usize];
                    // Doubled each time: where the shape is right already, sizing again would be for nothing.
                    *patience = patience.saturating_mul(2).max(RESIZE_AFTER + runs.len() as u32 / 4);
                    Publish::Root(next, self.compile_root(runs)?)
                }
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

/// How many bits to index runs by, from bit `position` on, and what that costs: the bytes, where each level of lines
/// a run needs beyond the first counts as [`DEEP_RUN_BYTES`]. With `deeper`, crowded buckets may become directories
/// themselves, and the choice looks ahead to that: routes that crowd far below bit `position` are reached only if
/// this directory spends bits that tell nothing apart.
///
/// `shared` is how many bits each run has in common with the one before it.
fn directory_bits(shared: &[u8], position: u8, deeper: bool) -> (usize, u8) {
    // More than eight entries a run never pay, and looking at them all would make small changes slow.
    let most = DIRECTORY_BITS_MAX.min(shared.len().ilog2() as u8 + 3);
    let cost = |bits: u8| {
        let buckets = shared.chunk_by(|_, &next| next >= position + bits);
        let bytes = |bucket: &[u8]| match tree_bytes(bucket.len()) {
            tree if deeper && bucket.len() > FAN_OUT => {
                tree.min(directory_bits(bucket, position + bits, false).0)
            }
            tree => tree,
        };
        (4 << bits) + buckets.map(bytes).sum::<usize>()
    };
    (0..=most).map(|bits| (cost(bits), bits)).min().unwrap_or((0, 0))
}

/// How many bits each run has in common with the one before it.
fn shared_bits(runs: &[Run]) -> Vec<u8> {
    let between = runs.windows(2).map(|pair| pair[0].0.common_bits(pair[1].0));
    std::iter::once(0).chain(between).collect()
}

/// What a level of lines above a run is worth, in bytes. Raising it trades memory for speed: 5 makes the table of
/// the Internet a fifth smaller and lookups a tenth slower, 24 the reverse.
const DEEP_RUN_BYTES: usize = 12;

fn tree_bytes(runs: usize) -> usize {
    match runs {
        0 | 1 => 0,
        2..FAN_OUT => 64,
        // A line for every nine runs, and for each run the levels above it.
        _ => 64 + runs * (64 / 9 + DEEP_RUN_BYTES * (runs.ilog10() as usize)),
    }
}

impl Lookup<u128> for Lines6 {
    #[inline]
    fn lookup(&self, address: u128) -> AdjacencyIndex {
        self.core.lookup(address)
    }

    #[inline]
    fn lookup_batch(&self, addresses: &[u128], results: &mut [AdjacencyIndex]) {
        self.core.lookup_batch(addresses, results);
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
