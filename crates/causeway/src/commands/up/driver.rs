//! The graph in the driver: what of it runs where packets arrive, and the memory that its program and the workers share.
//!
//! The program behind a port's own ([`Front::set_graph`]) is KernelForward's, compiled for that port and for where its program
//! is. It reads the tables of
//! routes that workers read, and copies of the rest: next hops, ways back, policies. What it cannot do goes up as it came, or
//! at tcx to the kernel.

mod memory;
mod readers;
#[cfg(test)]
mod tests;

pub use memory::Memory;
pub use readers::Readers;

use anyhow::{Context, Result};
use causeway_bpf::{Map, MapKind, Program, ProgramKind};
use causeway_elements::kernel::{Forwarding, KERNEL, Neighbour, lower};
use causeway_fastpath::{
    Action, Answer, Asked, Asker, Check, Checks, Counters, Exit, Graph, Hook, Hop, Hops, Marks, Members,
    NextHops, Node, Options, Report, Routes, Table, Target, Trie, Version, Ways, Words, compile,
};
use causeway_fib::{ADJACENCIES_MAX, AdjacencyIndex, Domain};
use causeway_netio::features::FeatureQuery;
use causeway_netio::front::{Front, Place};
use memory::{LAYOUT, LAYOUT6};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long what was replaced in the table waits at least until the programs are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of an Ethernet header.
const ETHERNET: i16 = 14;

/// What forwards in the driver, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the program of each port is, by number.
    pub places: Vec<Place>,
    /// Of how many packets the kernel is asked about one.
    pub every: u32,
}

/// The control side of the programs.
pub struct Driver {
    front: Arc<Front>,
    programs: Vec<Port>,
    hops: Hops,
    /// Which packets the kernel is asked about, and what it would have done otherwise.
    checks: Checks,
    asker: Asker,
    interfaces: Interfaces,
    features: FeatureQuery,
    /// Interface indices by number of the port, and whether they are in the map.
    present: Vec<(u32, bool)>,
    readers: Arc<Readers>,
    /// Since when something waits for the programs.
    waiting: Option<Instant>,
}

/// Interfaces that packets can be redirected to, by number of the port.
struct Interfaces {
    /// For frames.
    frames: Map,
    /// For packets of the stack; 0 where there is none.
    packets: Map,
}

/// The program of a port.
struct Port {
    place: Place,
    program: Arc<Program>,
    counts: Arc<Counts>,
}

/// What it counts.
struct Counts {
    counters: Counters,
    /// By number of the port that packets leave by, the counter.
    to: Vec<Option<usize>>,
}

/// How many packets went from port to port.
pub struct Forwarded(Vec<Arc<Counts>>);

impl Forwarded {
    /// Packets that came in by port number `from` and left by number `to`.
    pub fn packets(&self, from: usize, to: usize) -> u64 {
        let counts = self.0.get(from);
        counts.and_then(|c| Some(c.counters.get((*c.to.get(to)?)?))).unwrap_or(0)
    }
}

impl Driver {
    /// For the ports of `forwarding`, none of which is there yet.
    pub fn new(
        front: Arc<Front>,
        memory: &Memory,
        forwarding: &Arc<Forwarding>,
        domain: &Domain,
        plan: &Plan,
    ) -> Result<Driver> {
        let what = "cannot forward in the driver";
        let features = FeatureQuery::new();
        let features = features.context("Linux 6.3 or later is needed to forward in the driver")?;
        let ports = forwarding.ports().len();
        if let Some(error) = front.why_losses_are_unknown() {
            log::warn!(code = "driver"; "what is lost behind the driver's program is not counted: {error}");
        }
        let interfaces = |kind| Map::new(kind, "ports", 4, 4, ports.max(1) as u32).context(what);
        let interfaces =
            Interfaces { frames: interfaces(MapKind::DevMap)?, packets: interfaces(MapKind::Array)? };
        let hops = Hops::new(ADJACENCIES_MAX).context(what)?;
        let readers = Arc::new(Readers::new(domain).context(what)?);
        let (checks, asker) = (Checks::new(plan.every).context(what)?, Asker::new().context(what)?);
        let found = Found { hops: &hops, interfaces: &interfaces, checks: &checks };
        let place = |port: usize| plan.places.get(port).copied().unwrap_or(Place::Xdp);
        let program = |port| Port::new((port, place(port)), &front, forwarding, memory, &found);
        let programs = (0..ports).map(program).collect::<Result<_>>().context(what)?;
        let present = vec![(0, false); ports];
        Ok(Driver {
            front,
            programs,
            hops,
            checks,
            asker,
            interfaces,
            features,
            present,
            readers,
            waiting: None,
        })
    }

