//! Graphs and trees as Click text. What is printed parses to an equal graph or tree.

use crate::ast::*;
use crate::graph::{ElementDecl, Graph, PortRef};
use crate::source::Sources;
use std::collections::HashMap;

/// A graph as Click's `flatconfig` handler shows it: requirements, declarations, an empty line, and chains.
///
/// Names are printed as they are, so that `Class@N` and `compound/inner` come back unchanged.
pub fn graph(graph: &Graph) -> String {
    let mut out = requirements(graph);
    for e in &graph.elements {
        out.push_str(&declaration(e));
    }
    if !graph.connections.is_empty() {
        out.push('\n');
        chains(graph, true, &mut out);
    }
    out
}

/// A graph as Click's tools write it: `defines`, requirements, and declarations each with a line directive that says
/// where it stood in `sources`; then chains, in the order of the text.
pub fn graph_with_lines(graph: &Graph, sources: &Sources, defines: &[(String, String)]) -> String {
    let mut out = requirements(graph);
    if !defines.is_empty() {
        let all: Vec<String> = defines.iter().map(|(name, value)| format!("${name} {value}")).collect();
        out.push_str(&format!("define({});\n\n", all.join(", ")));
    }
    for e in &graph.elements {
        let place = sources.landmark(e.span);
        out.push_str(&format!("# {} \"{}\"\n", place.line, place.file));
        out.push_str(&declaration(e));
    }
    if !graph.connections.is_empty() {
        // The line after the directive.
        out.push_str(&format!("# {} \"\"\n", out.matches('\n').count() + 2));
        chains(graph, false, &mut out);
    }
    out
}

fn requirements(graph: &Graph) -> String {
    if graph.requirements.is_empty() {
        return String::new();
    }
    let all: Vec<String> = graph.requirements.iter().map(required).collect();
    format!("require({});\n\n", all.join(", "))
}

fn declaration(e: &ElementDecl) -> String {
    let config = if e.config.is_empty() { String::new() } else { format!("({})", e.config) };
    format!("{} :: {}{config};\n", e.name, e.class)
}

/// Every connection once, in chains that go on through input 0 and output 0; in the order of the inputs they lead to, if
/// that is asked for.
fn chains(graph: &Graph, by_input: bool, out: &mut String) {
    let mut connections = graph.connections.clone();
    if by_input {
        connections.sort_by_key(|c| (c.to, c.from));
    }
    let mut from: HashMap<PortRef, Vec<usize>> = HashMap::new();
    for (i, c) in connections.iter().enumerate() {
        from.entry(c.from).or_default().push(i);
    }
    // Of several ways to go on the first to an input 0 is taken, else the last.
    let follows = |i: usize| -> Option<usize> {
        let ways = from.get(&connections[i].to).filter(|_| connections[i].to.port == 0)?;
        let mut others = ways.iter().copied().filter(|&d| d != i);
        others.clone().find(|&d| connections[d].to.port == 0).or_else(|| others.next_back())
    };
    let next: Vec<Option<usize>> = (0..connections.len()).map(follows).collect();
    let mut starts = vec![true; connections.len()];
    next.iter().flatten().for_each(|&d| starts[d] = false);
    let mut used = vec![false; connections.len()];
    // What is left without a start goes round in a circle.
    let mut order: Vec<usize> = (0..connections.len()).filter(|&i| starts[i]).collect();
    order.extend((0..connections.len()).filter(|&i| !starts[i]));
    for start in order {
        if used[start] {
            continue;
        }
        let origin = connections[start].from;
        out.push_str(&graph.elements[origin.element].name);
        out.push_str(&port_after(origin.port));
        let mut at = Some(start);
        while let Some(i) = at.filter(|&i| !used[i]) {
            out.push_str(if i == start { " -> " } else { "\n    -> " });
            out.push_str(&port_before(connections[i].to.port));
            out.push_str(&graph.elements[connections[i].to.element].name);
            used[i] = true;
            at = next[i];
        }
        out.push_str(";\n");
    }
}

fn port_after(port: usize) -> String {
    if port == 0 { String::new() } else { format!(" [{port}]") }
}

fn port_before(port: usize) -> String {
    if port == 0 { String::new() } else { format!("[{port}] ") }
}

fn requirement(r: &Requirement) -> String {
    format!("require({});", required(r))
}

fn required(r: &Requirement) -> String {
    match r.name.as_str() {
        "" => r.kind.clone(),
        // Names of packages are words, which need no escapes.
        name => format!("{} \"{name}\"", r.kind),
    }
}

