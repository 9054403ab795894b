//! The LC-trie of the lookup paper (§II.B): level- and path-compressed (Nilsson and Karlsson, JSAC 1999).
//!
//! A node branches on as many bits as keep the share of children in use at or above the fill factor, and skips bits
//! that all routes below it share. Leaves are the routes that cover no other; a route that covers others is reached
//! from them by a chain of ever shorter prefixes. The first level branches on a fixed number of bits (root
//! branching), and each of its children is a trie of its own, so a change rebuilds one of those (Linux resizes
//! single nodes instead).

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup, MISS};
use crate::prefix::{Prefix, outermost};
use crate::rib::Rib;
use crate::table::Structure;

/// The usual least share of a node's children in use, that of the paper of 1999.
pub const FILL_FACTOR: f32 = 0.5;
/// The usual number of bits the root branches on, that of the paper of 1999.
pub const ROOT_BITS: u8 = 16;
/// The most bits the root may branch on.
pub const ROOT_BITS_MAX: u8 = 20;

const NONE: u32 = u32::MAX;

/// Bits to branch on (none: a leaf) after bits to skip; first child, or the leaf's route.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    branch: u8,
    skip: u8,
    at: u32,
}

/// A route, and the next shorter one that covers it under the same child of the root.
#[derive(Clone, Copy, Debug)]
struct Entry<A: Address> {
    prefix: Prefix<A>,
    adjacency: AdjacencyIndex,
    above: u32,
}

/// A trie under one child of the root.
#[derive(Clone, Debug)]
struct Trie<A: Address> {
    nodes: Box<[Node]>,
    entries: Box<[Entry<A>]>,
}

/// The LC-trie; see the module.
#[derive(Clone, Debug)]
pub struct LcTrie<A: Address> {
    fill_factor: f32,
    root_bits: u8,
    tries: Vec<Option<Box<Trie<A>>>>,
    /// What counts where no route of a trie matches: the longest route shorter than the root branches.
    inherited: Vec<AdjacencyIndex>,
}

impl<A: Address> LcTrie<A> {
    /// An empty trie. `fill_factor` is the least share of a node's children in use, above 0 up to 1; `root_bits` the
    /// bits the root branches on, 1 to [`ROOT_BITS_MAX`].
    #[must_use]
    pub fn with_parameters(fill_factor: f32, root_bits: u8) -> Self {
        let root_bits = root_bits.clamp(1, ROOT_BITS_MAX);
        LcTrie {
            fill_factor: fill_factor.clamp(0.01, 1.0),
            root_bits,
            tries: vec![None; 1 << root_bits],
            inherited: vec![MISS; 1 << root_bits],
        }
    }

    fn rebuild_slot(&mut self, rib: &Rib<A>, slot: u32) {
        let address = A::from_u32(slot) << u32::from(A::BITS - self.root_bits);
        let range = Prefix::truncated(address, self.root_bits);
        self.inherited[slot as usize] = rib.longest_above(range).map_or(MISS, |(_, adjacency)| adjacency);
        let entries = chained(rib.covered(range));
        self.tries[slot as usize] = (!entries.is_empty()).then(|| {
            let nodes = Builder::new(&entries, self.fill_factor).build(self.root_bits);
            Box::new(Trie { nodes, entries })
        });
    }
}

/// Sorted routes as entries, each linked to the nearest one that covers it.
fn chained<A: Address>(routes: impl Iterator<Item = (Prefix<A>, AdjacencyIndex)>) -> Box<[Entry<A>]> {
    let mut entries: Vec<Entry<A>> = Vec::new();
    for (prefix, adjacency) in routes {
        let mut above = entries.len().checked_sub(1).map_or(NONE, |last| last as u32);
        while above != NONE && !entries[above as usize].prefix.covers(prefix) {
            above = entries[above as usize].above;
        }
        entries.push(Entry { prefix, adjacency, above });
    }
    entries.into()
}

struct Builder<'a, A: Address> {
    entries: &'a [Entry<A>],
    /// Entries that cover no other, in order.
    leaves: Vec<u32>,
    fill_factor: f32,
    nodes: Vec<Node>,
}

impl<'a, A: Address> Builder<'a, A> {
    fn new(entries: &'a [Entry<A>], fill_factor: f32) -> Self {
        let is_leaf =
            |&at: &usize| entries.get(at + 1).is_none_or(|next| !entries[at].prefix.covers(next.prefix));
        let leaves = (0..entries.len()).filter(is_leaf).map(|at| at as u32).collect();
        Builder { entries, leaves, fill_factor, nodes: vec![Node::default()] }
    }

    fn build(mut self, position: u8) -> Box<[Node]> {
        self.fill(0, 0, self.leaves.len(), position);
        self.nodes.into()
    }

    fn leaf(&self, place: usize) -> A {
        self.entries[self.leaves[place] as usize].prefix.first()
    }

