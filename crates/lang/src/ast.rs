//! The parsed tree: what the text says, before any class is known.
//!
//! The parser cannot tell an element from a class (`Idle -> q`), so the tree keeps names as they were written;
//! [`crate::flatten()`] decides. Nesting is bounded by [`MAX_DEPTH`], so recursion over the tree is safe.

use crate::source::Span;

/// How deep compound elements, groups and libraries may nest.
pub const MAX_DEPTH: usize = 50;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A configuration string: the raw text between the parentheses, comments included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The raw text.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    /// `a -> b => c`, or a lone element.
    Chain(Chain),
    /// `a, b :: Class(config)` standing alone.
    Declaration(Declaration),
    /// `elementclass Name …`
    ElementClass(ElementClass),
    /// One requirement of a `require(…)`.
    Require(Requirement),
    /// One definition of a `define(…)`.
    Define(Definition),
    /// `require(library FILE)`, with the statements of that file.
    Library(Library),
}

/// Elements joined by arrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The lists of elements between the arrows; at least one.
    pub steps: Vec<Step>,
}

/// How two steps of a chain are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// `->`: one to one, one to many, or many to one.
    Single,
    /// `=>`: outputs and inputs in order, pair by pair.
    Double,
}

/// One comma-separated list of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The arrow before it; `None` for the first step.
    pub arrow: Option<(Arrow, Span)>,
    /// The elements; at least one.
    pub ends: Vec<Endpoint>,
}

/// One element of a chain with its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Ports before the element.
    pub inputs: Option<Ports>,
    /// The element.
    pub target: Target,
    /// Ports after the element.
    pub outputs: Option<Ports>,
    /// The whole of it.
    pub span: Span,
}

/// A port list such as `[0]`, `[1,3-5]` or `[0,]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// First and last port of each piece.
    pub ranges: Vec<(u32, u32)>,
    /// A trailing comma: further ports follow as needed.
    pub expandable: bool,
    /// Its place.
    pub span: Span,
}

/// What an [`Endpoint`] names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A bare name: an element, or a class for an anonymous element.
    Name(Ident),
    /// `name :: Class(config)` within a chain.
    Declared {
        /// The new element.
        name: Ident,
        /// Its class.
        class: ClassRef,
        /// Its configuration.
        config: Option<Config>,
    },
    /// `Class(config)` or `{ … }(config)`.
    Anonymous {
        /// The class.
        class: ClassRef,
        /// The configuration.
        config: Option<Config>,
    },
    /// `( … )`
    Group(Group),
    /// Nothing where `input` is meant, at the start of a chain in a compound or group.
    ImpliedInput,
    /// Nothing where `output` is meant, at the end of a chain in a compound or group.
    ImpliedOutput,
}

/// An element group: elements of the surrounding scope with an input and output of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The statements between the parentheses.
    pub body: Vec<Stmt>,
    /// Its place.
    pub span: Span,
}

/// The class in a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassRef {
    /// A class by name.
    Name(Ident),
    /// A class written in place.
    Compound(Compound),
}

/// `{ formals | statements || … }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compound {
    /// The alternatives; at least one, except after an error.
    pub overloads: Vec<Overload>,
    /// `...` at the end: the class as it was visible before is the last alternative.
    pub extends: Option<Span>,
    /// Its place.
    pub span: Span,
}

/// One alternative of a compound class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The parameters.
    pub formals: Vec<Formal>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// Its place.
    pub span: Span,
}

/// A parameter of a compound class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formal {
    /// The keyword, for `KEYWORD $name`.
    pub keyword: Option<String>,
    /// The variable, without its dollar.
    pub name: String,
    /// Its place.
    pub span: Span,
}

/// A declaration that stands alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The new elements.
    pub names: Vec<Ident>,
    /// Their class.
    pub class: ClassRef,
    /// Their configuration.
    pub config: Option<Config>,
}

/// `elementclass Name { … }` or `elementclass Name Other`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementClass {
    /// The new class.
    pub name: Ident,
    /// What it is.
    pub class: ClassRef,
}

/// What a configuration needs of the system that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// `package`, `compact_config` or another word.
    pub kind: String,
    /// What of that kind; empty if the kind says all.
    pub name: String,
    /// Its place.
    pub span: Span,
}

/// `$name value`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The variable, without its dollar.
    pub name: String,
    /// The raw value.
    pub value: String,
    /// Its place.
    pub span: Span,
}

/// A file that was required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The name in the `require`.
    pub name: String,
    /// Its statements; empty if the file was read before.
    pub body: Vec<Stmt>,
    /// The place of the requirement.
    pub span: Span,
}
