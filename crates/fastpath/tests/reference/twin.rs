//! A graph twice: run by the interpreter, and compiled and run by the kernel.

use crate::frames::OURS;
use causeway_bpf::{Program, TestRun, action};
use causeway_engine::ir::Outcome;
use causeway_fastpath::{
    Action, Compiled, Counters, Exit, Graph, Hook, Options, Place, Table, Target, compile,
};
use causeway_packet::{Packet, PacketType};

/// What the ports' programs return, so that ports can be told from drops.
const SENT: i32 = action::XDP_TX;
/// The number of the first exit in luggage.
const FIRST_NUMBER: u32 = 70_000;

pub struct Twin<'m> {
    pub graph: Graph<Table<'m>>,
    pub compiled: Compiled,
    pub program: Program,
    counters: &'m Counters,
    hook: Hook,
    /// Counts before a frame: those of the program, and those of elements.
    before: (Vec<u64>, Vec<u64>),
    /// What the programs made of the last frame that was compared well.
    pub made: Option<Made>,
}

/// What the driver did with a frame.
#[derive(Clone, Copy)]
struct Left<'r> {
    exit: Exit,
    /// The exit's number.
    way: usize,
    run: &'r TestRun,
    by_elements: &'r [u64],
    edges: &'r [u64],
}

/// What the programs make of a frame.
pub struct Made {
    pub packet: Packet,
    pub exit: Exit,
    /// By the elements' own counters.
    pub counted: Vec<u64>,
    /// The outputs that it left by, as the compiled graph counts them.
    pub edges: Vec<u64>,
}

/// How a packet looks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Look {
    pub bytes: Vec<u8>,
    headers: [Option<i64>; 3],
    annotations: Vec<u8>,
}

