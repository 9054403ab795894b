//! A router of several processors, each with a card of its own: two cards receive, one sends what both received (AFF).
//!
//! The ring for transmission and the queue before it have one lock (LLTX). Lines that processors write in turn go from one
//! cache to the other; processors of one chip have one cache. The cards collect frames for an interrupt, more of them when
//! there are many (adaptive coalescing of the driver). One port of a tester and a tap: the wire of each card that receives
//! carries all frames, and the card keeps those that have its address.

mod caches;
mod kernel;
mod lock;

use crate::event::{MICROSECOND, MILLISECOND, Queue, SECOND, Time};
use crate::hardware::Hardware;
use crate::link::Link;
use crate::machine::{Machine, SeveralValues};
use crate::nic::{Engine, Frame, Overrun};
use crate::router::{Event, Fullness, Scenario};
use crate::software::linux::{Class, Drop, PortCounts};
use crate::trace::Trace;
use anyhow::{Context, Result, ensure};
use caches::Caches;
use kernel::{Around, CLEANED, Costs, Kernel};
use lock::Spinlock;
use std::collections::VecDeque;

/// Which processor has which card, and what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// The processors of the two cards that receive and of the one that sends.
    pub processors: [usize; 3],
    /// Whether frames have 64, 594 and 1518 bytes in the ratio 7:4:1.
    pub mixed: bool,
}

/// The ports that receive; the one behind them sends.
const RECEIVE: usize = 2;
/// Lengths of frames, so that seven are short, four of middle length and one is long.
const MIX: [u32; 12] = [64, 594, 64, 64, 594, 64, 1_518, 64, 594, 64, 594, 64];
/// Between two looks at how full everything is, and at how many frames there are.
const SAMPLE_PS: Time = 20 * MICROSECOND;
const RATE_PS: Time = MILLISECOND;

/// When a card interrupts.
#[derive(Clone, Copy, Debug)]
struct Collects {
    frames: usize,
    time_ps: Time,
}

/// A card's interrupt.
#[derive(Clone, Copy, Debug, Default)]
struct Signal {
    /// When there was something to say first.
    since_ps: Option<Time>,
    looked_at: Option<Time>,
    /// Frames that came or went since the last look at the rate, and whether they are many.
    frames: u64,
    many: bool,
}

/// A router at work.
pub struct Several {
    queue: Queue<Event>,
    hardware: Hardware,
    caches: Caches,
    /// The lock of the card that sends.
    pub lock: Spinlock,
    costs: Costs,
    kernels: Vec<Kernel>,
    signals: Vec<Signal>,
    collects: [Collects; 3],
    many_per_look: u64,
    processors: usize,
    /// The queue on the way out.
    way_out: VecDeque<Frame>,
    most: usize,
    mixed: bool,
    bytes: u32,
    /// Of the tester: mean time from frame to frame, when it means to send the next one, and when its wire is free.
    between_ps: f64,
    intended_ps: f64,
    wire_free_ps: Time,
    link: Link,
    numbers: u64,
    looks: u64,
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
    /// Packets that were dropped, by reason.
    pub drops: [u64; Drop::ALL.len()],
}

