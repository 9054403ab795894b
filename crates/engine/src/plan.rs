//! A checked configuration, as the run-time needs it: elements, edges, and which edges push and which pull.

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
    /// The configuration's text as it was given.
    pub source: String,
}