    /// What the programs count.
    pub fn forwarded(&self) -> Forwarded {
        Forwarded(self.programs.iter().map(|port| port.counts.clone()).collect())
    }

    /// Who answers for the programs as readers of the table.
    pub fn readers(&self) -> Arc<Readers> {
        self.readers.clone()
    }

    /// Has the programs see what an index leads to: a next hop, or what only the graph can tell.
    pub fn set_hop(&mut self, index: AdjacencyIndex, neighbour: Option<&Neighbour>) {
        let known = neighbour.filter(|neighbour| neighbour.port != KERNEL);
        let hop = |n: &Neighbour| Hop { words: n.words(), on_link: false, mark: n.mark };
        self.hops.set(index, known.map(hop));
    }

    /// Has the programs see that an index leads to a group of others, each with the first hash behind the flows that take it
    /// ([`causeway_fib::Adjacencies::regions`]).
    pub fn set_group(&mut self, index: AdjacencyIndex, members: &[(u32, AdjacencyIndex)]) {
        self.hops.set_group(index, members);
    }

    /// Packets that the kernel would have forwarded otherwise since the last call. They are the kernel's, as are all others
    /// that find what they found, until that is trusted again.
    pub fn reports(&self) -> Vec<Report> {
        self.checks.reports()
    }

    /// What the kernel would do with a packet now.
    ///
    /// # Errors
    /// As [`Asker::ask`].
    pub fn ask(&mut self, asked: &Asked) -> causeway_bpf::Result<Answer> {
        self.asker.ask(asked)
    }

    /// Leaves all packets that find an index to the kernel.
    pub fn doubt(&mut self, index: AdjacencyIndex) {
        self.hops.doubt(index);
    }

    /// Indices whose packets are left to the kernel.
    pub fn doubted(&self) -> Vec<AdjacencyIndex> {
        self.hops.doubted()
    }

    /// Waits for the programs that have found what is replaced by now.
    pub fn settle(&mut self) {
        if let Err(error) = self.hops.settle() {
            log::warn!("programs in the driver cannot be waited for: {error}");
        }
    }

    /// An index leads again to what was set last.
    pub fn trust(&mut self, index: AdjacencyIndex) {
        self.hops.trust(index);
    }

    /// Which neighbours packets were sent to.
    pub fn marks(&self) -> Marks {
        self.hops.marks()
    }

    /// The ports have these interface indices from now on; 0 for one that has none.
    pub fn set_ports(&mut self, indices: &[u32]) {
        for number in 0..self.present.len() {
            let (before, _) = self.present[number];
            let now = indices.get(number).copied().unwrap_or(0);
            if now == before {
                continue;
            }
            if before != 0 && !indices.contains(&before) {
                self.set_graph(number, before, false);
            }
            self.forget_interface(number);
            self.present[number] = (now, false);
            if let Err(error) = self.interfaces.packets.insert_u32(number as u32, now) {
                log::warn!("interface {now}: nothing is forwarded to it at tcx: {error}");
            }
            if now != 0 {
                self.set_graph(number, now, true);
            }
        }
        self.look_at_interfaces();
    }

    fn set_graph(&self, number: usize, ifindex: u32, on: bool) {
        let Port { place, program, .. } = &self.programs[number];
        if let Err(error) = self.front.set_graph(*place, ifindex, on.then(|| program.clone())) {
            // Then everything goes up, or to the kernel.
            log::warn!("interface {ifindex}: nothing is forwarded in the driver: {error}");
        }
    }

    fn forget_interface(&mut self, number: usize) {
        // The kernel removes those that are gone by itself.
        let _ = self.interfaces.frames.remove(&(number as u32).to_ne_bytes());
        self.present[number].1 = false;
    }

    /// Something was replaced in the table.
    pub fn note_change(&mut self) {
        self.waiting.get_or_insert_with(Instant::now);
    }

    /// To be called again and again: looks which interfaces take redirected packets, and lets go of what was replaced.
    pub fn look(&mut self) {
        self.look_at_interfaces();
        if self.waiting.is_some_and(|since| since.elapsed() >= PATIENCE) {
            self.waiting = None;
            self.readers.move_on();
        }
    }

