//! A router of several processors, each with a card of its own: two cards receive, one sends what both received (AFF).
//!
//! The ring for transmission and the queue before it have one lock (LLTX). Lines that processors write in turn go from one
//! cache to the other; processors of one chip have one cache. The cards collect frames for an interrupt, more of them when
//! there are many (adaptive coalescing of the driver). One port of a tester and a tap: the wire of each card that receives
//! carries all frames, and the card keeps those that have its address.

mod caches;
mod kernel;
mod lock;
mod signal;
mod tap;

use crate::event::{MICROSECOND, Queue, SECOND, Time};
use crate::hardware::Hardware;
use crate::machine::Machine;
use crate::nic::{Engine, Frame, Overrun};
use crate::router::{Event, Fullness, Scenario};
use crate::software::linux::{Class, Drop, PortCounts};
use crate::trace::Trace;
use anyhow::{Context, Result, ensure};
use caches::Caches;
use kernel::{Around, Costs, Kernel};
use lock::Spinlock;
use signal::Signal;
use std::collections::VecDeque;
use tap::Tap;

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
/// Between two looks at how full everything is.
const SAMPLE_PS: Time = 20 * MICROSECOND;

/// A router at work.
pub struct Several {
    queue: Queue<Event>,
    hardware: Hardware,
    caches: Caches,
    /// The lock of the card that sends; without it one of each port's own.
    pub locks: Vec<Spinlock>,
    costs: Costs,
    kernels: Vec<Kernel>,
    signals: Vec<Signal>,
    processors: usize,
    /// The queue on the way out.
    way_out: VecDeque<Frame>,
    most: usize,
    tap: Tap,
    /// From one look of the drivers at how many frames there are to the next, and when it is.
    look_ps: Time,
    looks_ps: Time,
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
        let kernel = |port: usize| Kernel::new(port, affinity.processors[port], &scenario.kernel);
        let rate_fps: f64 = scenario.flows.iter().map(|flow| flow.rate_fps).sum();
        let bytes = (!affinity.mixed).then_some(scenario.bytes);
        let mut router = Several {
            queue: Queue::new(),
            hardware,
            caches: Caches::new(machine, several),
            locks: vec![Spinlock::default(); if scenario.kernel.without.lock { RECEIVE + 1 } else { 1 }],
            costs: Costs::new(machine, several, scenario.kernel.recycling),
            kernels: (0..=RECEIVE).map(kernel).collect(),
            signals: (0..=RECEIVE).map(|port| Signal::new(port, several)).collect(),
            processors,
            way_out: VecDeque::new(),
            most: machine.software.queue.value as usize,
            tap: Tap::new(scenario.links[0], bytes, SECOND as f64 / rate_fps.max(1.0)),
            look_ps: several.look.value,
            looks_ps: several.look.value,
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
        let Several { hardware, caches, locks, costs, kernels, queue, .. } = self;
        let which = port.min(locks.len() - 1);
        let (lock, now_ps) = (&mut locks[which], queue.now_ps());
        work(&mut kernels[port], &mut Around { hardware, caches, lock, which, costs, now_ps })
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
        self.queue.at(self.tap.next_ps(), Event::Arrival(0));
    }

    /// A frame has come by the tap; the card that has its address keeps it.
    fn arrive(&mut self) {
        let (number, from, bytes) = self.tap.take();
        let arrived_ps = self.queue.now_ps();
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
        if self.hardware.nics[port].interrupts_at().is_none() {
            return;
        }
        let due_ps = self.signals[port].due_ps(self.queue.now_ps());
        if self.interrupts(port) {
            return self.wake(port);
        }
        let looked_at = &mut self.signals[port].looked_at;
        if looked_at.is_none_or(|at_ps| at_ps > due_ps) {
            *looked_at = Some(due_ps);
            self.queue.at(due_ps, Event::Line(port));
        }
    }

    fn interrupts(&self, port: usize) -> bool {
        self.signals[port].is_due(&self.hardware.nics[port], self.queue.now_ps())
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
        if let Some(frame) = self.kernels[port].hands.packet.take() {
            self.with(port, |kernel, around| kernel.post(frame, RECEIVE, around));
        } else if self.kernels[port].cleaning {
            self.clean(port);
        } else {
            if self.interrupts(port) {
                self.signals[port].take();
                self.with(port, |kernel, around| kernel.interrupt(port == RECEIVE, around));
            }
            if port != RECEIVE {
                self.receive(port);
            }
        }
        let kernel = &mut self.kernels[port];
        // What takes no time on a machine is a piece all the same.
        let did = kernel.posting.is_some() || kernel.hands.packet.is_some() || kernel.cleaning;
        kernel.hands.spent.take().max(Time::from(did))
    }

    /// Asks the mechanism until it has a packet or nothing to do: at most once for each phase of a run, and once more.
    fn receive(&mut self, port: usize) {
        for _ in 0..5 {
            self.with(port, |kernel, around| kernel.receive(around));
            if self.kernels[port].hands.packet.is_some() {
                break;
            }
        }
        if let Some(frame) = self.kernels[port].hands.packet {
            self.trace.note(frame.number, self.queue.now_ps(), "is taken from the ring");
        }
    }

    fn clean(&mut self, port: usize) {
        let cleaned = self.with(port, |kernel, around| kernel.clean(around));
        let mut posted = 0;
        while posted < self.costs.cleaned
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
        if self.queue.now_ps() >= self.looks_ps {
            self.looks_ps += self.look_ps.max(SAMPLE_PS);
            self.signals.iter_mut().for_each(Signal::look);
        }
        self.queue.after(SAMPLE_PS, Event::Sample);
    }

    /// The hardware.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// What was done with each card.
    pub fn counts(&self) -> impl Iterator<Item = PortCounts> {
        self.kernels.iter().map(|kernel| kernel.hands.counts)
    }

    /// Entries to deferred work.
    pub fn deferred(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.deferred).sum()
    }

    /// Processor time of all processors, by class.
    pub fn by_class_ps(&self) -> [Time; Class::ALL.len()] {
        std::array::from_fn(|class| {
            self.kernels.iter().map(|kernel| kernel.hands.spent.by_class_ps[class]).sum()
        })
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
        let in_hands = |kernel: &Kernel| {
            usize::from(kernel.hands.packet.is_some()) + usize::from(kernel.posting.is_some())
        };
        (in_cards + self.way_out.len() + self.kernels.iter().map(in_hands).sum::<usize>()) as u64
    }
}