/// A tree as text, one statement a line. Comments outside of configuration strings are not in the tree. A library is
/// printed as its requirement if `keep_libraries` is set, else as its statements.
pub fn tree(statements: &[Stmt], keep_libraries: bool) -> String {
    let mut printer = Printer { out: String::new(), indent: 0, keep_libraries };
    printer.statements(statements);
    printer.out
}

struct Printer {
    out: String,
    indent: usize,
    keep_libraries: bool,
}

impl Printer {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn line_start(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
    }

    fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            if let (Stmt::Library(library), false) = (statement, self.keep_libraries) {
                self.statements(&library.body);
                continue;
            }
            self.line_start();
            self.statement(statement);
            self.push("\n");
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Chain(chain) => self.chain(chain),
            Stmt::Declaration(d) => {
                let names: Vec<&str> = d.names.iter().map(|n| n.text.as_str()).collect();
                self.push(&format!("{} :: ", names.join(", ")));
                self.class(&d.class);
                self.config(d.config.as_ref());
            }
            Stmt::ElementClass(c) => {
                self.push(&format!("elementclass {} ", c.name.text));
                self.class(&c.class);
            }
            Stmt::Require(r) => return self.push(&requirement(r)),
            Stmt::Define(d) => self.push(&format!("define(${} {})", d.name, d.value)),
            Stmt::Library(l) => self.push(&format!("require(library {})", crate::args::quote(&l.name))),
        }
        self.push(";");
    }

    fn chain(&mut self, chain: &Chain) {
        for (i, step) in chain.steps.iter().enumerate() {
            let nothing = |end: &Endpoint| {
                matches!(end.target, Target::ImpliedInput | Target::ImpliedOutput)
                    && end.inputs.is_none()
                    && end.outputs.is_none()
            };
            if let Some((arrow, _)) = step.arrow {
                let first_implied = i == 1 && chain.steps[0].ends.iter().all(nothing);
                self.push(if first_implied { "" } else { " " });
                self.push(if arrow == Arrow::Double { "=>" } else { "->" });
                self.push(if step.ends.iter().all(nothing) { "" } else { " " });
            }
            for (j, end) in step.ends.iter().enumerate() {
                self.push(if j > 0 { ", " } else { "" });
                self.endpoint(end);
            }
        }
    }

    fn endpoint(&mut self, end: &Endpoint) {
        let named = !matches!(end.target, Target::ImpliedInput | Target::ImpliedOutput);
        if let Some(p) = &end.inputs {
            self.ports(p);
            self.push(if named { " " } else { "" });
        }
        match &end.target {
            Target::Name(name) => self.push(&name.text),
            Target::Declared { name, class, config } => {
                self.push(&format!("{} :: ", name.text));
                self.class(class);
                self.config(config.as_ref());
            }
            Target::Anonymous { class, config } => {
                self.class(class);
                self.config(config.as_ref());
            }
            Target::Group(group) => {
                self.push("(\n");
                self.block(&group.body);
                self.push(")");
            }
            Target::ImpliedInput | Target::ImpliedOutput => {}
        }
        if let Some(p) = &end.outputs {
            self.push(if named { " " } else { "" });
            self.ports(p);
        }
    }

    fn ports(&mut self, ports: &Ports) {
        let range = |&(low, high): &(u32, u32)| match low == high {
            true => low.to_string(),
            false => format!("{low}-{high}"),
        };
        let pieces: Vec<String> = ports.ranges.iter().map(range).collect();
        let more = if ports.expandable { "," } else { "" };
        self.push(&format!("[{}{more}]", pieces.join(",")));
    }

    fn config(&mut self, config: Option<&Config>) {
        if let Some(config) = config {
            self.push(&format!("({})", config.text));
        }
    }

    fn class(&mut self, class: &ClassRef) {
        let compound = match class {
            ClassRef::Name(name) => return self.push(&name.text),
            ClassRef::Compound(compound) => compound,
        };
        self.push("{");
        for (i, overload) in compound.overloads.iter().enumerate() {
            self.push(if i > 0 { "|| " } else { " " });
            let formals: Vec<String> = overload
                .formals
                .iter()
                .map(|f| match &f.keyword {
                    Some(keyword) => format!("{keyword} ${}", f.name),
                    None => format!("${}", f.name),
                })
                .collect();
            self.push(&formals.join(", "));
            self.push(if formals.is_empty() { "|\n" } else { " |\n" });
            self.block(&overload.body);
        }
        self.push(if compound.extends.is_some() { "|| ... }" } else { "}" });
    }

    /// Indented statements, and the indentation of the line that ends them.
    fn block(&mut self, statements: &[Stmt]) {
        self.indent += 1;
        self.statements(statements);
        self.indent -= 1;
        self.line_start();
    }
}
