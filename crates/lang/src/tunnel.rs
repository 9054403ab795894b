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

/// Draws the connections between elements. `numbers` gives the element a node is, `name_of` a node's name and place.
///
/// A connection through tunnels stands where the first of its pieces stands.
pub(crate) fn connections(
    wiring: &Wiring,
    numbers: &[Option<usize>],
    name_of: impl Fn(usize) -> (String, Span),
    diags: &mut Diagnostics,
) -> Vec<Connection> {
    report_unmatched(wiring, numbers, name_of, diags);
    let mut walk = Walk { wiring, numbers, down: HashMap::new(), steps: MAX_STEPS, found: vec![] };
    for (index, edge) in wiring.edges.iter().enumerate() {
        if numbers[edge.from.0].is_none() {
            walk.down.entry(edge.from).or_default().push(index);
        }
    }
    for (index, edge) in wiring.edges.iter().enumerate() {
        let Some(element) = numbers[edge.from.0] else { continue };
        walk.from(PortRef { element, port: edge.from.1 as usize }, index);
        if walk.steps == 0 {
            diags.error(edge.span, "configuration too large: too many connections through compounds");
            return vec![];
        }
    }
    let mut found = walk.found;
    found.sort_by_key(|&(index, _, _)| index);
    let mut seen = HashSet::new();
    found.retain(|&(_, from, to)| seen.insert((from, to)));
    let connection =
        |(index, from, to): (usize, _, _)| Connection { from, to, span: wiring.edges[index].span };
    found.into_iter().map(connection).collect()
}

struct Walk<'a> {
    wiring: &'a Wiring,
    numbers: &'a [Option<usize>],
    /// Edges by the tunnel port they leave.
    down: HashMap<Port, Vec<usize>>,
    steps: usize,
    /// First piece and ends of connections.
    found: Vec<(usize, PortRef, PortRef)>,
}

impl Walk<'_> {
    /// Finds everything that edge `start`, from the port `from`, leads to.
    fn from(&mut self, from: PortRef, start: usize) {
        let mut visited = HashSet::new();
        let mut stack = vec![(start, start)];
        while let Some((index, first)) = stack.pop() {
            if self.steps == 0 {
                return;
            }
            self.steps -= 1;
            let to = self.wiring.edges[index].to;
            if let Some(element) = self.numbers[to.0] {
                self.found.push((first, from, PortRef { element, port: to.1 as usize }));
                continue;
            }
            let Some(&exit) = self.wiring.exits.get(&to.0) else { continue };
            if visited.insert(to)
                && let Some(next) = self.down.get(&(exit, to.1))
            {
                stack.extend(next.iter().rev().map(|&edge| (edge, first.min(edge))));
            }
        }
    }
}

/// Reports the ports of boundaries that are used on one side only.
fn report_unmatched(
    wiring: &Wiring,
    numbers: &[Option<usize>],
    name_of: impl Fn(usize) -> (String, Span),
    diags: &mut Diagnostics,
) {
    let left: HashSet<Port> = wiring.edges.iter().map(|e| e.from).collect();
    let entered: HashSet<Port> = wiring.edges.iter().map(|e| e.to).collect();
    let mut reported = HashSet::new();
    let mut report = |entry: usize, exit: usize, port: u32, is_entered: bool| {
        if !reported.insert((entry, port)) {
            return;
        }
        // The compound is the outer of the two nodes: the one whose name is the shorter.
        let ((entry_name, entry_span), (exit_name, exit_span)) = (name_of(entry), name_of(exit));
        let is_input = entry_name.len() < exit_name.len();
        let (owner, span, side) =
            if is_input { (entry_name, entry_span, "input") } else { (exit_name, exit_span, "output") };
        let message = match is_entered == is_input {
            true => format!("'{owner}' has no {side} {port}"),
            false => format!("'{owner}' {side} {port} unused"),
        };
        diags.error(span, message);
    };
    for edge in &wiring.edges {
        // A pseudo-element used from its wrong side has no other end; it has been reported.
        if numbers[edge.from.0].is_none()
            && let Some(&entry) = wiring.entries.get(&edge.from.0)
            && !entered.contains(&(entry, edge.from.1))
        {
            report(entry, edge.from.0, edge.from.1, false);
        }
        if numbers[edge.to.0].is_none()
            && let Some(&exit) = wiring.exits.get(&edge.to.0)
            && !left.contains(&(exit, edge.to.1))
        {
            report(edge.to.0, exit, edge.to.1, true);
        }
    }
}