impl Several {
    /// A router that has just started.
    ///
    /// # Errors
    ///
    /// If the machine has too few ports or says nothing of several processors.
    pub fn new(
        machine: &Machine,
        scenario: &Scenario,
        affinity: Affinity,
        followed: Option<u64>,
    ) -> Result<Several> {
        let several = machine.several.as_ref().with_context(|| {
            format!("the machine '{}' has one processor: give it a section [several]", machine.name)
        })?;
        ensure!(
            scenario.links.len() == RECEIVE + 1 && machine.port_count() > RECEIVE,
            "the machine '{}' needs three ports: give it more under [[ports]]",
            machine.name
        );
        let processors = several.processors.value as usize;
        ensure!(
            affinity.processors.iter().all(|&one| one < processors),
            "the machine '{}' has {processors} processors, and more are needed: see [several]",
            machine.name
        );
        let mut hardware = Hardware::new(machine, &scenario.links, scenario.moderated);
        hardware.written = Some(Vec::new());
        let kernel = |port: usize| {
            Kernel::new(
                port,
                affinity.processors[port],
                scenario.kernel.mechanisms[port],
                scenario.kernel.budget,
            )
        };
        let rate_fps: f64 = scenario.flows.iter().map(|flow| flow.rate_fps).sum();
        let between_ps = SECOND as f64 / rate_fps.max(1.0);
        let mut router = Several {
            queue: Queue::new(),
            hardware,
            caches: Caches::new(machine, several),
            lock: Spinlock::default(),
            costs: Costs::new(machine, several, scenario.kernel.recycling),
            kernels: (0..=RECEIVE).map(kernel).collect(),
            signals: vec![Signal::default(); RECEIVE + 1],
            collects: collects(several),
            many_per_look: several.many.value * RATE_PS / SECOND,
            processors,
            way_out: VecDeque::new(),
            most: machine.software.queue.value as usize,
            mixed: affinity.mixed,
            bytes: scenario.bytes,
            between_ps,
            intended_ps: between_ps / 2.0,
            wire_free_ps: 0,
            link: scenario.links[0],
            numbers: 0,
            looks: 0,
            trace: Trace::of(followed),
            fullness: Fullness::default(),
            arrived: vec![0; RECEIVE + 1],
            left: vec![0; RECEIVE + 1],
            delay_ps: 0,
            drops: [0; Drop::ALL.len()],
        };
        router.start(rate_fps > 0.0);
        Ok(router)
    }

    fn start(&mut self, offered: bool) {
        for port in 0..=RECEIVE {
            for _ in 0..self.hardware.nics[port].parameters().receive_ring {
                let buffer = self.hardware.buffers.take();
                self.hardware.nics[port].give(buffer);
            }
            self.hardware.ring(port, Engine::Receive, &mut self.queue);
            self.with(port, |kernel, around| kernel.start(around));
        }
        if offered {
            self.send_next();
        }
        self.queue.at(SAMPLE_PS, Event::Sample);
    }

