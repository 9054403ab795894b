//! What a kernel does on one of several processors, each of which has a card of its own.

use super::caches::Caches;
use super::lock::Spinlock;
use crate::event::{NANOSECOND, Time};
use crate::hardware::{Hardware, Place};
use crate::machine::{Machine, SeveralValues};
use crate::nic::Frame;
use crate::software::linux::{Class, Line, PortCounts, Spent};
use causeway_engine::reception::{Mechanism, Ports, Received, Reception};
use causeway_packet::Receiver;

/// Frames that are cleaned, and posted from the queue, while the lock is held once.
pub(super) const CLEANED: usize = 16;

/// What is written of a packet by who receives it and again by who frees it: four lines of what is known of it (an
/// `sk_buff` of Linux 2.6.35 has 232 bytes), one of what is known of its buffer, one of the allocator.
fn known_of(buffer: u32) -> [Place; 6] {
    let head = |line| Place::Head(buffer, line);
    [head(0), head(1), head(2), head(3), Place::Tail(buffer, 0), Place::Tail(buffer, 1)]
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
        }
    }
}

/// What a kernel works on. Memory is asked at the begin of a piece of work for all of it: asked for a later time, it would
/// have cards wait for what is yet to come.
pub(super) struct Around<'a> {
    pub hardware: &'a mut Hardware,
    pub caches: &'a mut Caches,
    pub lock: &'a mut Spinlock,
    pub costs: &'a Costs,
    pub now_ps: Time,
}

/// The kernel on one processor.
#[derive(Debug)]
pub(super) struct Kernel {
    pub port: usize,
    pub processor: usize,
    reception: Reception,
    mechanism: Mechanism,
    line: Line,
    polls: u64,
    /// Of the turn under way, packets that were there when it began; `None` between turns.
    found: Option<usize>,
    /// Buffers that the ring lacks.
    lacks: usize,
    /// The packet that goes to the card that sends.
    pub hand: Option<Frame>,
    /// The ring for reception got buffers, and the card is to be told.
    pub gave: bool,
    /// What was sent is to be cleaned.
    pub cleaning: bool,
    /// A piece of work is under way.
    pub works: bool,
    /// Its packet, which has the lock.
    pub posting: Option<Frame>,
    pub spent: Spent,
    pub busy_ps: Time,
    pub counts: PortCounts,
    pub deferred: u64,
}

/// The port of a kernel, as the mechanism asks it.
struct Io<'a, 'b> {
    kernel: &'a mut Parts,
    around: &'a mut Around<'b>,
}

/// What of a kernel its mechanism changes.
#[derive(Debug)]
struct Parts {
    port: usize,
    processor: usize,
    exhausts: bool,
    line: Line,
    found: Option<usize>,
    lacks: usize,
    hand: Option<Frame>,
    spent: Spent,
    counts: PortCounts,
}

impl Ports for Io<'_, '_> {
    fn receiver(&mut self, _: usize) -> Option<&mut dyn Receiver> {
        Some(&mut self.kernel.line)
    }

    fn receive(&mut self, _: usize, _: usize) -> Received {
        let (kernel, around) = (&mut *self.kernel, &mut *self.around);
        let waiting = around.hardware.nics[kernel.port].waiting();
        if kernel.found.is_none() {
            kernel.found = Some(waiting);
            kernel.counts.polls += 1;
            kernel.spent.add(Class::Scheduler, around.costs.poll);
        }
        let Some(frame) = kernel.take(around) else { return Received::default() };
        kernel.hand = Some(frame);
        let left = kernel.found.map_or(0, |found| found.saturating_sub(1));
        kernel.found = Some(left);
        // The driver's own loop ends with what it found; the kernel's asks again.
        let more = if kernel.exhausts { left > 0 } else { waiting > 1 };
        Received { packets: 1, more }
    }

    fn enqueue(&mut self, _: usize, _: usize, _: usize) -> Received {
        Received::default()
    }

    fn forward(&mut self, max: usize) -> usize {
        max
    }
}

impl Parts {
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
        for place in known_of(frame.buffer) {
            let wait_ps = around.caches.share(self.processor, around.now_ps, place, around.hardware);
            self.spent.add(Class::Memory, wait_ps);
        }
    }
}

impl Kernel {
    pub fn new(port: usize, processor: usize, mechanism: Mechanism, budget: usize) -> Kernel {
        let mut reception = Reception::new(budget);
        reception.add(mechanism);
        Kernel {
            port,
            processor,
            reception,
            mechanism,
            line: Line::default(),
            polls: 0,
            found: None,
            lacks: 0,
            hand: None,
            gave: false,
            cleaning: false,
            works: false,
            posting: None,
            spent: Spent::default(),
            busy_ps: 0,
            counts: PortCounts::default(),
            deferred: 0,
        }
    }

    fn with_parts<T>(
        &mut self,
        around: &mut Around<'_>,
        work: impl FnOnce(&mut Reception, &mut Io<'_, '_>) -> T,
    ) -> T {
        let mut parts = Parts {
            port: self.port,
            processor: self.processor,
            exhausts: self.mechanism == Mechanism::DisableEnable,
            line: std::mem::take(&mut self.line),
            found: self.found,
            lacks: self.lacks,
            hand: self.hand,
            spent: std::mem::take(&mut self.spent),
            counts: self.counts,
        };
        let done = work(&mut self.reception, &mut Io { kernel: &mut parts, around });
        let Parts { line, found, lacks, hand, spent, counts, .. } = parts;
        (self.line, self.found, self.lacks, self.hand) = (line, found, lacks, hand);
        (self.spent, self.counts) = (spent, counts);
        done
    }

