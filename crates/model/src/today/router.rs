//! A router of today at work: one queue of events for ports, links, memory and cores.

mod dma;
mod run;
mod work;

pub use run::{Drop, Outcome, run};

use super::card::{Inside, Port};
use super::cores::{Near, Work, buffer_address};
use super::graph::{Graph, Reply};
use super::machine::Plan;
use super::mix;
use crate::event::{MICROSECOND, Queue, Time};
use crate::link::Link;
use crate::pcie::{Direction, Packet, Pcie};
use crate::trace::Trace;
use anyhow::Result;
use fastrand::Rng;

/// Between two looks at how full everything is.
const SAMPLE_PS: Time = MICROSECOND;

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A frame has come in whole by a port.
    Arrival(usize),
    /// What goes this way on a slot's link is there.
    Link(usize, Direction),
    /// The host has the data of a read.
    Answer(usize, Packet),
    /// The host has taken so much of a write.
    Taken(usize, u32),
    /// The frame on a port's wire has left.
    Sent(usize),
    /// A core's turn ends, or begins where it slept.
    Core(usize),
    /// A piece of a worker's work ends, and the next one begins, if that is still what it has in mind.
    Work(usize, u64),
    /// Somebody looks how full everything is.
    Sample,
}

/// A frame inside.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// In the order of arrivals.
    number: u64,
    bytes: u32,
    flow: u64,
    core: usize,
    buffer: u32,
    /// Bytes that its transfer under way has moved.
    moved: u32,
    arrived_ps: Time,
    /// Of one that comes in: what it is, if no packet of a flow. Of one that leaves: what comes back for it.
    reply: Option<Reply>,
}

/// A core.
#[derive(Clone, Debug, Default)]
struct Core {
    /// The frames of the turn under way.
    turn: Vec<Inside>,
    /// The port whose turn it is.
    port: usize,
    /// The port that is looked at next.
    next: usize,
    asleep: bool,
    busy_ps: Time,
    free: Vec<u32>,
    buffers: u32,
}

impl Core {
    /// A buffer: the one that was given back last, or a new one.
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.buffers += 1;
            self.buffers - 1
        })
    }
}

/// What is offered by a port.
struct Source {
    rng: Rng,
    /// When the wire is free again.
    free_ps: Time,
    next: usize,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
struct Counts {
    arrived: u64,
    left: u64,
    left_bytes: u64,
    wire_ps: Time,
    drops: [u64; Drop::ALL.len()],
    delays_ns: Vec<u32>,
    samples: u64,
    /// Reads under way, by slot, summed over all looks.
    tags: Vec<u64>,
}

/// A router at work.
pub struct Router {
    queue: Queue<Event>,
    plan: Plan,
    /// Lengths of frames, in turns, and the load.
    sizes: Vec<u32>,
    load: f64,
    ports: Vec<Port>,
    links: Vec<(usize, Link)>,
    slots: Vec<Pcie>,
    latencies_ps: Vec<Time>,
    cores: Vec<Core>,
    near: Near,
    sources: Vec<Source>,
    frames: Vec<Frame>,
    unused: Vec<Inside>,
    counts: Counts,
    /// What the cores run, if it is a graph.
    graph: Option<Box<Graph>>,
    /// Lines of tables that its elements have read.
    lookups: u64,
    /// Why it cannot go on.
    failed: Option<String>,
    /// One frame's way.
    pub trace: Trace,
}

impl Router {
    /// A router that has just started, offered so much of each port's speed, with a frame that is followed.
    ///
    /// # Errors
    ///
    /// If the plan's lengths of frames are not possible, or its graph.
    pub fn new(plan: &Plan, load: f64, seed: u64, followed: Option<u64>) -> Result<Router> {
        let links = plan.links();
        let cores = plan.processor.cores.value as usize;
        let slots: Vec<Pcie> = plan.slot.values().map(|slot| Pcie::new(slot.parameters())).collect();
        let source = |n: usize| Source { rng: Rng::with_seed(mix(seed, n as u64)), free_ps: 0, next: 0 };
        let mut router = Router {
            queue: Queue::new(),
            sizes: plan.frames()?,
            load,
            ports: vec![Port::new(cores); links.len()],
            sources: (0..links.len()).map(source).collect(),
            latencies_ps: plan.slot.values().map(|slot| slot.latency.value).collect(),
            counts: Counts { tags: vec![0; slots.len()], ..Counts::default() },
            links,
            slots,
            cores: vec![Core { asleep: true, ..Core::default() }; cores],
            near: Near::new(plan),
            graph: plan.graph.as_ref().map(|of| Graph::new(of, plan, seed)).transpose()?.map(Box::new),
            lookups: 0,
            failed: None,
            frames: Vec::new(),
            unused: Vec::new(),
            trace: Trace::of(followed),
            plan: plan.clone(),
        };
        router.start();
        Ok(router)
    }

