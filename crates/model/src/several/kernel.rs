//! What a kernel does on one of several processors, each of which has a card of its own.

use super::caches::Caches;
use super::lock::Spinlock;
use crate::event::{NANOSECOND, Time};
use crate::hardware::Hardware;
use crate::layout::Place;
use crate::machine::{Machine, SeveralValues};
use crate::nic::Frame;
use crate::software::linux::{Class, Line, PortCounts, Setup, Spent};
use causeway_engine::reception::{Mechanism, Ports, Received, Reception};
use causeway_packet::Receiver;

/// So many lines of what is known of a packet, the last of which is what is known of its buffer.
fn known_of(buffer: u32, lines: u64) -> impl Iterator<Item = Place> {
    (0..lines - 1).map(move |line| Place::Head(buffer, line)).chain([Place::Tail(buffer)])
}

/// Picoseconds of each thing that the kernel does.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub interrupt: Time,
    pub register_write: Time,
    pub soft_interrupt: Time,
    pub poll: Time,
    pub receive: Time,
    pub allocate: Time,
    pub free: Time,
    pub route: Time,
    pub transmit: Time,
    pub clean: Time,
    pub lock: Time,
    /// Frames that are cleaned, and posted from the queue, while the lock is held once.
    pub cleaned: usize,
    /// Lines that are written of a packet by who receives it and again by who frees it.
    known: u64,
}

impl Costs {
    pub fn new(machine: &Machine, several: &SeveralValues, recycling: bool) -> Costs {
        let (s, clock) = (&machine.software, &machine.processor.clock);
        let (allocate, free) = if recycling { (&s.recycle, &s.recycle) } else { (&s.allocate, &s.free) };
        Costs {
            interrupt: s.interrupt.at(clock) + s.register_read.value,
            register_write: s.register_write.at(clock),
            soft_interrupt: s.soft_interrupt.at(clock),
            poll: s.poll.at(clock),
            receive: s.receive.at(clock),
            allocate: allocate.at(clock),
            free: free.at(clock),
            route: s.route.at(clock),
            transmit: s.transmit.at(clock),
            clean: s.clean.at(clock),
            lock: several.lock.at(clock),
            cleaned: several.cleaned.value as usize,
            known: several.known.value,
        }
    }
}

/// What a kernel works on. Memory is asked at the begin of a piece of work for all of it: asked for a later time, it would
/// have cards wait for what is yet to come.
pub(super) struct Around<'a> {
    pub hardware: &'a mut Hardware,
    pub caches: &'a mut Caches,
    pub lock: &'a mut Spinlock,
    /// Its number.
    pub which: usize,
    pub costs: &'a Costs,
    pub now_ps: Time,
}

/// The kernel on one processor.
#[derive(Debug)]
pub(super) struct Kernel {
    pub hands: Hands,
    reception: Reception,
    mechanism: Mechanism,
    polls: u64,
    /// The ring for reception got buffers, and the card is to be told.
    pub gave: bool,
    /// What was sent is to be cleaned.
    pub cleaning: bool,
    /// A piece of work is under way.
    pub works: bool,
    /// Its packet, which has the lock.
    pub posting: Option<Frame>,
    pub busy_ps: Time,
    pub deferred: u64,
}

/// What of a kernel its mechanism works with.
#[derive(Debug)]
pub(super) struct Hands {
    pub port: usize,
    processor: usize,
    /// Whether its driver takes all that it finds, and no more than that.
    exhausts: bool,
    line: Line,
    /// Of the turn under way, packets that were there when it began and are still; `None` between turns.
    found: Option<usize>,
    /// Buffers that the ring lacks.
    lacks: usize,
    /// The packet that goes to the card that sends.
    pub packet: Option<Frame>,
    pub spent: Spent,
    pub counts: PortCounts,
}

/// The port of a kernel, as the mechanism asks it.
struct Io<'a, 'b> {
    hands: &'a mut Hands,
    around: &'a mut Around<'b>,
}

impl Ports for Io<'_, '_> {
    fn receiver(&mut self, _: usize) -> Option<&mut dyn Receiver> {
        Some(&mut self.hands.line)
    }

