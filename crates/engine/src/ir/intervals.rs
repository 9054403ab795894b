//! Interval decision diagrams: what is decided by numbers in a fixed order, each by the interval that it is in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

/// Nodes that are made on the way to a diagram, at most.
const MOST: usize = 60_000;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// An answer.
    Answer(usize),
    /// By a field: where its intervals end, the last one at the field's greatest value, and where they lead. Neighbours
    /// differ.
    Field(usize, Vec<(u64, u32)>),
}

/// A diagram, or several that share what is equal. Fields have the order of their numbers.
pub(super) struct Intervals {
    nodes: Vec<Node>,
    number: HashMap<Node, u32>,
    /// The greatest value of each field.
    greatest: Vec<u64>,
}

impl Intervals {
    pub fn new(greatest: Vec<u64>) -> Intervals {
        Intervals { nodes: Vec::new(), number: HashMap::new(), greatest }
    }

    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// Where a node's intervals end and lead; an answer has none.
    pub fn cuts(&self, node: u32) -> &[(u64, u32)] {
        match self.node(node) {
            Node::Answer(_) => &[],
            Node::Field(_, cuts) => cuts,
        }
    }

    pub fn answer(&mut self, answer: usize) -> u32 {
        self.make(Node::Answer(answer))
    }

    fn make(&mut self, node: Node) -> u32 {
        if let Some(&known) = self.number.get(&node) {
            return known;
        }
        let number = self.nodes.len() as u32;
        self.nodes.push(node.clone());
        self.number.insert(node, number);
        number
    }

    /// The field that a node is about; those of answers come last.
    fn field(&self, node: u32) -> usize {
        match self.node(node) {
            Node::Answer(_) => usize::MAX,
            Node::Field(field, _) => *field,
        }
    }

    /// `yes` if `field` is in an interval, else `no`. `None` if it becomes too large.
    pub fn choose(&mut self, field: usize, of: RangeInclusive<u64>, yes: u32, no: u32) -> Option<u32> {
        self.choose_from(field, &of, yes, no, &mut BTreeMap::new())
    }

    fn choose_from(
        &mut self,
        field: usize,
        of: &RangeInclusive<u64>,
        yes: u32,
        no: u32,
        done: &mut BTreeMap<(u32, u32), u32>,
    ) -> Option<u32> {
        if yes == no {
            return Some(yes);
        }
        if let Some(&known) = done.get(&(yes, no)) {
            return Some(known);
        }
        if self.nodes.len() > MOST {
            return None;
        }
        let top = field.min(self.field(yes)).min(self.field(no));
        let greatest = *self.greatest.get(top)?;
        let mut ends: BTreeSet<u64> = [greatest].into();
        for node in [yes, no] {
            if self.field(node) == top {
                ends.extend(self.cuts(node).iter().map(|&(end, _)| end));
            }
        }
        if top == field {
            ends.extend(of.start().checked_sub(1));
            ends.insert(*of.end());
        }
        let mut cuts: Vec<(u64, u32)> = Vec::new();
        for end in ends {
            let (if_in, if_out) = (self.under(yes, top, end), self.under(no, top, end));
            let to = match top == field {
                true if of.contains(&end) => if_in,
                true => if_out,
                false => self.choose_from(field, of, if_in, if_out, done)?,
            };
            match cuts.last_mut() {
                Some(last) if last.1 == to => last.0 = end,
                _ => cuts.push((end, to)),
            }
        }
        let made = if let [(_, only)] = cuts[..] { only } else { self.make(Node::Field(top, cuts)) };
        done.insert((yes, no), made);
        Some(made)
    }

    /// What is left of `node` when `field`, which nothing in front of it is about, has a value.
    fn under(&self, node: u32, field: usize, value: u64) -> u32 {
        match self.node(node) {
            Node::Field(of, cuts) if *of == field => {
                let at = cuts.partition_point(|&(end, _)| end < value);
                cuts.get(at).map_or(node, |&(_, to)| to)
            }
            _ => node,
        }
    }

    /// The nodes with fields that are behind `first`, in an order in which each comes before those that it leads to.
    pub fn reached(&self, first: u32) -> Vec<u32> {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![first]);
        while let Some(node) = waiting.pop() {
            if self.field(node) != usize::MAX && seen.insert((self.field(node), node)) {
                waiting.extend(self.cuts(node).iter().map(|&(_, to)| to));
            }
        }
        seen.into_iter().map(|(_, node)| node).collect()
    }
}