    fn start(&mut self) {
        let ring = self.plan.card.receive_ring.value;
        for core in 0..self.cores.len() {
            for port in 0..self.ports.len() {
                for _ in 0..ring {
                    let buffer = self.take_buffer(core);
                    self.ports[port].rings[core].given.push_back(buffer);
                }
                self.fetch_given(port, core);
            }
        }
        for port in 0..self.ports.len() {
            // Ports begin at different times.
            let first = self.sizes[0];
            let offset_ps = self.sources[port].rng.u64(..=self.links[port].1.frame_ps(first));
            self.sources[port].free_ps = offset_ps;
            // To a port that nobody receives from nothing is sent.
            if self.graph.as_ref().is_none_or(|graph| graph.receives[port]) {
                self.schedule_arrival(port);
            }
        }
        self.begin_work();
        self.queue.at(SAMPLE_PS, Event::Sample);
    }

    /// Lets it work until `until_ps`.
    pub fn run(&mut self, until_ps: Time) {
        while let Some(event) = self.queue.before(until_ps) {
            match event {
                Event::Arrival(port) => self.arrive(port),
                Event::Link(slot, direction) => self.moved(slot, direction),
                Event::Answer(slot, packet) => {
                    self.slots[slot].send(packet);
                    self.begin(slot);
                }
                Event::Taken(slot, bytes) => {
                    self.slots[slot].taken(bytes);
                    self.begin(slot);
                }
                Event::Sent(port) => self.sent(port),
                Event::Core(core) => self.core(core),
                Event::Work(worker, generation) => self.work(worker, generation),
                Event::Sample => self.sample(),
            }
        }
    }

    /// When the next frame of a port is in: after a pause that makes the load, at random.
    fn schedule_arrival(&mut self, port: usize) {
        let source = &mut self.sources[port];
        let bytes = self.sizes[source.next % self.sizes.len()];
        let frame_ps = self.links[port].1.frame_ps(bytes);
        let pause_ps = frame_ps as f64 * (1.0 / self.load - 1.0).max(0.0);
        let pause_ps = -pause_ps * (1.0 - source.rng.f64()).ln();
        source.free_ps += frame_ps + pause_ps as Time;
        self.queue.at(source.free_ps, Event::Arrival(port));
    }

    fn arrive(&mut self, port: usize) {
        let source = &mut self.sources[port];
        let bytes = self.sizes[source.next % self.sizes.len()];
        source.next += 1;
        let flow = source.rng.u64(..self.plan.traffic.flows.value) << 8 | port as u64;
        self.schedule_arrival(port);
        self.come(port, bytes, flow, None);
    }

    /// A frame has come in.
    fn come(&mut self, port: usize, bytes: u32, flow: u64, reply: Option<Reply>) {
        let (number, arrived_ps) = (self.counts.arrived, self.queue.now_ps());
        self.counts.arrived += 1;
        self.trace.note(number, arrived_ps, "has come in");
        if u64::from(self.ports[port].fifo_bytes + bytes) > self.plan.card.receive_fifo.value {
            self.counts.drops[Drop::Fifo as usize] += 1;
            self.trace.note(number, arrived_ps, "is dropped by the card");
            return;
        }
        let core = (mix(flow, 0) % self.cores.len() as u64) as usize;
        let frame = Frame { number, bytes, flow, core, buffer: 0, moved: 0, arrived_ps, reply };
        let inside = match self.unused.pop() {
            Some(inside) => {
                self.frames[inside as usize] = frame;
                inside
            }
            None => {
                self.frames.push(frame);
                (self.frames.len() - 1) as Inside
            }
        };
        self.ports[port].fifo_bytes += bytes;
        self.ports[port].fifo.push_back((inside, core));
        self.receive(port);
    }

    /// Something happened to a frame.
    fn note(&mut self, inside: Inside, what: &'static str) {
        self.trace.note(self.frames[inside as usize].number, self.queue.now_ps(), what);
    }

    /// A frame is inside no more.
    fn forget(&mut self, inside: Inside) -> Frame {
        self.unused.push(inside);
        self.frames[inside as usize]
    }

