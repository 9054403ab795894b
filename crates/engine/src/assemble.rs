//! From a plan to workers: configure the elements, place them, connect them, wire the notifiers, initialise.

mod connect;

use crate::clock::Clock;
use crate::conf::{Conf, Env};
use crate::core::Core;
use crate::counters::Counter;
use crate::crossing::Doorbell;
use crate::element::{ControlSide, Element, PortStatistics};
use crate::error::FilePlace;
use crate::globals::Globals;
use crate::ir::Program;
use crate::library::Library;
use crate::measure::Unit;
use crate::node::{InPort, Index, Node, OutPort, Place};
use crate::place;
use crate::plan::Plan;
use crate::said::ElementError;
use crate::spec::{Spec, phase};
use causeway_lang::{Of, Severity};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// An assembled router that does not run yet.
pub(crate) struct Assembly {
    pub cores: Vec<Core>,
    pub index: Index,
    pub names: Vec<Arc<str>>,
    pub control_sides: ControlSides,
    pub ports: Vec<PortOf>,
    pub env: Env,
}

/// What the ports of one element count.
pub(crate) struct PortOf {
    pub worker: usize,
    pub element: Arc<str>,
    pub statistics: PortStatistics,
}

/// What answers handlers without a worker, by element.
pub(crate) type ControlSides = HashMap<Arc<str>, Mutex<Box<dyn ControlSide>>>;

/// How to assemble.
pub(crate) struct Layout<'a> {
    pub library: &'a Library,
    pub doorbells: &'a [Arc<Doorbell>],
    /// Whether each worker gets a copy of the whole graph.
    pub replicate: bool,
    pub clock: Clock,
    /// Who answers the router's own handlers.
    pub globals: Option<Arc<dyn Globals>>,
}

/// Builds `plan` for as many workers as there are doorbells.
pub(crate) fn assemble(plan: &Plan, layout: &Layout<'_>, env: Env) -> Result<Assembly, Vec<ElementError>> {
    let mut builder = Builder::new(plan, layout, env)?;
    builder.configure()?;
    builder.connect();
    builder.initialize()?;
    let (control_sides, ports) = (builder.control_sides(), builder.ports());
    let Builder { cores, index, names, env, .. } = builder;
    Ok(Assembly { cores, index, names, control_sides, ports, env })
}

/// Configures the elements of `plan` and throws them away. Says what became of the fused ones, a line each.
pub(crate) fn check(plan: &Plan, layout: &Layout<'_>, env: Env) -> Result<Vec<String>, Vec<ElementError>> {
    let mut built = Builder::new(plan, layout, env)?.build_all(1)?;
    let mut lines = Vec::new();
    for i in 0..plan.elements.len() {
        if let Some(mut element) = built.remove(&(i, 0)) {
            lines.extend(element.fuse(&mut |name| built.get(&(plan.find(name)?, 0))?.lower()));
            built.insert((i, 0), element);
        }
    }
    Ok(lines)
}

/// Configures the elements of `plan` and throws them away. Says what each lowers to.
pub(crate) fn lowered(
    plan: &Plan,
    layout: &Layout<'_>,
    env: Env,
) -> Result<Vec<Option<Program>>, Vec<ElementError>> {
    let built = Builder::new(plan, layout, env)?.build_all(1)?;
    Ok((0..plan.elements.len()).map(|i| built.get(&(i, 0))?.lower()).collect())
}

/// Elements by number and worker.
type Built = HashMap<(usize, usize), Box<dyn Element>>;

struct Builder<'a> {
    plan: &'a Plan,
    layout: &'a Layout<'a>,
    env: Env,
    specs: Vec<&'static Spec>,
    names: Vec<Arc<str>>,
    cores: Vec<Core>,
    index: Index,
    /// For each element the place of each of its replicas.
    places: Vec<Vec<Place>>,
    /// The senders of one worker to inputs on others, by worker and input.
    senders: HashMap<(usize, Place, usize), usize>,
}

impl<'a> Builder<'a> {
    fn new(plan: &'a Plan, layout: &'a Layout<'a>, mut env: Env) -> Result<Self, Vec<ElementError>> {
        let mut unknown = Vec::new();
        let mut specs = Vec::new();
        for (i, e) in plan.elements.iter().enumerate() {
            match layout.library.get(&e.class) {
                Some(spec) => specs.push(spec),
                None => {
                    unknown.push(error(plan, i, true, vec![format!("unknown element class '{}'", e.class)]))
                }
            }
        }
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let names: Vec<Arc<str>> = plan.elements.iter().map(|e| e.name.as_str().into()).collect();
        env.elements = names.clone();
        env.classes = specs.iter().map(|s| s.name).collect();
        env.names.set_interfaces(layout.library.interfaces());
        Ok(Builder {
            plan,
            layout,
            env,
            specs,
            names,
            cores: Vec::new(),
            index: Index::new(),
            places: Vec::new(),
            senders: HashMap::new(),
        })
    }

