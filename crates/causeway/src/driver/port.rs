//! The program of one port: built of what the running elements say, counted for them, and exchanged when they change.

use super::Means;
use super::again::Again;
use super::few::Few;
use super::known::{Exits, Known, Way};
use super::metadata;
use super::part::{Part, door, is_asked};
use super::routes::{Copied, Texts};
use super::tallies::{Of, Tallies};
use anyhow::{Context, Result, bail};
use causeway_bpf::{Program, ProgramKind, action};
use causeway_elements::devices::Entry;
use causeway_engine::{Counter, End, NoAnswer, Plan, Router};
use causeway_fastpath::{
    Above, Action, Compiled, Counters, Graph, Hook, Options, Place, Split, Table, compile,
};
use causeway_netio::front::{self, monotonic_ns};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// Programs of one graph whose packets may still be in a port's rings.
const MOST_EXITS: usize = 8;

/// A port that packets come in by.
pub struct Port {
    /// The element, by number in the configuration's plan.
    start: usize,
    interface: String,
    /// What it is made of, to know when it is another.
    made_of: String,
    /// Whether that could not be built.
    again: Again,
    running: Option<Running>,
    known: Known,
}

/// A program at its place.
struct Running {
    ifindex: u32,
    place: front::Place,
    tallies: Tallies,
    /// What it reads.
    _tables: BTreeMap<usize, Arc<Copied>>,
    few: BTreeMap<usize, Few>,
}

/// What is to be built.
struct Wanted<'a> {
    part: Part<'a>,
    split: Split,
    /// What the routing tables in the driver say of themselves, by element.
    tables: BTreeMap<usize, Arc<str>>,
    /// Elements with tables that are copied entry by entry.
    few: BTreeSet<usize>,
    /// The ToDevices that the driver can send by, and where their interfaces are in the map.
    devices: BTreeMap<usize, u32>,
    ifindex: u32,
    hook: Hook,
}

impl Port {
    pub fn new(start: usize, interface: String) -> Port {
        let (made_of, again) = (String::new(), Again::default());
        Port { start, interface, made_of, again, running: None, known: Known::default() }
    }

    /// Whether it is the port of this interface.
    pub fn is_at(&self, interface: &str) -> bool {
        self.interface == interface
    }

    /// Where its program is, if it has one.
    pub fn place(&self, means: &Means) -> front::Place {
        let port = means.ports.interface(&self.interface);
        port.and_then(|(ifindex, _)| means.front.place_of(ifindex)).unwrap_or(front::Place::Xdp)
    }

    /// Has the program be what the elements say now.
    pub fn refresh(
        &mut self,
        means: &mut Means,
        router: &Router,
        plan: &Plan,
        texts: &mut Texts,
    ) -> Result<(), NoAnswer> {
        let library = means.library.clone();
        let Some((ifindex, mac)) = means.ports.interface(&self.interface) else {
            // Gone; with a program that the kernel has removed.
            self.remove(means);
            return Ok(());
        };
        if means.front.is_bare(ifindex) {
            // Told when it was found.
            self.remove(means);
            self.forget(means);
            return Ok(());
        }
        let hook = match self.place(means) {
            front::Place::Xdp => Hook::Xdp(mac),
            front::Place::Tcx => Hook::Tcx(Above::Graph),
        };
        let wanted = self.wanted(means, &library, (router, plan), texts, (ifindex, hook))?;
        let made_of = wanted.made_of();
        if made_of != self.made_of {
            self.again = Again::default();
        } else if !self.is_due() {
            return Ok(());
        }
        self.made_of = made_of;
        if wanted.split.is_empty() {
            log::info!(code = "driver"; "{}: nothing runs in the driver; {}", self.interface, cuts(&wanted.split, plan));
            self.remove(means);
            return Ok(());
        }
        let part = format!(
            "{} of the elements behind {} run in the driver; {}",
            wanted.split.elements.len(),
            plan.elements[self.start].name,
            cuts(&wanted.split, plan)
        );
        match self.exchange(means, router, plan, wanted) {
            Ok(()) => {
                self.again = Again::default();
                log::info!(code = "driver"; "{}: {part}", self.interface);
            }
            Err(why) => {
                let why = format!("{why:#}");
                if self.again.failed(monotonic_ns(), &why) {
                    log::warn!(code = "driver"; "{}: nothing runs in the driver: {why}", self.interface);
                }
                self.remove(means);
            }
        }
        Ok(())
    }

    /// Whether a program that could not be built is to be tried again.
    pub fn is_due(&self) -> bool {
        self.again.is_due(monotonic_ns())
    }

