//! The graph in the driver: what of it runs where packets arrive, and the memory that its program and the workers share.
//!
//! The program behind a port's own ([`Front::set_graph`]) is KernelForward's, compiled for that port and for where its program
//! is. It reads the tables of
//! routes that workers read, and copies of the rest: next hops, ways back, policies. What it cannot do goes up as it came, or
//! at tcx to the kernel.

mod features;
mod memory;
mod readers;
#[cfg(test)]
mod tests;
mod ways;

pub use features::{Features, tables_of};
pub use memory::Memory;
pub use readers::Readers;
pub use ways::Ways;

use anyhow::{Context, Result};
use causeway_bpf::{Program, ProgramKind};
use causeway_elements::devices::OVERHEAD;
use causeway_elements::kernel::lower::Begins;
use causeway_elements::kernel::{Forwarding, KERNEL, Neighbour, lower};
use causeway_fastpath::{
    Above, Action, Answer, Asked, Asker, Check, Checks, Compiled, Counters, Exit, Graph, Hook, Hop, Hops,
    Marks, Members, NextHops, Node, Options, Report, Routes, Table, Target, Trie, Version, Words, compile,
};
use causeway_fib::{ADJACENCIES_MAX, AdjacencyIndex, Domain};
use causeway_netio::features::FeatureQuery;
use causeway_netio::front::{Front, Place};
use memory::{LAYOUT, LAYOUT6};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long what was replaced in the table waits at least until the programs are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// What it comes to that something is missing.
pub const NOT_IN_DRIVER: &str = "cannot forward in the driver (without --driver the graph does)";

/// The control side of the programs.
pub struct Driver {
    front: Arc<Front>,
    programs: Vec<Port>,
    hops: Hops,
    /// Which packets the kernel is asked about, and what it would have done otherwise.
    checks: Checks,
    asker: Asker,
    /// Interfaces that packets can be redirected to, by number of the port.
    ways: Arc<Ways>,
    features: FeatureQuery,
    readers: Arc<Readers>,
    /// Since when something waits for the programs.
    waiting: Option<Instant>,
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
    first_exit: usize,
    /// By number of the port that packets leave by, the exits: one for those with what was put in front of them, one for others.
    to: Vec<Vec<usize>>,
}

impl Counts {
    /// The sum of the counters of the exits to a port.
    fn sum(&self, to: usize, counter: impl Fn(usize) -> usize) -> u64 {
        self.to.get(to).into_iter().flatten().map(|&exit| self.counters.get(counter(exit))).sum()
    }
}

/// How the programs forward.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the program of each port is, and what its packets begin with, by number.
    pub places: Vec<(Place, Begins)>,
    /// The kernel is asked about one packet in so many.
    pub check_every: u32,
    /// Whether bytes are counted ([`Forwarded::octets`]).
    pub bytes: bool,
}

/// How many packets went from port to port.
pub struct Forwarded(Vec<Arc<Counts>>);

impl Forwarded {
    /// Packets that came in by port number `from` and left by number `to`.
    pub fn packets(&self, from: usize, to: usize) -> u64 {
        let counts = self.0.get(from);
        counts.map_or(0, |c| c.sum(to, |exit| c.first_exit + exit))
    }

    /// Packets that came in by port number `from`.
    pub fn packets_from(&self, from: usize) -> u64 {
        (0..self.0.len()).map(|to| self.packets(from, to)).sum()
    }

    /// Octets of link time that was left by port number `to`: those of frames, if they are counted, and [`OVERHEAD`]. Packets of
    /// the stack count as the frames that they are cut into.
    pub fn octets(&self, to: usize) -> u64 {
        let sum = |counter: fn(usize) -> usize| -> u64 { self.0.iter().map(|c| c.sum(to, counter)).sum() };
        let packets: u64 = (0..self.0.len()).map(|from| self.packets(from, to)).sum();
        let frames = packets + sum(Compiled::more_frames_of_exit);
        sum(Compiled::bytes_of_exit) + frames * OVERHEAD
    }
}

impl Driver {
    /// For the ports of `forwarding`, none of which is there yet.
    pub fn new(
        front: Arc<Front>,
        memory: &Memory,
        forwarding: &Arc<Forwarding>,
        domain: &Domain,
        settings: &Settings,
    ) -> Result<Driver> {
        let what = NOT_IN_DRIVER;
        let features = FeatureQuery::new().context("Linux 6.3 or later is needed").context(what)?;
        let ports = forwarding.ports().len();
        if let Some(error) = front.why_losses_are_unknown() {
            log::warn!(code = "driver"; "what is lost behind the driver's program is not counted: {error}");
        }
        let ways = Arc::new(Ways::new(ports).context(what)?);
        let hops = Hops::new(ADJACENCIES_MAX).context(what)?;
        let readers = Arc::new(Readers::new(domain).context(what)?);
        let (checks, asker) = (Checks::new(settings.check_every).context(what)?, Asker::new().context(what)?);
        let found = Found { hops: &hops, ways: &ways, checks: &checks };
        let place =
            |port: usize| settings.places.get(port).copied().unwrap_or((Place::Xdp, Begins::Ethernet));
        let bytes = settings.bytes;
        let program = |port| Port::new((port, place(port)), &front, forwarding, memory, &found, bytes);
        let programs = (0..ports).map(program).collect::<Result<_>>().context(what)?;
        Ok(Driver { front, programs, hops, checks, asker, ways, features, readers, waiting: None })
    }

