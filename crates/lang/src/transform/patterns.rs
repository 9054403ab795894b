//! Sets of elements replaced by others, by the patterns of a file, as click-xform(1) does it.
//!
//! A compound class `X_Replacement` says what replaces the pattern that the compound class `X` of the same file is. A
//! pattern matches elements of the same classes with the same connections among them; what leads in from outside must
//! do so where the pattern's `input` does, what leads out where its `output` does, and each of those ports must be in
//! use. An argument `$name` of a pattern's element stands for any one argument, the same for each `$name`.

mod matching;

use super::Draft;
use crate::ast::{Chain, ClassRef, Compound, Config, Declaration, Ident, Stmt, Target};
use crate::classes::{ClassInfo, Classes};
use crate::flatten::flatten_body;
use crate::graph::{ElementDecl, Graph, PortRef};
use crate::library::Loader;
use crate::{Diagnostic, Diagnostics, Failed, args, parse_bytes};
use matching::{Found, Matcher};
use std::collections::{HashMap, HashSet};

/// What comes behind the name of a class that replaces another.
const REPLACEMENT: &str = "_Replacement";
/// The class of a pattern's `input` and `output`; no text can name it.
const BORDER: &str = "(border)";
/// Replacements in one graph: patterns may undo each other for ever.
const MAX_REPLACEMENTS: usize = 100_000;

/// Patterns with their replacements, in the order of the files.
#[derive(Debug, Default)]
pub struct Patterns(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    name: String,
    pattern: Shape,
    replacement: Shape,
}

/// The flat body of a compound class.
#[derive(Debug)]
struct Shape {
    graph: Graph,
    /// The elements that stand for what is outside.
    input: usize,
    output: usize,
}

/// A graph after the patterns.
#[derive(Debug)]
pub struct Rewritten {
    /// The graph. A new element has the place of what it replaces.
    pub graph: Graph,
    /// How often each pattern was replaced, by its name, in order.
    pub replaced: Vec<(String, usize)>,
    /// Whether it was stopped because there was no end to it.
    pub endless: bool,
}

impl Patterns {
    /// Adds the patterns of a file.
    ///
    /// # Errors
    /// What is wrong with its text.
    pub fn read(
        &mut self,
        name: &str,
        bytes: &[u8],
        loader: &dyn Loader,
        classes: &dyn Classes,
    ) -> Result<(), Box<Failed>> {
        let program = parse_bytes(name, bytes, loader);
        let (sources, mut diagnostics) = (program.sources, program.diagnostics);
        let mut bodies: HashMap<String, Shape> = HashMap::new();
        let mut wanted = vec![];
        let mut before = vec![];
        for statement in &top_level(&program.statements) {
            let Stmt::ElementClass(definition) = statement else { continue };
            if let ClassRef::Compound(compound) = &definition.class {
                let (shape, wrong) = shape(&before, compound, classes);
                diagnostics.append(wrong);
                let name = definition.name.text.clone();
                wanted.extend(name.strip_suffix(REPLACEMENT).filter(|n| !n.is_empty()).map(str::to_owned));
                bodies.extend(shape.map(|shape| (name, shape)));
            }
            before.push(statement.clone());
        }
        if diagnostics.has_errors() {
            return Err(Box::new(Failed { sources, diagnostics, has_graph: false }));
        }
        for name in wanted {
            let (pattern, replacement) =
                (bodies.remove(&name), bodies.remove(&format!("{name}{REPLACEMENT}")));
            if let (Some(pattern), Some(replacement)) = (pattern, replacement) {
                self.0.push(Pattern { name, pattern, replacement });
            }
        }
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The replacements as patterns, and the other way round; the last first.
    #[must_use]
    pub fn reversed(self) -> Self {
        let turned = |p: Pattern| Pattern { pattern: p.replacement, replacement: p.pattern, ..p };
        Self(self.0.into_iter().rev().map(turned).collect())
    }

    /// Replaces what matches, the earlier pattern first, until none does. Elements that came from a replacement do not
    /// match the same pattern unless others do with them.
    pub fn apply(&self, graph: &Graph) -> Rewritten {
        let mut draft = Draft::new(graph);
        // By element, the pattern that it is from.
        let mut origin = vec![None; draft.elements.len()];
        let mut counts = vec![0; self.0.len()];
        let mut names = Names::default();
        let mut endless = false;
        loop {
            let found = self.0.iter().enumerate().find_map(|(i, p)| {
                Matcher::new(&p.pattern, &draft, &origin, i).next().map(|found| (i, found))
            });
            let Some((i, found)) = found else { break };
            if counts.iter().sum::<usize>() == MAX_REPLACEMENTS {
                endless = true;
                break;
            }
            counts[i] += 1;
            let prefix = names.prefix(&self.0[i].name, &draft);
            self.0[i].replace(&mut draft, &found, &prefix);
            origin.resize(draft.elements.len(), Some(i));
            found.elements.iter().flatten().for_each(|&e| origin[e] = Some(i));
        }
        let replaced = self.0.iter().map(|p| p.name.clone()).zip(counts).collect();
        Rewritten { graph: draft.finish(graph), replaced, endless }
    }
}

/// The statements of a file and of the libraries that it requires.
fn top_level(statements: &[Stmt]) -> Vec<Stmt> {
    let own = |statement: &Stmt| match statement {
        Stmt::Library(library) => top_level(&library.body),
        other => vec![other.clone()],
    };
    statements.iter().flat_map(own).collect()
}

/// The first alternative of a compound class by itself, flat, after the definitions that stand before it.
fn shape(before: &[Stmt], compound: &Compound, classes: &dyn Classes) -> (Option<Shape>, Diagnostics) {
    let Some(overload) = compound.overloads.first() else { return (None, Diagnostics::new()) };
    let span = compound.span;
    let ident = |text: &str| Ident { text: text.to_owned(), span };
    let border = Declaration {
        names: vec![ident("input"), ident("output")],
        class: ClassRef::Name(ident(BORDER)),
        config: None::<Config>,
    };
    let mut statements = before.to_vec();
    statements.push(Stmt::Declaration(border));
    statements.extend(overload.body.iter().cloned().map(|mut statement| {
        if let Stmt::Chain(chain) = &mut statement {
            name_borders(chain, &ident);
        }
        statement
    }));
    let flat = flatten_body(&statements, &WithBorder(classes), 2);
    let mut wrong = flat.diagnostics;
    let graph = flat.graph;
    let shape = match (graph.find("input"), graph.find("output")) {
        (Some(input), Some(output)) => Some(Shape { graph, input, output }),
        _ => None,
    };
    for c in shape.iter().flat_map(|s| s.graph.connections.iter().map(move |c| (s, c))) {
        let (shape, c) = c;
        if c.to.element == shape.input || c.from.element == shape.output {
            let message = "packets go into 'input' or come out of 'output'";
            wrong.push(Diagnostic::error(c.span, message));
        }
    }
    (shape, wrong)
}

/// An arrow at the begin or the end of a chain means the border.
fn name_borders(chain: &mut Chain, ident: &dyn Fn(&str) -> Ident) {
    for end in chain.steps.iter_mut().flat_map(|step| &mut step.ends) {
        let name = match end.target {
            Target::ImpliedInput => "input",
            Target::ImpliedOutput => "output",
            _ => continue,
        };
        end.target = Target::Name(ident(name));
    }
}

/// Classes, and the one of the border.
struct WithBorder<'a>(&'a dyn Classes);