    fn wanted<'a>(
        &self,
        means: &mut Means,
        library: &'a causeway_engine::Library,
        (router, plan): (&Router, &'a Plan),
        texts: &mut Texts,
        (ifindex, hook): (u32, Hook),
    ) -> Result<Wanted<'a>, NoAnswer> {
        let lower = |element: &causeway_engine::PlanElement| match is_asked(library, &element.class) {
            true => router.lower(&element.name),
            false => Ok(None),
        };
        let programs = plan.elements.iter().map(lower).collect::<Result<Vec<_>, _>>()?;
        let part = Part::with(library, plan, programs);
        let mut devices = BTreeMap::new();
        for element in (0..plan.elements.len()).filter(|&element| plan.elements[element].class == "ToDevice")
        {
            if let Some(slot) = means.slot(self.place(means), &plan.elements[element]) {
                devices.insert(element, slot);
            }
        }
        let split_by = |has_copy: &dyn Fn(usize) -> bool| {
            part.split(self.start, &|device| devices.contains_key(&device), &|element| {
                if part.is_table(element) { has_copy(element) } else { part.has_tables(element) }
            })
        };
        // Those alone are asked for that packets of this port may come to.
        let reached = split_by(&|_| true).elements;
        let mut tables = BTreeMap::new();
        for element in reached.into_iter().filter(|&element| part.is_table(element)) {
            if let Some(text) = texts.of(router, plan, element)? {
                tables.insert(element, text);
            }
        }
        let split = split_by(&|element| tables.contains_key(&element));
        let looks_up = |&element: &usize| {
            !part.is_table(element)
                && part.program(element).is_some_and(|program| !program.tables().is_empty())
        };
        let few = split.elements.iter().copied().filter(looks_up).collect();
        tables.retain(|element, _| split.elements.contains(element));
        Ok(Wanted { part, split, tables, few, devices, ifindex, hook })
    }

    /// Builds the program, and puts it in the place of the one that runs.
    fn exchange(
        &mut self,
        means: &mut Means,
        router: &Router,
        plan: &Plan,
        mut wanted: Wanted<'_>,
    ) -> Result<()> {
        let tables = wanted.tables.iter().map(|(&element, text)| Ok((element, means.copies.of(text)?)));
        let tables =
            tables.collect::<Result<BTreeMap<_, _>>>().context("a routing table cannot be copied")?;
        let few = wanted.few.iter().map(|&element| Ok((element, Few::new()?)));
        let few = few.collect::<causeway_bpf::Result<BTreeMap<_, _>>>()?;
        let counters = Counters::new()?;
        let mut programs: Vec<_> = wanted.part.programs().iter_mut().map(Option::take).collect();
        let graph: Graph<Table<'_>> = wanted.split.whole_graph(
            plan,
            |element| programs[element].take(),
            |element| {
                vec![tables.get(&element).map(|copy| copy.table()).or(few.get(&element).map(Few::table))]
            },
        );
        let (place, drop, kind) = match wanted.hook {
            Hook::Xdp(_) => (front::Place::Xdp, action::XDP_DROP, ProgramKind::XdpFragments),
            Hook::Tcx(_) => (front::Place::Tcx, action::TCX_DROP, ProgramKind::SchedCls),
        };
        let way = |&slot| Action::Redirect(means.slots(place).map(), slot);
        let action = |device| wanted.devices.get(&device).map_or(Action::Return(drop), way);
        let actions: Vec<Action<'_>> = (0..plan.elements.len()).map(action).collect();
        let first = means.first_number();
        let options = Options {
            hook: wanted.hook,
            ports: &actions,
            up: Action::Program(means.front.takers(place)?),
            anew: None,
            doubted: None,
            without_room: means.front.roomless(place)?.map(Action::Program),
            counters: &counters,
            edges: true,
            first_number: first,
        };
        let compiled = compile(&graph, &options)?;
        if let Some(why) =
            metadata::obstacle(&compiled, means.metadata).filter(|_| place == front::Place::Xdp)
        {
            bail!(why);
        }
        for (node, why) in &compiled.left {
            log::info!(code = "driver"; "{}: packets go up at {}: {why}", self.interface, graph.nodes[*node].name);
        }
        for (node, why) in &compiled.parted {
            log::info!(
                code = "driver";
                "{}: super-packets go up at {}, and come in parts: {why}", self.interface, graph.nodes[*node].name
            );
        }
        let program = Arc::new(compiled.load_as(kind, "causeway_graph")?);
        means.next_number = first + compiled.exits.len() as u32;
        let of = Of { router, library: &means.library, plan, split: &wanted.split };
        let tallies = Tallies::new(counters, &graph, &compiled, &of);
        let exits = exits(&compiled, first, &wanted.split, (plan, self.start), router.plan());
        self.known.0.push(exits);
        let superfluous = self.known.0.len().saturating_sub(MOST_EXITS);
        self.known.0.drain(..superfluous);
        // Before there are packets that bring it.
        means.given_up.set(&self.interface, Some(Arc::new(self.known.clone())));
        std::mem::drop(graph);
        self.put(means, program, Running { ifindex: wanted.ifindex, place, tallies, _tables: tables, few })
    }

    fn put(&mut self, means: &mut Means, program: Arc<Program>, running: Running) -> Result<()> {
        means.front.set_graph(running.place, running.ifindex, Some(program))?;
        let before = self.running.replace(running);
        if let Some(before) = before {
            self.end(means, before);
        }
        Ok(())
    }

    /// Takes the program away: packets go up as they come.
    pub fn remove(&mut self, means: &mut Means) {
        let Some(running) = self.running.take() else { return };
        if let Err(error) = means.front.set_graph(running.place, running.ifindex, None) {
            log::warn!(code = "driver"; "{}: its program cannot be removed: {error}", self.interface);
        }
        self.end(means, running);
    }

    /// The program runs no more: the elements are owed the last packets of it.
    fn end(&self, means: &mut Means, mut before: Running) {
        if let Err(error) = means.grace.wait() {
            log::warn!(code = "driver"; "{}: an old program cannot be waited for: {error}", self.interface);
        }
        means.owed.owe(before.tallies.take());
    }

    /// Nothing is known any more of packets that were given up.
    pub fn forget(&mut self, means: &Means) {
        self.known = Known::default();
        let (has_luggage, unknown) = (!means.is_bare(&self.interface), Arc::new(Known::default()));
        means.given_up.set(&self.interface, has_luggage.then_some(unknown));
        self.made_of.clear();
    }

    /// Has the program find what the elements' tables have now.
    pub fn copy(&mut self, router: &Router, plan: &Plan) -> Result<(), NoAnswer> {
        for (&element, few) in self.running.iter_mut().flat_map(|running| &mut running.few) {
            let tables = router.tables(&plan.elements[element].name)?;
            few.set(tables.into_iter().next().flatten().unwrap_or_default());
        }
        Ok(())
    }

    /// What elements are to count of what the program has counted since the last time.
    pub fn take(&mut self) -> Vec<(Counter, u64)> {
        self.running.as_mut().map_or_else(Vec::new, |running| running.tallies.take())
    }
}