    fn sent(&mut self, port: usize) {
        self.ports[port].wire_busy = false;
        let Some(inside) = self.ports[port].sending.pop_front() else { return };
        self.note(inside, "has left");
        let frame = self.forget(inside);
        let now_ps = self.queue.now_ps();
        self.counts.left += 1;
        self.counts.left_bytes += u64::from(frame.bytes);
        self.counts.wire_ps += self.links[port].1.frame_ps(frame.bytes);
        if frame.number != work::MADE {
            let inside_ns = (now_ps - frame.arrived_ps) / 1_000;
            self.counts.delays_ns.push(inside_ns.min(u64::from(u32::MAX)) as u32);
        }
        let of_port = &mut self.ports[port];
        of_port.sending_bytes -= frame.bytes;
        let rings = &mut of_port.rings[frame.core];
        rings.sent.push_back(frame.buffer);
        rings.unreported_sent += 1;
        self.begin_wire(port);
        self.send(port);
        self.report(port, frame.core);
        self.begin(self.links[port].0);
        self.answered_from_outside(port, frame.reply);
    }

    /// A frame that is whole goes to the wire.
    fn begin_wire(&mut self, port: usize) {
        let of_port = &mut self.ports[port];
        let Some(&inside) = of_port.sending.front() else { return };
        let frame = &self.frames[inside as usize];
        if !of_port.wire_busy && frame.moved >= frame.bytes {
            of_port.wire_busy = true;
            self.queue.after(self.links[port].1.frame_ps(frame.bytes), Event::Sent(port));
        }
    }

    /// Frames are ready for a core: it begins if it slept.
    fn wake(&mut self, core: usize) {
        if self.cores[core].asleep {
            self.cores[core].asleep = false;
            self.queue.after(self.plan.mechanism().wake.value, Event::Core(core));
        }
    }

    fn core(&mut self, core: usize) {
        self.end_turn(core);
        let ports = self.ports.len();
        let first = self.cores[core].next;
        let has_frames = |port: &usize| !self.ports[*port].rings[core].ready.is_empty();
        match (0..ports).map(|n| (first + n) % ports).find(has_frames) {
            Some(port) => self.begin_turn(core, port),
            None => self.cores[core].asleep = true,
        }
    }

    fn begin_turn(&mut self, core: usize, port: usize) {
        let now_ps = self.queue.now_ps();
        let batch = self.plan.mechanism().batch.value as usize;
        for of_port in &mut self.ports {
            let rings = &mut of_port.rings[core];
            let n = std::mem::take(&mut rings.cleanable);
            rings.used -= n;
            self.cores[core].free.extend(rings.sent.drain(..n));
        }
        let ready = &mut self.ports[port].rings[core].ready;
        let n = ready.len().min(batch);
        let turn: Vec<Inside> = ready.drain(..n).collect();
        let work = |inside: &Inside| {
            let frame = &self.frames[*inside as usize];
            Work { address: buffer_address(core, frame.buffer), bytes: frame.bytes, flow: frame.flow }
        };
        let work: Vec<Work> = turn.iter().map(work).collect();
        turn.iter().for_each(|inside| self.note(*inside, "is taken from the ring"));
        let took_ps = self.near.turn_ps(now_ps, &work);
        let of_core = &mut self.cores[core];
        (of_core.turn, of_core.port, of_core.next) = (turn, port, (port + 1) % self.ports.len());
        of_core.busy_ps += took_ps;
        self.queue.after(took_ps, Event::Core(core));
    }

    /// Posts the frames of a turn, gives the card new buffers, and tells both cards.
    fn end_turn(&mut self, core: usize) {
        let (turn, port) = (std::mem::take(&mut self.cores[core].turn), self.cores[core].port);
        if turn.is_empty() {
            return;
        }
        let to = (port + 1) % self.ports.len();
        for inside in turn {
            let rings = &mut self.ports[to].rings[core];
            if rings.used < self.plan.card.transmit_ring.value as usize {
                rings.used += 1;
                rings.untold.push_back(inside);
                self.note(inside, "is on the ring for transmission");
            } else {
                self.counts.drops[Drop::Transmit as usize] += 1;
                self.note(inside, "is dropped at the ring for transmission");
                let frame = self.forget(inside);
                self.cores[core].free.push(frame.buffer);
            }
            let buffer = self.cores[core].take();
            self.ports[port].rings[core].given.push_back(buffer);
        }
        let posted = self.ports[to].rings[core].untold.len() as u32;
        self.ring_bell(to, core, posted);
        self.ring_bell(port, core, 0);
    }

    fn sample(&mut self) {
        self.counts.samples += 1;
        for (sum, slot) in self.counts.tags.iter_mut().zip(&self.slots) {
            *sum += u64::from(slot.tags_used());
        }
        self.count_buffers();
        self.queue.after(SAMPLE_PS, Event::Sample);
    }
}