impl Classes for WithBorder<'_> {
    fn get(&self, name: &str) -> Option<ClassInfo> {
        if name == BORDER { Some(ClassInfo::new(BORDER, "-/-", "a/a")) } else { self.0.get(name) }
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn takes_any(&self) -> bool {
        self.0.takes_any()
    }

    fn missing(&self, name: &str) -> Option<String> {
        self.0.missing(name)
    }

    fn has_package(&self, name: &str) -> bool {
        self.0.has_package(name)
    }
}

/// The numbers behind the names of patterns that new elements are named after.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn prefix(&mut self, name: &str, draft: &Draft) -> String {
        let next = self.0.entry(name.to_owned()).or_insert(1);
        loop {
            let prefix = format!("{name}@{next}");
            *next += 1;
            let inside = format!("{prefix}/");
            if !draft.elements.iter().flatten().any(|e| e.name.starts_with(&inside)) {
                return prefix;
            }
        }
    }
}

impl Pattern {
    /// Puts the replacement where the pattern was found.
    fn replace(&self, draft: &mut Draft, found: &Found, prefix: &str) {
        let matched = &self.pattern.graph.elements;
        let old: HashMap<&str, String> = matched
            .iter()
            .zip(&found.elements)
            .filter_map(|(p, e)| {
                let name = draft.elements[(*e)?].as_ref()?.name.clone();
                Some((p.name.as_str(), name))
            })
            .collect();
        let Some(place) = found.elements.iter().flatten().find_map(|&e| draft.elements[e].clone()) else {
            return;
        };
        let mut slots: Vec<usize> = found.elements.iter().flatten().copied().collect();
        slots.iter().for_each(|&e| draft.remove(e));
        slots.sort_unstable_by(|a, b| b.cmp(a));
        let new = self.replacement.graph.elements.iter().enumerate().map(|(i, e)| {
            if i == self.replacement.input || i == self.replacement.output {
                return None;
            }
            let name = old.get(e.name.as_str()).cloned().unwrap_or_else(|| format!("{prefix}/{}", e.name));
            let config = found.fill(&e.config);
            let (class, span, instance) = (e.class.clone(), place.span, place.instance);
            let element = ElementDecl { name, class, config, span, instance };
            Some(match slots.pop() {
                Some(slot) => {
                    draft.elements[slot] = Some(element);
                    slot
                }
                None => draft.add(element),
            })
        });
        let new: Vec<Option<usize>> = new.collect();
        for c in &self.replacement.graph.connections {
            let from: Vec<PortRef> = match new[c.from.element] {
                Some(element) => vec![PortRef { element, port: c.from.port }],
                None => found.outside_of_input(c.from.port),
            };
            let to: Vec<PortRef> = match new[c.to.element] {
                Some(element) => vec![PortRef { element, port: c.to.port }],
                None => found.outside_of_output(c.to.port),
            };
            for &f in &from {
                to.iter().for_each(|&t| draft.connect(f, t, place.span));
            }
        }
    }
}

/// The arguments of a configuration string with the variables among them replaced.
fn filled(config: &str, values: &HashMap<String, String>) -> String {
    let arguments = args::split_args(config);
    if !arguments.iter().any(|a| values.contains_key(a)) {
        return config.to_owned();
    }
    let value = |a: String| values.get(&a).cloned().unwrap_or(a);
    args::join_args(&arguments.into_iter().map(value).collect::<Vec<_>>())
}

/// The ports in use of an element that stands for the outside.
fn border_ports(shape: &Shape, is_input: bool) -> HashSet<usize> {
    let ends = shape.graph.connections.iter().map(|c| if is_input { c.from } else { c.to });
    let border = if is_input { shape.input } else { shape.output };
    ends.filter(|end| end.element == border).map(|end| end.port).collect()
}
