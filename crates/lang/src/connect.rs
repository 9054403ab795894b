//! Elaboration of declarations and connections.

use crate::ast::*;
use crate::diag::Diagnostic;
use crate::elaborate::{ClassDef, ClassId, Edge, Elaborator, Node, NodeKind};
use crate::source::Span;
use crate::suggest::did_you_mean;

/// An element of a chain once its group or class has been seen, before it is made or looked up.
enum Pending {
    /// A node that exists: a group, or a pseudo-element.
    Node { node: usize, inputs: usize, outputs: usize },
    /// A name that is no class.
    Name { name: Ident, config: Option<Config> },
    /// A new element of this name.
    Declared { name: Ident, class: ClassId, config: Option<Config> },
    /// A new anonymous element.
    Anonymous { class_name: String, class: ClassId, config: Option<Config> },
}

/// One end of a connection: a node and the ports given for it.
struct End {
    node: usize,
    inputs: PortSet,
    outputs: PortSet,
}

#[derive(Clone, Default)]
struct PortSet {
    ranges: Vec<(u32, u32)>,
    expandable: bool,
}

impl PortSet {
    fn given(ports: Option<&Ports>, default_count: usize) -> Self {
        match (ports, default_count) {
            (Some(p), _) => Self { ranges: p.ranges.clone(), expandable: p.expandable },
            (None, 0) => Self::default(),
            (None, count) => Self { ranges: vec![(0, count as u32 - 1)], expandable: false },
        }
    }

    fn listed(&self) -> usize {
        self.ranges.iter().map(|(low, high)| (high - low) as usize + 1).sum()
    }

    /// The listed ports, or port 0 if none is, then `extra` more.
    fn ports(&self, extra: usize) -> impl Iterator<Item = u32> + '_ {
        let implied = if self.ranges.is_empty() { Some(0) } else { None };
        let last = self.ranges.last().map_or(0, |r| r.1);
        let listed = self.ranges.iter().flat_map(|&(low, high)| low..=high);
        implied.into_iter().chain(listed).chain((1..=extra as u32).map(move |i| last.saturating_add(i)))
    }
}

