//! Dead code: elements that no packet can reach, or from which none goes anywhere, and those that do nothing.

use super::{Draft, first};
use crate::args;
use crate::classes::Classes;
use crate::flow::FlowCode;
use crate::graph::{Graph, PortRef};
use crate::values::integer;
use std::collections::HashSet;

/// Makes idle ends of ports.
const IDLE: &str = "Idle";
/// Pull from one of many; with one they do nothing.
const SCHEDULERS: [&str; 3] = ["RoundRobinSched", "PrioSched", "StrideSched"];

/// A graph without its dead code.
#[derive(Debug)]
pub struct Undead {
    /// The graph.
    pub graph: Graph,
    /// What was done, an element each.
    pub removed: Vec<String>,
    /// Elements whose configuration cannot be understood; they count as leading nowhere.
    pub wrong: Vec<String>,
}

/// Removes static switches and Null, then all that is not between a source and a sink of packets, then schedulers with
/// one input and Tee with one output. Ports of the others that lose what was connected to them get Idle.
///
/// An element without inputs is a source, one without outputs a sink; so are those that have a world of their own, such
/// as ToDevice with outputs. An element without ports is kept.
pub fn undead(graph: &Graph, classes: &dyn Classes) -> Undead {
    let mut work = Work { draft: Draft::new(graph), counts: vec![], removed: vec![], wrong: vec![] };
    work.counts = (0..graph.elements.len()).map(|e| work.draft.ports(e)).collect();
    work.static_switches();
    work.nulls();
    work.dead(classes);
    while work.schedulers() | work.tees() {}
    work.fill_blanks();
    let Work { draft, removed, wrong, .. } = work;
    Undead { graph: draft.finish(graph), removed, wrong }
}

struct Work {
    draft: Draft,
    /// Inputs and outputs that each element has to have.
    counts: Vec<(usize, usize)>,
    removed: Vec<String>,
    wrong: Vec<String>,
}

impl Work {
    fn remove(&mut self, element: usize, why: &str) {
        if let Some(e) = &self.draft.elements[element] {
            self.removed.push(format!("{}: {why}", e.described()));
        }
        self.draft.remove(element);
    }

    fn config(&self, element: usize) -> String {
        self.draft.elements[element].as_ref().map(|e| e.config.clone()).unwrap_or_default()
    }

    /// A switch that cannot be turned is a connection.
    fn static_switches(&mut self) {
        for class in ["StaticSwitch", "StaticPullSwitch"] {
            for element in self.draft.of_class(class) {
                let config = args::split_args(&self.config(element)).join(", ");
                let chosen = integer(&config, i128::from(i32::MIN), i128::from(i32::MAX));
                if chosen.is_err() {
                    let e = self.draft.elements[element].as_ref().map(|e| e.name.clone()).unwrap_or_default();
                    self.wrong.push(format!("{e}: bad configuration '{class}({config})'"));
                }
                if let Some(port) = chosen.ok().and_then(|n| usize::try_from(n).ok()) {
                    let chosen = PortRef { element, port };
                    let (input, output) = match class {
                        "StaticSwitch" => (first(element), chosen),
                        _ => (chosen, first(element)),
                    };
                    self.draft.bypass(input, output);
                }
                self.remove(element, "always the same way");
            }
        }
    }

    fn nulls(&mut self) {
        for element in self.draft.of_class("Null") {
            if self.draft.ports(element) == (1, 1) {
                self.draft.bypass(first(element), first(element));
                self.remove(element, "does nothing");
            }
        }
    }

    fn dead(&mut self, classes: &dyn Classes) {
        let (sources, sinks) = (self.reached(classes, true), self.reached(classes, false));
        for element in 0..self.draft.elements.len() {
            let Some(class) = self.draft.class(element) else { continue };
            let live = sources.contains(&element) && sinks.contains(&element);
            if class == IDLE || !(live || self.counts[element] == (0, 0)) {
                self.remove(element, "no packet passes");
            }
        }
    }

    /// Elements to which packets may come, or, backwards, from which they may come to an end.
    fn reached(&self, classes: &dyn Classes, forward: bool) -> HashSet<usize> {
        let mut reached = HashSet::new();
        let mut todo = vec![];
        for (element, decl) in self.draft.elements.iter().enumerate() {
            let Some(decl) = decl else { continue };
            let (inputs, outputs) = self.counts[element];
            let role = Role::of(&decl.class, inputs, outputs);
            if if forward { role.source } else { role.sink } {
                reached.insert(element);
                let ports = if forward { outputs } else { inputs };
                todo.extend((0..ports).map(|port| PortRef { element, port }));
            }
        }
        let mut seen = HashSet::new();
        while let Some(port) = todo.pop() {
            let next: Vec<PortRef> = match forward {
                true => self.draft.from(port).iter().map(|c| c.to).collect(),
                false => self.draft.to(port).iter().map(|c| c.from).collect(),
            };
            for there in next.into_iter().filter(|there| seen.insert(*there)) {
                let Some(class) = self.draft.class(there.element) else { continue };
                if class != IDLE {
                    reached.insert(there.element);
                    todo.extend(self.beyond(classes, class, there, forward));
                }
            }
        }
        reached
    }