    /// What the programs count.
    pub fn forwarded(&self) -> Forwarded {
        Forwarded(self.programs.iter().map(|port| port.counts.clone()).collect())
    }

    /// Which ways out they may use.
    pub fn ways(&self) -> Arc<Ways> {
        self.ways.clone()
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
        for (number, before) in self.ways.interfaces().into_iter().enumerate() {
            let now = indices.get(number).copied().unwrap_or(0);
            if now == before {
                continue;
            }
            if before != 0 && !indices.contains(&before) {
                self.set_graph(number, before, false);
            }
            self.ways.set_interface(number, now);
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
        for (number, ifindex) in self.ways.interfaces().into_iter().enumerate() {
            let takes = ifindex != 0 && self.features.get(ifindex).is_ok_and(|f| f.redirect_target());
            self.ways.set_takes(number, takes);
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for (number, ifindex) in self.ways.interfaces().into_iter().enumerate() {
            if ifindex != 0 {
                self.set_graph(number, ifindex, false);
            }
        }
    }
}

/// What lookups lead to.
struct Found<'a> {
    hops: &'a Hops,
    ways: &'a Ways,
    checks: &'a Checks,
}

impl Port {
    fn new(
        (number, (place, begins)): (usize, (Place, Begins)),
        front: &Front,
        forwarding: &Arc<Forwarding>,
        memory: &Memory,
        found: &Found<'_>,
        bytes: bool,
    ) -> Result<Port> {
        let ports = forwarding.ports().len();
        let node = Node {
            name: "forward".to_owned(),
            program: lower::program(forwarding, number as u16, begins),
            tables: self::tables(memory, found, (place, begins)),
            outputs: (0..ports).map(|port| Some(Target::Emit(port))).collect(),
        };
        let counters = Counters::new()?;
        let counters = if bytes { counters.with_bytes() } else { counters };
        let redirected = vec![Action::Forward; ports];
        let up = Action::Program(front.takers(place)?);
        let (hook, kind) = match place {
            // Frames were judged by their address before.
            Place::Xdp => (Hook::Xdp([0; 6]), ProgramKind::XdpFragments),
            Place::Tcx => (Hook::Tcx(Above::Kernel), ProgramKind::SchedCls),
        };
        let doubted = Some(Action::Program(front.doubters(place)?));
        let options = Options {
            hook,
            ports: &redirected,
            up,
            anew: Some(up),
            doubted,
            without_room: None,
            counters: &counters,
            edges: false,
            first_number: 0,
        };
        let compiled = compile(&Graph { nodes: vec![node] }, &options)?;
        if let Some((_, why)) = compiled.left.first() {
            log::warn!(code = "driver"; "the graph forwards, since its program cannot be compiled: {why}");
        }
        let exits = |to| {
            let all = compiled.exits.iter().enumerate();
            all.filter(|(_, exit)| **exit == Exit::Emit(to)).map(|(number, _)| number).collect()
        };
        let (first_exit, to) = (compiled.first_exit, (0..ports).map(exits).collect());
        let program = compiled.load_as(kind, "causeway_graph")?;
        Ok(Port { place, program: Arc::new(program), counts: Arc::new(Counts { counters, first_exit, to }) })
    }
}

/// The tables of KernelForward's program at a place, for packets that begin so.
fn tables<'m>(
    memory: &'m Memory,
    found: &Found<'m>,
    (place, begins): (Place, Begins),
) -> Vec<Option<Table<'m>>> {
    let interfaces = Some(match place {
        Place::Xdp => causeway_fastpath::Ways::Frames(found.ways.frames()),
        Place::Tcx => causeway_fastpath::Ways::Packets(found.ways.packets()),
    });
    let next_hops = |version| {
        let check = Some(Check { checks: found.checks, header: begins.ip() as i16, version });
        NextHops { hops: found.hops, interfaces, check }
    };
    let v4 = Trie::V4 { memory: &memory.routes, layout: LAYOUT };
    let v6 = Trie::V6 { memory: &memory.routes6, layout: LAYOUT6 };
    let paths = Words { memory: &memory.paths, len: ADJACENCIES_MAX };
    let ahead = |trie, version| {
        Some(Table::Routes(Routes { trie, next_hops: next_hops(version), group: Some(lower::GROUP) }))
    };
    let members = |version| {
        Some(Table::Members(Members { next_hops: next_hops(version), spread: &memory.spread, version }))
    };
    let mut tables = vec![None; lower::table::COUNT];
    let policies = Words { memory: &memory.policies, len: Memory::POLICIES };
    tables[lower::table::POLICIES] = Some(Table::Words(policies));
    tables[lower::table::PATHS] = Some(Table::RouteWords(v4, paths));
    tables[lower::table::NEXT_HOPS] = ahead(v4, Version::V4);
    tables[lower::table::MEMBERS] = members(Version::V4);
    tables[lower::table::PATHS6] = Some(Table::RouteWords(v6, paths));
    tables[lower::table::NEXT_HOPS6] = ahead(v6, Version::V6);
    tables[lower::table::MEMBERS6] = members(Version::V6);
    tables
}
