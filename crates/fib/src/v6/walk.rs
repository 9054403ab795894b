//! The default IPv6 table as readers walk it: two directories, and a cache line searched by comparison.
//!
//! The top 16 bits choose a first directory, the next bits one of its entries, which points to a second directory.
//! That one is compressed: a 64-bit [`word`] stands for 32 slots, with a bit for each slot where another [`Leaf`]
//! starts, so leaves can be as full as the runs allow and slots cost next to nothing. How many bits each directory
//! takes is chosen for every /16 and every entry. So nearly every lookup is four loads, of which two are of small
//! arrays, and no branch; what a leaf cannot tell apart, because routes crowd or are longer than its window, is
//! behind a leaf of leaves, a [`Branch`] or a further directory. [`crate::v6::lines6`] is the writer's side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, BATCH_MIN};
use crate::memory::mapping::{Isa, lookup_by, prefetch};
use crate::memory::region::{FixedPart, Part, Place, Region};
use crate::v6::branch::Branch;
use crate::v6::leaf::Leaf;

/// The first address of a run and its adjacency.
pub(crate) type Run = (u128, u16);

pub(crate) const ROOT_BITS: u8 = 16;
pub(crate) const ROOT: usize = 1 << ROOT_BITS;
/// Bits of an address that choose a slot of a word.
pub(crate) const WORD_BITS: u8 = 5;
/// As powers of two, the fewest leaves, of which half are shared ones, and the most: 256 MiB of address space.
const LINE_BITS_MIN: u32 = 16;
pub(crate) const LINE_BITS_MAX: u32 = 22;
/// What lies below a branch: an adjacency, or with this bit a leaf.
pub(crate) const LEAF: u32 = 1 << 31;
/// A branch.
pub(crate) const BRANCH: u32 = 1 << 30;
/// One of [`Lines6Core::deep`].
pub(crate) const DIRECTORY: u32 = BRANCH | 1 << 29;
/// Addresses whose loads are in flight together.
const LANES: usize = 64;

/// What a root entry and an entry of a first directory hold: where a directory starts, and how far to shift an
/// address right for an index into it.
pub(crate) fn pointer(first: u32, bits: u8) -> u32 {
    first << 6 | u32::from(64 - bits)
}

/// The start and the bits of the directory a [`pointer()`] names.
pub(crate) fn pointed(pointer: u32) -> (u32, u8) {
    (pointer >> 6, 64 - (pointer & 63) as u8)
}

/// Follows a root entry by the leading bits of `rest`: the entry, and the bits that are left.
#[inline(always)]
fn follow(pointer: u32, rest: u64) -> (u32, u64) {
    let index = (pointer >> 6).wrapping_add((rest >> (pointer & 63)) as u32);
    // What is missing to 64 are the bits that were used.
    (index, rest << (pointer.wrapping_neg() & 63))
}

/// Follows a pointer to words: the word times 32, and the slot in it.
#[inline(always)]
fn slot(pointer: u32, rest: u64) -> u32 {
    // Times 64 is what the start is stored as. The shift leaves the bits of the word and those of the slot, so the sum
    // is both.
    (pointer >> 1 & !31).wrapping_add((rest >> (pointer & 63)) as u32)
}

/// 32 slots of a second directory: the leaves of a block, and for each slot whether its leaf is not that of the slot
/// before; slot 0 comes lowest and is always set.
pub(crate) fn word(block: u32, starts: u32) -> u64 {
    // Less one, because a slot's rank counts the bit that is always set.
    u64::from(block.wrapping_sub(1)) << 32 | u64::from(starts)
}

/// The first leaf of a word's block and how many there are.
pub(crate) fn block(word: u64) -> (u32, u32) {
    (((word >> 32) as u32).wrapping_add(1), (word as u32).count_ones())
}

/// The leaf of a slot.
#[inline(always)]
pub(crate) fn leaf_of(word: u64, slot: u32) -> u32 {
    // 31 - slot, in the five bits that a shift looks at: what lies above the slot goes.
    ((word >> 32) as u32).wrapping_add((word as u32).wrapping_shl(!slot).count_ones())
}

/// A further directory: first word, first bit of the index and bits of it.
pub(crate) fn deep(first: u32, position: u8, bits: u8) -> u64 {
    u64::from(first) << 32 | u64::from(position) << 8 | u64::from(bits)
}

/// The parts of what [`deep`] makes.
pub(crate) fn deep_parts(deep: u64) -> (u32, u8, u8) {
    ((deep >> 32) as u32, (deep >> 8) as u8, deep as u8)
}

/// What is known of the addresses in flight.
struct Lanes {
    /// Bits of the upper half that are not used yet, leading.
    rests: [u64; LANES],
    /// The next entry, then the slot, then the leaf.
    places: [u32; LANES],
    /// Lanes that go on below their leaf.
    rare: [u32; LANES],
}

/// Calls `body` for the first `count` lanes, at most all.
#[inline(always)]
fn for_each_lane(count: usize, body: impl FnMut(usize)) {
    (0..count.min(LANES)).for_each(body);
}

