//! One element on the bench: packets in, packets out, handlers, time under control.
//!
//! Element tests use this, and so does anything that wants an element without a router around it.

use crate::clock::{Clock, SIMULATED_START_NS};
use crate::conf::{Conf, Env, Persistent};
use crate::core::Core;
use crate::counters::{Counter, Counters};
use crate::cx::Cx;
use crate::element::Element;
use crate::ir::Program;
use crate::measure::Unit;
use crate::node::{InPort, Node, OutPort};
use crate::spec::Spec;
use crate::task::Run;
use causeway_packet::{Batch, Packet};
use std::collections::VecDeque;

/// Takes what the element pushes out.
#[derive(Default)]
struct Sink {
    packets: VecDeque<Packet>,
    total: u64,
}

/// Gives what the element pulls.
#[derive(Default)]
struct Feed {
    packets: VecDeque<Packet>,
    given: u64,
}

impl Element for Sink {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        self.total += batch.len() as u64;
        self.packets.extend(batch.drain());
    }
}

impl Element for Feed {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        let n = max.min(self.packets.len());
        self.given += n as u64;
        batch.extend(self.packets.drain(..n));
    }
}

static SINK: Spec = Spec { name: "Sink", ports: "1/0", processing: "h/h", ..Spec::DEFAULT };
static FEED: Spec = Spec { name: "Feed", ports: "0/1", processing: "l/l", ..Spec::DEFAULT };

/// How the element's ports are used.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// For each input, whether the element pulls it.
    pub pulled_inputs: Vec<bool>,
    /// For each output: pulled by the harness, pushed to it, or left unconnected.
    pub outputs: Vec<Output>,
}

/// How one output is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The element pushes.
    Pushed,
    /// The harness pulls.
    Pulled,
    /// Not connected.
    Open,
}

/// An element with a source on each input and a sink on each output.
pub struct Harness {
    core: Core,
    env: Env,
    feeds: Vec<usize>,
    sinks: Vec<usize>,
    pushed: u64,
    pulled: u64,
}

const TARGET: usize = 0;

