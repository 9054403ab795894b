//! From the tree to scopes: every name is resolved, every class defined, in the order of the text.
//!
//! A [`Body`] is the content of one scope: the file's, or that of one compound class. It is made once for every
//! definition; [`crate::flatten()`] copies it for every use.

use crate::ast::*;
use crate::classes::Classes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::source::Span;
use crate::suggest::did_you_mean;
use std::collections::{HashMap, HashSet};

/// Index into [`Elaborator::defs`].
pub(crate) type ClassId = usize;

/// A class, as elements are bound to it.
#[derive(Debug)]
pub(crate) enum ClassDef {
    /// A class of the router, by its own name.
    Primitive(String),
    /// A compound class.
    Compound(Box<CompoundDef>),
    /// A class that does not exist, by the name that was written.
    Unknown(String),
}

/// One alternative of a compound class.
#[derive(Debug)]
pub(crate) struct CompoundDef {
    /// Empty for a class written in place.
    pub name: String,
    pub span: Span,
    /// Compounds around the definition, itself included.
    pub depth: usize,
    pub formals: Vec<Formal>,
    pub body: Body,
    pub inputs: usize,
    pub outputs: usize,
    /// The next alternative.
    pub next: Option<ClassId>,
}

/// The elements, connections and variables of one scope.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// What enters the first node leaves the second, port by port.
    pub tunnels: Vec<(usize, usize)>,
    pub defines: Vec<Definition>,
    pub names: HashMap<String, usize>,
    /// Parameters and definitions.
    pub variables: HashSet<String>,
    /// Leading nodes that do not count for anonymous names: a compound's `input` and `output`.
    pub(crate) hidden: usize,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Class(ClassId),
    Tunnel,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub name: String,
    /// Its name ends in `@N` and gives way to a declared one.
    pub anonymous: bool,
    pub kind: NodeKind,
    pub config: String,
    pub span: Span,
}

/// A connection between ports of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub from: (usize, u32),
    pub to: (usize, u32),
    pub span: Span,
}

/// Limit on connections in all definitions together: port ranges make them cheap to write.
const MAX_EDGES: usize = 1 << 20;

pub(crate) struct Elaborator<'a> {
    pub classes: &'a dyn Classes,
    pub diags: Diagnostics,
    pub defs: Vec<ClassDef>,
    pub requirements: Vec<Requirement>,
    /// Class names by scope, innermost last; the router's own classes are found so far in the first.
    pub(crate) visible: Vec<HashMap<String, ClassId>>,
    pub(crate) body: Body,
    /// Elements declared anywhere in the current scope, for the hint that a declaration comes too late.
    pub(crate) declared: HashMap<String, Span>,
    pub(crate) edges_left: usize,
}

impl<'a> Elaborator<'a> {
    pub fn new(classes: &'a dyn Classes) -> Self {
        Self {
            classes,
            diags: Diagnostics::new(),
            defs: vec![],
            requirements: vec![],
            visible: vec![HashMap::new(), HashMap::new()],
            body: Body::default(),
            declared: HashMap::new(),
            edges_left: MAX_EDGES,
        }
    }

    /// Elaborates a file's statements; its content is then in `body`.
    pub fn file(&mut self, statements: &[Stmt]) {
        collect_declared(statements, &mut self.declared);
        self.statements(statements);
    }

