//! A static B+-tree over range starts, nine-way, compared with AVX2: PlanB (NSDI 2026) for IPv6 without AVX-512.
//!
//! Longest-prefix match becomes predecessor search: all prefixes are cut into ranges, and the tree finds the last
//! range that starts at or before the address. Keys are the upper 64 bits; ranges that share them are told apart by
//! a binary search over the rest. Built whole, so a change costs a rebuild.

use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, MISS};
use crate::memory::mapping::{Isa, lookup_by, prefetch};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::runs::for_each_run;
use crate::table::Structure;

const KEYS: usize = 8;
const LANES: usize = 64;
/// Turns unsigned order into the signed order that AVX2 compares.
const FLIP: u64 = 1 << 63;

/// Keys of a node, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node([i64; KEYS]);

/// The tree.
#[derive(Clone, Debug)]
pub struct BTree6 {
    /// Levels from the root down, each a row of nodes.
    levels: Vec<Vec<Node>>,
    /// For each distinct upper half, its result, or with the high bit set the place of its lower halves.
    results: Vec<u16>,
    /// Ranges that start inside one upper half: start and result, by the upper half's number.
    lower: Vec<Vec<(u64, u16)>>,
}

const LOWER: u16 = 0x8000;

impl BTree6 {
    #[inline(always)]
    fn rank<I: Isa>(_isa: I, node: &Node, key: i64) -> usize {
        #[cfg(target_arch = "x86_64")]
        if I::AVX2 {
            // SAFETY: the processor has AVX2, of which `_isa` is the proof.
            return unsafe { rank_avx2(node, key) };
        }
        node.0.iter().map(|&boundary| usize::from(boundary <= key)).sum()
    }

    #[inline(always)]
    fn finish(&self, place: usize, address: u128) -> u32 {
        // The highest key is also what pads nodes; its predecessor is the last range.
        let place = if (address >> 64) as u64 == u64::MAX { self.results.len() } else { place };
        let Some(&result) = place.checked_sub(1).and_then(|place| self.results.get(place)) else {
            return MISS;
        };
        if result & LOWER == 0 {
            return u32::from(result);
        }
        let lower = &self.lower[usize::from(result & !LOWER)];
        u32::from(lower[lower.partition_point(|range| range.0 <= address as u64) - 1].1)
    }

    #[inline(always)]
    fn one<I: Isa>(&self, isa: I, address: u128) -> u32 {
        let key = ((address >> 64) as u64 ^ FLIP) as i64;
        let mut place = 0;
        for level in &self.levels {
            let Some(node) = level.get(place) else { break };
            place = place * (KEYS + 1) + Self::rank(isa, node, key);
        }
        self.finish(self.to_key(place), address)
    }

    /// The leaves' children are gaps between keys; a leaf has one gap more than keys.
    #[inline(always)]
    fn to_key(&self, gap: usize) -> usize {
        gap / (KEYS + 1) * KEYS + gap % (KEYS + 1)
    }

    #[inline(always)]
    fn batch<I: Isa>(&self, isa: I, addresses: &[u128], results: &mut [u32]) {
        for (some, found) in addresses.chunks(LANES).zip(results.chunks_mut(LANES)) {
            let mut places = [0_usize; LANES];
            for (depth, level) in self.levels.iter().enumerate() {
                for (place, &address) in places.iter_mut().zip(some) {
                    let key = ((address >> 64) as u64 ^ FLIP) as i64;
                    let Some(node) = level.get(*place) else { continue };
                    *place = *place * (KEYS + 1) + Self::rank(isa, node, key);
                    if let Some(next) = self.levels.get(depth + 1).and_then(|next| next.get(*place)) {
                        prefetch(next);
                    }
                }
            }
            for ((result, &place), &address) in found.iter_mut().zip(&places).zip(some) {
                *result = self.finish(self.to_key(place), address);
            }
        }
    }