impl Harness {
    /// An element of class `spec` with configuration `config`, with `inputs` push inputs and `outputs` push
    /// outputs. The errors are those of its configuration.
    ///
    /// # Errors
    /// What is wrong with the configuration, or why the element cannot be initialised.
    pub fn new(
        spec: &'static Spec,
        config: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Harness, Vec<String>> {
        let ports = Ports { pulled_inputs: vec![false; inputs], outputs: vec![Output::Pushed; outputs] };
        Self::with_ports(spec, config, &ports)
    }

    /// As [`Harness::new`], with one pull input and one pull output.
    ///
    /// # Errors
    /// As of [`Harness::new`].
    pub fn pulled(spec: &'static Spec, config: &str) -> Result<Harness, Vec<String>> {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pulled] };
        Self::with_ports(spec, config, &ports)
    }

    /// As [`Harness::new`], with ports as `ports` says.
    ///
    /// # Errors
    /// As of [`Harness::new`].
    pub fn with_ports(spec: &'static Spec, config: &str, ports: &Ports) -> Result<Harness, Vec<String>> {
        Self::with_values(spec, config, ports, Persistent::default())
    }

    /// As [`Harness::with_ports`], for an element that finds `values` among those that outlive a hot swap.
    ///
    /// # Errors
    /// As of [`Harness::new`].
    pub fn with_values(
        spec: &'static Spec,
        config: &str,
        ports: &Ports,
        values: Persistent,
    ) -> Result<Harness, Vec<String>> {
        let io = |e: std::io::Error| vec![e.to_string()];
        let mut env = Env::new(Counters::new(1, 4_096, None).map_err(io)?);
        env.persistent = values;
        let counts = (ports.pulled_inputs.len(), ports.outputs.len());
        let mut conf = Conf::new(&mut env, "element".into(), spec, 0, counts, config);
        let element = match (spec.build)(&mut conf) {
            Ok(element) => element,
            Err(_) => return Err(conf.errors().to_vec()),
        };
        let mut core = Core::new(0, Clock::simulated(SIMULATED_START_NS), &mut env.counters, 1);
        core.context = env.context();
        let mut h = Harness { core, env, feeds: Vec::new(), sinks: Vec::new(), pushed: 0, pulled: 0 };
        h.add(spec, element, counts);
        h.core.nodes[TARGET].config = config.to_owned();
        for (input, &pulled) in ports.pulled_inputs.iter().enumerate() {
            let feed = h.add(&FEED, Box::new(Feed::default()), (0, 1));
            if pulled {
                h.core.nodes[TARGET].ins[input].from = Some((feed, 0));
            }
            h.feeds.push(feed);
        }
        for (output, &kind) in ports.outputs.iter().enumerate() {
            let sink = h.add(&SINK, Box::new(Sink::default()), (1, 0));
            if kind == Output::Pushed {
                h.core.nodes[TARGET].outs[output].to = Some((sink, 0));
            }
            h.sinks.push(sink);
        }
        crate::single::mark(&mut h.core);
        let done = h.core.activate(TARGET, |e, cx| e.initialize(cx));
        h.env.warnings.append(&mut h.core.said);
        if let Some(Err(why)) = done {
            return Err(vec![why.to_string()]);
        }
        h.core.deliver();
        h.core.activate(TARGET, |e, cx| e.commit(cx));
        Ok(h)
    }

    fn add(&mut self, spec: &'static Spec, element: Box<dyn Element>, ports: (usize, usize)) -> usize {
        let counters = &mut self.env.counters;
        let core = &mut self.core;
        let node = Node {
            name: if core.nodes.is_empty() { "element".into() } else { spec.name.into() },
            spec,
            config: String::new(),
            shown: None,
            element: Some(element),
            outs: (0..ports.1).map(|_| OutPort::default()).collect(),
            used: Vec::new(),
            ins: (0..ports.0).map(|_| InPort::default()).collect(),
            drops: spec.drops.iter().map(|d| counters.add(0, spec.name, d.name, Unit::Packets)).collect(),
            unconnected: counters.add(0, spec.name, "unconnected", Unit::Packets),
            packets_signal: spec.notifies.packets.then(|| core.signals.add(false)),
            room_signal: spec.notifies.room.then(|| core.signals.add(true)),
            quiescent: false,
            one_by_one: false,
            stamps: spec.stamps,
            fused: Vec::new(),
            entries: 0,
        };
        core.nodes.push(node);
        core.nodes.len() - 1
    }

    /// Pushes one packet into input `port`.
    pub fn push(&mut self, port: usize, packet: Packet) {
        self.push_all(port, [packet]);
    }

    /// Pushes one batch of packets (at most 256) into input `port`.
    pub fn push_all(&mut self, port: usize, packets: impl IntoIterator<Item = Packet>) {
        let mut batch = self.core.take_batch();
        batch.extend(packets);
        self.pushed += batch.len() as u64;
        self.core.push(TARGET, port, batch);
    }

    /// Lays a packet ready for the element to pull from input `port`.
    pub fn feed(&mut self, port: usize, packet: Packet) {
        if let Some(feed) = self.node_as::<Feed>(self.feeds.get(port).copied()) {
            feed.packets.push_back(packet);
        }
    }

    /// Pulls at most `max` packets from output `port`.
    pub fn pull(&mut self, port: usize, max: usize) -> Vec<Packet> {
        let mut batch = self.core.take_batch();
        self.core.pull(TARGET, port, max, &mut batch);
        self.core.deliver();
        let packets: Vec<Packet> = batch.drain().collect();
        self.pulled += packets.len() as u64;
        self.core.keep_batch(batch);
        packets
    }

    /// Takes what the element has pushed to output `port`.
    pub fn take(&mut self, port: usize) -> Vec<Packet> {
        self.node_as::<Sink>(self.sinks.get(port).copied())
            .map_or(Vec::new(), |s| s.packets.drain(..).collect())
    }

    /// Runs the element's task once if it is scheduled; says what it answered.
    pub fn run_task(&mut self) -> Option<Run> {
        self.core.run_task()
    }

    /// Lets simulated time pass, running timers as they come due.
    pub fn advance(&mut self, ns: u64) {
        let end = self.core.clock.now_ns() + ns;
        while let Some(when) = self.core.timers.next_ns().filter(|&w| w <= end) {
            self.core.clock.jump(when);
            while self.core.run_timer(when) {}
        }
        self.core.clock.jump(end);
    }

    /// Reads a handler.
    ///
    /// # Errors
    /// What a person who reads it is told.
    pub fn read(&mut self, handler: &str) -> Result<String, String> {
        self.read_with(handler, "")
    }

    /// Reads a handler with a parameter.
    ///
    /// # Errors
    /// What a person who reads it is told.
    pub fn read_with(&mut self, handler: &str, arg: &str) -> Result<String, String> {
        crate::handler::read(&mut self.core, TARGET, handler, arg).map_err(|e| e.to_string())
    }

    /// Writes a handler.
    ///
    /// # Errors
    /// What a person who writes it is told.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        let done = crate::handler::write(&mut self.core, TARGET, handler, value).map_err(|e| e.to_string());
        self.core.deliver();
        done
    }