impl Wanted<'_> {
    /// All that makes the program what it is, as a text.
    fn made_of(&self) -> String {
        let mut text = format!("{} {:?} {:?} {:?}", self.ifindex, self.hook, self.devices, self.split);
        for &element in &self.split.elements {
            let _ = write!(text, "{:?}{:?}", self.part.program(element), self.tables.get(&element));
        }
        text
    }
}

/// Where a graph is cut, and why, in a line.
fn cuts(split: &Split, plan: &Plan) -> String {
    let cut = |(&(element, _), why): (&End, &&str)| {
        format!("{} ({}): {why}", plan.elements[element].name, plan.elements[element].class)
    };
    match split.cuts.is_empty() {
        true => "it is cut nowhere".to_owned(),
        false => format!("it is cut at {}", split.cuts.iter().map(cut).collect::<Vec<_>>().join(", ")),
    }
}

/// Where the packets enter the graph that go up by the exits of a program. `running` is the plan that runs.
fn exits(
    compiled: &Compiled,
    first: u32,
    split: &Split,
    (plan, start): (&Plan, usize),
    running: &Plan,
) -> Exits {
    let name = |element: usize| plan.elements[element].name.as_str();
    let entry = |(element, input): End| {
        let entries = &running.edges[running.edges.len() - running.entries..];
        let found = entries.iter().find(|((from, _), (to, port))| {
            running.elements[*from].name == name(start)
                && running.elements[*to].name == name(element)
                && *port == input
        });
        found.map_or(Entry::Lost, |((_, output), _)| Entry::At(*output))
    };
    let place = |place: Place| match place {
        Place::Node(0) => Entry::Start,
        Place::Node(node) => split.elements.get(node - 1).map_or(Entry::Lost, |&element| entry((element, 0))),
        Place::Element(element, input) => entry((element, input)),
        Place::Port(device) => entry(door(plan, device)),
    };
    let way = |luggage: &Option<causeway_fastpath::Luggage>| {
        luggage.as_ref().map(|luggage| Way { luggage: luggage.clone(), entry: place(luggage.place) })
    };
    Exits { first, ways: compiled.luggage.iter().map(way).collect() }
}
