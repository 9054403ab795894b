//! Where a pattern is in a graph: subgraph isomorphism by backtracking, in the order of the elements.

use super::super::Draft;
use super::{Shape, border_ports, filled};
use crate::args;
use crate::graph::{Connection, PortRef};
use std::collections::{HashMap, HashSet};

/// Elements tried for one pattern, in one graph: the search is exponential in the worst case.
const MAX_STEPS: usize = 20_000_000;

/// A match.
pub(super) struct Found {
    /// For each element of the pattern, that of the graph; `None` for its border.
    pub(super) elements: Vec<Option<usize>>,
    values: HashMap<String, String>,
    /// Outputs outside, by the port of the pattern's input that they come in at.
    into: Vec<(PortRef, usize)>,
    /// Inputs outside, by the port of the pattern's output that leads to them.
    out: Vec<(PortRef, usize)>,
}

impl Found {
    /// A configuration of the replacement with the values that the pattern's variables have.
    pub(super) fn fill(&self, config: &str) -> String {
        filled(config, &self.values)
    }

    pub(super) fn outside_of_input(&self, port: usize) -> Vec<PortRef> {
        self.into.iter().filter(|(_, p)| *p == port).map(|(outside, _)| *outside).collect()
    }

    pub(super) fn outside_of_output(&self, port: usize) -> Vec<PortRef> {
        self.out.iter().filter(|(_, p)| *p == port).map(|(outside, _)| *outside).collect()
    }
}

/// The search for one pattern.
pub(super) struct Matcher<'a> {
    shape: &'a Shape,
    draft: &'a Draft,
    origin: &'a [Option<usize>],
    own: usize,
    /// The graph's elements by class.
    by_class: HashMap<&'a str, Vec<usize>>,
    /// The graph's connections.
    edges: HashSet<(PortRef, PortRef)>,
    /// The same by the elements that they join.
    around: HashMap<usize, Vec<Connection>>,
    /// Connections among the elements of the pattern, by the later of the two.
    inner: Vec<Vec<&'a Connection>>,
    steps: usize,
}

