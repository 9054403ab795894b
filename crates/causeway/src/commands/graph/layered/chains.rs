//! The nodes with virtual ones between them, so that every edge joins neighbouring layers, or turns round beside one.

use super::ranks::Ranks;
use super::{Edge, Node};

/// Room for an edge that passes a layer.
const VIRTUAL_WIDTH: f64 = 8.0;

/// A node, or a virtual one.
pub struct Item {
    /// Its width.
    pub width: f64,
    /// Its height; 0 for a virtual one.
    pub height: f64,
    /// Its layer.
    pub layer: usize,
    /// Its number in that, from the left.
    pub number: usize,
    /// Whether it is virtual.
    pub is_virtual: bool,
}

/// Where an edge is fastened: an item, and how far from its left.
pub type Hook = (usize, f64);

/// A part of an edge between two layers.
pub struct Segment {
    /// At the bottom of an item.
    pub upper: Hook,
    /// At the top of an item of the next layer.
    pub lower: Hook,
}

/// A part of a reversed edge: out of a layer and back into it.
pub struct Turn {
    /// At the node.
    pub node: Hook,
    /// At the virtual node beside it.
    pub beside: Hook,
    /// Whether it is below the layer, rather than above.
    pub is_below: bool,
}

/// All of a graph.
pub struct Chains {
    /// The nodes, then the virtual ones.
    pub items: Vec<Item>,
    /// The items of each layer, from the left.
    pub layers: Vec<Vec<usize>>,
    /// For each layer the segments that lead down from it.
    pub segments: Vec<Vec<Segment>>,
    /// For each layer the turns at it.
    pub turns: Vec<Vec<Turn>>,
    /// The way of each edge, from its output to its input.
    pub ways: Vec<Vec<Hook>>,
}

impl Chains {
    /// Splits the edges. The order in the layers is that in which a walk through the graph comes by.
    pub fn new(nodes: &[Node], edges: &[Edge], ranks: &Ranks) -> Chains {
        let item = |(n, &layer): (&Node, &usize)| Item {
            width: n.width,
            height: n.height,
            layer,
            number: 0,
            is_virtual: false,
        };
        let items: Vec<Item> = nodes.iter().zip(&ranks.layers).map(item).collect();
        let count = ranks.layers.iter().max().map_or(0, |l| l + 1);
        let mut chains = Chains {
            items,
            layers: Vec::new(),
            segments: (0..count).map(|_| Vec::new()).collect(),
            turns: (0..count).map(|_| Vec::new()).collect(),
            ways: Vec::new(),
        };
        for (edge, &reversed) in edges.iter().zip(&ranks.reversed) {
            let from = (edge.from.0, nodes[edge.from.0].outputs[edge.from.1]);
            let to = (edge.to.0, nodes[edge.to.0].inputs[edge.to.1]);
            let way = if reversed { chains.upwards(from, to) } else { chains.downwards(from, to) };
            chains.ways.push(way);
        }
        chains.layers = vec![Vec::new(); count];
        for item in walk(nodes.len(), edges, &chains) {
            chains.layers[chains.items[item].layer].push(item);
        }
        chains
    }

    fn add_virtual(&mut self, layer: usize) -> Hook {
        self.items.push(Item { width: VIRTUAL_WIDTH, height: 0.0, layer, number: 0, is_virtual: true });
        (self.items.len() - 1, VIRTUAL_WIDTH / 2.0)
    }

    fn downwards(&mut self, from: Hook, to: Hook) -> Vec<Hook> {
        let mut way = vec![from];
        for layer in self.items[from.0].layer + 1..self.items[to.0].layer {
            way.push(self.add_virtual(layer));
        }
        way.push(to);
        self.join(&way);
        way
    }

    /// A reversed edge passes the layers of both its ends, too.
    fn upwards(&mut self, from: Hook, to: Hook) -> Vec<Hook> {
        let (bottom, top) = (self.items[from.0].layer, self.items[to.0].layer);
        let passed: Vec<Hook> = (top..=bottom).map(|layer| self.add_virtual(layer)).collect();
        self.join(&passed);
        self.turns[top].push(Turn { node: to, beside: passed[0], is_below: false });
        self.turns[bottom].push(Turn { node: from, beside: passed[passed.len() - 1], is_below: true });
        [from].into_iter().chain(passed.into_iter().rev()).chain([to]).collect()
    }

    fn join(&mut self, hooks: &[Hook]) {
        for pair in hooks.windows(2) {
            let layer = self.items[pair[0].0].layer;
            self.segments[layer].push(Segment { upper: pair[0], lower: pair[1] });
        }
    }

    /// How much straighter than others a segment should be: long edges more than short ones.
    pub fn weight(&self, segment: &Segment) -> f64 {
        match (self.items[segment.upper.0].is_virtual, self.items[segment.lower.0].is_virtual) {
            (true, true) => 8.0,
            (false, false) => 1.0,
            _ => 2.0,
        }
    }
}

/// All items, in the order in which a walk in depth meets them, outputs in order.
fn walk(nodes: usize, edges: &[Edge], chains: &Chains) -> Vec<usize> {
    let mut out = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(i, e)| out[e.from.0].push((e.from.1, i)));
    out.iter_mut().for_each(|edges| edges.sort_unstable());
    let mut starts: Vec<usize> = (0..nodes).collect();
    starts.sort_by_key(|&n| chains.items[n].layer);
    let mut seen = vec![false; nodes];
    let mut met = Vec::new();
    let mut todo: Vec<usize> = starts.into_iter().rev().collect();
    while let Some(node) = todo.pop() {
        if std::mem::replace(&mut seen[node], true) {
            continue;
        }
        met.push(node);
        for &(_, edge) in &out[node] {
            met.extend(chains.ways[edge].iter().map(|&(item, _)| item).filter(|&item| item >= nodes));
        }
        todo.extend(out[node].iter().rev().map(|&(_, edge)| edges[edge].to.0));
    }
    met
}