/// The root entry of a /16 without routes. Entries are stored with these bits turned over, so that memory that was
/// never written leads to no route, and an empty table takes no page for its root.
pub(crate) const EMPTY: u32 = 63;

/// Where the parts of a [`crate::Lines6`] are in its region, and all that a reader has to know of it besides what `v6`
/// tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines6Layout {
    /// Pointers to words, 32 bits each.
    pub entries: Place,
    /// 64 bits each.
    pub words: Place,
    /// 64 bytes each.
    pub leaves: Place,
    /// 64 bytes each.
    pub branches: Place,
    /// Further directories, 64 bits each.
    pub deep: Place,
    /// One for each /16, 32 bits each.
    pub root: Place,
    bytes: u32,
}

impl Lines6Layout {
    /// With room for 2^`bits` leaves, 16 to 22 (others count as the nearest), and for what leads to them. Of the leaves 2^15
    /// are set aside; half of the others should be left for what changes replace.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        let bits = match bits {
            ..LINE_BITS_MIN => LINE_BITS_MIN,
            LINE_BITS_MAX.. => LINE_BITS_MAX,
            _ => bits,
        };
        let (entries, end) = Place::after(0, bits + 4, 4);
        let (words, end) = Place::after(end, bits + 3, 8);
        let (leaves, end) = Place::after(end, bits, size_of::<Leaf>());
        let (branches, end) = Place::after(end, bits, size_of::<Branch>());
        let (deep, end) = Place::after(end, bits - 2, 8);
        let (root, bytes) = Place::after(end, ROOT_BITS as u32, 4);
        Lines6Layout { entries, words, leaves, branches, deep, root, bytes }
    }

    /// How long the region has to be.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

/// The part of a [`crate::Lines6`] that readers walk.
pub struct Lines6Core {
    /// Pointers to first directories, by the top 16 bits.
    pub(crate) root: FixedPart<AtomicU32, ROOT>,
    /// First directories: pointers to words.
    pub(crate) entries: Part<AtomicU32>,
    pub(crate) words: Part<AtomicU64>,
    pub(crate) leaves: Part<Leaf>,
    pub(crate) branches: Part<Branch>,
    pub(crate) deep: Part<AtomicU64>,
    pub(crate) bytes: AtomicUsize,
}

impl Lines6Core {
    /// An empty table in a region.
    pub(crate) fn new(layout: &Lines6Layout, region: &Arc<dyn Region>) -> Result<Self, FibError> {
        Ok(Lines6Core {
            root: FixedPart::of(region, layout.root)?,
            entries: Part::of(region, layout.entries)?,
            words: Part::of(region, layout.words)?,
            leaves: Part::of(region, layout.leaves)?,
            branches: Part::of(region, layout.branches)?,
            deep: Part::of(region, layout.deep)?,
            bytes: AtomicUsize::new(0),
        })
    }

    #[inline(always)]
    fn entry(&self, index: u32) -> &AtomicU32 {
        &self.entries[index as usize]
    }

    /// The word of a [`slot`].
    #[inline(always)]
    fn word(&self, slot: u32) -> &AtomicU64 {
        &self.words[(slot >> WORD_BITS) as usize]
    }

    #[inline(always)]
    pub(crate) fn leaf(&self, leaf: u32) -> &Leaf {
        &self.leaves[leaf as usize]
    }

    #[inline(always)]
    pub(crate) fn branch(&self, entry: u32) -> &Branch {
        &self.branches[entry as usize]
    }

    /// What the root and the bits after it lead to: an entry of a first directory, and the bits that are left.
    #[inline(always)]
    fn first(&self, address: u128) -> (u32, u64) {
        let upper = (address >> 64) as u64;
        follow(self.root((upper >> 48) as usize), upper << ROOT_BITS)
    }

    /// The root entry of a /16.
    #[inline(always)]
    pub(crate) fn root(&self, chunk: usize) -> u32 {
        self.root[chunk].load(Ordering::Acquire) ^ EMPTY
    }

    /// One step below the first leaf: a result, or where to go on.
    #[inline(always)]
    pub(crate) fn below<I: Isa>(&self, isa: I, entry: u32, address: &u128) -> u32 {
        if entry & LEAF != 0 {
            let leaf = self.leaf(entry);
            return leaf.then(leaf.find(isa, address));
        }
        if entry & DIRECTORY == BRANCH {
            let branch = self.branch(entry);
            return branch.entry(branch.rank(*address));
        }
        let deep = self.deep[entry as usize].load(Ordering::Relaxed);
        let (first, position, bits) = deep_parts(deep);
        let offset = (address << (position & 127) >> 64) as u64 >> ((64 - bits) & 63);
        let slot = (first << WORD_BITS).wrapping_add(offset as u32);
        LEAF | leaf_of(self.word(slot).load(Ordering::Acquire), slot)
    }