    fn in_phase_order(&self, phases: std::ops::Range<i32>) -> Vec<usize> {
        let mut order: Vec<_> =
            (0..self.specs.len()).filter(|&i| phases.contains(&self.specs[i].phase)).collect();
        order.sort_by_key(|&i| self.specs[i].phase);
        order
    }

    /// Configures all elements, even after errors, so that all errors are seen at once.
    fn build_all(&mut self, workers: usize) -> Result<Built, Vec<ElementError>> {
        let mut errors = Vec::new();
        let mut built = Built::new();
        // Settings of other elements come first: where those live is one of them.
        let mut worker_of = vec![0; self.specs.len()];
        let copies = if self.layout.replicate { workers } else { 1 };
        let mut alone = vec![copies == 1; self.specs.len()];
        for (phases, placed) in [(i32::MIN..phase::DEFAULT, false), (phase::DEFAULT..i32::MAX, true)] {
            if placed {
                if copies > 1 {
                    alone = place::alone(self.plan, &self.specs, &self.env.threads, workers);
                    place::settle(self.plan, &self.specs, &alone, &mut self.env.threads, workers);
                }
                place::keep_together(self.plan, &self.specs, &mut self.env.threads, workers);
                worker_of = place::place(self.plan, &self.env.threads, workers);
            }
            for i in self.in_phase_order(phases) {
                let homes = if alone[i] { worker_of[i]..worker_of[i] + 1 } else { 0..workers };
                self.env.replicas = homes.len();
                for worker in homes {
                    match self.build(i, worker) {
                        Ok(element) => drop(built.insert((i, worker), element)),
                        Err(e) => {
                            errors.push(e);
                            break;
                        }
                    }
                }
            }
        }
        if errors.is_empty() { Ok(built) } else { Err(self.with_warnings(errors)) }
    }

    /// The errors and what else elements said, in the order in which they were configured and then initialised.
    fn with_warnings(&self, errors: Vec<ElementError>) -> Vec<ElementError> {
        let order = self.in_phase_order(i32::MIN..i32::MAX);
        let said = self.env.warnings.iter().filter_map(|w| {
            let i = self.plan.find(&w.name)?;
            let said = error(self.plan, i, w.configuring, vec![w.message.clone()]);
            Some(ElementError { severity: w.severity, of: w.of.clone().map(Box::new), ..said })
        });
        let mut all: Vec<ElementError> = said.chain(errors).collect();
        let place = |e: &ElementError| order.iter().position(|&i| self.plan.elements[i].name == e.name);
        all.sort_by_key(|e| (!e.configuring, place(e)));
        all
    }

    fn configure(&mut self) -> Result<(), Vec<ElementError>> {
        let workers = self.layout.doorbells.len();
        let mut built = self.build_all(workers)?;
        self.make_cores(workers);
        for i in 0..self.specs.len() {
            let mut places = Vec::new();
            for worker in 0..workers {
                if let Some(element) = built.remove(&(i, worker)) {
                    places.push(self.add_node(i, worker, element));
                }
            }
            self.index.insert(self.names[i].clone(), places.clone());
            self.places.push(places);
        }
        Ok(())
    }

    fn build(&mut self, i: usize, worker: usize) -> Result<Box<dyn Element>, ElementError> {
        let e = &self.plan.elements[i];
        let ports = (e.pulled_inputs.len(), e.pulled_outputs.len());
        let (name, spec) = (self.names[i].clone(), self.specs[i]);
        let mut conf = Conf::new(&mut self.env, name, spec, worker, ports, &e.config);
        (spec.build)(&mut conf).map_err(|_| {
            let mut messages = conf.errors().to_vec();
            if messages.is_empty() {
                messages.push("cannot be configured".to_owned());
            }
            error(self.plan, i, true, messages)
        })
    }

    fn make_cores(&mut self, workers: usize) {
        let context = self.env.context();
        for worker in 0..workers {
            let seed = self.env.seed.wrapping_add(worker as u64);
            let mut core = Core::new(worker, self.layout.clock.clone(), &mut self.env.counters, seed);
            core.context = context.clone();
            core.globals = self.layout.globals.clone();
            self.cores.push(core);
        }
    }

