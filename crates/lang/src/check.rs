//! Checks of a flat graph: numbers of ports, push and pull, completeness. In Click's order; the first that finds errors
//! is the last.

use crate::classes::{ClassInfo, Classes};
use crate::diag::{Diagnostic, Diagnostics};
use crate::flow::FlowCode;
use crate::graph::{Connection, Graph, PortRef};
use crate::ports::{Declared, PortCount, Processing, ProcessingCode};
use std::collections::HashMap;

/// Limit on the ports of all elements together.
const MAX_PORTS: usize = 1 << 22;

/// The ports of every element, resolved, and what was found wrong.
#[derive(Debug)]
pub struct Checked {
    elements: Vec<Sides>,
    /// What was found wrong. With errors the ports are a best guess.
    pub diagnostics: Diagnostics,
}

#[derive(Clone, Debug, Default)]
struct Sides {
    inputs: Vec<Processing>,
    outputs: Vec<Processing>,
}

impl Checked {
    /// The inputs of an element; their number is the element's number of inputs. Empty if there is no such element.
    pub fn inputs(&self, element: usize) -> &[Processing] {
        self.elements.get(element).map_or(&[], |sides| &sides.inputs)
    }

    /// The outputs of an element; empty if there is no such element.
    pub fn outputs(&self, element: usize) -> &[Processing] {
        self.elements.get(element).map_or(&[], |sides| &sides.outputs)
    }
}

/// Checks a graph and resolves its ports.
pub fn check(graph: &Graph, classes: &dyn Classes) -> Checked {
    let mut check = Check {
        graph,
        diags: Diagnostics::new(),
        codes: vec![],
        ports: vec![],
        connections: graph.connections.clone(),
    };
    check.collect_codes(classes);
    let mut elements = vec![Sides::default(); graph.elements.len()];
    // Where a port is not there, or pushes into one that pulls, whatever else is said would follow from it.
    if check.count_ports() && !check.diags.has_errors() {
        elements = check.resolve();
        if !check.diags.has_errors() {
            check.completeness(&elements);
        }
    }
    Checked { elements, diagnostics: check.diags }
}

struct Codes {
    count: PortCount,
    processing: ProcessingCode,
    flow: FlowCode,
}

/// Which side of an element a port is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

/// Agnostic while undecided.
#[derive(Clone, Default)]
struct Undecided {
    inputs: Vec<Option<Processing>>,
    outputs: Vec<Option<Processing>>,
}

struct Check<'a> {
    graph: &'a Graph,
    diags: Diagnostics,
    codes: Vec<Codes>,
    /// Numbers of inputs and outputs.
    ports: Vec<(usize, usize)>,
    /// Those whose ports exist.
    connections: Vec<Connection>,
}