impl Elaborator<'_> {
    pub(crate) fn declaration(&mut self, declaration: &Declaration) {
        let (class, _) = self.class_ref(&declaration.class);
        for name in &declaration.names {
            self.declare(name, class, declaration.config.as_ref());
        }
    }

    pub(crate) fn chain(&mut self, chain: &Chain) {
        let mut before: Option<Vec<End>> = None;
        if let Some(first) = chain.steps.first() {
            self.ignored_ports(&first.ends, |e| e.inputs.as_ref(), "input ports ignored at start of chain");
        }
        for step in &chain.steps {
            let pending: Vec<_> = step.ends.iter().map(|end| (end, self.pending(end))).collect();
            let ends: Vec<End> =
                pending.into_iter().map(|(end, pending)| self.settle(end, pending)).collect();
            if let (Some(before), Some((arrow, span))) = (&before, step.arrow) {
                self.connect_all(before, &ends, arrow, span);
            }
            before = Some(ends);
        }
        if let Some(last) = chain.steps.last() {
            self.ignored_ports(&last.ends, |e| e.outputs.as_ref(), "output ports ignored at end of chain");
        }
    }

    fn ignored_ports(&mut self, ends: &[Endpoint], side: fn(&Endpoint) -> Option<&Ports>, message: &str) {
        if let Some(ports) = ends.iter().find_map(side) {
            self.diags.error(ports.span, message);
        }
    }

    /// Classes are looked up and groups made before the elements of the list, in the order of the text.
    fn pending(&mut self, end: &Endpoint) -> Pending {
        match &end.target {
            Target::Name(name) => match self.find_class(&name.text) {
                Some(class) => Pending::Anonymous { class_name: name.text.clone(), class, config: None },
                None => Pending::Name { name: name.clone(), config: None },
            },
            Target::Anonymous { class: ClassRef::Name(name), config } => match self.find_class(&name.text) {
                Some(class) => {
                    Pending::Anonymous { class_name: name.text.clone(), class, config: config.clone() }
                }
                None => Pending::Name { name: name.clone(), config: config.clone() },
            },
            Target::Anonymous { class, config } => {
                let (class, class_name) = self.class_ref(class);
                Pending::Anonymous { class_name, class, config: config.clone() }
            }
            Target::Declared { name, class, config } => {
                let (class, _) = self.class_ref(class);
                Pending::Declared { name: name.clone(), class, config: config.clone() }
            }
            Target::Group(group) => self.group(group),
            Target::ImpliedInput => self.pseudo("input", end.span),
            Target::ImpliedOutput => self.pseudo("output", end.span),
        }
    }

    fn pseudo(&mut self, name: &str, span: Span) -> Pending {
        match self.body.names.get(name) {
            Some(&node) => Pending::Node { node, inputs: 0, outputs: 0 },
            None => Pending::Name { name: Ident { text: name.into(), span }, config: None },
        }
    }

    /// A group is three nodes: itself, and its `input` and `output` while its statements last.
    fn group(&mut self, group: &Group) -> Pending {
        let name = self.anonymous_name("");
        let taken = |n: &str| self.body.names.contains_key(n);
        let name = crate::elaborate::free_name(&name, taken);
        let node = self.add_tunnel_node(name.clone(), group.span);
        let input = self.add_tunnel_node(format!("{name}/input"), group.span);
        let output = self.add_tunnel_node(format!("{name}/output"), group.span);
        self.body.tunnels.extend([(node, input), (output, node)]);

        let outer_input = self.body.names.insert("input".into(), input);
        let outer_output = self.body.names.insert("output".into(), output);
        let first_edge = self.body.edges.len();
        self.statements(&group.body);
        let printable = "<anonymous group>";
        let inputs = self.count_pseudo_ports(input, first_edge, false, printable, group.span);
        let outputs = self.count_pseudo_ports(output, first_edge, true, printable, group.span);
        for (name, outer) in [("input", outer_input), ("output", outer_output)] {
            match outer {
                Some(node) => self.body.names.insert(name.into(), node),
                None => self.body.names.remove(name),
            };
        }
        Pending::Node { node, inputs, outputs }
    }

    /// Makes or finds the element.
    fn settle(&mut self, end: &Endpoint, pending: Pending) -> End {
        let (node, inputs, outputs) = match pending {
            Pending::Node { node, inputs, outputs } => (node, inputs, outputs),
            Pending::Name { name, config } => (self.reference(&name, config.as_ref()), 0, 0),
            Pending::Declared { name, class, config } => (self.declare(&name, class, config.as_ref()), 0, 0),
            Pending::Anonymous { class_name, class, config } => {
                (self.anonymous(&class_name, class, config.as_ref(), end.span), 0, 0)
            }
        };
        // Naming either side's ports replaces the implied ports of a group on that side only.
        End {
            node,
            inputs: PortSet::given(end.inputs.as_ref(), inputs),
            outputs: PortSet::given(end.outputs.as_ref(), outputs),
        }
    }

    fn anonymous(&mut self, class_name: &str, class: ClassId, config: Option<&Config>, span: Span) -> usize {
        let name = self.anonymous_name(class_name);
        let config = config.map_or(String::new(), |c| c.text.clone());
        self.add_node(Node { name, anonymous: true, kind: NodeKind::Class(class), config, span })
    }

    fn reference(&mut self, name: &Ident, config: Option<&Config>) -> usize {
        if let Some(&node) = self.body.names.get(&name.text) {
            if let Some(config) = config {
                self.diags.error(config.span, "configuration string ignored on element reference");
            }
            return node;
        }
        if self.classes.takes_any() {
            let class = self.any_class(&name.text);
            return self.anonymous(&name.text, class, config, name.span);
        }
        let mut error = Diagnostic::error(name.span, format!("undeclared element '{}'", name.text));
        error = match self.later_declaration(&name.text) {
            Some(span) => error
                .see(span, format!("element '{}' is declared here", name.text))
                .hint("an element must be declared before it is used, or where it is first used"),
            None if self.diags.is_full() => error,
            None => {
                let near = did_you_mean(&name.text, self.body.names.keys());
                error.hint_opt(near.or_else(|| self.class_hint(&name.text)))
            }
        };
        self.diags.push(error);
        let class = self.unknown_class(&name.text);
        self.anonymous(&name.text, class, config, name.span)
    }

    fn declare(&mut self, name: &Ident, class: ClassId, config: Option<&Config>) -> usize {
        if let Some(taken) = self.find_class(&name.text) {
            let mut error =
                Diagnostic::error(name.span, format!("class '{}' used as element name", name.text));
            // People have been told that the declaration comes too late.
            error.plain_only = matches!(self.defs[taken], ClassDef::Unknown(_));
            self.diags.push(error);
            return self.anonymous(&name.text, class, config, name.span);
        }
        if let Some(&node) = self.body.names.get(&name.text) {
            let message = format!("redeclaration of element '{}'", name.text);
            let mut error = Diagnostic::error(name.span, message);
            let earlier = &self.body.nodes[node];
            if !matches!(earlier.kind, NodeKind::Tunnel) {
                let message = format!("element '{}' previously declared here", name.text);
                error = error.note(Some(earlier.span), message);
            }
            self.diags.push(error);
            return node;
        }
        let config = config.map_or(String::new(), |c| c.text.clone());
        let (name, span) = (name.text.clone(), name.span);
        self.add_node(Node { name, anonymous: false, kind: NodeKind::Class(class), config, span })
    }

    /// Connects the outputs of one list with the inputs of the next.
    fn connect_all(&mut self, from: &[End], to: &[End], arrow: Arrow, span: Span) {
        let outputs: Vec<(usize, &PortSet)> = from.iter().map(|e| (e.node, &e.outputs)).collect();
        let inputs: Vec<(usize, &PortSet)> = to.iter().map(|e| (e.node, &e.inputs)).collect();
        let mut outs = Side::new(outputs);
        let mut ins = Side::new(inputs);
        if outs.expandable + ins.expandable > 1 {
            self.diags.error(span, "at most one expandable port allowed per connection");
            // The side that names more ports is the one the other grows to.
            if ins.least < outs.least { outs.expandable = 0 } else { ins.expandable = 0 }
        }
        if arrow == Arrow::Double {
            let (outs_least, ins_least) = (outs.least, ins.least);
            outs.grow_if_bare(ins_least);
            ins.grow_if_bare(outs_least);
        }
        self.check_counts(&outs, &ins, arrow, span);
        // One more than may be made, to notice that there are too many.
        let limit = self.edges_left + 1;
        let out_ports = outs.ports(ins.least, limit);
        let in_ports = ins.ports(outs.least, limit);
        let pairs: Box<dyn Iterator<Item = _>> = match (outs.is_many(), ins.is_many()) {
            (true, false) => Box::new(out_ports.zip(in_ports.cycle_first())),
            (false, true) => Box::new(out_ports.cycle_first().zip(in_ports)),
            _ => Box::new(out_ports.zip(in_ports)),
        };
        for (from, to) in pairs {
            if self.edges_left == 0 {
                self.diags.error(span, "too many connections");
                return;
            }
            self.edges_left -= 1;
            self.body.edges.push(Edge { from, to, span });
        }
    }

    /// Lists must be equally long, and joined by `=>`, unless one of them has only one port.
    fn check_counts(&mut self, outs: &Side, ins: &Side, arrow: Arrow, span: Span) {
        if !(outs.is_many() && ins.is_many()) {
            return;
        }
        if arrow == Arrow::Single {
            self.diags.error(span, "syntax error: many-to-many connections require '=>'");
        }
        let mismatch = match (outs.expandable > 0, ins.expandable > 0) {
            (false, false) => outs.least != ins.least,
            (true, false) => ins.least < outs.least,
            (false, true) => outs.least < ins.least,
            (true, true) => false,
        };
        if mismatch {
            let or_more = |side: &Side| if side.expandable > 0 { " or more" } else { "" };
            let outputs = format!("{}{} outputs", outs.least, or_more(outs));
            let inputs = format!("{}{} inputs", ins.least, or_more(ins));
            self.diags.error(span, format!("connection mismatch: {outputs} connected to {inputs}"));
        }
    }
}

