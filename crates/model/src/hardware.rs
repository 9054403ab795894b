//! The parts of a machine beside its processor, put together: cards on buses, memory, the cache.

use crate::bus::{Bus, Ended, Request, Transfer};
use crate::cache::Cache;
use crate::event::{Queue, Time};
use crate::layout::Place;
use crate::link::Link;
use crate::machine::{BusValues, Machine};
use crate::memory::Memory;
use crate::nic::{DESCRIPTOR, Effect, Engine, Frame, Nic};
use crate::router::Event;
use crate::trace::Trace;
use std::collections::VecDeque;

/// Bytes of a write to a register.
const REGISTER: u32 = 4;
/// The master of each bus that writes for the processor.
const HOST: usize = 0;

/// Buffers of packets. The one that was given back last is used first, as the kernel's allocator and a recycling list do.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    free: Vec<u32>,
    /// Buffers that there are.
    pub made: u32,
}

impl Buffers {
    /// A buffer that is free, or a new one.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        })
    }

    /// A buffer is free again.
    pub fn give(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Buffers that are free.
    pub fn free(&self) -> usize {
        self.free.len()
    }
}

/// A register of a card that the processor wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doorbell {
    port: usize,
    engine: Engine,
}

/// Which buses there are, and the bus of each of so many ports: first those that ports share, then those of single ports.
fn wiring(machine: &Machine, ports: usize) -> (Vec<&BusValues>, Vec<usize>) {
    let shared: Vec<&String> =
        machine.bus.iter().filter(|(_, bus)| !bus.each_port).map(|(name, _)| name).collect();
    let mut kinds: Vec<&BusValues> = shared.iter().map(|name| &machine.bus[*name]).collect();
    let names = machine.ports.iter().flat_map(|p| std::iter::repeat_n(p.bus.get_ref(), *p.count.get_ref()));
    let mut on = Vec::new();
    for name in names.take(ports) {
        let bus = shared.iter().position(|known| *known == name).unwrap_or(kinds.len());
        if bus == kinds.len() {
            kinds.push(&machine.bus[name]);
        }
        on.push(bus);
    }
    (kinds, on)
}

/// The hardware without the processor.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// The cards, by port.
    pub nics: Vec<Nic>,
    links: Vec<Link>,
    /// Bus and first master of each port.
    places: Vec<(usize, usize)>,
    /// The buses.
    pub buses: Vec<Bus>,
    doorbells: Vec<VecDeque<Doorbell>>,
    /// What cards and processor share.
    pub memory: Memory,
    /// The processor's cache.
    pub cache: Cache,
    /// What cards wrote to memory and other caches have not heard of, if there are others: the first line, and bytes.
    pub written: Option<Vec<(Place, u32)>>,
    /// The packets' buffers.
    pub buffers: Buffers,
}

impl Hardware {
    /// The first ports of a machine, each with its link.
    pub fn new(machine: &Machine, links: &[Link], moderated: bool) -> Hardware {
        let (kinds, on) = wiring(machine, links.len());
        let mut masters = vec![1; kinds.len()];
        let mut places = Vec::new();
        for bus in on {
            places.push((bus, masters[bus]));
            masters[bus] += Engine::COUNT;
        }
        let buses = kinds.iter().zip(&masters).map(|(bus, &masters)| Bus::new(bus.parameters(), masters));
        let p = &machine.processor;
        Hardware {
            nics: vec![Nic::new(machine.card.parameters(moderated)); links.len()],
            links: links.to_vec(),
            places,
            buses: buses.collect(),
            doorbells: vec![VecDeque::new(); kinds.len()],
            memory: Memory::new(machine.memory.rate.value, machine.memory.latency.value),
            cache: Cache::new(p.cache.value, p.cache_ways.value as usize, p.cache_line.value),
            written: None,
            buffers: Buffers::default(),
        }
    }

    /// The processor touches something; says how long it waits for memory.
    pub fn touch(&mut self, now_ps: Time, place: Place) -> Time {
        if self.cache.touch(place.address()) {
            0
        } else {
            self.memory.access(now_ps, self.cache.line_bytes())
        }
    }

    /// The processor tells a card that there are new descriptors.
    pub fn ring(&mut self, port: usize, engine: Engine, queue: &mut Queue<Event>) {
        let (bus, _) = self.places[port];
        self.doorbells[bus].push_back(Doorbell { port, engine });
        self.ask(bus, Request { master: HOST, transfer: Transfer::Write, bytes: REGISTER }, queue);
    }

