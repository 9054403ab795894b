//! A checked configuration, as the run-time needs it: elements, edges, and which edges push and which pull.

use causeway_lang::{Compiled, Processing, Span};

/// One element of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanElement {
    /// Full name.
    pub name: String,
    /// Class.
    pub class: String,
    /// Configuration text, with comments.
    pub config: String,
    /// Where it was declared, as `file:line`.
    pub landmark: String,
    /// Where it was declared, in the sources of the configuration; `None` for elements that no text declares.
    pub span: Option<Span>,
    /// For each input in use, whether it is pulled.
    pub pulled_inputs: Vec<bool>,
    /// For each output in use, whether it is pulled.
    pub pulled_outputs: Vec<bool>,
}

/// One end of an edge: element number and port.
pub type End = (usize, usize);

/// A checked configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Elements, in the order that numbers them.
    pub elements: Vec<PlanElement>,
    /// Edges, from output to input.
    pub edges: Vec<(End, End)>,
    /// How many of the last edges are in no configuration: by them packets enter the graph that were somewhere else.
    pub entries: usize,
}

impl Plan {
    /// The plan of a compiled configuration.
    pub fn new(compiled: &Compiled) -> Plan {
        let pulled = |ports: &[Processing]| ports.iter().map(|&p| p == Processing::Pull).collect();
        let elements = compiled.graph.elements.iter().enumerate().map(|(i, e)| PlanElement {
            name: e.name.clone(),
            class: e.class.clone(),
            config: e.config.clone(),
            landmark: compiled.sources.landmark(e.span).short(),
            span: Some(e.span),
            pulled_inputs: pulled(compiled.checked.inputs(i)),
            pulled_outputs: pulled(compiled.checked.outputs(i)),
        });
        let connections = compiled.graph.connections.iter();
        let edges = connections.map(|c| ((c.from.element, c.from.port), (c.to.element, c.to.port)));
        Plan { elements: elements.collect(), edges: edges.collect(), entries: 0 }
    }

    /// Number of the element called `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.elements.iter().position(|e| e.name == name)
    }

    /// How many of an element's last outputs are in no configuration.
    pub(crate) fn entries_of(&self, element: usize) -> usize {
        let entries = &self.edges[self.edges.len().saturating_sub(self.entries)..];
        entries.iter().filter(|((from, _), _)| *from == element).count()
    }

    /// Where output `port` of `element` leads; the first place if it leads to several.
    pub fn next(&self, element: usize, port: usize) -> Option<End> {
        self.edges.iter().find(|(from, _)| *from == (element, port)).map(|&(_, to)| to)
    }
}
