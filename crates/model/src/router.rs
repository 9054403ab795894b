//! A router: hardware, a processor and a kernel, driven by one queue of events.

use crate::bus::Request;
use crate::event::{MICROSECOND, Queue, Time};
use crate::hardware::Hardware;
use crate::link::{Link, Source, Spacing};
use crate::machine::Machine;
use crate::nic::{Engine, Frame, Overrun};
use crate::processor::{Level, Processor};
use crate::software::linux::{Around, Drop, Linux, Role, Setup};
use crate::trace::Trace;
use anyhow::{Result, ensure};
use fastrand::Rng;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A frame has come in by a port.
    Arrival(usize),
    /// The transaction under way on a bus ends.
    Bus(usize),
    /// The data of a split read are there.
    Answer(usize, Request),
    /// The frame on a port's wire has left.
    Sent(usize),
    /// The piece of this number ends.
    Piece(u64),
    /// The piece of this number ends on one of several processors.
    Processor(usize, u64),
    /// A card may interrupt again.
    Line(usize),
    /// Somebody looks how full everything is.
    Sample,
}

/// Between two looks at how full everything is.
const SAMPLE_PS: Time = 20 * MICROSECOND;

/// What comes in by a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The port it comes in by.
    pub from: usize,
    /// The ports that it leaves by, in turn.
    pub to: Vec<usize>,
    /// Frames a second.
    pub rate_fps: f64,
}

/// What is offered to which machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The links, by port.
    pub links: Vec<Link>,
    /// What comes in.
    pub flows: Vec<Flow>,
    /// Bytes of each frame, with its checksum.
    pub bytes: u32,
    /// Whether the cards moderate their interrupts.
    pub moderated: bool,
    /// The kernel.
    pub kernel: Setup,
}

/// How full everything is, summed over all looks.
#[derive(Clone, Debug, Default)]
pub struct Fullness {
    /// Looks.
    pub samples: u64,
    /// Packets that the cards and their rings for reception hold.
    pub receiving: u64,
    /// Packets on the backlog.
    pub backlog: u64,
    /// Packets in queues on the way out.
    pub queued: u64,
    /// Packets on rings for transmission and in cards behind them.
    pub sending: u64,
}

struct Offered {
    flow: Flow,
    source: Source,
    next: usize,
}

/// A router at work.
pub struct Router {
    queue: Queue<Event>,
    hardware: Hardware,
    processor: Processor,
    linux: Linux,
    offered: Vec<Offered>,
    bytes: u32,
    /// When each port's interrupt is looked at again.
    looked_at: Vec<Option<Time>>,
    /// One packet's way.
    pub trace: Trace,
    /// How full everything was.
    pub fullness: Fullness,
    /// Frames that came in, by port.
    pub arrived: Vec<u64>,
    /// Frames that left, by the port that they came in by.
    pub left: Vec<u64>,
    /// Sum of the times that those were inside, picoseconds.
    pub delay_ps: u128,
    numbers: u64,
}

impl Router {
    /// A router that has just started.
    ///
    /// # Errors
    ///
    /// If the machine has too few ports.
    pub fn new(machine: &Machine, scenario: &Scenario, seed: u64, followed: Option<u64>) -> Result<Router> {
        let ports = scenario.links.len();
        ensure!(
            ports <= machine.port_count(),
            "the machine '{}' has {} ports, and {ports} are needed: give it more under [[ports]]",
            machine.name,
            machine.port_count()
        );
        ensure!(
            !matches!(scenario.kernel.role, Role::Route(_)) || machine.lookup.is_some(),
            "the machine '{}' does not say what it takes to find a route: give it a section [lookup]",
            machine.name
        );
        ensure!(
            !matches!(scenario.kernel.role, Role::Affinity(_)),
            "several processors are a router of their own"
        );
        ensure!(
            !matches!(scenario.kernel.role, Role::Click(_)) || machine.click.is_some(),
            "the machine '{}' does not say what Click takes for what: give it a section [click]",
            machine.name
        );
        let mut hardware = Hardware::new(machine, &scenario.links, scenario.moderated);
        let mut queue = Queue::new();
        let mut trace = Trace::of(followed);
        let mut around = Around { hardware: &mut hardware, queue: &mut queue, trace: &mut trace };
        let linux = Linux::new(machine, &scenario.kernel, &mut around);
        let mut seeds = Rng::with_seed(seed);
        let mut offered: Vec<Offered> = Vec::new();
        for flow in scenario.flows.iter().filter(|flow| flow.rate_fps > 0.0) {
            let link = scenario.links[flow.from];
            let mut source = Source::new(link, scenario.bytes, flow.rate_fps, Spacing::Even, seeds.u64(..));
            queue.at(source.next_ps(), Event::Arrival(offered.len()));
            offered.push(Offered { flow: flow.clone(), source, next: seeds.usize(..flow.to.len()) });
        }
        queue.at(SAMPLE_PS, Event::Sample);
        let mut router = Router {
            queue,
            hardware,
            processor: Processor::default(),
            linux,
            offered,
            bytes: scenario.bytes,
            looked_at: vec![None; ports],
            trace,
            fullness: Fullness::default(),
            arrived: vec![0; ports],
            left: vec![0; ports],
            delay_ps: 0,
            numbers: 0,
        };
        router.schedule();
        Ok(router)
    }