    fn ask(&mut self, bus: usize, request: Request, queue: &mut Queue<Event>) {
        if let Some(hold_ps) = self.buses[bus].ask(request) {
            queue.after(hold_ps, Event::Bus(bus));
        }
    }

    /// Lets an idle engine of a card go on.
    pub fn poke(&mut self, port: usize, engine: Engine, queue: &mut Queue<Event>) {
        if let Some((transfer, bytes)) = self.nics[port].next(engine) {
            let (bus, first) = self.places[port];
            self.ask(bus, Request { master: first + engine as usize, transfer, bytes }, queue);
        }
    }

    /// The data of a split read are there.
    pub fn answer(&mut self, bus: usize, request: Request, queue: &mut Queue<Event>) {
        self.ask(bus, request, queue);
    }

    /// The transaction under way on a bus ended. Says the port that may interrupt now.
    pub fn end(&mut self, bus: usize, queue: &mut Queue<Event>, trace: &mut Trace) -> Option<usize> {
        let (ended, next) = self.buses[bus].end()?;
        if let Some(hold_ps) = next {
            queue.after(hold_ps, Event::Bus(bus));
        }
        let request = match ended {
            Ended::Split(completion) => {
                let wait_ps = self.memory.access(queue.now_ps(), completion.bytes);
                let latency_ps = self.buses[bus].read_latency_ps().max(wait_ps);
                queue.after(latency_ps, Event::Answer(bus, completion));
                return None;
            }
            Ended::Done(request) if request.master == HOST => {
                let bell = self.doorbells[bus].pop_front()?;
                self.poke(bell.port, bell.engine, queue);
                return None;
            }
            Ended::Done(request) => request,
        };
        let port = self
            .places
            .iter()
            .position(|&(on, first)| on == bus && (first..first + Engine::COUNT).contains(&request.master))?;
        let engine = Engine::ALL[request.master - self.places[port].1];
        let interrupts = self.settle(port, engine, request, queue, trace);
        self.poke(port, engine, queue);
        interrupts.then_some(port)
    }

    /// What an engine's transaction means for memory and cache; whether it was a report.
    fn settle(
        &mut self,
        port: usize,
        engine: Engine,
        request: Request,
        queue: &mut Queue<Event>,
        trace: &mut Trace,
    ) -> bool {
        let now_ps = queue.now_ps();
        let first_sent = self.nics[port].next_to_read();
        let Some(effect) = self.nics[port].end(engine) else { return false };
        if request.transfer == Transfer::Write {
            self.memory.access(now_ps, request.bytes);
        }
        match effect {
            Effect::Read => {
                if let Some(frame) = first_sent.filter(|_| self.nics[port].next_to_read() != first_sent) {
                    trace.note(frame.number, now_ps, "is in the card that sends it");
                }
                self.begin_wire(port, queue);
            }
            Effect::Received(frame) => {
                trace.note(frame.number, now_ps, "is in memory");
                self.invalidate(Place::Headers(frame.buffer), frame.bytes);
            }
            Effect::ReportedReceived(place, n) => {
                self.invalidate(Place::Received(port, place), n as u32 * DESCRIPTOR)
            }
            Effect::ReportedSent(place, n) => {
                self.invalidate(Place::Sent(port, place), n as u32 * DESCRIPTOR)
            }
        }
        matches!(effect, Effect::ReportedReceived(..) | Effect::ReportedSent(..))
    }

    /// What a card wrote is in no cache; that a ring ends and begins again costs a line too many.
    fn invalidate(&mut self, place: Place, bytes: u32) {
        self.cache.invalidate(place.address(), bytes);
        if let Some(written) = &mut self.written {
            written.push((place, bytes));
        }
    }

    fn begin_wire(&mut self, port: usize, queue: &mut Queue<Event>) {
        if let Some(frame) = self.nics[port].begin_wire() {
            queue.after(self.links[port].frame_ps(frame.bytes), Event::Sent(port));
        }
    }

    /// The frame on a wire has left; says which.
    pub fn sent(&mut self, port: usize, queue: &mut Queue<Event>) -> Option<Frame> {
        let frame = self.nics[port].end_wire();
        self.begin_wire(port, queue);
        self.poke(port, Engine::Report, queue);
        self.poke(port, Engine::Transmit, queue);
        frame
    }
}