    /// The ports on the other side of an element that a port reaches.
    fn beyond(&self, classes: &dyn Classes, class: &str, there: PortRef, forward: bool) -> Vec<PortRef> {
        let (inputs, outputs) = self.counts[there.element];
        let info = classes.get(class);
        // An answer to a query lets packets go that came in elsewhere.
        let code = info.filter(|_| class != "ARPQuerier").and_then(|i| FlowCode::parse(&i.flow_code));
        let ports: Vec<usize> = match (code, forward) {
            (Some(code), true) => code.outputs_from(there.port, outputs).collect(),
            (Some(code), false) => code.inputs_to(there.port, inputs).collect(),
            (None, true) => (0..outputs).collect(),
            (None, false) => (0..inputs).collect(),
        };
        ports.into_iter().map(|port| PortRef { element: there.element, port }).collect()
    }

    /// Inputs of schedulers to which nothing leads go, and schedulers of one input.
    fn schedulers(&mut self) -> bool {
        let mut changed = false;
        for class in SCHEDULERS {
            for element in self.draft.of_class(class) {
                let inputs = self.counts[element].0;
                let mut arguments = args::split_args(&self.config(element));
                if class == "StrideSched" && arguments.len() != inputs || self.draft.ports(element).1 != 1 {
                    continue;
                }
                let led_to = |port: &usize| !self.draft.to(PortRef { element, port: *port }).is_empty();
                let used: Vec<usize> = (0..inputs).filter(led_to).collect();
                for c in self.draft.connections.iter_mut().filter(|c| c.to.element == element) {
                    c.to.port = used.iter().position(|&p| p == c.to.port).unwrap_or(c.to.port);
                }
                self.counts[element].0 = used.len();
                if class == "StrideSched" && used.len() < inputs {
                    arguments = used.iter().map(|&p| arguments[p].clone()).collect();
                    let config = args::join_args(&arguments);
                    self.draft.elements[element].iter_mut().for_each(|e| e.config.clone_from(&config));
                }
                if used.len() == 1 {
                    self.draft.bypass(first(element), first(element));
                    self.remove(element, "schedules one input");
                    changed = true;
                }
            }
        }
        changed
    }

    /// Outputs of Tee that lead nowhere go, and Tee of one output.
    fn tees(&mut self) -> bool {
        let mut changed = false;
        for (class, kept) in [("Tee", 0), ("PullTee", 1)] {
            for element in self.draft.of_class(class) {
                let outputs = self.counts[element].1;
                let used = |port: &usize| {
                    *port < kept || !self.draft.from(PortRef { element, port: *port }).is_empty()
                };
                let used: Vec<usize> = (0..outputs).filter(used).collect();
                for c in self.draft.connections.iter_mut().filter(|c| c.from.element == element) {
                    c.from.port = used.iter().position(|&p| p == c.from.port).unwrap_or(c.from.port);
                }
                self.counts[element].1 = used.len();
                self.draft.elements[element].iter_mut().for_each(|e| e.config = used.len().to_string());
                if used.len() == 1 {
                    self.draft.bypass(first(element), first(element));
                    self.remove(element, "copies to one output");
                    changed = true;
                }
            }
        }
        changed
    }

    fn fill_blanks(&mut self) {
        let mut blanks = (vec![], vec![]);
        for (element, &(inputs, outputs)) in self.counts.iter().enumerate() {
            if self.draft.elements[element].is_none() {
                continue;
            }
            let port = |port: usize| PortRef { element, port };
            blanks.0.extend((0..inputs).map(port).filter(|&p| self.draft.to(p).is_empty()));
            blanks.1.extend((0..outputs).map(port).filter(|&p| self.draft.from(p).is_empty()));
        }
        let Some(place) = self.draft.elements.iter().flatten().next().map(|e| e.span) else { return };
        if blanks.0.is_empty() && blanks.1.is_empty() {
            return;
        }
        let idle = self.draft.add_anonymous(IDLE, place);
        let end = |port: usize| PortRef { element: idle, port };
        for (port, &input) in blanks.0.iter().enumerate() {
            self.draft.connect(end(port), input, place);
        }
        for (port, &output) in blanks.1.iter().enumerate() {
            self.draft.connect(output, end(port), place);
        }
    }
}

/// Whether packets begin or end at an element.
struct Role {
    source: bool,
    sink: bool,
}

impl Role {
    fn of(class: &str, inputs: usize, outputs: usize) -> Role {
        let (source, sink) = match class {
            "Socket" | "RawSocket" | "KernelTun" | "KernelTap" | "RouterLink" => (true, true),
            "ToDevice" | "ToDump" | "ToHost" | "ToIPSummaryDump" => (false, true),
            "InfiniteSource" => (true, false),
            "Idle"
            | "RoundRobinSched"
            | "SimpleRoundRobinSched"
            | "PrioSched"
            | "SimplePrioSched"
            | "DRRSched"
            | "StrideSched"
            | "TimeSortedSched" => (false, false),
            _ => (inputs == 0, outputs == 0),
        };
        Role { source, sink }
    }
}
