//! Connections through the boundaries of compounds and groups.
//!
//! A boundary is a *tunnel*: what enters port p of one node leaves port p of another. Compound `c` is two: into `c`
//! and out of `c/input`, into `c/output` and out of `c`. The flat graph has no tunnels; every connection is drawn
//! from the elements that feed it to the elements it feeds.

use crate::diag::Diagnostics;
use crate::elaborate::Edge;
use crate::graph::{Connection, PortRef};
use crate::source::Span;
use std::collections::{HashMap, HashSet};

/// A port of a node.
type Port = (usize, u32);

/// Limit on the steps of the search; chains of empty groups would make it quadratic.
const MAX_STEPS: usize = 1 << 25;

#[derive(Debug, Default)]
pub(crate) struct Wiring {
    edges: Vec<Edge>,
    /// Ports used of every node: one more than the highest number.
    used_inputs: Vec<u32>,
    used_outputs: Vec<u32>,
    /// Where a tunnel entered at a node leaves, and the reverse.
    exits: HashMap<usize, usize>,
    entries: HashMap<usize, usize>,
}

impl Wiring {
    pub fn add_node(&mut self) {
        self.used_inputs.push(0);
        self.used_outputs.push(0);
    }

    pub fn connect(&mut self, edge: Edge) {
        let out = &mut self.used_outputs[edge.from.0];
        *out = (*out).max(edge.from.1 + 1);
        let input = &mut self.used_inputs[edge.to.0];
        *input = (*input).max(edge.to.1 + 1);
        self.edges.push(edge);
    }

    pub fn tunnel(&mut self, entry: usize, exit: usize) {
        self.exits.insert(entry, exit);
        self.entries.insert(exit, entry);
    }

    /// Makes `node` a compound whose inside sees `input` and `output`.
    pub fn compound(&mut self, node: usize, input: usize, output: usize) {
        self.tunnel(node, input);
        self.tunnel(output, node);
    }

    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// Numbers of inputs and outputs that connections to `node` use.
    pub fn used_ports(&self, node: usize) -> (usize, usize) {
        (self.used_inputs[node] as usize, self.used_outputs[node] as usize)
    }
}

/// Which way a search goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

struct Search<'a, N> {
    wiring: &'a Wiring,
    numbers: &'a [Option<usize>],
    name_of: N,
    /// Edge ends by the port they start from and by the port they go to.
    down: HashMap<Port, Vec<Port>>,
    up: HashMap<Port, Vec<Port>>,
    reported: HashSet<(Port, bool)>,
    steps: usize,
}

/// Draws the connections between elements. `numbers` gives the element a node is, `name_of` a node's name and place.
pub(crate) fn connections(
    wiring: &Wiring,
    numbers: &[Option<usize>],
    name_of: impl Fn(usize) -> (String, Span),
    diags: &mut Diagnostics,
) -> Vec<Connection> {
    let mut down: HashMap<Port, Vec<Port>> = HashMap::new();
    let mut up: HashMap<Port, Vec<Port>> = HashMap::new();
    for edge in &wiring.edges {
        if numbers[edge.from.0].is_none() || numbers[edge.to.0].is_none() {
            down.entry(edge.from).or_default().push(edge.to);
            up.entry(edge.to).or_default().push(edge.from);
        }
    }
    let mut search =
        Search { wiring, numbers, name_of, down, up, reported: HashSet::new(), steps: MAX_STEPS };
    let mut seen = HashSet::new();
    let mut list = vec![];
    for edge in &wiring.edges {
        let sources = search.reach(edge.from, Way::Up, diags);
        let targets = search.reach(edge.to, Way::Down, diags);
        for &from in &sources {
            for &to in &targets {
                search.steps = search.steps.saturating_sub(1);
                if search.steps == 0 {
                    diags.error(edge.span, "configuration too large: too many connections through compounds");
                    return vec![];
                }
                if seen.insert((from, to)) {
                    list.push(Connection { from, to, span: edge.span });
                }
            }
        }
    }
    list
}

impl<N: Fn(usize) -> (String, Span)> Search<'_, N> {
    /// The elements' ports that `start` stands for: itself, or those beyond the tunnel, in order.
    fn reach(&mut self, start: Port, way: Way, diags: &mut Diagnostics) -> Vec<PortRef> {
        let mut found = vec![];
        if let Some(element) = self.numbers[start.0] {
            found.push(PortRef { element, port: start.1 as usize });
            return found;
        }
        let mut visited = HashSet::new();
        let mut stack = vec![start];
        while let Some(port) = stack.pop() {
            if self.steps == 0 {
                break;
            }
            self.steps -= 1;
            if let Some(element) = self.numbers[port.0] {
                found.push(PortRef { element, port: port.1 as usize });
                continue;
            }
            if !visited.insert(port) {
                continue;
            }
            let (beyond, edges) = match way {
                Way::Down => (self.wiring.exits.get(&port.0), &self.down),
                Way::Up => (self.wiring.entries.get(&port.0), &self.up),
            };
            // A pseudo-element used from its wrong side has been reported.
            let Some(&beyond) = beyond else { continue };
            match edges.get(&(beyond, port.1)) {
                Some(next) => stack.extend(next.iter().rev()),
                None => self.unmatched(port, beyond, way, diags),
            }
        }
        found
    }

    /// A boundary's port is used on one side only.
    fn unmatched(&mut self, port: Port, beyond: usize, way: Way, diags: &mut Diagnostics) {
        if !self.reported.insert((port, way == Way::Down)) {
            return;
        }
        let (entry, exit) = match way {
            Way::Down => (port.0, beyond),
            Way::Up => (beyond, port.0),
        };
        // The compound is the outer of the two nodes: the one whose name is the shorter.
        let ((entry_name, entry_span), (exit_name, exit_span)) =
            ((self.name_of)(entry), (self.name_of)(exit));
        let is_input = entry_name.len() < exit_name.len();
        let (owner, span, side) =
            if is_input { (entry_name, entry_span, "input") } else { (exit_name, exit_span, "output") };
        let used_outside = is_input == (way == Way::Down);
        let message = match used_outside {
            true => format!("'{owner}' has no {side} {}", port.1),
            false => format!("'{owner}' {side} {} unused", port.1),
        };
        diags.error(span, message);
    }
}
