//! Flattening: compound elements are replaced by their members, variables by their values.

use crate::args;
use crate::ast::Stmt;
use crate::classes::Classes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::elaborate::{Body, ClassDef, ClassId, CompoundDef, Edge, Elaborator, NodeKind, free_name};
use crate::graph::{ElementDecl, Graph};
use crate::overload;
use crate::source::Span;
use crate::tunnel::{self, Wiring};
use crate::variables::{Fuel, Scope, Value, expand};
use std::collections::HashMap;
use std::rc::Rc;

/// How large a configuration may become: compounds of compounds make it cheap to write.
struct Limits {
    /// Elements after flattening.
    elements: usize,
    /// Connections after flattening.
    connections: usize,
    /// Bytes of names and configurations written and text searched for variables.
    text: usize,
}

const LIMITS: Limits = Limits { elements: 1 << 18, connections: 1 << 20, text: 1 << 28 };
/// Limit on compounds within compounds after flattening.
const MAX_INSTANCE_DEPTH: usize = 200;

/// The result of flattening.
#[derive(Debug)]
pub struct Flattened {
    /// The graph. After errors it lacks what could not be understood.
    pub graph: Graph,
    /// What was found wrong.
    pub diagnostics: Diagnostics,
}

/// Resolves names, expands compounds and variables. `params` are the definitions of the command line, which win
/// over those of the file's top level.
pub fn flatten(program: &crate::Program, classes: &dyn Classes, params: &[(String, String)]) -> Flattened {
    flatten_statements(&program.statements, classes, params)
}

pub(crate) fn flatten_statements(
    statements: &[Stmt],
    classes: &dyn Classes,
    params: &[(String, String)],
) -> Flattened {
    flatten_within(LIMITS, statements, classes, params)
}

fn flatten_within(
    limits: Limits,
    statements: &[Stmt],
    classes: &dyn Classes,
    params: &[(String, String)],
) -> Flattened {
    let mut elaborator = Elaborator::new(classes);
    elaborator.file(statements);
    let Elaborator { defs, diags, requirements, body, .. } = elaborator;
    let mut flattener = Flattener {
        defs: &defs,
        diags,
        nodes: vec![],
        wiring: Wiring::default(),
        names: HashMap::new(),
        fuel: Fuel(limits.text),
        limits,
        too_large: false,
    };
    flattener.top_level(body, params);
    let mut graph = flattener.finish();
    graph.requirements = requirements;
    Flattened { graph, diagnostics: flattener.diags }
}

/// What a node of the flat graph still is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Class(ClassId),
    Tunnel,
}

struct FlatNode {
    name: String,
    kind: Kind,
    config: String,
    span: Span,
    instance: Option<Span>,
}

struct Flattener<'a> {
    defs: &'a [ClassDef],
    diags: Diagnostics,
    nodes: Vec<FlatNode>,
    wiring: Wiring,
    names: HashMap<String, usize>,
    limits: Limits,
    fuel: Fuel,
    /// A limit was hit and reported.
    too_large: bool,
}