    /// Lets it work until `until_ps`.
    pub fn run(&mut self, until_ps: Time) {
        while let Some(event) = self.queue.before(until_ps) {
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        let now_ps = self.queue.now_ps();
        match event {
            Event::Arrival(flow) => self.arrive(flow),
            Event::Bus(bus) => {
                if let Some(port) = self.hardware.end(bus, &mut self.queue, &mut self.trace) {
                    self.line(port);
                }
            }
            Event::Answer(bus, request) => self.hardware.answer(bus, request, &mut self.queue),
            Event::Sent(port) => {
                if let Some(frame) = self.hardware.sent(port, &mut self.queue) {
                    self.left[frame.from] += 1;
                    self.delay_ps += u128::from(now_ps - frame.arrived_ps);
                    self.trace.note(frame.number, now_ps, "has left");
                }
            }
            Event::Piece(number) => self.end_piece(number),
            // There is one.
            Event::Processor(..) => {}
            Event::Line(port) => {
                self.looked_at[port] = None;
                self.line(port);
            }
            Event::Sample => self.sample(),
        }
    }

    fn arrive(&mut self, number: usize) {
        let now_ps = self.queue.now_ps();
        let offered = &mut self.offered[number];
        let Flow { from, to, .. } = &offered.flow;
        let (from, to) = (*from, to[offered.next % to.len()]);
        offered.next += 1;
        self.queue.at(offered.source.next_ps(), Event::Arrival(number));
        let frame =
            Frame { number: self.numbers, from, to, bytes: self.bytes, arrived_ps: now_ps, buffer: 0 };
        self.numbers += 1;
        self.arrived[from] += 1;
        self.trace.note(frame.number, now_ps, "has come in");
        match self.hardware.nics[from].arrive(frame) {
            Ok(()) => self.hardware.poke(from, Engine::Receive, &mut self.queue),
            Err(reason) => {
                let drop = if reason == Overrun::Ring { Drop::Ring } else { Drop::Fifo };
                self.linux.stack.drops[drop as usize] += 1;
                self.trace.note(frame.number, now_ps, "is dropped by the card");
            }
        }
    }

    /// A card may interrupt: the processor takes it now, or when it is done with another's, or it is looked at later.
    fn line(&mut self, port: usize) {
        let Some(at_ps) = self.hardware.nics[port].interrupts_at() else { return };
        if at_ps > self.queue.now_ps() {
            if self.looked_at[port].is_none() {
                self.looked_at[port] = Some(at_ps);
                self.queue.at(at_ps, Event::Line(port));
            }
        } else if !self.linux.in_handler() {
            self.interrupt(port);
        }
    }

    fn interrupt(&mut self, port: usize) {
        let mut around =
            Around { hardware: &mut self.hardware, queue: &mut self.queue, trace: &mut self.trace };
        let duration_ps = self.linux.interrupt(port, &mut around);
        self.begin(Level::HardInterrupt, duration_ps);
    }

    fn begin(&mut self, level: Level, duration_ps: Time) {
        let (ends_ps, number) = self.processor.begin(self.queue.now_ps(), level, duration_ps);
        self.queue.at(ends_ps, Event::Piece(number));
    }

    fn end_piece(&mut self, number: u64) {
        let Some(level) = self.processor.end(self.queue.now_ps(), number) else { return };
        let mut around =
            Around { hardware: &mut self.hardware, queue: &mut self.queue, trace: &mut self.trace };
        match level {
            Level::HardInterrupt => {}
            Level::SoftInterrupt => self.linux.end_soft(&mut around),
            Level::Thread => self.linux.end_thread(&mut around),
        }
        self.schedule();
    }

    /// The processor has nothing under way that nothing may come before.
    fn schedule(&mut self) {
        let now_ps = self.queue.now_ps();
        let mut around =
            Around { hardware: &mut self.hardware, queue: &mut self.queue, trace: &mut self.trace };
        if let Some(duration_ps) = self.linux.handle(&mut around) {
            return self.begin(Level::HardInterrupt, duration_ps);
        }
        for port in 0..self.looked_at.len() {
            self.line(port);
            if self.linux.in_handler() {
                return;
            }
        }
        let mut around =
            Around { hardware: &mut self.hardware, queue: &mut self.queue, trace: &mut self.trace };
        if !self.processor.has(Level::SoftInterrupt)
            && let Some(duration_ps) = self.linux.soften(&mut around)
        {
            return self.begin(Level::SoftInterrupt, duration_ps);
        }
        if !self.processor.has(Level::SoftInterrupt)
            && !self.processor.has(Level::Thread)
            && let Some(duration_ps) = self.linux.think(&mut around)
        {
            return self.begin(Level::Thread, duration_ps);
        }
        if let Some((ends_ps, number)) = self.processor.resume(now_ps) {
            self.queue.at(ends_ps, Event::Piece(number));
        }
    }

    fn sample(&mut self) {
        let f = &mut self.fullness;
        f.samples += 1;
        f.receiving += self.hardware.nics.iter().map(|nic| nic.held_received() as u64).sum::<u64>();
        f.sending += self.hardware.nics.iter().map(|nic| nic.held_to_send() as u64).sum::<u64>();
        f.backlog += self.linux.stack.backlog_length() as u64;
        f.queued += self.linux.stack.queued() as u64;
        self.queue.after(SAMPLE_PS, Event::Sample);
    }

    /// The hardware.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// The kernel.
    pub fn kernel(&self) -> &Linux {
        &self.linux
    }

    /// Events that happened.
    pub fn events(&self) -> u64 {
        self.queue.happened()
    }

    /// Packets that are inside: in cards, on rings, in queues.
    pub fn held(&self) -> u64 {
        let in_cards =
            self.hardware.nics.iter().map(|nic| nic.held_received() + nic.held_to_send()).sum::<usize>();
        (in_cards + self.linux.stack.held()) as u64
    }
}
