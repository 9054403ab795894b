//! Layered drawings of directed graphs (Sugiyama, Tagawa, Toda: "Methods for visual understanding of hierarchical system
//! structures", 1981), with ports. Knows boxes and paths, and nothing of what they are drawn with.
//!
//! 1. [`ranks`] reverses edges until there is no cycle (Eades, Lin, Smyth: "A fast and effective heuristic for the feedback
//!    arc set problem", 1993), and gives each node a layer below those that lead to it.
//! 2. [`chains`] puts a virtual node into each layer that an edge passes, so that nothing else is placed there.
//! 3. [`order`] orders the nodes of each layer by the barycentres of their neighbours, so that few edges cross.
//! 4. [`place`] gives the nodes their places, in that order and with edges as straight as they can be.
//!
//! Paths bend between layers only, and there within the height that is left free: they cross no box. An edge leaves by the
//! bottom of its box and enters by the top of the other; a reversed one turns round below its source and above its end.

mod chains;
mod order;
mod place;
mod ranks;
#[cfg(test)]
mod tests;

use chains::Chains;

/// Across and down, in the unit of the boxes.
pub type Point = (f64, f64);

/// A point, then three points for each cubic Bézier curve: two of control and its end.
pub type Path = Vec<Point>;

/// Where a node has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// In the first layer, where only such nodes are. They have no inputs.
    First,
    /// Where it suits.
    Free,
    /// In the last layer, where only such nodes are. They have no outputs.
    Last,
}

/// A box.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// Where its inputs are on its top, from its left.
    pub inputs: Vec<f64>,
    /// Where its outputs are on its bottom, from its left.
    pub outputs: Vec<f64>,
    /// Where it has to be.
    pub rank: Rank,
}

/// From a node's output to a node's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Node and output.
    pub from: (usize, usize),
    /// Node and input.
    pub to: (usize, usize),
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The upper left corner of each node.
    pub corners: Vec<Point>,
    /// The path of each edge, from its output to its input.
    pub paths: Vec<Path>,
    /// For each edge whether it leads upwards.
    pub reversed: Vec<bool>,
    /// Width of all.
    pub width: f64,
    /// Height of all.
    pub height: f64,
}

/// Lays out a graph.
pub fn layout(nodes: &[Node], edges: &[Edge]) -> Layout {
    let ranks = ranks::ranks(nodes, edges);
    let mut chains = Chains::new(nodes, edges, &ranks);
    order::order(&mut chains);
    let lefts = place::lefts(&chains);
    let levels = place::Levels::new(&chains, &lefts);
    let corner = |item: usize| (lefts[item], levels.top_of(&chains, item));
    let right = |item: usize| lefts[item] + chains.items[item].width;
    Layout {
        corners: (0..nodes.len()).map(corner).collect(),
        paths: (0..edges.len()).map(|edge| levels.path(&chains, &lefts, edge)).collect(),
        width: (0..chains.items.len()).map(right).fold(0.0, f64::max),
        height: levels.height(),
        reversed: ranks.reversed,
    }
}