    /// Writes node `at` for leaves `first .. end`, which agree on the bits before `position`.
    fn fill(&mut self, at: usize, first: usize, end: usize, position: u8) {
        if end - first == 1 {
            self.nodes[at] = Node { branch: 0, skip: 0, at: self.leaves[first] };
            return;
        }
        let shared = self.leaf(first).common_bits(self.leaf(end - 1));
        let branch = self.branch(first, end, shared);
        let children = self.nodes.len();
        self.nodes[at] = Node { branch, skip: shared - position, at: children as u32 };
        self.nodes.resize(children + (1 << branch), Node::default());
        let mut next = first;
        for child in 0..1_u32 << branch {
            let start = next;
            while next < end && self.leaf(next).bits(shared, branch) == child {
                next += 1;
            }
            let place = children + child as usize;
            if next > start {
                self.fill(place, start, next, shared + branch);
            } else {
                // No leaf here. Routes that cover this place also cover the neighbour that shares more bits.
                let pattern = (self.leaf(first) & A::mask(shared))
                    | A::from_u32(child) << u32::from(A::BITS - shared - branch);
                let bits = |place: usize| self.leaf(place).common_bits(pattern);
                let before = start > first && (start == end || bits(start - 1) >= bits(start));
                let near = if before { start - 1 } else { start };
                self.nodes[place] = Node { branch: 0, skip: 0, at: self.leaves[near] };
            }
        }
    }

    /// The most bits to branch on that leave enough children in use.
    fn branch(&self, first: usize, end: usize, shared: u8) -> u8 {
        let mut branch = 1;
        while branch < 16 && shared + branch < A::BITS {
            let wider = branch + 1;
            if ((end - first) as f32) < self.fill_factor * (1_u32 << wider) as f32 {
                break;
            }
            let mut used = 1;
            for place in first + 1..end {
                used += u32::from(
                    self.leaf(place).bits(shared, wider) != self.leaf(place - 1).bits(shared, wider),
                );
            }
            if (used as f32) < self.fill_factor * (1_u32 << wider) as f32 {
                break;
            }
            branch = wider;
        }
        branch
    }
}

/// What a lookup reads of a trie; each child of the root is a trie of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriePlace {
    /// A child of the root.
    Root(u32),
    /// A node of that child's trie.
    Node(u32),
    /// A route of it.
    Entry(u32),
}

impl<A: Address> LcTrie<A> {
    /// As [`Lookup::lookup`]; tells of each place that it reads, for who wants to know what that takes.
    pub fn visit(&self, address: A, mut reads: impl FnMut(TriePlace)) -> AdjacencyIndex {
        let slot = address.bits(0, self.root_bits) as usize;
        reads(TriePlace::Root(slot as u32));
        if let Some(trie) = &self.tries[slot] {
            let mut position = self.root_bits;
            let mut node = trie.nodes[0];
            reads(TriePlace::Node(0));
            while node.branch > 0 {
                position += node.skip;
                let child = node.at + address.bits(position, node.branch);
                position += node.branch;
                reads(TriePlace::Node(child));
                node = trie.nodes[child as usize];
            }
            let mut at = node.at;
            while let Some(entry) = trie.entries.get(at as usize) {
                reads(TriePlace::Entry(at));
                if entry.prefix.contains(address) {
                    return entry.adjacency;
                }
                at = entry.above;
            }
        }
        self.inherited[slot]
    }
}

impl<A: Address> Lookup<A> for LcTrie<A> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        self.visit(address, |_| ())
    }

    fn bytes(&self) -> usize {
        let trie =
            |trie: &Trie<A>| size_of::<Trie<A>>() + size_of_val(&*trie.nodes) + size_of_val(&*trie.entries);
        let slots = self.tries.len() * (size_of::<usize>() + size_of::<AdjacencyIndex>());
        slots + self.tries.iter().flatten().map(|one| trie(one)).sum::<usize>()
    }
}

impl<A: Address> Structure<A> for LcTrie<A> {
    const NAME: &'static str = "lc-trie";
    const ADJACENCY_MAX: AdjacencyIndex = u32::MAX;

    fn empty() -> Result<Self, FibError> {
        Ok(Self::with_parameters(FILL_FACTOR, ROOT_BITS))
    }

    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<(), FibError> {
        for range in outermost(changed, self.root_bits) {
            let first = range.first().bits(0, self.root_bits);
            let last = range.last().bits(0, self.root_bits);
            (first..=last).for_each(|slot| self.rebuild_slot(rib, slot));
        }
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<A>) -> Result<(), FibError> {
        self.update(rib, &[Prefix::DEFAULT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_reads_a_child_of_the_root_its_nodes_and_the_route() {
        let mut rib = Rib::default();
        for third in 0..256u32 {
            rib.set(Prefix::truncated(0x0a00_0000 | third << 8, 24), third);
        }
        let mut trie = LcTrie::empty().expect("memory");
        trie.rebuild(&rib).expect("memory");
        let mut reads = Vec::new();
        assert_eq!(trie.visit(0x0a00_0701, |place| reads.push(place)), 7);
        let root = TriePlace::Root(0x0a00);
        // Half of the children in use are enough: the node branches on nine bits, of which the last is 0.
        assert_eq!(reads, [root, TriePlace::Node(0), TriePlace::Node(1 + 2 * 7), TriePlace::Entry(7)]);
        reads.clear();
        assert_eq!(trie.visit(0x0b00_0001, |place| reads.push(place)), MISS);
        assert_eq!(reads, [TriePlace::Root(0x0b00)]);
    }
}
