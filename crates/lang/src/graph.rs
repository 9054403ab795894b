//! The flattened configuration: elements and connections, no compounds.

use crate::ast::Requirement;
use crate::diag::Diagnostic;
use crate::source::Span;
use std::collections::HashMap;

/// An element.
#[derive(Clone, Debug)]
pub struct ElementDecl {
    /// Its name, such as `q`, `Discard@3` or `compound/inner`.
    pub name: String,
    /// Its class's own name.
    pub class: String,
    /// Its configuration string, raw, variables replaced.
    pub config: String,
    /// Where it is declared; for a member of a compound, inside the compound's class.
    pub span: Span,
    /// For a member of a compound, where the outermost compound around it is declared.
    pub instance: Option<Span>,
}

impl ElementDecl {
    /// How messages call it: `name :: Class`.
    pub fn described(&self) -> String {
        format!("{} :: {}", self.name, self.class)
    }

    /// An error about this element. People are shown where its compound is used, too.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        let error = Diagnostic::error(self.span, message);
        match self.instance {
            Some(instance) => error.see(instance, "in this compound element"),
            None => error,
        }
    }
}

/// A port of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRef {
    /// Index into [`Graph::elements`].
    pub element: usize,
    /// Port number from 0.
    pub port: usize,
}

/// A connection from an output to an input.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The output.
    pub from: PortRef,
    /// The input.
    pub to: PortRef,
    /// The arrow.
    pub span: Span,
}

/// A flattened configuration. The order of the elements is Click's: top-level elements first, then the members of
/// each compound; it numbers the elements and breaks ties in configuration. No connection occurs twice.
///
/// Two graphs are equal if they have equal elements in the same order, the same connections in any order and the
/// same requirements; spans do not count.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The elements.
    pub elements: Vec<ElementDecl>,
    /// The connections, in order of appearance.
    pub connections: Vec<Connection>,
    /// The requirements, in order of appearance.
    pub requirements: Vec<Requirement>,
}

impl Graph {
    /// The index of the element called `name`. For many look-ups use [`Graph::index`].
    pub fn find(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|e| e.name == name)
    }

    /// Element indices by name.
    pub fn index(&self) -> HashMap<&str, usize> {
        self.elements.iter().enumerate().map(|(i, e)| (e.name.as_str(), i)).collect()
    }

    /// The ends of all connections, sorted.
    fn sorted_ends(&self) -> Vec<(PortRef, PortRef)> {
        let mut ends: Vec<_> = self.connections.iter().map(|c| (c.from, c.to)).collect();
        ends.sort_unstable();
        ends
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        let key = |e: &'_ ElementDecl| (e.name.clone(), e.class.clone(), e.config.clone());
        let requirement = |r: &'_ Requirement| (r.kind.clone(), r.name.clone());
        self.elements.iter().map(key).eq(other.elements.iter().map(key))
            && self.sorted_ends() == other.sorted_ends()
            && self.requirements.iter().map(requirement).eq(other.requirements.iter().map(requirement))
    }
}
