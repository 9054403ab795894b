//! From a graph to one BPF program.
//!
//! Elements are written one behind the other in an order in which every packet comes to them, blocks of an element in the
//! order of their numbers, and both once for each [`State`] in which packets come. Jumps lead forwards only, so the program
//! ends whatever a packet says. An element that cannot be written, or that a packet would come to a second time, has its
//! packets go up to the graph in user space.

mod node;

use crate::counters::{Counters, WORDS};
use crate::exit::{Above, Action, Exit, Hook, Leaving, Luggage, Place, as_it_goes_out};
use crate::frame::{self, Frame, Needs, SPILLS};
use crate::graph::{Graph, Order, Target};
use crate::registers::Homes;
use crate::state::{Ip, Reach, State};
use crate::table::Table;
use causeway_bpf::{Asm, Code, Label, Reg, Size};
use node::{count, one};
use std::collections::BTreeMap;

/// Instructions after which no further element is begun: jumps reach over 32 767.
const MOST: usize = 24_000;

/// What a graph is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Options<'m> {
    /// Where it is attached.
    pub hook: Hook,
    /// By port, what is done with packets that leave by it.
    pub ports: &'m [Action<'m>],
    /// What is done with packets that go up.
    pub up: Action<'m>,
    /// What is done with those of them that are as they came, and are to enter where all come in: they bring no luggage.
    /// Without it they are as others.
    pub anew: Option<Action<'m>>,
    /// What is done with those that are left to the kernel because it would forward them otherwise; passed without it.
    pub doubted: Option<Action<'m>>,
    /// What is done with those that are left to the kernel because they have no room for what goes up with them; passed without
    /// it.
    pub without_room: Option<Action<'m>>,
    /// Where it counts.
    pub counters: &'m Counters,
    /// Whether packets are counted that leave elements by each output.
    pub edges: bool,
    /// The number of the first exit in the luggage of packets: programs whose packets meet have numbers of their own.
    pub first_number: u32,
}