impl<'m> Twin<'m> {
    pub fn new(graph: Graph<Table<'m>>, counters: &'m Counters, ports: usize, hook: Hook) -> Twin<'m> {
        let ports = vec![Action::Return(SENT); ports];
        let options = Options {
            hook,
            ports: &ports,
            up: Action::Return(verdicts(hook).0),
            anew: None,
            doubted: None,
            without_room: None,
            counters,
            edges: true,
            first_number: FIRST_NUMBER,
        };
        let compiled = compile(&graph, &options).expect("a program");
        let program = compiled.load(hook, "reference").unwrap_or_else(|e| panic!("{e}\n{graph:?}"));
        let mut twin =
            Twin { graph, compiled, program, counters, hook, before: Default::default(), made: None };
        twin.before = (twin.counted(), twin.elements());
        twin
    }

    /// What the compiled graph counted: the elements' counters, then the exits.
    pub fn counted(&self) -> Vec<u64> {
        let all = self.compiled.first_exit + self.compiled.exits.len();
        (0..all).map(|counter| self.counters.get(counter)).collect()
    }

    fn elements(&self) -> Vec<u64> {
        let programs = self.graph.nodes.iter().filter_map(|node| node.program.as_ref());
        programs.flat_map(|program| program.counters()).map(|counter| counter.get()).collect()
    }

    /// Bytes that left by ports.
    fn bytes(&self) -> u64 {
        (0..self.compiled.exits.len()).map(|exit| self.counters.get(Compiled::bytes_of_exit(exit))).sum()
    }

    /// The frame as a test run takes it.
    pub fn fit(mut frame: Vec<u8>, hook: Hook) -> Vec<u8> {
        if is_tcx(hook) {
            // Test runs there take no packets that are too short for the header that they say they have.
            frame.resize(frame.len().max(54), 0);
        }
        frame
    }

    /// Runs a frame on both; says by which way it left, and for what it differs.
    pub fn compare(&mut self, frame: &[u8]) -> Result<Exit, String> {
        let frame = &Twin::fit(frame.to_vec(), self.hook)[..];
        let bytes = self.bytes();
        let run = self.program.test_run(frame, None, 1).map_err(|e| e.to_string())?;
        let bytes = self.bytes().wrapping_sub(bytes);
        let counted = self.counted();
        let more: Vec<u64> = counted.iter().zip(&self.before.0).map(|(a, b)| a.wrapping_sub(*b)).collect();
        self.before.0 = counted;
        let (inside, ways) = more.split_at(self.compiled.first_exit);
        let (by_elements, edges) = inside.split_at(self.compiled.edge_counters[0]);
        let taken: Vec<usize> = (0..ways.len()).filter(|&way| ways[way] != 0).collect();
        let [way] = taken[..] else { return Err(format!("it left by {taken:?}")) };
        let exit = self.compiled.exits[way];
        let len = if matches!(exit, Exit::Emit(_)) { run.data.len() } else { 0 };
        equal(&bytes, &(len as u64), "bytes that left")?;
        // What is left out goes up, which the programs themselves do not say.
        let stop = match exit {
            Exit::Up(Place::Node(node)) if self.compiled.left.iter().any(|left| left.0 == node) => Some(node),
            _ => None,
        };
        let left = Left { exit, way, run: &run, by_elements, edges };
        let done = self.is_same(frame, &left, None);
        match stop {
            Some(_) if done.is_err() => self.is_same(frame, &left, stop)?,
            _ => done?,
        }
        Ok(exit)
    }

    /// Compares what the driver did with what the programs make of the frame, as far as the node `stop`.
    fn is_same(&mut self, frame: &[u8], left: &Left<'_>, stop: Option<usize>) -> Result<(), String> {
        let Left { exit, .. } = *left;
        let made = self.interpret(frame, stop)?;
        let Made { packet, exit: expected, counted, edges } = &made;
        let expected = *expected;
        let to_its_port = match (expected, self.hook) {
            (Exit::Emit(_), _) if exit == Exit::Refused => true,
            (Exit::Emit(port), Hook::Tcx(_)) => exit == Exit::Up(Place::Port(port)),
            _ => false,
        };
        if expected != exit && !to_its_port {
            return Err(format!("left by {exit:?} and not by {expected:?}"));
        }
        equal(&left.by_elements, &&counted[..], "counts")?;
        equal(&left.edges, &&edges[..], "edges")?;
        self.is_as_made(frame, left, packet)?;
        self.made = Some(made);
        Ok(())
    }

    /// Compares what the driver left with the packet that the programs made.
    fn is_as_made(&self, frame: &[u8], left: &Left<'_>, packet: &Packet) -> Result<(), String> {
        let Left { exit, run, .. } = *left;
        let headroom = Packet::from_bytes(frame).ok_or("no packet")?.headroom();
        let (verdict, (pass, drop)) = (run.verdict, verdicts(self.hook));
        match exit {
            // The kernel has no frames of less than an Ethernet header.
            Exit::Refused => {
                equal(&(packet.len() < 14), &true, "a short one is refused")?;
                equal(&verdict, &drop, "verdict")
            }
            Exit::Emit(_) => {
                equal(&verdict, &SENT, "verdict")?;
                equal(&run.data, &packet.data().to_vec(), "frame")
            }
            Exit::Up(place) => {
                equal(&verdict, &pass, "verdict")?;
                let came = packet_type(frame, self.hook);
                let mut expected = look(packet, headroom);
                if matches!(place, Place::Port(_)) {
                    // Who sends it needs none.
                    expected.annotations.fill(0);
                }
                equal(&self.arrival(left.way, &run.data, came)?, &expected, "what goes up")
            }
            _ => equal(&verdict, &drop, "verdict"),
        }
    }

    /// What the programs make of a frame, as far as the node `stop`: the packet, the way out, and what was counted.
    pub fn interpret(&mut self, frame: &[u8], stop: Option<usize>) -> Result<Made, String> {
        let mut packet = Packet::from_bytes(frame).ok_or("no packet")?;
        // What is put in front is of whatever content; the kernel puts zeros there.
        let room = packet.headroom();
        packet.push(room).map_err(|e| format!("{e:?}"))?[..room].fill(0);
        packet.pull(room).map_err(|e| format!("{e:?}"))?;
        packet.set_packet_type(packet_type(frame, self.hook));
        let mut edges = vec![0; self.compiled.first_exit - self.compiled.edge_counters[0]];
        let first = self.compiled.edge_counters[0];
        let leaves = |node: usize, output| edges[self.compiled.edge_counters[node] + output - first] += 1;
        let exit = interpret(&mut self.graph, &mut packet, stop, leaves);
        let counted = self.counted_by_elements();
        Ok(Made { packet, exit, counted, edges })
    }

    /// What the elements' counters have gained since the last call.
    pub fn counted_by_elements(&mut self) -> Vec<u64> {
        let elements = self.elements();
        let counted = elements.iter().zip(&self.before.1).map(|(a, b)| a.wrapping_sub(*b)).collect();
        self.before.1 = elements;
        counted
    }

    /// A packet that went up, as its luggage says, which came so addressed.
    pub fn arrival(&self, way: usize, bytes: &[u8], came: PacketType) -> Result<Look, String> {
        let luggage = self.compiled.luggage[way].as_ref().ok_or("no luggage")?;
        let (metadata, frame) = bytes.split_at_checked(luggage.len()).ok_or("no metadata")?;
        equal(&causeway_fastpath::Luggage::number(metadata), &Some(FIRST_NUMBER + way as u32), "number")?;
        let arrival = luggage.unpack(metadata).ok_or("it cannot be read")?;
        if luggage.is_touched() {
            equal(&arrival.packet_type, &Some(came as u8), "how it was addressed")?;
        }
        let mut annotations = vec![0; 48];
        for (at, bytes) in arrival.annotations() {
            annotations[usize::from(at)..usize::from(at) + 8].copy_from_slice(&bytes);
        }
        // What it was before it was cut into parts may be longer.
        let end = arrival.end.unwrap_or(frame.len()).min(frame.len());
        let bytes = frame.get(arrival.data..end).ok_or(format!("data from {} to {end}", arrival.data))?;
        let mut headers = arrival.headers.map(|at| at.map(|at| at as i64));
        hide(&mut headers, arrival.data as i64);
        Ok(Look { bytes: bytes.to_vec(), headers, annotations })
    }
}

