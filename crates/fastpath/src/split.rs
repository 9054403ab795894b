//! The split: which part of a graph runs in the driver.
//!
//! From an element that packets come in by, the elements behind it are in the driver as far as they say what they do and
//! what they need is there. What cannot be said (queues, state, payload, copies) cuts the graph: packets go up there, and
//! enter the graph in user space at the input where it is cut.

use crate::graph::{Graph, Node, Target};
use causeway_engine::ir::{Op, Program, as_diagram};
use causeway_engine::{End, Plan};
use std::collections::BTreeMap;

/// The part of a graph behind one element that runs in the driver.
#[derive(Debug)]
pub struct Split {
    /// The element that packets come in by.
    pub start: usize,
    /// The elements in the driver, in the order in which packets get to them; empty if all packets go up.
    pub elements: Vec<usize>,
    /// For each of them, where its outputs lead.
    outputs: Vec<Vec<Option<Target>>>,
    /// Where the graph is cut, and why: the inputs that packets enter at.
    pub cuts: BTreeMap<End, &'static str>,
    /// Where packets go that come in.
    pub first: Option<Target>,
}

/// What is known of the graph besides its plan.
pub struct Known<'a> {
    /// What each element lowers to.
    pub programs: &'a [Option<Program>],
    /// The number of the port that packets leave by at once which are pushed to an element.
    pub port: &'a dyn Fn(usize) -> Option<usize>,
    /// Whether an element's tables are in the driver.
    pub has_tables: &'a dyn Fn(usize) -> bool,
}

impl Known<'_> {
    /// Why an element is not in the driver.
    fn obstacle(&self, plan: &Plan, (element, input): End) -> Option<&'static str> {
        let program = self.programs.get(element).and_then(Option::as_ref);
        let looks_up = |program: &Program| {
            let mut ops = program.blocks().iter().flat_map(|code| &code.ops);
            ops.any(|op| matches!(op, Op::LookUp { .. }))
        };
        match program {
            _ if plan.elements[element].pulled_inputs.get(input) == Some(&true) => Some("it is pulled"),
            None => Some("it does not say what it does"),
            Some(_) if input != 0 => Some("it says what it does for input 0 alone"),
            Some(program) if looks_up(program) && !(self.has_tables)(element) => {
                Some("its table is not in the driver")
            }
            Some(_) => None,
        }
    }
}

/// Splits the graph behind element `start`, whose packets leave by its output 0.
#[must_use]
pub fn split(plan: &Plan, start: usize, known: &Known<'_>) -> Split {
    let mut split =
        Split { start, elements: Vec::new(), outputs: Vec::new(), cuts: BTreeMap::new(), first: None };
    split.first = split.target(plan, (start, 0), known);
    // Elements are added while their outputs are looked at.
    let mut next = 0;
    while let Some(&element) = split.elements.get(next) {
        let outputs = 0..plan.elements[element].pulled_outputs.len();
        let outputs = outputs.map(|port| split.target(plan, (element, port), known)).collect();
        split.outputs.push(outputs);
        next += 1;
    }
    split
}

impl Split {
    /// Where packets go that leave by an output.
    fn target(&mut self, plan: &Plan, from: End, known: &Known<'_>) -> Option<Target> {
        let to = plan.next(from.0, from.1)?;
        if let Some(port) = (known.port)(to.0) {
            return Some(Target::Emit(port));
        }
        if let Some(why) = known.obstacle(plan, to) {
            self.cuts.insert(to, why);
            return Some(Target::Up(to.0, to.1));
        }
        let node = self.elements.iter().position(|&element| element == to.0);
        Some(Target::Node(node.unwrap_or_else(|| {
            self.elements.push(to.0);
            self.elements.len() - 1
        })))
    }

    /// The graph to compile. `lower` gives what an element lowers to, and `tables` its tables.
    #[must_use]
    pub fn graph<T>(
        &self,
        plan: &Plan,
        mut lower: impl FnMut(usize) -> Option<Program>,
        mut tables: impl FnMut(usize) -> Vec<Option<T>>,
    ) -> Graph<T> {
        let node = |(&element, outputs): (&usize, &Vec<Option<Target>>)| Node {
            name: plan.elements[element].name.clone(),
            program: lower(element).map(as_diagram),
            tables: tables(element),
            outputs: outputs.clone(),
        };
        Graph { nodes: self.elements.iter().zip(&self.outputs).map(node).collect() }
    }

    /// The same with the element that packets come in by as node 0, the others behind it: what it does to packets that it
    /// receives `lower` says as well.
    #[must_use]
    pub fn whole_graph<T>(
        &self,
        plan: &Plan,
        mut lower: impl FnMut(usize) -> Option<Program>,
        tables: impl FnMut(usize) -> Vec<Option<T>>,
    ) -> Graph<T> {
        let behind = |target: Option<Target>| match target {
            Some(Target::Node(node)) => Some(Target::Node(node + 1)),
            other => other,
        };
        let start = Node {
            name: plan.elements[self.start].name.clone(),
            program: lower(self.start),
            tables: Vec::new(),
            outputs: vec![behind(self.first)],
        };
        let mut graph = self.graph(plan, lower, tables);
        graph.nodes.iter_mut().flat_map(|node| &mut node.outputs).for_each(|to| *to = behind(*to));
        graph.nodes.insert(0, start);
        graph
    }

    /// Whether anything is in the driver.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty() && !matches!(self.first, Some(Target::Emit(_)))
    }

    /// The split as people read it: a line for each element in the driver with what its outputs lead to, and one for each
    /// cut.
    #[must_use]
    pub fn explain(&self, plan: &Plan) -> String {
        let name = |element: usize| plan.elements[element].name.as_str();
        let class = |element: usize| plan.elements[element].class.as_str();
        let target = |target: &Option<Target>| match *target {
            Some(Target::Node(node)) => name(self.elements[node]).to_owned(),
            Some(Target::Emit(port)) => format!("port {port}"),
            Some(Target::Up(element, 0)) => format!("up to {}", name(element)),
            Some(Target::Up(element, input)) => format!("up to [{input}] {}", name(element)),
            None => "nowhere".to_owned(),
        };
        let mut text = format!("in the driver behind {}: {}\n", name(self.start), target(&self.first));
        for (&element, outputs) in self.elements.iter().zip(&self.outputs) {
            text += &format!("  {} :: {}\n", name(element), class(element));
            for (port, to) in outputs.iter().enumerate() {
                text += &format!("    [{port}] -> {}\n", target(to));
            }
        }
        for (&(element, _), why) in &self.cuts {
            text += &format!("  cut at {} ({}): {why}\n", name(element), class(element));
        }
        text
    }
}
