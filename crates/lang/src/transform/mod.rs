//! Flat graphs into other flat graphs: patterns are replaced ([`Patterns`]), dead elements go ([`undead`]), routers
//! are joined at their devices and taken apart again ([`combine`], [`uncombine`]).

mod combine;
mod patterns;
mod undead;

pub use combine::{Combined, Part, combine, uncombine};
pub use patterns::{Patterns, Rewritten};
pub use undead::{Undead, undead};

use crate::graph::{Connection, ElementDecl, Graph, PortRef};
use crate::source::Span;
use std::collections::HashSet;

/// A graph under change. Elements keep their numbers until it is done.
struct Draft {
    /// `None` for one that was removed.
    elements: Vec<Option<ElementDecl>>,
    connections: Vec<Connection>,
}

impl Draft {
    fn new(graph: &Graph) -> Self {
        let elements = graph.elements.iter().cloned().map(Some).collect();
        Self { elements, connections: graph.connections.clone() }
    }

    /// The graph, with the requirements of `from`. What led to removed elements goes with them.
    fn finish(self, from: &Graph) -> Graph {
        let mut numbers = vec![None; self.elements.len()];
        let mut elements = vec![];
        for (old, element) in self.elements.into_iter().enumerate() {
            if let Some(element) = element {
                numbers[old] = Some(elements.len());
                elements.push(element);
            }
        }
        let moved = |p: PortRef| Some(PortRef { element: numbers[p.element]?, port: p.port });
        let mut seen = HashSet::new();
        let connections = self.connections.iter().filter_map(|c| {
            let (from, to) = (moved(c.from)?, moved(c.to)?);
            seen.insert((from, to)).then_some(Connection { from, to, span: c.span })
        });
        let connections = connections.collect();
        Graph { elements, connections, requirements: from.requirements.clone() }
    }

    fn add(&mut self, element: ElementDecl) -> usize {
        self.elements.push(Some(element));
        self.elements.len() - 1
    }

    /// Removes an element and its connections.
    fn remove(&mut self, element: usize) {
        self.elements[element] = None;
        self.connections.retain(|c| c.from.element != element && c.to.element != element);
    }

    fn connect(&mut self, from: PortRef, to: PortRef, span: Span) {
        if !self.connections.iter().any(|c| (c.from, c.to) == (from, to)) {
            self.connections.push(Connection { from, to, span });
        }
    }

    fn class(&self, element: usize) -> Option<&str> {
        self.elements[element].as_ref().map(|e| e.class.as_str())
    }

    /// The elements of a class.
    fn of_class(&self, class: &str) -> Vec<usize> {
        (0..self.elements.len()).filter(|&e| self.class(e) == Some(class)).collect()
    }

    /// The connections to an input.
    fn to(&self, input: PortRef) -> Vec<Connection> {
        self.connections.iter().filter(|c| c.to == input).copied().collect()
    }

    /// The connections from an output.
    fn from(&self, output: PortRef) -> Vec<Connection> {
        self.connections.iter().filter(|c| c.from == output).copied().collect()
    }

    /// One more than the highest input and output in use.
    fn ports(&self, element: usize) -> (usize, usize) {
        let inputs = self.connections.iter().filter(|c| c.to.element == element).map(|c| c.to.port + 1);
        let outputs = self.connections.iter().filter(|c| c.from.element == element).map(|c| c.from.port + 1);
        (inputs.max().unwrap_or(0), outputs.max().unwrap_or(0))
    }

    /// Whatever came to `input` leaves, without a way through an element, to where `outputs` lead.
    fn bypass(&mut self, input: PortRef, output: PortRef) {
        for before in self.to(input) {
            for after in self.from(output) {
                self.connect(before.from, after.to, before.span);
            }
        }
    }

    /// Adds an element without a name that anybody gave.
    fn add_anonymous(&mut self, class: &str, span: Span) -> usize {
        let taken: HashSet<&str> = self.elements.iter().flatten().map(|e| e.name.as_str()).collect();
        let first = self.elements.len() + 1;
        let name = (first..).map(|n| format!("{class}@{n}")).find(|name| !taken.contains(name.as_str()));
        let name = name.unwrap_or_default();
        self.add(ElementDecl { name, class: class.to_owned(), config: String::new(), span, instance: None })
    }
}

/// Port 0 of an element.
fn first(element: usize) -> PortRef {
    PortRef { element, port: 0 }
}