pub fn equal<T: PartialEq + std::fmt::Debug>(is: &T, should: &T, what: &str) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("{what}: {is:02x?} and not {should:02x?}")) }
}

/// Headers in front of the data are none for programs, but the link-layer header.
fn hide(headers: &mut [Option<i64>; 3], data: i64) {
    headers[1..].iter_mut().for_each(|at| *at = at.filter(|&at| at >= data));
}

/// How a packet looks that came with so much headroom.
pub fn look(packet: &Packet, headroom: usize) -> Look {
    let data = packet.headroom() as i64 - headroom as i64;
    let behind = |at: Option<usize>| at.map(|at| at as i64 + data);
    let mac = packet.mac_distance().map(|at| i64::from(at) + data);
    Look {
        bytes: packet.data().to_vec(),
        headers: [mac, behind(packet.network_offset()), behind(packet.transport_offset())],
        annotations: packet.anno_bytes::<48>(0).to_vec(),
    }
}

fn is_tcx(hook: Hook) -> bool {
    matches!(hook, Hook::Tcx(_))
}

/// What programs return that pass packets, and that drop them.
fn verdicts(hook: Hook) -> (i32, i32) {
    match hook {
        Hook::Xdp(_) => (action::XDP_PASS, action::XDP_DROP),
        Hook::Tcx(_) => (action::TCX_NEXT, action::TCX_DROP),
    }
}

pub fn packet_type(frame: &[u8], hook: Hook) -> PacketType {
    // At tcx, test runs are on the loopback device, whose address is zero.
    let ours = if is_tcx(hook) { [0; 6] } else { OURS };
    match frame.first_chunk::<6>() {
        Some(to) if *to == ours => PacketType::Host,
        // That device's broadcast address is zero, too.
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) if !is_tcx(hook) => PacketType::Broadcast,
        Some([first, ..]) if first & 1 == 1 => PacketType::Multicast,
        _ => PacketType::OtherHost,
    }
}

/// Runs a packet through the programs, up to the node `stop`. `leaves` is told of the outputs on the way that lead somewhere.
fn interpret(
    graph: &mut Graph<Table<'_>>,
    packet: &mut Packet,
    stop: Option<usize>,
    mut leaves: impl FnMut(usize, usize),
) -> Exit {
    let (mut at, mut passed) = (0, Vec::new());
    loop {
        let up = Exit::Up(Place::Node(at));
        let node = &mut graph.nodes[at];
        // What comes round again goes up.
        if stop == Some(at) || passed.contains(&at) {
            return up;
        }
        passed.push(at);
        let Some(program) = &mut node.program else { return up };
        let target = match program.run(packet, 0) {
            Outcome::GiveUp => return up,
            Outcome::Drop(reason) => return Exit::Drop(at, reason as u16),
            Outcome::Leave(output) => {
                let target = node.outputs.get(output).copied().flatten();
                target.iter().for_each(|_| leaves(at, output));
                target
            }
        };
        match target {
            None => return Exit::Nowhere(at),
            Some(Target::Emit(port)) => return Exit::Emit(port),
            Some(Target::Up(element, input)) => return Exit::Up(Place::Element(element, input)),
            Some(Target::Node(next)) => at = next,
        }
    }
}