    fn with<T>(&mut self, port: usize, work: impl FnOnce(&mut Kernel, &mut Around<'_>) -> T) -> T {
        let Several { hardware, caches, lock, costs, kernels, queue, .. } = self;
        work(&mut kernels[port], &mut Around { hardware, caches, lock, costs, now_ps: queue.now_ps() })
    }

    /// Lets it work until `until_ps`.
    pub fn run(&mut self, until_ps: Time) {
        while let Some(event) = self.queue.before(until_ps) {
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival(_) => self.arrive(),
            Event::Bus(bus) => {
                let port = self.hardware.end(bus, &mut self.queue, &mut self.trace);
                let Several { hardware, caches, .. } = self;
                for (place, bytes) in hardware.written.iter_mut().flat_map(|written| written.drain(..)) {
                    caches.invalidate(place, bytes);
                }
                port.into_iter().for_each(|port| self.line(port));
            }
            Event::Answer(bus, request) => self.hardware.answer(bus, request, &mut self.queue),
            Event::Sent(port) => self.sent(port),
            Event::Line(port) => {
                self.signals[port].looked_at = None;
                self.line(port);
            }
            Event::Processor(port, _) => self.end_piece(port),
            Event::Piece(_) => {}
            Event::Sample => self.sample(),
        }
    }

    fn send_next(&mut self) {
        let bytes = self.next_bytes();
        let begins_ps = self.wire_free_ps.max(self.intended_ps as Time);
        self.wire_free_ps = begins_ps + self.link.frame_ps(bytes);
        self.intended_ps += self.between_ps;
        self.queue.at(self.wire_free_ps, Event::Arrival(0));
    }

    fn next_bytes(&self) -> u32 {
        if self.mixed { MIX[self.numbers as usize % MIX.len()] } else { self.bytes }
    }

    /// A frame has come by the tap; the card that has its address keeps it.
    fn arrive(&mut self) {
        let (number, bytes, arrived_ps) = (self.numbers, self.next_bytes(), self.queue.now_ps());
        // Each card gets as many of each length.
        let from = (number as usize + number as usize / MIX.len()) % RECEIVE;
        self.numbers += 1;
        self.send_next();
        self.arrived[from] += 1;
        self.signals[from].frames += 1;
        let frame = Frame { number, from, to: RECEIVE, bytes, arrived_ps, buffer: 0 };
        self.trace.note(number, arrived_ps, "has come in");
        match self.hardware.nics[from].arrive(frame) {
            Ok(()) => self.hardware.poke(from, Engine::Receive, &mut self.queue),
            Err(reason) => {
                let drop = if reason == Overrun::Ring { Drop::Ring } else { Drop::Fifo };
                self.drops[drop as usize] += 1;
                self.trace.note(number, arrived_ps, "is dropped by the card");
            }
        }
    }

    fn sent(&mut self, port: usize) {
        let now_ps = self.queue.now_ps();
        let Some(frame) = self.hardware.sent(port, &mut self.queue) else { return };
        self.left[frame.from] += 1;
        self.signals[port].frames += 1;
        self.delay_ps += u128::from(now_ps - frame.arrived_ps);
        self.trace.note(frame.number, now_ps, "has left");
    }

    /// A card has something to say: its processor is interrupted now, or when enough is collected.
    fn line(&mut self, port: usize) {
        let nic = &self.hardware.nics[port];
        if nic.interrupts_at().is_none() {
            return;
        }
        let (now_ps, signal) = (self.queue.now_ps(), &mut self.signals[port]);
        let since_ps = *signal.since_ps.get_or_insert(now_ps);
        if self.interrupts(port) {
            return self.wake(port);
        }
        let due_ps = since_ps + self.collects(port).time_ps;
        let signal = &mut self.signals[port];
        if signal.looked_at.is_none_or(|at_ps| at_ps > due_ps) {
            signal.looked_at = Some(due_ps);
            self.queue.at(due_ps, Event::Line(port));
        }
    }

    fn collects(&self, port: usize) -> Collects {
        match (port, self.signals[port].many) {
            (RECEIVE, _) => self.collects[2],
            (_, many) => self.collects[usize::from(many)],
        }
    }

    /// Whether a card interrupts now.
    fn interrupts(&self, port: usize) -> bool {
        let (nic, signal) = (&self.hardware.nics[port], &self.signals[port]);
        let collects = self.collects(port);
        let frames = if port == RECEIVE { nic.to_clean() } else { nic.waiting() };
        let waited = signal.since_ps.is_some_and(|since| since + collects.time_ps <= self.queue.now_ps());
        nic.interrupts_at().is_some() && (frames >= collects.frames || waited)
    }

    /// A processor that does nothing looks for work.
    fn wake(&mut self, port: usize) {
        if self.kernels[port].works {
            return;
        }
        let took_ps = self.next_piece(port);
        if took_ps > 0 {
            let kernel = &mut self.kernels[port];
            kernel.works = true;
            kernel.busy_ps += took_ps;
            self.queue.after(took_ps, Event::Processor(port, 0));
        }
    }

    /// The next piece of work of a port's processor; nothing: there is none.
    fn next_piece(&mut self, port: usize) -> Time {
        if let Some(frame) = self.kernels[port].hand.take() {
            self.with(port, |kernel, around| kernel.post(frame, RECEIVE, around));
        } else if self.kernels[port].cleaning {
            self.clean(port);
        } else {
            if self.interrupts(port) {
                self.signals[port].since_ps = None;
                self.with(port, |kernel, around| kernel.interrupt(port == RECEIVE, around));
            }
            if port != RECEIVE {
                self.receive(port);
            }
        }
        self.kernels[port].spent.take()
    }

    /// Asks the mechanism until it has a packet or nothing to do: at most once for each phase of a run, and once more.
    fn receive(&mut self, port: usize) {
        for _ in 0..5 {
            self.with(port, |kernel, around| kernel.receive(around));
            if self.kernels[port].hand.is_some() {
                break;
            }
        }
        if let Some(frame) = self.kernels[port].hand {
            self.trace.note(frame.number, self.queue.now_ps(), "is taken from the ring");
        }
    }

    fn clean(&mut self, port: usize) {
        let cleaned = self.with(port, |kernel, around| kernel.clean(around));
        let mut posted = 0;
        while posted < CLEANED
            && self.hardware.nics[port].has_room()
            && let Some(frame) = self.way_out.pop_front()
        {
            self.with(port, |kernel, around| kernel.post_queued(around));
            self.post(frame);
            posted += 1;
        }
        self.with(port, |kernel, around| kernel.give_back(&cleaned, around));
        if posted > 0 {
            self.hardware.ring(port, Engine::Transmit, &mut self.queue);
        }
    }

    fn post(&mut self, frame: Frame) {
        self.trace.note(frame.number, self.queue.now_ps(), "is on the ring for transmission");
        self.hardware.nics[RECEIVE].post(frame);
    }

    fn end_piece(&mut self, port: usize) {
        let kernel = &mut self.kernels[port];
        kernel.works = false;
        let (posting, gave) = (kernel.posting.take(), std::mem::take(&mut kernel.gave));
        if gave {
            self.hardware.ring(port, Engine::Receive, &mut self.queue);
        }
        if let Some(frame) = posting {
            self.leave(frame);
        }
        self.line(port);
        self.wake(port);
    }

    /// A packet is on the ring of the card that sends, or in the queue before it, or nowhere.
    fn leave(&mut self, frame: Frame) {
        if self.way_out.is_empty() && self.hardware.nics[RECEIVE].has_room() {
            self.post(frame);
            self.hardware.ring(RECEIVE, Engine::Transmit, &mut self.queue);
        } else if self.way_out.len() < self.most {
            self.way_out.push_back(frame);
        } else {
            self.drops[Drop::Queue as usize] += 1;
            self.trace.note(frame.number, self.queue.now_ps(), "is dropped by the kernel");
            self.hardware.buffers.give(frame.buffer);
        }
    }

    fn sample(&mut self) {
        let f = &mut self.fullness;
        f.samples += 1;
        f.receiving += self.hardware.nics.iter().map(|nic| nic.held_received() as u64).sum::<u64>();
        f.sending += self.hardware.nics.iter().map(|nic| nic.held_to_send() as u64).sum::<u64>();
        f.queued += self.way_out.len() as u64;
        self.looks += 1;
        if self.looks.is_multiple_of(RATE_PS / SAMPLE_PS) {
            for signal in &mut self.signals {
                signal.many = std::mem::take(&mut signal.frames) >= self.many_per_look;
            }
        }
        self.queue.after(SAMPLE_PS, Event::Sample);
    }

    /// The hardware.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// What was done with each card.
    pub fn counts(&self) -> impl Iterator<Item = PortCounts> {
        self.kernels.iter().map(|kernel| kernel.counts)
    }

    /// Entries to deferred work.
    pub fn deferred(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.deferred).sum()
    }