    fn add_node(&mut self, i: usize, worker: usize, element: Box<dyn Element>) -> Place {
        let e = &self.plan.elements[i];
        let (name, spec) = (self.names[i].clone(), self.specs[i]);
        let ports = (e.pulled_inputs.len(), e.pulled_outputs.len());
        let place = self.add(worker, name, spec, e.config.clone(), element, ports);
        let node = &mut self.cores[worker].nodes[place.node];
        node.entries = self.plan.entries_of(i);
        node.quiescent = crate::place::is_quiescent(&self.env.threads, &e.name);
        if let Some(&weight) = self.env.weights.get(&e.name) {
            let tickets = (weight * crate::task::DEFAULT_TICKETS as f64) as u32;
            self.cores[worker].tasks.set_tickets(place.node, tickets);
        }
        place
    }

    fn add(
        &mut self,
        worker: usize,
        name: Arc<str>,
        spec: &'static Spec,
        config: String,
        element: Box<dyn Element>,
        (inputs, outputs): (usize, usize),
    ) -> Place {
        let counters = &mut self.env.counters;
        let drops: Vec<Counter> = spec
            .drops
            .iter()
            .map(|d| counters.add(worker, &name, &format!("drop.{}", d.name), Unit::Packets))
            .collect();
        let unconnected = counters.add(worker, &name, "drop.unconnected", Unit::Packets);
        let core = &mut self.cores[worker];
        let packets_signal = spec.notifies.packets.then(|| core.signals.add(false));
        let room_signal = spec.notifies.room.then(|| core.signals.add(true));
        core.nodes.push(Node {
            name,
            spec,
            config,
            shown: None,
            element: Some(element),
            outs: (0..outputs).map(|_| OutPort::default()).collect(),
            used: Vec::with_capacity(outputs),
            ins: (0..inputs).map(|_| InPort::default()).collect(),
            drops,
            unconnected,
            packets_signal,
            room_signal,
            quiescent: false,
            one_by_one: false,
            stamps: spec.stamps,
            fused: Vec::new(),
            entries: 0,
        });
        Place { worker, node: core.nodes.len() - 1 }
    }

    fn control_sides(&mut self) -> ControlSides {
        let mut control_sides = ControlSides::new();
        for (name, places) in self.names.iter().zip(&self.places) {
            let Some(place) = places.first() else { continue };
            let side = self.cores[place.worker].activate(place.node, |e, cx| e.control_side(cx));
            control_sides.extend(side.flatten().map(|side| (name.clone(), Mutex::new(side))));
        }
        control_sides
    }

    fn ports(&self) -> Vec<PortOf> {
        let of = |core: &Core, node: &Node| {
            let statistics = node.element.as_ref()?.port_statistics()?;
            Some(PortOf { worker: core.worker, element: node.name.clone(), statistics })
        };
        self.cores.iter().flat_map(|core| core.nodes.iter().filter_map(move |n| of(core, n))).collect()
    }

    /// Initialises in phase order and stops at the first failure.
    fn initialize(&mut self) -> Result<(), Vec<ElementError>> {
        for core in &mut self.cores {
            for node in 0..core.nodes.len() {
                core.fuse(node);
                if self.names.iter().all(|n| *n != core.nodes[node].name) {
                    // The ends of rings cannot fail.
                    core.activate(node, |e, cx| e.initialize(cx));
                }
            }
        }
        for i in self.in_phase_order(i32::MIN..i32::MAX) {
            for place in self.places[i].clone() {
                let core = &mut self.cores[place.worker];
                // The one before may have taken long: it may have opened a device.
                core.clock.touch();
                let done = core.activate(place.node, |e, cx| e.initialize(cx));
                self.env.warnings.append(&mut core.said);
                if let Some(Err(mut why)) = done {
                    let place = why.take_place();
                    let messages = why.to_string().lines().map(str::to_owned).collect();
                    let mut error = error(self.plan, i, false, messages);
                    if let Some(FilePlace { file, class }) = place {
                        (error.of, error.class) = (Some(Box::new(Of::File(file))), class);
                    }
                    return Err(self.with_warnings(vec![error]));
                }
            }
        }
        Ok(())
    }
}

fn error(plan: &Plan, i: usize, configuring: bool, messages: Vec<String>) -> ElementError {
    let e = &plan.elements[i];
    ElementError {
        landmark: e.landmark.clone(),
        name: e.name.clone(),
        class: e.class.clone(),
        configuring,
        of: None,
        messages,
        severity: Severity::Error,
    }
}