    fn build(rib: &Rib<u128>) -> Result<Self, FibError> {
        let mut runs: Vec<(u128, u16)> = Vec::new();
        for_each_run(rib, Prefix::DEFAULT, |start, adjacency| runs.push((start, adjacency as u16)));
        let mut tree = BTree6 { levels: Vec::new(), results: Vec::new(), lower: Vec::new() };
        let mut keys: Vec<u64> = Vec::new();
        let mut before = 0;
        for (place, group) in runs.chunk_by(|a, b| a.0 >> 64 == b.0 >> 64).enumerate() {
            let upper = (group[0].0 >> 64) as u64;
            debug_assert!(place == 0 || keys.last().is_some_and(|&last| last < upper));
            keys.push(upper);
            if group.len() == 1 && group[0].0 as u64 == 0 {
                tree.results.push(group[0].1);
            } else {
                let number = u16::try_from(tree.lower.len()).ok().filter(|number| *number < LOWER);
                tree.results.push(LOWER | number.ok_or(FibError::Full)?);
                let head = (group[0].0 as u64 != 0).then_some((0, before));
                tree.lower.push(head.into_iter().chain(group.iter().map(|r| (r.0 as u64, r.1))).collect());
                // The last of these ranges goes on beyond this upper half.
                let next = upper.checked_add(1);
                if let Some(next) = next.filter(|&next| !starts_at(&runs, next)) {
                    keys.push(next);
                    tree.results.push(group[group.len() - 1].1);
                }
            }
            before = group[group.len() - 1].1;
        }
        tree.levels = levels(&keys);
        Ok(tree)
    }
}

fn starts_at(runs: &[(u128, u16)], upper: u64) -> bool {
    let first = u128::from(upper) << 64;
    runs.get(runs.partition_point(|run| run.0 < first)).is_some_and(|run| run.0 >> 64 == u128::from(upper))
}

/// Rows of nodes: the keys in the last, above each row the first key under every child but the first.
fn levels(keys: &[u64]) -> Vec<Vec<Node>> {
    let pad = |some: &[u64]| {
        let mut node = Node([i64::MAX; KEYS]);
        some.iter().zip(&mut node.0).for_each(|(&key, place)| *place = (key ^ FLIP) as i64);
        node
    };
    let mut rows = vec![keys.chunks(KEYS).map(pad).collect::<Vec<_>>()];
    let mut firsts: Vec<u64> = keys.chunks(KEYS).map(|some| some[0]).collect();
    while firsts.len() > 1 {
        rows.push(firsts.chunks(KEYS + 1).map(|children| pad(&children[1..])).collect());
        firsts = firsts.chunks(KEYS + 1).map(|children| children[0]).collect();
    }
    rows.reverse();
    rows
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn rank_avx2(node: &Node, key: i64) -> usize {
    use std::arch::x86_64::*;
    let keys = _mm256_set1_epi64x(key);
    let half = |at: usize| {
        // SAFETY: a node is eight keys long.
        let boundaries = unsafe { _mm256_loadu_si256(node.0.as_ptr().add(at).cast()) };
        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(boundaries, keys)))
    };
    KEYS - (half(0) | half(4) << 4).count_ones() as usize
}

lookup_by!(BTree6, u128: one, batch, |tree| {
    let lower: usize = tree.lower.iter().map(|ranges| size_of_val(&**ranges) + 24).sum();
    tree.levels.iter().map(|level| level.len() * 64).sum::<usize>() + tree.results.len() * 2 + lower
});

impl Structure<u128> for BTree6 {
    const NAME: &'static str = "b+-tree";
    const ADJACENCY_MAX: AdjacencyIndex = LOWER as u32 - 1;

    fn empty() -> Result<Self, FibError> {
        Ok(BTree6 { levels: Vec::new(), results: Vec::new(), lower: Vec::new() })
    }

    fn update(&mut self, rib: &Rib<u128>, _changed: &[Prefix<u128>]) -> Result<(), FibError> {
        self.rebuild(rib)
    }

    fn rebuild(&mut self, rib: &Rib<u128>) -> Result<(), FibError> {
        *self = Self::build(rib)?;
        Ok(())
    }
}
