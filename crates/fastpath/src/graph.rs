//! What is compiled: programs, and where packets go that leave them.

use causeway_engine::ir::Program;

/// Where packets go that leave an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// To input 0 of another element.
    Node(usize),
    /// Out of the graph, by this port.
    Emit(usize),
    /// To an element of the graph in user space, by its number in the plan and the input.
    Up(usize, usize),
}

/// One element.
#[derive(Debug)]
pub struct Node<T> {
    /// Its name, for people.
    pub name: String,
    /// What it does; `None` if that cannot be said, and its packets go up.
    pub program: Option<Program>,
    /// Where the program's tables are for the driver, by number. An element that looks up in one that is not there has its
    /// packets go up.
    pub tables: Vec<Option<T>>,
    /// Where packets go that leave by an output; `None` where it leads nowhere.
    pub outputs: Vec<Option<Target>>,
}

/// Elements and the edges between them. Packets come to node 0.
#[derive(Debug)]
pub struct Graph<T> {
    /// The elements.
    pub nodes: Vec<Node<T>>,
}

impl<T> Graph<T> {
    /// The nodes that packets get to from node 0, each before those that it leads to, and without the edges that lead back
    /// to a node on the way: [`Order::is_forward`].
    pub(crate) fn order(&self) -> Order {
        let mut order = Order { rank: vec![None; self.nodes.len()] };
        let mut left = Vec::new();
        let mut entered = vec![false; self.nodes.len()];
        // Depth first, without recursion: graphs may be long.
        let mut way: Vec<(usize, usize)> = Vec::new();
        if !self.nodes.is_empty() {
            entered[0] = true;
            way.push((0, 0));
        }
        while let Some((node, next)) = way.last_mut() {
            let (at, output) = (*node, *next);
            *next += 1;
            match self.nodes[at].outputs.get(output) {
                None => {
                    left.push(at);
                    way.pop();
                }
                Some(&Some(Target::Node(to))) if entered.get(to) == Some(&false) => {
                    entered[to] = true;
                    way.push((to, 0));
                }
                Some(_) => {}
            }
        }
        for (rank, node) in left.into_iter().rev().enumerate() {
            order.rank[node] = Some(rank);
        }
        order
    }
}

/// An order in which every packet comes to nodes.
pub(crate) struct Order {
    rank: Vec<Option<usize>>,
}

impl Order {
    /// The place of a node in the order, if packets get there.
    pub fn rank(&self, node: usize) -> Option<usize> {
        self.rank.get(node).copied().flatten()
    }

    /// Whether an edge leads on and not back.
    pub fn is_forward(&self, from: usize, to: usize) -> bool {
        self.rank(from) < self.rank(to)
    }

    /// The node at a place.
    pub fn node(&self, rank: usize) -> Option<usize> {
        self.rank.iter().position(|&r| r == Some(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[&[usize]]) -> Graph<()> {
        let node = |outputs: &&[usize]| Node {
            name: String::new(),
            program: None,
            tables: Vec::new(),
            outputs: outputs.iter().map(|&to| Some(Target::Node(to))).collect(),
        };
        Graph { nodes: edges.iter().map(node).collect() }
    }

    #[test]
    fn nodes_come_before_those_that_they_lead_to() {
        let order = graph(&[&[2, 1], &[3], &[1], &[], &[0]]).order();
        let ranks: Vec<_> = (0..5).map(|n| order.rank(n)).collect();
        assert_eq!(ranks, [Some(0), Some(2), Some(1), Some(3), None]);
        assert_eq!(order.node(2), Some(1));
    }

    #[test]
    fn an_edge_that_leads_back_is_told() {
        let order = graph(&[&[1], &[2], &[1, 0]]).order();
        assert!(order.is_forward(0, 1) && order.is_forward(1, 2));
        assert!(!order.is_forward(2, 1) && !order.is_forward(2, 0) && !order.is_forward(1, 1));
    }
}