    /// What the element lowers to, as it is configured now.
    pub fn lower(&self) -> Option<Program> {
        self.core.nodes[TARGET].element.as_ref()?.lower()
    }

    /// Adds to a counter of the element's program, as who does its work does.
    pub fn count(&mut self, counter: &Counter, n: u64) {
        self.core.add(Some(TARGET), counter, n);
    }

    /// Packets dropped so far, by reason; reasons without drops are left out.
    pub fn drops(&self) -> Vec<(&'static str, u64)> {
        let node = &self.core.nodes[TARGET];
        let counts = node.spec.drops.iter().zip(&node.drops).map(|(d, c)| (d.name, c.get()));
        counts.chain([("unconnected", node.unconnected.get())]).filter(|&(_, n)| n > 0).collect()
    }

    /// Checks the books of an element that makes no packets: in = out + dropped + held.
    pub fn assert_balanced(&mut self) {
        let mut given = self.pushed;
        for feed in self.feeds.clone() {
            given += self.node_as::<Feed>(Some(feed)).map_or(0, |f| f.given);
        }
        let mut out = self.pulled;
        for sink in self.sinks.clone() {
            out += self.node_as::<Sink>(Some(sink)).map_or(0, |s| s.total);
        }
        let dropped: u64 = self.drops().iter().map(|(_, n)| n).sum();
        assert_eq!(given, out + dropped + self.held() as u64, "in = out + dropped + held");
    }

    /// Packets that the element holds.
    pub fn held(&self) -> usize {
        self.core.nodes[TARGET].element.as_ref().map_or(0, |e| e.held())
    }

    /// Whether the element says that it has room, if it is one that does say so.
    pub fn has_room(&self) -> bool {
        self.core.nodes[TARGET].room_signal.is_none_or(|id| self.core.signals.is_active(id))
    }

    /// Whether the run-time was asked to stop.
    pub fn stopped(&self) -> bool {
        self.core.run_count <= 0
    }

    /// Lines that the element's configuration warned with.
    pub fn warnings(&self) -> Vec<String> {
        self.env.warnings.iter().map(ToString::to_string).collect()
    }

    /// The element, as its own type.
    pub fn element<T: Element>(&mut self) -> Option<&mut T> {
        self.node_as::<T>(Some(TARGET))
    }

    fn node_as<T: Element>(&mut self, node: Option<usize>) -> Option<&mut T> {
        self.core.nodes.get_mut(node?)?.element.as_mut()?.downcast_mut()
    }
}

/// A packet of `bytes`, for tests. Panics if the pool has no frame for it.
pub fn packet(bytes: &[u8]) -> Packet {
    Packet::from_bytes(bytes).expect("a frame")
}

/// What becomes of `packet` in an element with one input and one output, for tests: it comes out, or the name of the reason
/// for which it was dropped. Panics if the configuration is wrong or the books do not balance.
///
/// # Errors
/// The name of the reason for which it was dropped.
pub fn verdict(spec: &'static Spec, config: &str, packet: Packet) -> Result<Packet, &'static str> {
    let mut h = Harness::new(spec, config, 1, 1).expect("a configuration without errors");
    h.push(0, packet);
    h.assert_balanced();
    h.take(0).pop().ok_or_else(|| h.drops().first().map_or("held", |d| d.0))
}