impl Flattener<'_> {
    fn top_level(&mut self, body: Body, params: &[(String, String)]) {
        let mut values: HashMap<String, Value> =
            body.defines.iter().map(|d| (d.name.clone(), Value::Open(d.value.clone()))).collect();
        values.extend(params.iter().map(|(n, v)| (n.clone(), Value::Open(v.clone()))));
        let scope = Rc::new(Scope { depth: 0, values, parent: None });

        self.names = body.names;
        let mut anonymous = vec![];
        for node in body.nodes {
            let kind = match node.kind {
                NodeKind::Class(class) => Kind::Class(class),
                NodeKind::Tunnel => Kind::Tunnel,
            };
            anonymous.push(node.anonymous);
            let (name, config, span) = (node.name, node.config, node.span);
            self.add_node(FlatNode { name, kind, config, span, instance: None });
        }
        body.edges.iter().for_each(|&edge| self.wiring.connect(edge));
        body.tunnels.iter().for_each(|&(from, to)| self.wiring.tunnel(from, to));
        for (id, anonymous) in anonymous.into_iter().enumerate() {
            if anonymous {
                let name = free_name(&self.nodes[id].name, |n| self.names.contains_key(n));
                self.names.insert(name.clone(), id);
                self.nodes[id].name = name;
            }
            self.nodes[id].config = expand(&self.nodes[id].config, &scope, &mut self.fuel);
            self.expand_node(id, &scope, 0);
        }
    }

    fn add_node(&mut self, node: FlatNode) -> usize {
        self.nodes.push(node);
        self.wiring.add_node();
        self.nodes.len() - 1
    }

    /// Replaces a compound element by its members. Its own configuration is final.
    fn expand_node(&mut self, id: usize, scope: &Rc<Scope>, depth: usize) {
        let Kind::Class(class) = self.nodes[id].kind else { return };
        let ClassDef::Compound(first) = &self.defs[class] else { return };
        let span = self.nodes[id].span;
        if depth >= MAX_INSTANCE_DEPTH {
            self.limit(span, "maximum compound element nesting depth exceeded");
            return;
        }
        let arguments = args::split_args(&self.nodes[id].config);
        let (inputs, outputs) = self.wiring.used_ports(id);
        let chosen =
            overload::resolve(self.defs, class, first, &arguments, (inputs, outputs), span, &mut self.diags);
        let Some((class, values)) = chosen else {
            // Nothing fits: a tunnel to nowhere, because what is connected to it cannot be judged either.
            self.nodes[id].kind = Kind::Tunnel;
            return;
        };
        self.nodes[id].kind = Kind::Class(class);
        let ClassDef::Compound(compound) = &self.defs[class] else { return };
        let mut variables: HashMap<String, Value> = HashMap::new();
        for define in &compound.body.defines {
            variables.insert(define.name.clone(), Value::Open(define.value.clone()));
        }
        for (formal, value) in compound.formals.iter().zip(values) {
            variables.insert(formal.name.clone(), Value::Final(value));
        }
        let parent = Scope::outside(scope, compound.depth);
        let inner = Rc::new(Scope { depth: compound.depth, values: variables, parent });
        self.expand_into(id, compound, &inner, depth);
    }

    fn expand_into(&mut self, id: usize, compound: &CompoundDef, scope: &Rc<Scope>, depth: usize) {
        let span = self.nodes[id].span;
        let body = &compound.body;
        if self.too_large {
            return;
        }
        let wanted = (self.nodes.len() + body.nodes.len(), self.wiring.edge_count() + body.edges.len());
        if wanted.0 > self.limits.elements || wanted.1 > self.limits.connections {
            self.limit(span, "configuration too large: compound elements expand to too many elements");
            return;
        }
        self.nodes[id].kind = Kind::Tunnel;
        let prefix = self.nodes[id].name.clone();
        let instance = self.nodes[id].instance.or(Some(span));
        let mut map = Vec::with_capacity(body.nodes.len());
        for node in &body.nodes {
            let name = format!("{prefix}/{}", node.name);
            let config = expand(&node.config, scope, &mut self.fuel);
            if !self.fuel.take(2 * name.len()) {
                self.limit(span, "configuration too large: variables expand to too much text");
            }
            if let Some(&earlier) = self.names.get(&name) {
                let (message, here) =
                    (format!("redeclaration of element '{name}'"), self.nodes[earlier].span);
                let note = format!("element '{name}' previously declared here");
                self.diags.push(Diagnostic::error(span, message).note(Some(here), note));
                map.push(None);
                continue;
            }
            let kind = match node.kind {
                NodeKind::Class(class) => Kind::Class(class),
                NodeKind::Tunnel => Kind::Tunnel,
            };
            self.names.insert(name.clone(), self.nodes.len());
            let span = node.span;
            map.push(Some(self.add_node(FlatNode { name, kind, config, span, instance })));
        }
        if let [Some(input), Some(output), ..] = map[..] {
            self.wiring.compound(id, input, output);
        }
        for edge in &body.edges {
            if let (Some(from), Some(to)) = (map[edge.from.0], map[edge.to.0]) {
                self.wiring.connect(Edge { from: (from, edge.from.1), to: (to, edge.to.1), ..*edge });
            }
        }
        for &(from, to) in &body.tunnels {
            if let (Some(from), Some(to)) = (map[from], map[to]) {
                self.wiring.tunnel(from, to);
            }
        }
        for inner in map.into_iter().skip(2).flatten() {
            self.expand_node(inner, scope, depth + 1);
        }
    }

    /// Reports that a limit was hit, once.
    fn limit(&mut self, span: Span, message: &str) {
        if !std::mem::replace(&mut self.too_large, true) {
            self.diags.error(span, message);
        }
    }

    fn finish(&mut self) -> Graph {
        if let (0, Some(last)) = (self.fuel.0, self.nodes.last()) {
            self.limit(last.span, "configuration too large: variables expand to too much text");
        }
        let mut graph = Graph::default();
        if self.too_large {
            return graph;
        }
        let mut numbers = vec![None; self.nodes.len()];
        for (id, node) in self.nodes.iter_mut().enumerate() {
            let Kind::Class(class) = node.kind else { continue };
            let class = match &self.defs[class] {
                ClassDef::Primitive(name) | ClassDef::Unknown(name) => name.clone(),
                ClassDef::Compound(def) => def.name.clone(),
            };
            numbers[id] = Some(graph.elements.len());
            let (name, config) = (node.name.clone(), std::mem::take(&mut node.config));
            let (span, instance) = (node.span, node.instance);
            graph.elements.push(ElementDecl { name, class, config, span, instance });
        }
        let name_of = |id: usize| (self.nodes[id].name.clone(), self.nodes[id].span);
        graph.connections = tunnel::connections(&self.wiring, &numbers, name_of, &mut self.diags);
        graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClassInfo, ClassList, NoLibraries};

    const NONE: Limits = Limits { elements: usize::MAX, connections: usize::MAX, text: usize::MAX };

    /// What is wrong with a configuration that has to keep within limits.
    fn errors(text: &str, limits: Limits) -> Vec<String> {
        let classes =
            ClassList(["Idle", "Null", "Discard"].map(|name| ClassInfo::new(name, "-/-", "a/a")).into());
        let program = crate::parse("config", text, &NoLibraries);
        let flat = flatten_within(limits, &program.statements, &classes, &[]);
        flat.diagnostics.messages().iter().map(ToString::to_string).collect()
    }

    /// The least limit of a kind that a configuration keeps within.
    fn least(text: &str, limits: impl Fn(usize) -> Limits) -> usize {
        (0..1000).find(|&limit| errors(text, limits(limit)).is_empty()).expect("a small configuration")
    }

    /// Four elements and three connections; in the compound one element, its two ports and two connections.
    const TEXT: &str = "elementclass C { input -> Null -> output } Idle -> c :: C -> Null -> Discard";

    #[test]
    fn elements_and_connections_may_be_as_many_as_their_limits() {
        assert_eq!(errors(TEXT, NONE), Vec::<String>::new());
        assert_eq!(least(TEXT, |elements| Limits { elements, ..NONE }), 4 + 3);
        assert_eq!(least(TEXT, |connections| Limits { connections, ..NONE }), 3 + 2);
        let (elements, connections) = (7, 5);
        assert!(errors(TEXT, Limits { elements, connections, ..NONE }).is_empty());
        let refused = errors(TEXT, Limits { elements: 6, connections, ..NONE });
        assert!(refused[0].contains("too many elements"), "{refused:?}");
        assert_eq!(errors(TEXT, Limits { elements, connections: 4, ..NONE }), refused);
    }

    #[test]
    fn a_name_counts_twice_in_the_text() {
        let text = |name: &str| {
            format!("elementclass C {{ input -> {name} :: Null -> output }} Idle -> c :: C -> Discard")
        };
        let needed = |name: &str| least(&text(name), |text| Limits { text, ..NONE });
        assert_eq!(needed("n0123456789") - needed("n"), 2 * 10);
    }
}