/// One side of a connection.
struct Side<'a> {
    ends: Vec<(usize, &'a PortSet)>,
    /// Ports it has at least.
    least: usize,
    /// Ends that may have more.
    expandable: usize,
}

impl<'a> Side<'a> {
    fn new(ends: Vec<(usize, &'a PortSet)>) -> Self {
        let least = ends.iter().map(|(_, p)| p.listed().max(1)).sum();
        let expandable = ends.iter().filter(|(_, p)| p.expandable).count();
        Self { ends, least, expandable }
    }

    fn is_many(&self) -> bool {
        self.least > 1 || self.expandable > 0
    }

    /// With `=>`, a single element without ports has as many as the other side.
    fn grow_if_bare(&mut self, other_least: usize) {
        if self.least == 1 && other_least > 1 && self.ends[0].1.ranges.is_empty() {
            self.expandable = 1;
        }
    }

    /// The ports in order, the expandable end grown so that there are `wanted`; no more than `limit`.
    fn ports(&self, wanted: usize, limit: usize) -> std::vec::IntoIter<(usize, u32)> {
        let mut extra = if self.expandable > 0 { wanted.saturating_sub(self.least) } else { 0 };
        let mut list = vec![];
        for (node, ports) in &self.ends {
            let grows = ports.expandable || (self.ends.len() == 1 && self.expandable > 0);
            let here = if grows { std::mem::take(&mut extra) } else { 0 };
            let room = limit - list.len();
            list.extend(ports.ports(here).take(room).map(|port| (*node, port)));
        }
        list.into_iter()
    }
}

/// Repeats the first item for ever.
trait CycleFirst: Iterator + Sized {
    fn cycle_first(mut self) -> impl Iterator<Item = Self::Item>
    where
        Self::Item: Copy,
    {
        let first = self.next();
        std::iter::from_fn(move || first)
    }
}

impl<I: Iterator> CycleFirst for I {}