    #[inline(always)]
    fn one<I: Isa>(&self, isa: I, address: u128) -> AdjacencyIndex {
        let (index, rest) = self.first(address);
        let slot = slot(self.entry(index).load(Ordering::Acquire), rest);
        let mut entry = LEAF | leaf_of(self.word(slot).load(Ordering::Acquire), slot);
        while entry & (LEAF | BRANCH) != 0 {
            entry = self.below(isa, entry, &address);
        }
        entry
    }

    /// Looks up the first `count` addresses.
    #[inline(always)]
    fn group<I: Isa>(
        &self,
        isa: I,
        addresses: &[u128; LANES],
        results: &mut [u32; LANES],
        count: usize,
        lanes: &mut Lanes,
    ) {
        let Lanes { rests, places, rare } = lanes;
        // Where the arrays are stays in registers.
        let (root, entries) = (&*self.root, self.entries.elements());
        let (words, leaves) = (self.words.elements(), self.leaves.elements());
        for_each_lane(count, |lane| {
            let upper = (addresses[lane] >> 64) as u64;
            let pointer = root[(upper >> 48) as usize].load(Ordering::Acquire) ^ EMPTY;
            let (index, rest) = follow(pointer, upper << ROOT_BITS);
            (places[lane], rests[lane]) = (index, rest);
            prefetch(&entries[index as usize]);
        });
        for_each_lane(count, |lane| {
            // Each entry and word is read once: the writer may put another in its place at any time.
            let pointer = entries[places[lane] as usize].load(Ordering::Acquire);
            places[lane] = slot(pointer, rests[lane]);
            prefetch(&words[(places[lane] >> WORD_BITS) as usize]);
        });
        for_each_lane(count, |lane| {
            let slot = places[lane];
            let word = words[(slot >> WORD_BITS) as usize].load(Ordering::Acquire);
            places[lane] = leaf_of(word, slot);
            prefetch(&leaves[places[lane] as usize]);
        });
        // The lanes whose leaf has no result.
        let mut rare_count = 0;
        for_each_lane(count, |lane| {
            let leaf = &leaves[places[lane] as usize];
            let found = leaf.find(isa, &addresses[lane]);
            results[lane] = found;
            rare[rare_count & (LANES - 1)] = lane as u32;
            rare_count += (found >> 15) as usize;
        });
        if rare_count > 0 {
            for &lane in rare.iter().take(rare_count) {
                let lane = lane as usize & (LANES - 1);
                results[lane] = self.leaf(places[lane]).then(results[lane]);
                self.prefetch_below(results[lane]);
            }
            self.descend(isa, addresses, results, rare, rare_count);
        }
    }

    #[inline(always)]
    fn prefetch_below(&self, entry: u32) {
        if entry & LEAF != 0 {
            prefetch(self.leaf(entry));
        } else {
            prefetch(self.branch(entry));
        }
    }

    /// Takes the lanes in `rare` down, a step each round, until each has a result.
    #[inline(always)]
    fn descend<I: Isa>(
        &self,
        isa: I,
        addresses: &[u128; LANES],
        results: &mut [u32; LANES],
        rare: &mut [u32; LANES],
        mut count: usize,
    ) {
        while count > 0 {
            let round = count;
            count = 0;
            for place in 0..round {
                let lane = rare[place & (LANES - 1)];
                let at = lane as usize & (LANES - 1);
                let entry = self.below(isa, results[at], &addresses[at]);
                results[at] = entry;
                self.prefetch_below(entry);
                rare[count & (LANES - 1)] = lane;
                count += usize::from(entry & (LEAF | BRANCH) != 0);
            }
        }
    }

    #[inline(always)]
    fn batch<I: Isa>(&self, isa: I, addresses: &[u128], results: &mut [u32]) {
        let count = addresses.len().min(results.len());
        if count >= BATCH_MIN {
            self.groups(isa, &addresses[..count], &mut results[..count]);
        } else {
            results.iter_mut().zip(addresses).for_each(|(result, &address)| *result = self.one(isa, address));
        }
    }

    /// As many addresses as results, in groups.
    #[inline(always)]
    fn groups<I: Isa>(&self, isa: I, addresses: &[u128], results: &mut [u32]) {
        let (groups, rest) = addresses.as_chunks::<LANES>();
        let (found, left) = results.as_chunks_mut::<LANES>();
        let mut lanes = Lanes { rests: [0; LANES], places: [0; LANES], rare: [0; LANES] };
        for (group, found) in groups.iter().zip(found) {
            self.group(isa, group, found, LANES, &mut lanes);
        }
        if rest.len() >= BATCH_MIN {
            let (mut padded, mut found) = ([0; LANES], [0; LANES]);
            padded[..rest.len()].copy_from_slice(rest);
            self.group(isa, &padded, &mut found, rest.len(), &mut lanes);
            left.copy_from_slice(&found[..rest.len()]);
        } else {
            left.iter_mut().zip(rest).for_each(|(result, &address)| *result = self.one(isa, address));
        }
    }
}

lookup_by!(Lines6Core, u128: one, batch, |core| core.bytes.load(Ordering::Relaxed));

#[cfg(test)]
mod tests;