impl Check<'_> {
    fn collect_codes(&mut self, classes: &dyn Classes) {
        let mut known: HashMap<&str, Option<ClassInfo>> = HashMap::new();
        for element in &self.graph.elements {
            let info = known.entry(&element.class).or_insert_with(|| classes.get(&element.class));
            let parsed = info.as_ref().map(codes);
            if let Some(None) = parsed {
                let message =
                    format!("class '{}' has a malformed port, processing or flow code", element.class);
                self.diags.push(element.error(message));
            }
            // Flattening reports unknown classes; here they accept anything.
            self.codes.extend(parsed.flatten().or_else(|| codes(&ClassInfo::new("", "-", "a"))));
        }
    }

    fn described(&self, element: usize) -> String {
        self.graph.elements[element].described()
    }

    /// Gives every element its number of ports; drops connections to ports beyond. `false` if there are more
    /// ports than can be handled.
    fn count_ports(&mut self) -> bool {
        let mut used = vec![(0, 0); self.graph.elements.len()];
        for c in &self.connections {
            let outputs = &mut used[c.from.element].1;
            *outputs = (*outputs).max(c.from.port + 1);
            let inputs = &mut used[c.to.element].0;
            *inputs = (*inputs).max(c.to.port + 1);
        }
        let counts = self.codes.iter().zip(used).map(|(code, used)| code.count.count(used.0, used.1));
        self.ports = counts.collect();
        if self.ports.iter().map(|(i, o)| i + o).sum::<usize>() > MAX_PORTS {
            self.diags.push(Diagnostic::general("configuration too large: too many ports"));
            return false;
        }
        for c in std::mem::take(&mut self.connections) {
            let input_there = c.to.port < self.ports[c.to.element].0;
            let output_there = c.from.port < self.ports[c.from.element].1;
            for (there, side, port) in [(input_there, "input", c.to), (output_there, "output", c.from)] {
                if !there {
                    self.no_such_port(c, side, port);
                }
            }
            if input_there && output_there {
                self.connections.push(c);
            }
        }
        true
    }

    fn no_such_port(&mut self, connection: Connection, side: &str, port: PortRef) {
        let element = &self.graph.elements[port.element];
        let (inputs, outputs) = self.ports[port.element];
        let count = if side == "input" { inputs } else { outputs };
        let plural = if count == 1 { "" } else { "s" };
        self.diags.push(
            element
                .error(format!("'{}' has no {side} {}", element.described(), port.port))
                .hint(format!("it has {count} {side}{plural}, numbered from 0"))
                .see(connection.span, "the connection is made here"),
        );
    }

    /// Decides every agnostic port by its neighbours and by what it reaches through its own element.
    fn resolve(&mut self) -> Vec<Sides> {
        let mut undecided = self.declared();
        // Links within elements, from output to input, behave as connections do.
        let mut links: Vec<(PortRef, PortRef, Option<Connection>)> =
            self.connections.iter().map(|c| (c.from, c.to, Some(*c))).collect();
        for (element, codes) in self.codes.iter().enumerate() {
            for (input, kind) in undecided[element].inputs.iter().enumerate() {
                if kind.is_some() {
                    continue;
                }
                for output in codes.flow.outputs_from(input, undecided[element].outputs.len()) {
                    if undecided[element].outputs[output].is_none() {
                        links.push((
                            PortRef { element, port: output },
                            PortRef { element, port: input },
                            None,
                        ));
                    }
                }
            }
        }
        loop {
            let before = links.len();
            links.retain(|&(from, to, connection)| {
                let output = undecided[from.element].outputs[from.port];
                let input = undecided[to.element].inputs[to.port];
                match (output, input) {
                    (None, None) => return true,
                    (Some(kind), None) => undecided[to.element].inputs[to.port] = Some(kind),
                    (None, Some(kind)) => undecided[from.element].outputs[from.port] = Some(kind),
                    (Some(a), Some(b)) if a != b => self.conflict(from, to, a, connection),
                    _ => {}
                }
                false
            });
            if links.len() == before {
                break;
            }
        }
        let settle = |kinds: Vec<Option<Processing>>| -> Vec<Processing> {
            kinds.into_iter().map(|k| k.unwrap_or(Processing::Push)).collect()
        };
        undecided
            .into_iter()
            .map(|u| Sides { inputs: settle(u.inputs), outputs: settle(u.outputs) })
            .collect()
    }

    fn declared(&self) -> Vec<Undecided> {
        let kind = |declared: Declared| match declared {
            Declared::Push => Some(Processing::Push),
            Declared::Pull => Some(Processing::Pull),
            Declared::Agnostic => None,
        };
        let ports = self.codes.iter().zip(&self.ports);
        ports
            .map(|(codes, &(inputs, outputs))| Undecided {
                inputs: (0..inputs).map(|p| kind(codes.processing.input(p))).collect(),
                outputs: (0..outputs).map(|p| kind(codes.processing.output(p))).collect(),
            })
            .collect()
    }

    /// A push end meets a pull end, between two elements or within an agnostic one.
    fn conflict(&mut self, from: PortRef, to: PortRef, output: Processing, connection: Option<Connection>) {
        let input = if output == Processing::Push { Processing::Pull } else { Processing::Push };
        let (output_name, input_name) = (output.name(), input.name());
        let remedy = match output {
            Processing::Push => "put a Queue in between",
            Processing::Pull => "put an Unqueue in between",
        };
        let error = match connection {
            Some(c) => Diagnostic::error(
                c.span,
                format!(
                    "'{}' {output_name} output {} connected to '{}' {input_name} input {}",
                    self.described(from.element),
                    from.port,
                    self.described(to.element),
                    to.port
                ),
            )
            .hint(remedy),
            None => self.graph.elements[from.element].error(
                format!(
                    "agnostic '{}' in mixed context: {input_name} input {}, {output_name} output {}",
                    self.described(from.element),
                    to.port,
                    from.port
                ),
            )
            .hint("an agnostic element pushes on all ports or pulls on all ports; put a Queue or an Unqueue, which turns pulls into pushes, before or after it"),
        };
        self.diags.push(error.without_plain_landmark());
    }

    /// Push outputs and pull inputs must be connected exactly once, other ports at least once.
    fn completeness(&mut self, elements: &[Sides]) {
        let mut inputs: Vec<(PortRef, PortRef, Connection)> =
            self.connections.iter().map(|&c| (c.to, c.from, c)).collect();
        let mut outputs: Vec<_> = self.connections.iter().map(|&c| (c.from, c.to, c)).collect();
        for (side, list) in [(Side::Input, &mut inputs), (Side::Output, &mut outputs)] {
            list.sort_unstable_by_key(|&(port, other, _)| (port, other));
            for pair in list.windows(2) {
                let port = pair[0].0;
                let sides = &elements[port.element];
                let active = match side {
                    Side::Input => sides.inputs[port.port] == Processing::Pull,
                    Side::Output => sides.outputs[port.port] == Processing::Push,
                };
                if active && pair[1].0 == port {
                    self.reused(side, port, pair[0].2, pair[1].2);
                }
            }
        }
        for (side, list) in [(Side::Input, &inputs), (Side::Output, &outputs)] {
            let mut used = list.iter().map(|u| u.0).peekable();
            for (element, &(n_inputs, n_outputs)) in self.ports.iter().enumerate() {
                let (count, name) = match side {
                    Side::Input => (n_inputs, "input"),
                    Side::Output => (n_outputs, "output"),
                };
                for port in 0..count {
                    let here = PortRef { element, port };
                    if used.next_if_eq(&here).is_some() {
                        while used.next_if_eq(&here).is_some() {}
                        continue;
                    }
                    let decl = &self.graph.elements[element];
                    let error = decl.error(format!("'{}' {name} {port} unused", decl.described()));
                    self.diags.push(
                        error.hint("every port must be connected; Idle and Discard fill unwanted ones"),
                    );
                }
            }
        }
    }

    fn reused(&mut self, side: Side, port: PortRef, first: Connection, second: Connection) {
        let element = &self.graph.elements[port.element];
        let (kind, hint) = match side {
            Side::Input => {
                ("pull input", "use a scheduler such as RoundRobinSched to pull from several elements")
            }
            Side::Output => ("push output", "use a Tee to send copies to several elements"),
        };
        self.diags.push(
            element
                .error(format!("illegal reuse of '{}' {kind} {}", element.described(), port.port))
                .hint(hint)
                .see(first.span, "connected here")
                .see(second.span, "and here"),
        );
    }
}

fn codes(info: &ClassInfo) -> Option<Codes> {
    Some(Codes {
        count: PortCount::parse(&info.port_count)?,
        processing: ProcessingCode::parse(&info.processing)?,
        flow: FlowCode::parse(&info.flow_code)?,
    })
}