/// A compiled graph.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub code: Code,
    /// The ways out; the counter of one has the number [`Compiled::first_exit`] more.
    pub exits: Vec<Exit>,
    /// What packets bring along that go up, by the same number; those of other exits bring nothing.
    pub luggage: Vec<Option<Luggage>>,
    /// For each node the first of its counters, which have the program's order.
    pub node_counters: Vec<usize>,
    /// For each node the counter of the packets that left by its first output ([`Options::edges`]); those of the others
    /// follow. What leads nowhere is counted by its exit.
    pub edge_counters: Vec<usize>,
    /// Number of the first exit's counter.
    pub first_exit: usize,
    /// Nodes whose packets all go up, or in one of the states that they come in, and why.
    pub left: Vec<(usize, &'static str)>,
    /// Nodes at which super-packets go up, and come in parts, and why.
    pub parted: Vec<(usize, &'static str)>,
    /// Which node's instructions begin where.
    pub(crate) spans: Vec<(usize, usize)>,
    /// The nodes' names.
    pub(crate) names: Vec<String>,
}

/// Why a graph was not compiled.
pub type Failure = causeway_bpf::Error;

/// Compiles a graph.
///
/// # Errors
/// [`causeway_bpf::ErrorKind::Assembler`] if it is too large: it counts more than there is room for.
pub fn compile(graph: &Graph<Table<'_>>, options: &Options<'_>) -> Result<Compiled, Failure> {
    let mut next = 0;
    let mut node_counters = Vec::new();
    let mut needs = Needs::default();
    for node in &graph.nodes {
        node_counters.push(next);
        let Some(program) = &node.program else { continue };
        next += program.counters().len();
        let blocks = program.blocks();
        blocks.iter().flat_map(|code| &code.ops).for_each(|op| needs.note(op));
        needs.spills = needs.spills.max(Homes::of(blocks).slots);
    }
    // Who receives a packet that was written to sees no more how it was addressed.
    needs.packet_type |= needs.writes && options.anew.is_none();
    let mut edge_counters = Vec::new();
    for node in graph.nodes.iter().filter(|_| options.edges) {
        edge_counters.push(next);
        next += node.outputs.len();
    }
    let mut asm = Asm::new();
    let frame = Frame::new(&mut asm, needs.spills.min(SPILLS));
    let (refused, without_room) = (asm.label(), asm.label());
    let mut compiler = Compiler {
        graph,
        options,
        order: graph.order(),
        asm,
        frame: &frame,
        needs,
        first: State { cut: options.hook.is_tcx(), ..State::default() },
        pending: BTreeMap::new(),
        exits: Vec::new(),
        left: Vec::new(),
        parted: Vec::new(),
        spans: Vec::new(),
        node_counters: &node_counters,
        edge_counters: &edge_counters,
        first_exit: next,
        refused,
        without_room,
    };
    compiler.enter();
    while let Some(((rank, state), (label, reach))) = compiler.pending.pop_first() {
        compiler.node(rank, state, label, reach);
    }
    compiler.leave();
    let Compiler { asm, exits, left, parted, spans, .. } = compiler;
    let luggage = exits.iter().map(|way| way.luggage.clone()).collect();
    let exits: Vec<Exit> = exits.iter().map(|way| way.exit).collect();
    let counted = next + exits.len() * if options.counters.with_bytes { 3 } else { 1 };
    if counted > WORDS {
        let what = format!("compile a graph to BPF: it counts {counted} things, {WORDS} at most");
        return Err(Failure::new(causeway_bpf::ErrorKind::Assembler, what));
    }
    Ok(Compiled {
        code: asm.finish()?,
        exits,
        luggage,
        node_counters,
        edge_counters,
        first_exit: next,
        left,
        parted,
        spans,
        names: graph.nodes.iter().map(|node| node.name.clone()).collect(),
    })
}

impl Compiled {
    /// The counter of the bytes of the packets that took an exit, if it leads to a port and is counted
    /// [with bytes](Counters::with_bytes).
    #[must_use]
    pub fn bytes_of_exit(exit: usize) -> usize {
        WORDS - 1 - 2 * exit
    }

    /// The counter of the frames that left by it beyond one for each packet: those that packets of the stack are to be cut into.
    /// Their headers are among the bytes.
    #[must_use]
    pub fn more_frames_of_exit(exit: usize) -> usize {
        WORDS - 2 - 2 * exit
    }
}

/// A way out for packets in one state.
#[derive(Clone)]
struct Way {
    exit: Exit,
    state: State,
    label: Label,
    luggage: Option<Luggage>,
}

struct Compiler<'g, 'm> {
    graph: &'g Graph<Table<'m>>,
    options: &'g Options<'g>,
    order: Order,
    asm: Asm,
    frame: &'g Frame,
    needs: Needs,
    /// The state in which packets come.
    first: State,
    /// Nodes to be written, by their place in the order and the state of packets.
    pending: Places,
    exits: Vec<Way>,
    left: Vec<(usize, &'static str)>,
    parted: Vec<(usize, &'static str)>,
    spans: Vec<(usize, usize)>,
    node_counters: &'g [usize],
    edge_counters: &'g [usize],
    first_exit: usize,
    refused: Label,
    without_room: Label,
}

/// Places to be written: a number and a state, where jumps to it lead, and how far packets reach on all ways there.
type Places = BTreeMap<(usize, State), (Label, Reach)>;

/// The label of a place, and the fact that there is one more way to it.
fn arrive(asm: &mut Asm, places: &mut Places, key: (usize, State), reach: Reach) -> Label {
    let (label, known) = places.entry(key).or_insert_with(|| (asm.label(), reach));
    *known = known.or(reach);
    *label
}

impl Compiler<'_, '_> {
    fn enter(&mut self) {
        let counters = self.options.counters;
        self.asm.mov(Reg::R6, Reg::R1);
        frame::find_counters(&mut self.asm, self.frame, counters.processors(), Counters::STRIDE);
        self.asm.mov(Reg::R1, Reg::R6);
        match self.options.hook {
            Hook::Xdp(address) => frame::enter_xdp(&mut self.asm, self.frame, &self.needs, address),
            Hook::Tcx(_) => frame::enter_tcx(&mut self.asm, self.frame, &self.needs),
        }
        if self.options.hook == Hook::Tcx(Above::Graph) {
            let up = self.exit(Exit::Up(Place::Node(0)), self.first);
            let whole = [Ip::V4, Ip::V6].map(|ip| {
                let reach = Reach { frame: ip.headers(), data: ip.headers(), changed: false };
                let state = State { parts: Some(ip), ..self.first };
                (ip, self.target(Target::Node(0), None, state, reach))
            });
            frame::sift(&mut self.asm, self.frame, &self.needs, up, whole);
        }
        let first = self.target(Target::Node(0), None, self.first, Reach::default());
        self.asm.jump(first);
    }

    /// Where packets go on in one state.
    fn target(&mut self, target: Target, from: Option<usize>, state: State, reach: Reach) -> Label {
        match target {
            Target::Node(to) => {
                let forward = from.is_none_or(|from| self.order.is_forward(from, to));
                let program = self.graph.nodes.get(to).and_then(|node| node.program.as_ref());
                match self.order.rank(to).filter(|_| forward && program.is_some()) {
                    Some(rank) => {
                        let reach = Reach { changed: false, ..reach };
                        arrive(&mut self.asm, &mut self.pending, (rank, state), reach)
                    }
                    None => {
                        let round = (to, "packets come round to it");
                        if !forward && !self.left.contains(&round) {
                            self.left.push(round);
                        }
                        self.exit(Exit::Up(Place::Node(to)), state)
                    }
                }
            }
            // At tcx the start of a packet is not moved.
            Target::Emit(port) if state.data != 0 && self.options.hook.is_tcx() => {
                self.exit(Exit::Up(Place::Port(port)), state)
            }
            Target::Emit(port) => self.exit(Exit::Emit(port), state),
            Target::Up(element, input) => self.exit(Exit::Up(Place::Element(element, input)), state),
        }
    }

    /// The label of a way out.
    fn exit(&mut self, exit: Exit, state: State) -> Label {
        // What is dropped is dropped in whatever state it is, and counted.
        let state = match exit {
            Exit::Emit(_) | Exit::Up(_) => state,
            _ => State { parts: state.parts, ..State::default() },
        };
        if let Some(way) = self.exits.iter().find(|way| way.exit == exit && way.state == state) {
            return way.label;
        }
        let label = self.asm.label();
        let luggage = match exit {
            Exit::Up(Place::Node(0)) if self.options.anew.is_some() && state == self.first => None,
            // Who only sends it needs to know nothing of it.
            Exit::Up(place @ Place::Port(_)) => Some(Luggage::new(place, state, Vec::new(), false)),
            Exit::Up(place) => {
                let addressed = state.touched && self.needs.packet_type;
                Some(Luggage::new(place, state, self.needs.eights().collect(), addressed))
            }
            _ => None,
        };
        self.exits.push(Way { exit, state, label, luggage });
        label
    }

    /// Writes a node for packets in one state, or sends them up.
    fn node(&mut self, rank: usize, state: State, label: Label, reach: Reach) {
        let Some(number) = self.order.node(rank) else { return };
        let before = (self.asm.clone(), self.exits.clone(), self.pending.clone());
        self.spans.push((self.asm.position(), number));
        self.asm.bind(label);
        // Others have the room before super-packets, which may be as long again for each version.
        let most = if state.parts.is_some() { MOST / 2 } else { MOST };
        let why = match &self.graph.nodes[number].program {
            _ if self.asm.position() > most => "the program would be too long",
            None => "it does not say what it does",
            Some(program) => match self.program(number, program, state, reach) {
                Ok(()) => return,
                Err(why) => why,
            },
        };
        (self.asm, self.exits, self.pending) = before;
        let left = if state.parts.is_some() { &mut self.parted } else { &mut self.left };
        if !left.contains(&(number, why)) {
            left.push((number, why));
        }
        self.asm.bind(label);
        let up = self.exit(Exit::Up(Place::Node(number)), state);
        self.asm.jump(up);
    }

    /// Writes the exits that something leads to.
    fn leave(&mut self) {
        let options = self.options;
        let [pass, drop] = options.hook.refusals();
        let ways = std::mem::take(&mut self.exits);
        self.exits = ways.into_iter().filter(|way| self.asm.is_target(way.label)).collect();
        let astray: Vec<_> = (0..self.exits.len()).map(|number| self.astray(number)).collect();
        let ways = self.exits.clone();
        for (number, way) in ways.iter().enumerate() {
            self.asm.bind(way.label);
            let Exit::Emit(port) = way.exit else {
                self.count_exit(number, &way.state);
                let mut leaving = self.leaving();
                match (way.exit, &way.luggage) {
                    (_, Some(luggage)) => {
                        leaving.up(options.first_number + number as u32, luggage, options.up);
                    }
                    (Exit::Up(_), None) => leaving.act(options.anew.unwrap_or(options.up), pass),
                    (Exit::Doubted, None) => {
                        leaving.act(options.doubted.unwrap_or(Action::Return(pass)), pass);
                    }
                    _ => leaving.act(Action::Return(drop), drop),
                }
                continue;
            };
            let action = options.ports.get(port).copied().unwrap_or(Action::Return(drop));
            self.emit(number, &way.state, action, astray.get(number).copied().flatten());
        }
        let without_room = options.without_room.unwrap_or(Action::Return(pass));
        for (label, exit, action, or) in [
            (self.refused, Exit::Refused, Action::Return(drop), drop),
            (self.without_room, Exit::NoRoom, without_room, pass),
        ] {
            if self.asm.is_target(label) {
                self.asm.bind(label);
                self.count_exit(self.exits.len(), &State::default());
                self.leaving().act(action, or);
                self.exits.push(Way { exit, state: State::default(), label, luggage: None });
            }
        }
    }

    fn leaving(&mut self) -> Leaving<'_> {
        Leaving {
            asm: &mut self.asm,
            frame: self.frame,
            hook: self.options.hook,
            refused: self.refused,
            without_room: self.without_room,
        }
    }

    fn count_exit(&mut self, number: usize, state: &State) {
        one(&mut self.asm, self.frame, state);
        count(&mut self.asm, self.frame, self.options.counters.map(), self.first_exit + number);
    }

    /// Where packets go on that cannot be redirected by the exit with this number: up, to where they leave by the port.
    fn astray(&mut self, number: usize) -> Option<Label> {
        let (exit, state) = (self.exits[number].exit, self.exits[number].state);
        match exit {
            Exit::Emit(port) if matches!(self.options.ports.get(port), Some(Action::Redirect(..))) => {
                Some(self.exit(Exit::Up(Place::Port(port)), as_it_goes_out(self.options.hook, &state)))
            }
            _ => None,
        }
    }

    /// Writes an exit to a port. What it counts is what was sent.
    fn emit(&mut self, number: usize, state: &State, action: Action<'_>, astray: Option<Label>) {
        let (map, counter, frame) = (self.options.counters.map(), self.first_exit + number, self.frame);
        // What has more exits is refused in the end.
        let with_bytes = self.options.counters.with_bytes && number < WORDS / 3;
        let at_tcx = self.options.hook.is_tcx();
        if with_bytes {
            // The frame is another behind the next call.
            frame::length(&mut self.asm, frame, state);
            self.asm.store_slot(Size::D, frame.key, 0, Reg::R0);
        }
        self.leaving().emit(state, action, astray, |asm| {
            one(asm, frame, state);
            count(asm, frame, map, counter);
            if with_bytes {
                asm.load_slot(Size::D, Reg::R0, frame.key, 0);
                count(asm, frame, map, Compiled::bytes_of_exit(number));
            }
            if with_bytes && at_tcx {
                let done = asm.label();
                frame::cut_up(asm, frame, done);
                count(asm, frame, map, Compiled::more_frames_of_exit(number));
                asm.mov(Reg::R0, Reg::R3);
                count(asm, frame, map, Compiled::bytes_of_exit(number));
                asm.bind(done);
            }
        });
    }
}