    pub(crate) fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match statement {
                Stmt::Chain(chain) => self.chain(chain),
                Stmt::Declaration(declaration) => self.declaration(declaration),
                Stmt::ElementClass(class) => self.element_class(class),
                Stmt::Require(requirement) => self.requirement(requirement),
                Stmt::Define(definition) => self.define(definition),
                Stmt::Library(library) => self.statements(&library.body),
            }
        }
    }

    fn requirement(&mut self, requirement: &Requirement) {
        let available = match requirement.kind.as_str() {
            "compact_config" => true,
            "package" => self.classes.has_package(&requirement.name),
            _ => false,
        };
        if !available {
            let what = if requirement.kind == "package" { &requirement.name } else { &requirement.kind };
            let error = Diagnostic::error(requirement.span, format!("requirement '{what}' not available"));
            self.diags.push(error.without_plain_landmark());
        }
        self.requirements.push(requirement.clone());
    }

    fn define(&mut self, definition: &Definition) {
        if self.claim_variable(&definition.name, definition.span) {
            self.body.defines.push(definition.clone());
        }
    }

    /// Takes a variable's name in the current scope; reports it if it is taken.
    pub(crate) fn claim_variable(&mut self, name: &str, span: Span) -> bool {
        let free = self.body.variables.insert(name.to_string());
        if !free {
            self.diags.error(span, format!("parameter '${name}' multiply defined"));
        }
        free
    }

    // ---- classes ----

    pub(crate) fn add_def(&mut self, def: ClassDef) -> ClassId {
        self.defs.push(def);
        self.defs.len() - 1
    }

    fn make_visible(&mut self, name: &str, class: ClassId) {
        if let Some(scope) = self.visible.last_mut() {
            scope.insert(name.to_string(), class);
        }
    }

    /// The class that `name` means here, if any.
    pub(crate) fn find_class(&mut self, name: &str) -> Option<ClassId> {
        if let Some(&class) = self.visible.iter().rev().find_map(|scope| scope.get(name)) {
            return Some(class);
        }
        let info = self.classes.get(name)?;
        let class = self.add_def(ClassDef::Primitive(info.name));
        self.visible[0].insert(name.to_string(), class);
        Some(class)
    }

    /// The class that `name` means here; an unknown one is reported once.
    fn require_class(&mut self, name: &Ident) -> ClassId {
        if let Some(class) = self.find_class(&name.text) {
            return class;
        }
        if self.classes.takes_any() && !name.text.is_empty() {
            return self.any_class(&name.text);
        }
        // The parser puts an empty name where it has complained already.
        if !name.text.is_empty() {
            let hint = self.class_hint(&name.text);
            let message = format!("unknown element class '{}'", name.text);
            self.diags.push(Diagnostic::error(name.span, message).hint_opt(hint));
        }
        self.unknown_class(&name.text)
    }

    /// A class of which nothing is known but its name.
    pub(crate) fn any_class(&mut self, name: &str) -> ClassId {
        let class = self.add_def(ClassDef::Primitive(name.to_string()));
        self.make_visible(name, class);
        class
    }

    /// A stand-in for a class that does not exist, so that elaboration can go on.
    pub(crate) fn unknown_class(&mut self, name: &str) -> ClassId {
        let class = self.add_def(ClassDef::Unknown(name.to_string()));
        self.make_visible(name, class);
        class
    }

    pub(crate) fn class_hint(&self, name: &str) -> Option<String> {
        if self.diags.is_full() {
            return None;
        }
        let scoped = self.visible.iter().flat_map(HashMap::keys).cloned();
        let near = did_you_mean(name, self.classes.names().into_iter().chain(scoped));
        let told = self.classes.missing(name);
        let hints: Vec<String> = told.into_iter().chain(near).collect();
        (!hints.is_empty()).then(|| hints.join("; "))
    }

    /// The class of a reference and the name that anonymous elements of it get.
    pub(crate) fn class_ref(&mut self, class: &ClassRef) -> (ClassId, String) {
        match class {
            ClassRef::Name(name) => (self.require_class(name), name.text.clone()),
            ClassRef::Compound(compound) => (self.compound(compound, ""), String::new()),
        }
    }

    fn element_class(&mut self, definition: &ElementClass) {
        let name = &definition.name.text;
        let class = match &definition.class {
            ClassRef::Name(other) => self.require_class(other),
            ClassRef::Compound(compound) => self.compound(compound, name),
        };
        self.make_visible(name, class);
    }

    // ---- elements ----

    pub(crate) fn add_node(&mut self, node: Node) -> usize {
        let id = self.body.nodes.len();
        if !node.anonymous {
            let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
            if node.name.split('/').any(all_digits) {
                let message = format!("element name '{}' has all-digit component", node.name);
                self.diags.error(node.span, message);
            }
            self.body.names.insert(node.name.clone(), id);
        }
        self.body.nodes.push(node);
        id
    }

    pub(crate) fn add_tunnel_node(&mut self, name: String, span: Span) -> usize {
        self.add_node(Node { name, anonymous: false, kind: NodeKind::Tunnel, config: String::new(), span })
    }

    /// `Class@N`, N being the place the next element gets in this scope.
    pub(crate) fn anonymous_name(&self, class: &str) -> String {
        format!("{class}@{}", self.body.nodes.len() - self.body.hidden + 1)
    }

    pub(crate) fn later_declaration(&self, name: &str) -> Option<Span> {
        self.declared.get(name).copied()
    }
}

impl Body {
    /// Moves anonymous names out of the way of declared ones, in order.
    pub fn settle_anonymous_names(&mut self) {
        for id in 0..self.nodes.len() {
            if self.nodes[id].anonymous {
                let name = free_name(&self.nodes[id].name, |n| self.names.contains_key(n));
                self.names.insert(name.clone(), id);
                self.nodes[id].name = name;
                self.nodes[id].anonymous = false;
            }
        }
    }
}

/// `name`, whose end is `@N`, with N increased until the name is not taken.
pub(crate) fn free_name(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = name.to_string();
    let at = name.rfind('@').unwrap_or(name.len());
    let mut number: u64 = name.get(at + 1..).and_then(|n| n.parse().ok()).unwrap_or(0);
    while taken(&name) {
        number += 1;
        name.truncate(at);
        name.push_str(&format!("@{number}"));
    }
    name
}

/// Every element declared by name in these statements and the groups in them.
pub(crate) fn collect_declared(statements: &[Stmt], into: &mut HashMap<String, Span>) {
    let mut add = |name: &Ident| {
        into.entry(name.text.clone()).or_insert(name.span);
    };
    let mut inner: Vec<&[Stmt]> = vec![];
    for statement in statements {
        match statement {
            Stmt::Declaration(d) => d.names.iter().for_each(&mut add),
            Stmt::Chain(chain) => {
                for end in chain.steps.iter().flat_map(|s| &s.ends) {
                    match &end.target {
                        Target::Declared { name, .. } => add(name),
                        Target::Group(group) => inner.push(&group.body),
                        _ => {}
                    }
                }
            }
            Stmt::Library(library) => inner.push(&library.body),
            _ => {}
        }
    }
    inner.into_iter().for_each(|body| collect_declared(body, into));
}