    fn receive(&mut self, _: usize, _: usize) -> Received {
        let (hands, around) = (&mut *self.hands, &mut *self.around);
        let waiting = around.hardware.nics[hands.port].waiting();
        if hands.found.is_none() {
            hands.found = Some(waiting);
            hands.counts.polls += 1;
            hands.spent.add(Class::Scheduler, around.costs.poll);
        }
        let Some(frame) = hands.take(around) else { return Received::default() };
        hands.packet = Some(frame);
        let left = hands.found.map_or(0, |found| found.saturating_sub(1));
        hands.found = Some(left);
        // The driver's own loop ends with what it found; the kernel's asks again.
        let more = if hands.exhausts { left > 0 } else { waiting > 1 };
        Received { packets: 1, more }
    }

    fn enqueue(&mut self, _: usize, _: usize, _: usize) -> Received {
        Received::default()
    }

    fn forward(&mut self, max: usize) -> usize {
        max
    }
}

impl Hands {
    fn take(&mut self, around: &mut Around<'_>) -> Option<Frame> {
        let place = around.hardware.nics[self.port].receive_place();
        let frame = around.hardware.nics[self.port].take()?;
        self.lacks += 1;
        let costs = around.costs;
        self.spent.add(Class::Receive, costs.receive);
        self.spent.add(Class::Ip, costs.route);
        self.spent.add(Class::Transmit, costs.transmit);
        let read = [
            (Class::Receive, Place::Received(self.port, place)),
            (Class::Ethernet, Place::Headers(frame.buffer)),
        ];
        for (class, place) in read {
            let wait_ps = around.caches.read(self.processor, around.now_ps, place, around.hardware);
            self.spent.add(class, wait_ps);
        }
        self.touch_head(frame, around);
        Some(frame)
    }

    /// What is known of a packet is written by whoever has it.
    fn touch_head(&mut self, frame: Frame, around: &mut Around<'_>) {
        for place in known_of(frame.buffer, around.costs.known) {
            self.share(place, Class::Memory, around);
        }
    }

    /// Writes a line that other processors write, too.
    fn share(&mut self, place: Place, class: Class, around: &mut Around<'_>) {
        let wait_ps = around.caches.share(self.processor, around.now_ps, place, around.hardware);
        self.spent.add(class, wait_ps);
    }
}

impl Kernel {
    pub fn new(port: usize, processor: usize, setup: &Setup) -> Kernel {
        let mechanism = setup.mechanisms[port];
        let mut reception = Reception::new(setup.budget);
        reception.add(mechanism);
        let hands = Hands {
            port,
            processor,
            exhausts: mechanism == Mechanism::DisableEnable,
            line: Line::default(),
            found: None,
            lacks: 0,
            packet: None,
            spent: Spent::default(),
            counts: PortCounts::default(),
        };
        Kernel {
            hands,
            reception,
            mechanism,
            polls: 0,
            gave: false,
            cleaning: false,
            works: false,
            posting: None,
            busy_ps: 0,
            deferred: 0,
        }
    }

    /// Its card's interrupts are let through.
    pub fn start(&mut self, around: &mut Around<'_>) {
        self.reception.start(&mut Io { hands: &mut self.hands, around });
        around.hardware.nics[self.hands.port].masked = false;
        self.hands.spent.take();
    }

    fn defers(&self) -> bool {
        self.mechanism != Mechanism::DisableEnable
    }

    /// The mask of its card is as the mechanism wants it: a write to a register where deferred work polls; a handler that
    /// does all itself has the interrupt masked while it runs.
    fn set_mask(&mut self, masked: bool, around: &mut Around<'_>) {
        let nic = &mut around.hardware.nics[self.hands.port];
        if std::mem::replace(&mut nic.masked, masked) != masked && self.defers() {
            self.hands.spent.add(Class::Interrupt, around.costs.register_write);
        }
    }

    /// Takes its card's interrupt.
    pub fn interrupt(&mut self, sends: bool, around: &mut Around<'_>) {
        around.hardware.nics[self.hands.port].acknowledge(around.now_ps);
        self.hands.spent.add(Class::Interrupt, around.costs.interrupt);
        if sends {
            self.cleaning = true;
            self.defer(around);
        } else {
            self.reception.interrupt(0);
        }
        self.set_mask(true, around);
    }