impl<'a> Matcher<'a> {
    /// Looks for pattern number `own` in a graph whose elements are from the patterns that `origin` says.
    pub(super) fn new(shape: &'a Shape, draft: &'a Draft, origin: &'a [Option<usize>], own: usize) -> Self {
        let mut by_class: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, element) in draft.elements.iter().enumerate() {
            element.iter().for_each(|e| by_class.entry(&e.class).or_default().push(i));
        }
        let edges = draft.connections.iter().map(|c| (c.from, c.to)).collect();
        let mut around: HashMap<usize, Vec<Connection>> = HashMap::new();
        for c in &draft.connections {
            around.entry(c.from.element).or_default().push(*c);
            if c.to.element != c.from.element {
                around.entry(c.to.element).or_default().push(*c);
            }
        }
        let mut inner = vec![vec![]; shape.graph.elements.len()];
        for c in &shape.graph.connections {
            let ends = [c.from.element, c.to.element];
            if !ends.iter().any(|&e| e == shape.input || e == shape.output) {
                inner[ends[0].max(ends[1])].push(c);
            }
        }
        Self { shape, draft, origin, own, by_class, edges, around, inner, steps: MAX_STEPS }
    }

    /// The first match.
    pub(super) fn next(mut self) -> Option<Found> {
        let mut chosen = vec![None; self.shape.graph.elements.len()];
        self.choose(0, &mut chosen)
    }

    /// Chooses for the pattern's elements from number `at` on. Patterns are as deep as they have elements, which
    /// flattening limits; the depth of this is limited as that of a tree.
    fn choose(&mut self, at: usize, chosen: &mut Vec<Option<usize>>) -> Option<Found> {
        /// Elements of a pattern.
        const MAX_ELEMENTS: usize = 1_000;
        if at >= chosen.len() {
            return self.judge(chosen);
        }
        if at >= MAX_ELEMENTS {
            return None;
        }
        if at == self.shape.input || at == self.shape.output {
            return self.choose(at + 1, chosen);
        }
        let candidates = self.by_class.get(self.shape.graph.elements[at].class.as_str())?.clone();
        for candidate in candidates {
            self.steps = self.steps.checked_sub(1)?;
            if chosen[..at].contains(&Some(candidate)) {
                continue;
            }
            chosen[at] = Some(candidate);
            if self.inner[at].iter().all(|c| self.has(c, chosen))
                && let Some(found) = self.choose(at + 1, chosen)
            {
                return Some(found);
            }
            chosen[at] = None;
        }
        None
    }

    /// Whether the graph has a connection of the pattern.
    fn has(&self, c: &Connection, chosen: &[Option<usize>]) -> bool {
        let there = |p: PortRef| chosen[p.element].map(|element| PortRef { element, port: p.port });
        match (there(c.from), there(c.to)) {
            (Some(from), Some(to)) => self.edges.contains(&(from, to)),
            _ => false,
        }
    }

    /// Whether the elements chosen are the pattern, with their arguments and what leads in and out.
    fn judge(&self, chosen: &[Option<usize>]) -> Option<Found> {
        let mut values = HashMap::new();
        for (pattern, &element) in self.shape.graph.elements.iter().zip(chosen) {
            let Some(element) = element.and_then(|e| self.draft.elements[e].as_ref()) else { continue };
            same_arguments(&pattern.config, &element.config, &mut values)?;
        }
        let back: HashMap<usize, usize> =
            chosen.iter().enumerate().filter_map(|(p, e)| Some(((*e)?, p))).collect();
        let old = back.keys().all(|&e| self.origin[e] == Some(self.own));
        if old || back.is_empty() {
            return None;
        }
        let mut found = Found { elements: chosen.to_vec(), values, into: vec![], out: vec![] };
        let inside = |p: PortRef| back.get(&p.element).map(|&element| PortRef { element, port: p.port });
        // One between two of them is looked at twice, which changes nothing.
        for c in back.keys().filter_map(|element| self.around.get(element)).flatten() {
            match (inside(c.from), inside(c.to)) {
                (None, None) => {}
                (Some(from), Some(to)) => {
                    self.shape.graph.connections.iter().find(|d| (d.from, d.to) == (from, to))?;
                }
                (None, Some(to)) => found.into.push((c.from, self.way_in(c.from, to, chosen)?)),
                (Some(from), None) => found.out.push((c.to, self.way_out(from, c.to, chosen)?)),
            }
        }
        let all_used = |is_input: bool, used: &[(PortRef, usize)]| {
            border_ports(self.shape, is_input).into_iter().all(|port| used.iter().any(|(_, p)| *p == port))
        };
        (all_used(true, &found.into) && all_used(false, &found.out)).then_some(found)
    }

    /// The least port of the pattern's input by which `outside` reaches `to`, and all else that this port leads to.
    fn way_in(&self, outside: PortRef, to: PortRef, chosen: &[Option<usize>]) -> Option<usize> {
        let shape = self.shape;
        let border = shape.graph.connections.iter().filter(|c| c.from.element == shape.input);
        let ports = border.clone().filter(|c| c.to == to).map(|c| c.from.port);
        let reaches = |c: &Connection| {
            let input = chosen[c.to.element].map(|element| PortRef { element, port: c.to.port });
            input
                .is_none_or(|input| self.draft.connections.iter().any(|d| (d.from, d.to) == (outside, input)))
        };
        ports.filter(|&port| border.clone().filter(|c| c.from.port == port).all(reaches)).min()
    }

    /// The least port of the pattern's output by which `from` reaches `outside`, as all else does that leads to it.
    fn way_out(&self, from: PortRef, outside: PortRef, chosen: &[Option<usize>]) -> Option<usize> {
        let shape = self.shape;
        let border = shape.graph.connections.iter().filter(|c| c.to.element == shape.output);
        let ports = border.clone().filter(|c| c.from == from).map(|c| c.to.port);
        let reaches = |c: &Connection| {
            let output = chosen[c.from.element].map(|element| PortRef { element, port: c.from.port });
            output.is_none_or(|output| {
                self.draft.connections.iter().any(|d| (d.from, d.to) == (output, outside))
            })
        };
        ports.filter(|&port| border.clone().filter(|c| c.to.port == port).all(reaches)).min()
    }
}

/// Whether the arguments are those of the pattern; what its variables then are goes to `values`.
fn same_arguments(pattern: &str, config: &str, values: &mut HashMap<String, String>) -> Option<()> {
    let (pattern, config) = (args::split_args(pattern), args::split_args(config));
    if pattern.len() != config.len() {
        return None;
    }
    for (wanted, have) in pattern.into_iter().zip(config) {
        if wanted == have {
            continue;
        }
        let name = wanted.strip_prefix('$').filter(|n| !n.is_empty())?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        if *values.entry(wanted).or_insert_with(|| have.clone()) != have {
            return None;
        }
    }
    Some(())
}