    /// A redirect to an interface that takes none loses the packet without a word, so that only those are in the map that
    /// do. A veth's depends on what its peer has, now.
    fn look_at_interfaces(&mut self) {
        for number in 0..self.present.len() {
            let (ifindex, was) = self.present[number];
            let takes = ifindex != 0 && self.features.get(ifindex).is_ok_and(|f| f.redirect_target());
            if takes == was {
                continue;
            }
            match takes {
                true => {
                    self.present[number].1 = self.interfaces.frames.insert_u32(number as u32, ifindex).is_ok()
                }
                false => self.forget_interface(number),
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for number in 0..self.present.len() {
            let (ifindex, _) = self.present[number];
            if ifindex != 0 {
                self.set_graph(number, ifindex, false);
            }
        }
    }
}

/// What lookups lead to.
struct Found<'a> {
    hops: &'a Hops,
    interfaces: &'a Interfaces,
    checks: &'a Checks,
}

impl Port {
    fn new(
        (number, place): (usize, Place),
        front: &Front,
        forwarding: &Arc<Forwarding>,
        memory: &Memory,
        found: &Found<'_>,
    ) -> Result<Port> {
        let ports = forwarding.ports().len();
        let node = Node {
            name: "forward".to_owned(),
            program: lower::program(forwarding, number as u16),
            tables: self::tables(memory, found, place),
            outputs: (0..ports).map(|port| Some(Target::Emit(port))).collect(),
        };
        let counters = Counters::new()?;
        let redirected = vec![Action::Forward; ports];
        let up = Action::Program(front.takers(place)?);
        let (hook, kind) = match place {
            // Frames were judged by their address before.
            Place::Xdp => (Hook::Xdp([0; 6]), ProgramKind::XdpFragments),
            Place::Tcx => (Hook::Tcx, ProgramKind::SchedCls),
        };
        let doubted = Some(Action::Program(front.doubters(place)?));
        let options = Options { hook, ports: &redirected, up, anew: Some(up), doubted, counters: &counters };
        let compiled = compile(&Graph { nodes: vec![node] }, &options)?;
        if let Some((_, why)) = compiled.left.first() {
            log::warn!(code = "driver"; "the graph forwards, since its program cannot be compiled: {why}");
        }
        let exit = |to| compiled.exits.iter().position(|exit| *exit == Exit::Emit(to));
        let to = (0..ports).map(|to| Some(compiled.first_exit + exit(to)?)).collect();
        let program = compiled.load_as(kind, "causeway_graph")?;
        Ok(Port { place, program: Arc::new(program), counts: Arc::new(Counts { counters, to }) })
    }
}

/// The tables of KernelForward's program at a place.
fn tables<'m>(memory: &'m Memory, found: &Found<'m>, place: Place) -> Vec<Option<Table<'m>>> {
    let interfaces = Some(match place {
        Place::Xdp => Ways::Frames(&found.interfaces.frames),
        Place::Tcx => Ways::Packets(&found.interfaces.packets),
    });
    let next_hops = |version| {
        let check = Some(Check { checks: found.checks, header: ETHERNET, version });
        NextHops { hops: found.hops, interfaces, check }
    };
    let v4 = Trie::V4 { memory: &memory.routes, layout: LAYOUT };
    let v6 = Trie::V6 { memory: &memory.routes6, layout: LAYOUT6 };
    let paths = Words { memory: &memory.paths, len: ADJACENCIES_MAX };
    let ahead = |trie, version, group| Table::Routes(Routes { trie, next_hops: next_hops(version), group });
    let mut tables = vec![None; lower::table::COUNT];
    let policies = Words { memory: &memory.policies, len: Memory::POLICIES };
    tables[lower::table::POLICIES] = Some(Table::Words(policies));
    tables[lower::table::PATHS] = Some(Table::RouteWords(v4, paths));
    tables[lower::table::NEXT_HOPS] = Some(ahead(v4, Version::V4, Some(lower::GROUP)));
    let members = Members { next_hops: next_hops(Version::V4), spread: &memory.spread };
    tables[lower::table::MEMBERS] = Some(Table::Members(members));
    tables[lower::table::PATHS6] = Some(Table::RouteWords(v6, paths));
    tables[lower::table::NEXT_HOPS6] = Some(ahead(v6, Version::V6, None));
    tables
}
