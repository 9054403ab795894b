//! The Radix tree of the lookup paper (§II.B): binary, path-compressed, as BSD's (Sklower, USENIX Winter 1991).
//!
//! A node stands for a prefix; nodes exist for routes and where two subtrees part. A lookup walks down while the
//! node's prefix contains the address and remembers the last route seen. Changes are local: at most two nodes.

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup, MISS};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::table::Structure;

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node<A: Address> {
    prefix: Prefix<A>,
    /// [`MISS`] where two subtrees part without a route.
    adjacency: AdjacencyIndex,
    children: [u32; 2],
}

/// The tree; see the module.
#[derive(Clone, Debug)]
pub struct Radix<A: Address> {
    nodes: Vec<Node<A>>,
    free: Vec<u32>,
    root: u32,
}

impl<A: Address> Radix<A> {
    fn node(&self, index: u32) -> &Node<A> {
        &self.nodes[index as usize]
    }

    fn new_node(&mut self, prefix: Prefix<A>, adjacency: AdjacencyIndex) -> u32 {
        let node = Node { prefix, adjacency, children: [NONE; 2] };
        match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    fn side(prefix: Prefix<A>, address: A) -> usize {
        address.bits(prefix.len(), 1) as usize
    }

    /// The link that leads to a node: the root's, or one of a parent's.
    fn link(&mut self, at: Option<(u32, usize)>) -> &mut u32 {
        match at {
            None => &mut self.root,
            Some((parent, side)) => &mut self.nodes[parent as usize].children[side],
        }
    }

    fn set(&mut self, prefix: Prefix<A>, adjacency: AdjacencyIndex) {
        let mut at = None;
        loop {
            let index = *self.link(at);
            if index == NONE {
                let leaf = self.new_node(prefix, adjacency);
                *self.link(at) = leaf;
                return;
            }
            let here = self.node(index).prefix;
            if here == prefix {
                self.nodes[index as usize].adjacency = adjacency;
                return;
            }
            if !here.covers(prefix) {
                return self.part(at, index, prefix, adjacency);
            }
            at = Some((index, Self::side(here, prefix.first())));
        }
    }

    /// Puts `prefix` where `index` hangs: above it, or beside it under a node for what the two share.
    fn part(&mut self, at: Option<(u32, usize)>, index: u32, prefix: Prefix<A>, adjacency: AdjacencyIndex) {
        let here = self.node(index).prefix;
        let shared = here.first().common_bits(prefix.first()).min(here.len()).min(prefix.len());
        let joint = Prefix::truncated(prefix.first(), shared);
        let above = if joint == prefix {
            self.new_node(prefix, adjacency)
        } else {
            let above = self.new_node(joint, MISS);
            let leaf = self.new_node(prefix, adjacency);
            self.nodes[above as usize].children[Self::side(joint, prefix.first())] = leaf;
            above
        };
        self.nodes[above as usize].children[Self::side(joint, here.first())] = index;
        *self.link(at) = above;
    }

    fn remove(&mut self, prefix: Prefix<A>) {
        let (mut above, mut at) = (None, None);
        loop {
            let index = *self.link(at);
            if index == NONE || !self.node(index).prefix.covers(prefix) {
                return;
            }
            if self.node(index).prefix == prefix {
                self.nodes[index as usize].adjacency = MISS;
                self.shrink(at, index);
                if let Some((parent, _)) = at {
                    self.shrink(above, parent);
                }
                return;
            }
            above = at;
            at = Some((index, Self::side(self.node(index).prefix, prefix.first())));
        }
    }

    /// Takes out a node that has no route and at most one child.
    fn shrink(&mut self, at: Option<(u32, usize)>, index: u32) {
        let node = self.node(index);
        let only = match node.children {
            _ if node.adjacency != MISS => return,
            [child, NONE] | [NONE, child] => child,
            _ => return,
        };
        *self.link(at) = only;
        self.free.push(index);
    }
}

impl<A: Address> Radix<A> {
    /// Bytes of a node.
    pub const NODE_BYTES: usize = size_of::<Node<A>>();

    /// As [`Lookup::lookup`]; tells of each node that it reads, for who wants to know what that takes.
    pub fn visit(&self, address: A, mut reads: impl FnMut(u32)) -> AdjacencyIndex {
        let mut best = MISS;
        let mut index = self.root;
        while let Some(node) = self.nodes.get(index as usize) {
            reads(index);
            if !node.prefix.contains(address) {
                break;
            }
            if node.adjacency != MISS {
                best = node.adjacency;
            }
            if node.prefix.len() == A::BITS {
                break;
            }
            index = node.children[Self::side(node.prefix, address)];
        }
        best
    }
}

impl<A: Address> Lookup<A> for Radix<A> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        self.visit(address, |_| ())
    }

    fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node<A>>()
    }
}

impl<A: Address> Structure<A> for Radix<A> {
    const NAME: &'static str = "radix";
    const ADJACENCY_MAX: AdjacencyIndex = u32::MAX;

    fn empty() -> Result<Self, FibError> {
        Ok(Radix { nodes: Vec::new(), free: Vec::new(), root: NONE })
    }

    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<(), FibError> {
        for &prefix in changed {
            match rib.exact(prefix) {
                Some(adjacency) => self.set(prefix, adjacency),
                None => self.remove(prefix),
            }
        }
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<A>) -> Result<(), FibError> {
        *self = Self::empty()?;
        rib.iter().for_each(|(prefix, adjacency)| self.set(prefix, adjacency));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_reads_the_nodes_from_the_root_down() {
        let routes = [("10.0.0.0/8", 1), ("10.128.0.0/9", 2), ("11.0.0.0/8", 3)];
        let rib: Rib<u32> =
            routes.map(|(prefix, to)| (prefix.parse().expect("a prefix"), to)).into_iter().collect();
        let mut radix = Radix::empty().expect("memory");
        radix.rebuild(&rib).expect("memory");
        let reads = |address| {
            let mut count = 0;
            (radix.visit(address, |_| count += 1), count)
        };
        // The joint of 10/8 and 11/8, then 10/8, then 10.128/9; what is beside all ends at the joint.
        assert_eq!(reads(0x0a80_0001), (2, 3));
        assert_eq!(reads(0x0b00_0001), (3, 2));
        assert_eq!(reads(0x0c00_0001), (MISS, 1));
    }
}