    /// Its card's interrupts are let through.
    pub fn start(&mut self, around: &mut Around<'_>) {
        self.with_parts(around, |reception, io| reception.start(io));
        around.hardware.nics[self.port].masked = false;
        self.spent.take();
    }

    fn defers(&self) -> bool {
        self.mechanism != Mechanism::DisableEnable
    }

    /// The mask of its card is as the mechanism wants it: a write to a register where deferred work polls; a handler that
    /// does all itself has the interrupt masked while it runs.
    fn set_mask(&mut self, masked: bool, around: &mut Around<'_>) {
        let nic = &mut around.hardware.nics[self.port];
        if std::mem::replace(&mut nic.masked, masked) != masked && self.defers() {
            self.spent.add(Class::Interrupt, around.costs.register_write);
        }
    }

    /// Takes its card's interrupt.
    pub fn interrupt(&mut self, sends: bool, around: &mut Around<'_>) {
        around.hardware.nics[self.port].acknowledge(around.now_ps);
        self.spent.add(Class::Interrupt, around.costs.interrupt);
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
            self.spent.add(Class::Scheduler, around.costs.soft_interrupt);
        }
    }

    /// A packet's worth of reception.
    pub fn receive(&mut self, around: &mut Around<'_>) {
        let fresh = !self.reception.under_way();
        let now_ns = around.now_ps / NANOSECOND;
        let before_ps = self.spent.total();
        self.with_parts(around, |reception, io| reception.run(io, now_ns, 1));
        if fresh && self.spent.total() > before_ps {
            self.defer(around);
        }
        let polls = self.reception.counters(0).map_or(0, |counters| counters.polls);
        if std::mem::replace(&mut self.polls, polls) != polls {
            self.end_turn(around);
        }
        self.set_mask(self.line.masked, around);
    }

    /// The ring gets new buffers.
    fn end_turn(&mut self, around: &mut Around<'_>) {
        self.found = None;
        let lacks = std::mem::take(&mut self.lacks);
        for _ in 0..lacks {
            self.spent.add(Class::Memory, around.costs.allocate);
            let buffer = around.hardware.buffers.take();
            around.hardware.nics[self.port].give(buffer);
        }
        if lacks > 0 {
            self.spent.add(Class::Receive, around.costs.register_write);
            self.gave = true;
        }
    }

    /// The packet in hand goes to the card that sends, by `port`, under the lock.
    pub fn post(&mut self, frame: Frame, port: usize, around: &mut Around<'_>) {
        let wait_ps = around.lock.take(around.now_ps);
        self.spent.add(Class::Lock, wait_ps);
        self.share(Place::Table(0), Class::Lock, around);
        self.spent.add(Class::Transmit, around.costs.lock + around.costs.register_write);
        let place = around.hardware.nics[port].next_place();
        self.share(Place::Sent(port, place), Class::Transmit, around);
        around.lock.held_until(around.now_ps + self.spent.total());
        self.posting = Some(frame);
    }

    fn share(&mut self, place: Place, class: Class, around: &mut Around<'_>) {
        let wait_ps = around.caches.share(self.processor, around.now_ps, place, around.hardware);
        self.spent.add(class, wait_ps);
    }

    /// Takes some of what its card sent from the ring, under the lock; it is yet to be freed.
    pub fn clean(&mut self, around: &mut Around<'_>) -> Vec<Frame> {
        let wait_ps = around.lock.take(around.now_ps);
        self.spent.add(Class::Lock, wait_ps);
        self.share(Place::Table(0), Class::Lock, around);
        self.spent.add(Class::Transmit, around.costs.lock);
        let mut cleaned = Vec::new();
        while cleaned.len() < CLEANED
            && let Some((frame, place)) = around.hardware.nics[self.port].clean()
        {
            self.spent.add(Class::Transmit, around.costs.clean);
            self.share(Place::Sent(self.port, place), Class::Transmit, around);
            cleaned.push(frame);
        }
        self.counts.cleanings += u64::from(!cleaned.is_empty());
        self.cleaning = around.hardware.nics[self.port].to_clean() > 0;
        if !self.cleaning {
            self.set_mask(false, around);
        }
        cleaned
    }

    /// A frame of the queue is posted while the lock is held; the last of them ends that.
    pub fn post_queued(&mut self, around: &mut Around<'_>) {
        let place = around.hardware.nics[self.port].next_place();
        self.share(Place::Sent(self.port, place), Class::Transmit, around);
        self.spent.add(Class::Transmit, around.costs.clean);
    }

    /// The lock is given back when what was spent has passed; what was cleaned is freed behind it.
    pub fn give_back(&mut self, cleaned: &[Frame], around: &mut Around<'_>) {
        around.lock.held_until(around.now_ps + self.spent.total());
        for frame in cleaned {
            for place in known_of(frame.buffer) {
                self.share(place, Class::Memory, around);
            }
            self.spent.add(Class::Memory, around.costs.free);
            around.hardware.buffers.give(frame.buffer);
        }
    }
}