    /// Processor time of all processors, by class.
    pub fn by_class_ps(&self) -> [Time; Class::ALL.len()] {
        std::array::from_fn(|class| self.kernels.iter().map(|kernel| kernel.spent.by_class_ps[class]).sum())
    }

    /// Time that each port's processor worked.
    pub fn busy_ps(&self) -> Vec<Time> {
        self.kernels.iter().map(|kernel| kernel.busy_ps).collect()
    }

    /// How many processors there are.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Events that happened.
    pub fn events(&self) -> u64 {
        self.queue.happened()
    }

    /// Packets that are inside: in cards, on rings, in the queue, in a processor's hands.
    pub fn held(&self) -> u64 {
        let nics = self.hardware.nics.iter();
        let in_cards = nics.map(|nic| nic.held_received() + nic.held_to_send()).sum::<usize>();
        let in_hands =
            |kernel: &Kernel| usize::from(kernel.hand.is_some()) + usize::from(kernel.posting.is_some());
        (in_cards + self.way_out.len() + self.kernels.iter().map(in_hands).sum::<usize>()) as u64
    }
}

/// Of the cards that receive, with few frames and with many, and of the one that sends.
fn collects(several: &SeveralValues) -> [Collects; 3] {
    let of = |frames: u64, time_ps: Time| Collects { frames: frames as usize, time_ps };
    [
        of(several.few_frames.value, several.few_time.value),
        of(several.many_frames.value, several.many_time.value),
        of(several.sent_frames.value, several.sent_time.value),
    ]
}