    fn defer(&mut self, around: &mut Around<'_>) {
        if self.defers() {
            self.deferred += 1;
            self.hands.spent.add(Class::Scheduler, around.costs.soft_interrupt);
        }
    }

    /// A packet's worth of reception.
    pub fn receive(&mut self, around: &mut Around<'_>) {
        let fresh = !self.reception.under_way();
        let now_ns = around.now_ps / NANOSECOND;
        let before_ps = self.hands.spent.total();
        self.reception.run(&mut Io { hands: &mut self.hands, around }, now_ns, 1);
        if fresh && self.hands.spent.total() > before_ps {
            self.defer(around);
        }
        let polls = self.reception.counters(0).map_or(0, |counters| counters.polls);
        if std::mem::replace(&mut self.polls, polls) != polls {
            self.end_turn(around);
        }
        self.set_mask(self.hands.line.masked, around);
    }

    /// The ring gets new buffers.
    fn end_turn(&mut self, around: &mut Around<'_>) {
        self.hands.found = None;
        let lacks = std::mem::take(&mut self.hands.lacks);
        for _ in 0..lacks {
            self.hands.spent.add(Class::Memory, around.costs.allocate);
            let buffer = around.hardware.buffers.take();
            around.hardware.nics[self.hands.port].give(buffer);
        }
        if lacks > 0 {
            self.hands.spent.add(Class::Receive, around.costs.register_write);
            self.gave = true;
        }
    }

    /// The lock is a line that goes to whoever takes it, and so is the head of the queue that it guards.
    fn share_queue(&mut self, around: &mut Around<'_>) {
        for line in [0, 1] {
            let place = Place::Table(64 * (2 * around.which as u64 + line));
            self.hands.share(place, Class::Lock, around);
        }
    }

    /// The packet in hand goes to the card that sends, by `port`, under the lock.
    pub fn post(&mut self, frame: Frame, port: usize, around: &mut Around<'_>) {
        let wait_ps = around.lock.take(around.now_ps);
        self.hands.spent.add(Class::Lock, wait_ps);
        self.share_queue(around);
        self.hands.spent.add(Class::Transmit, around.costs.lock + around.costs.register_write);
        let place = around.hardware.nics[port].next_place();
        self.hands.share(Place::Sent(port, place), Class::Transmit, around);
        around.lock.held_until(around.now_ps + self.hands.spent.total());
        self.posting = Some(frame);
    }

    /// Takes some of what its card sent from the ring, under the lock; it is yet to be freed.
    pub fn clean(&mut self, around: &mut Around<'_>) -> Vec<Frame> {
        let wait_ps = around.lock.take(around.now_ps);
        self.hands.spent.add(Class::Lock, wait_ps);
        self.share_queue(around);
        self.hands.spent.add(Class::Transmit, around.costs.lock);
        let mut cleaned = Vec::new();
        while cleaned.len() < around.costs.cleaned
            && let Some((frame, place)) = around.hardware.nics[self.hands.port].clean()
        {
            self.hands.spent.add(Class::Transmit, around.costs.clean);
            self.hands.share(Place::Sent(self.hands.port, place), Class::Transmit, around);
            cleaned.push(frame);
        }
        self.hands.counts.cleanings += u64::from(!cleaned.is_empty());
        self.cleaning = around.hardware.nics[self.hands.port].to_clean() > 0;
        if !self.cleaning {
            self.set_mask(false, around);
        }
        cleaned
    }

    /// A frame of the queue is posted while the lock is held; the last of them ends that.
    pub fn post_queued(&mut self, around: &mut Around<'_>) {
        let place = around.hardware.nics[self.hands.port].next_place();
        self.hands.share(Place::Sent(self.hands.port, place), Class::Transmit, around);
        self.hands.spent.add(Class::Transmit, around.costs.clean);
    }

    /// The lock is given back when what was spent has passed; what was cleaned is freed behind it.
    pub fn give_back(&mut self, cleaned: &[Frame], around: &mut Around<'_>) {
        around.lock.held_until(around.now_ps + self.hands.spent.total());
        for frame in cleaned {
            self.hands.touch_head(*frame, around);
            self.hands.spent.add(Class::Memory, around.costs.free);
            around.hardware.buffers.give(frame.buffer);
        }
    }
}
