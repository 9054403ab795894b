//! Poptrie (Asai and Ohara, SIGCOMM 2015), written from the paper: 18 bits directly, then six at a time.
//!
//! A node holds a bitmap of which of its 64 children are nodes and one of where the leaves' values change; children
//! and leaves lie in two arrays, found by counting bits. Built whole, so a change costs a rebuild.

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup};
use crate::memory::mapping::{Isa, lookup_by};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::runs::for_each_run;
use crate::table::Structure;

/// Bits resolved directly (the paper's *s*).
const DIRECT_BITS: u8 = 18;
/// Bits a node resolves (the paper's *k*).
const STRIDE: u8 = 6;
/// Set in a direct entry that is a leaf.
const LEAF: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    children: u64,
    leaves: u64,
    first_child: u32,
    first_leaf: u32,
}

/// The trie.
#[derive(Clone, Debug)]
pub struct Poptrie {
    direct: Vec<u32>,
    nodes: Vec<Node>,
    leaves: Vec<u16>,
}

type Run<A> = (A, u16);

impl Poptrie {
    #[inline(always)]
    fn walk<A: Address>(&self, address: A) -> AdjacencyIndex {
        let mut entry = self.direct[address.bits(0, DIRECT_BITS) as usize];
        if entry & LEAF != 0 {
            return entry & !LEAF;
        }
        let mut position = DIRECT_BITS;
        loop {
            let node = &self.nodes[entry as usize];
            let child = address.bits(position, STRIDE);
            let below = u64::MAX >> (63 - child);
            if node.children >> child & 1 == 0 {
                let rank = (node.leaves & below).count_ones();
                return u32::from(self.leaves[(node.first_leaf + rank - 1) as usize]);
            }
            entry = node.first_child + (node.children & below).count_ones() - 1;
            position += STRIDE;
        }
    }

    #[inline(always)]
    fn many<A: Address>(&self, addresses: &[A], results: &mut [u32]) {
        for (result, &address) in results.iter_mut().zip(addresses) {
            *result = self.walk(address);
        }
    }

    #[inline(always)]
    fn one4<I: Isa>(&self, _: I, address: u32) -> u32 {
        self.walk(address)
    }

    #[inline(always)]
    fn one6<I: Isa>(&self, _: I, address: u128) -> u32 {
        self.walk(address)
    }

    #[inline(always)]
    fn many4<I: Isa>(&self, _: I, addresses: &[u32], results: &mut [u32]) {
        self.many(addresses, results);
    }

    #[inline(always)]
    fn many6<I: Isa>(&self, _: I, addresses: &[u128], results: &mut [u32]) {
        self.many(addresses, results);
    }

    fn build<A: Address>(rib: &Rib<A>) -> Self {
        let mut runs: Vec<Run<A>> = Vec::new();
        for_each_run(rib, Prefix::DEFAULT, |start, adjacency| runs.push((start, adjacency as u16)));
        let mut trie = Poptrie { direct: Vec::new(), nodes: Vec::new(), leaves: Vec::new() };
        let mut rest = &runs[..];
        let mut value = 0;
        for top in 0..1_u32 << DIRECT_BITS {
            let first = A::from_u32(top) << u32::from(A::BITS - DIRECT_BITS);
            let (here, after) = split(rest, first, DIRECT_BITS);
            rest = after;
            let entry = if settles(here, first) {
                value = here.first().map_or(value, |run| run.1);
                LEAF | u32::from(value)
            } else {
                let node = trie.nodes.len() as u32;
                trie.nodes.push(Node::default());
                value = trie.fill(node, here, first, DIRECT_BITS, value);
                node
            };
            trie.direct.push(entry);
        }
        trie
    }

    /// Writes a node over `runs`, `before` being the value at its first address unless a run starts there; returns
    /// the value at its end.
    fn fill<A: Address>(&mut self, node: u32, runs: &[Run<A>], first: A, position: u8, before: u16) -> u16 {
        let mut built = Node { first_leaf: self.leaves.len() as u32, ..Node::default() };
        let mut deeper: Vec<(&[Run<A>], A, u16)> = Vec::new();
        let (mut rest, mut value, mut leaf) = (runs, before, None);
        let width = STRIDE.min(A::BITS - position);
        for slot in 0..1_u32 << width {
            let start = first | A::from_u32(slot) << u32::from(A::BITS - position - width);
            let (here, after) = split(rest, start, position + width);
            rest = after;
            // Where fewer than six bits are left, the slots are the high ones of the six.
            let places = slot << (STRIDE - width)..(slot + 1) << (STRIDE - width);
            if settles(here, start) {
                value = here.first().map_or(value, |run| run.1);
                if leaf != Some(value) {
                    built.leaves |= 1 << places.start;
                    self.leaves.push(value);
                    leaf = Some(value);
                }
            } else {
                places.for_each(|place| built.children |= 1 << place);
                deeper.push((here, start, value));
                value = here.last().map_or(value, |run| run.1);
            }
        }
        built.first_child = self.nodes.len() as u32;
        self.nodes.resize(self.nodes.len() + deeper.len(), Node::default());
        for (child, (runs, start, before)) in (built.first_child..).zip(deeper) {
            self.fill(child, runs, start, position + width, before);
        }
        self.nodes[node as usize] = built;
        value
    }

    fn array_bytes(&self) -> usize {
        self.direct.len() * 4 + self.nodes.len() * size_of::<Node>() + self.leaves.len() * 2
    }
}

/// The runs that start inside a prefix, and the rest.
fn split<A: Address>(runs: &[Run<A>], first: A, len: u8) -> (&[Run<A>], &[Run<A>]) {
    let last = Prefix::truncated(first, len).last();
    runs.split_at(runs.iter().take_while(|run| run.0 <= last).count())
}

/// Whether a prefix with these runs inside has one value.
fn settles<A: Address>(runs: &[Run<A>], first: A) -> bool {
    match runs {
        [] => true,
        [only] => only.0 == first,
        _ => false,
    }
}

lookup_by!(Poptrie, u32: one4, many4, Self::array_bytes);
lookup_by!(Poptrie, u128: one6, many6, Self::array_bytes);

impl<A: Address> Structure<A> for Poptrie
where
    Poptrie: Lookup<A>,
{
    const NAME: &'static str = "poptrie";
    const ADJACENCY_MAX: AdjacencyIndex = u16::MAX as u32;

    fn empty() -> Result<Self, FibError> {
        Ok(Self::build(&Rib::<A>::default()))
    }

    fn update(&mut self, rib: &Rib<A>, _changed: &[Prefix<A>]) -> Result<(), FibError> {
        self.rebuild(rib)
    }

    fn rebuild(&mut self, rib: &Rib<A>) -> Result<(), FibError> {
        *self = Self::build(rib);
        Ok(())
    }
}
