//! The default IPv6 table as readers walk it: direct indices into cache lines searched by comparison.
//!
//! The top 16 bits choose a directory, the next *b* bits (0 to 14, as many as that /16 needs) an entry. An entry is a
//! result, a small tree of [`crate::line6`] lines, or, where routes crowd, a second directory; so a typical /48 costs
//! a root entry, one or two directory entries and a line. Prefixes longer than a line's 32-bit window continue in a
//! line whose window starts where that one ends. [`crate::directory6`] is the writer's side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::line6::{CHILD, Line, step};
use crate::mapping::{Mapped, multiversioned, prefetch};
use crate::table::{AdjacencyIndex, Lookup};

pub(crate) const ROOT_BITS: u8 = 16;
pub(crate) const ROOT: usize = 1 << ROOT_BITS;
/// Directory entries: what 26 bits of a [`DIRECTORY`] entry reach.
pub(crate) const ENTRIES: usize = 1 << 26;
/// Room for lines: 256 MiB of address space.
pub(crate) const LINES: usize = 1 << 22;
/// Set in a directory entry that is no adjacency: the rest names a line.
pub(crate) const LINE: u32 = 1 << 31;
/// Set besides [`LINE`] in one that names a second directory: 4 bits less one, and 26 bits of its first entry.
pub(crate) const DIRECTORY: u32 = 1 << 30;
/// Addresses whose loads are in flight together.
const LANES: usize = 64;

/// The first entry and the bits of the second directory that an entry names.
#[inline(always)]
pub(crate) fn second(entry: u32) -> (u32, u8) {
    (entry & (ENTRIES as u32 - 1), (entry >> 26 & 15) as u8 + 1)
}

/// Bits `from .. from + width` of the upper half of an address; `from` is below 64, `width` at most 32.
#[inline(always)]
fn index_bits(address: u128, from: u8, width: u8) -> u32 {
    // Shifting in two steps allows a width of zero.
    ((((address >> 64) as u64) << from >> 1) >> (63 - (width & 63))) as u32
}

/// The part of a [`crate::Lines6`] that readers walk.
pub struct Lines6Core {
    /// First directory entry (high half) and directory bits.
    pub(crate) root: Mapped<AtomicU64, ROOT>,
    /// Adjacencies, lines ([`LINE`]) or second directories ([`DIRECTORY`]).
    pub(crate) entries: Mapped<AtomicU32, ENTRIES>,
    pub(crate) lines: Arc<Mapped<Line, LINES>>,
    pub(crate) bytes: AtomicUsize,
}

impl Lines6Core {
    #[inline(always)]
    fn root(&self, address: u128) -> &AtomicU64 {
        &self.root[(address >> 112) as usize]
    }

    #[inline(always)]
    fn entry(&self, index: u32) -> &AtomicU32 {
        &self.entries[index as usize & (ENTRIES - 1)]
    }

    /// The directory entry for an address.
    #[inline(always)]
    fn first_index(root: u64, address: u128) -> u32 {
        ((root >> 32) as u32).wrapping_add(index_bits(address, ROOT_BITS, root as u8))
    }

    /// The entry of the second directory for an address, or `index` again if `entry` names none.
    #[inline(always)]
    fn second_index(root: u64, index: u32, entry: u32, address: u128) -> u32 {
        let (first, bits) = second(entry);
        let inside = first.wrapping_add(index_bits(address, ROOT_BITS + (root as u8 & 15), bits));
        std::hint::select_unpredictable(entry >> 30 == 3, inside, index)
    }

    #[inline(always)]
    fn line(&self, line: u32) -> &Line {
        &self.lines[line as usize & (LINES - 1)]
    }

    #[inline(always)]
    fn one<const FAST: bool>(&self, address: u128) -> AdjacencyIndex {
        let root = self.root(address).load(Ordering::Acquire);
        let index = Self::first_index(root, address);
        let mut entry = self.entry(index).load(Ordering::Acquire);
        if entry >> 30 == 3 {
            entry = self.entry(Self::second_index(root, index, entry, address)).load(Ordering::Acquire);
        }
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
        let mut indices = [0_u32; LANES];
        for ((root, index), &address) in roots.iter_mut().zip(&mut indices).zip(addresses) {
            *root = self.root(address).load(Ordering::Acquire);
            *index = Self::first_index(*root, address);
            prefetch(self.entry(*index));
        }
        // A first entry is read once: the writer may put a second directory in its place at any time.
        let mut entries = [0_u32; LANES];
        for (lane, &address) in addresses.iter().enumerate() {
            let (root, index) = (roots[lane & (LANES - 1)], &mut indices[lane & (LANES - 1)]);
            let entry = self.entry(*index).load(Ordering::Acquire);
            entries[lane & (LANES - 1)] = entry;
            *index = Self::second_index(root, *index, entry, address);
            prefetch(self.entry(*index));
        }
        // Lanes that still have a line to search: lane and line.
        let mut active = [(0_u32, 0_u32); LANES];
        let mut count = 0;
        for (lane, (result, (&index, &first))) in
            results.iter_mut().zip(indices.iter().zip(&entries)).enumerate()
        {
            let inside = self.entry(index).load(Ordering::Acquire);
            let entry = std::hint::select_unpredictable(first >> 30 == 3, inside, first);
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
        let (groups, rest) = addresses[..count].as_chunks::<LANES>();
        let (found, left) = results[..count].as_chunks_mut::<LANES>();
        groups.iter().zip(found).for_each(|(group, found)| self.group::<FAST>(group, found));
        self.group::<FAST>(rest, left);
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
