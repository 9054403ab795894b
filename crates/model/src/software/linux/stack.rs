//! What the kernel does with a packet, and what that takes.

use super::account::{Class, Drop, PortCounts, Spent};
use super::click::Click;
use super::io::Line;
use super::lookup::Routes;
use super::{Around, Role, Setup, Without};
use crate::event::Time;
use crate::layout::Place;
use crate::machine::Machine;
use crate::nic::{Engine, Frame};
use std::collections::VecDeque;

/// Picoseconds of each thing that the kernel does.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    interrupt: Time,
    register_write: Time,
    soft_interrupt: Time,
    switch: Time,
    pub poll: Time,
    receive: Time,
    pub backlog: Time,
    allocate: Time,
    free: Time,
    route: Time,
    transmit: Time,
    clean: Time,
    generate: Time,
}

/// The packet that deferred work has in its hands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hand {
    Empty,
    /// It was taken from the backlog and takes so long.
    Waits(Frame, Time),
    Works(Option<Frame>),
}

/// What the kernel knows of packets.
#[derive(Clone, Debug)]
pub struct Stack {
    pub(super) costs: Costs,
    role: Role,
    pub(super) without: Without,
    /// The routes, where they have to be found.
    routes: Option<Routes>,
    /// Click, where packets are left to it.
    pub(super) click: Option<Click>,
    pub(super) lines: Vec<Line>,
    pub(super) backlog: VecDeque<Frame>,
    /// Queues on the way out, and what each holds at most.
    pub(super) queues: Vec<VecDeque<Frame>>,
    pub(super) queue_most: usize,
    /// Buffers that each ring lacks.
    lacks: Vec<usize>,
    /// The port whose turn is under way.
    pub(super) turn: Option<usize>,
    /// In that turn the ring was found empty, and is looked at once more.
    pub(super) emptied: bool,
    pub(super) hand: Hand,
    /// The packet that a handler forwards itself.
    pub(super) handled: Option<Frame>,
    /// Whether the handler under way has emptied its ring.
    pub drained: bool,
    /// Processor time.
    pub spent: Spent,
    /// Packets that were dropped, by reason.
    pub drops: [u64; Drop::ALL.len()],
    /// Packets that were counted, where that is the kernel's role.
    pub counted: u64,
    /// Those, by the port that they came in by.
    pub counted_by: Vec<u64>,
    /// Packets that the kernel made.
    pub generated: u64,
    /// The port that it makes the next one for.
    generates_by: usize,
    /// What it did with each card.
    pub counters: Vec<PortCounts>,
    /// Entries to deferred work.
    pub deferred: u64,
}

impl Stack {
    pub(super) fn new(machine: &Machine, setup: &Setup, ports: usize) -> Stack {
        let (s, clock) = (&machine.software, &machine.processor.clock);
        let (allocate, free) =
            if setup.recycling { (&s.recycle, &s.recycle) } else { (&s.allocate, &s.free) };
        let costs = Costs {
            interrupt: s.interrupt.at(clock) + s.register_read.value,
            register_write: s.register_write.at(clock),
            soft_interrupt: s.soft_interrupt.at(clock),
            switch: s.switch.at(clock),
            poll: s.poll.at(clock),
            receive: s.receive.at(clock),
            backlog: s.backlog.at(clock),
            allocate: allocate.at(clock),
            free: free.at(clock),
            route: s.route.at(clock),
            transmit: s.transmit.at(clock),
            clean: s.clean.at(clock),
            generate: s.generate.at(clock),
        };
        Stack {
            costs,
            role: setup.role,
            without: setup.without,
            routes: match setup.role {
                Role::Route(lookup) => Routes::new(machine, lookup),
                _ => None,
            },
            click: match setup.role {
                Role::Click(graph) => Click::new(machine, graph, ports, setup.without),
                _ => None,
            },
            lines: vec![Line::default(); ports],
            backlog: VecDeque::new(),
            queues: vec![VecDeque::new(); ports],
            queue_most: s.queue.value as usize,
            lacks: vec![0; ports],
            turn: None,
            emptied: false,
            hand: Hand::Empty,
            handled: None,
            drained: false,
            spent: Spent::default(),
            drops: [0; Drop::ALL.len()],
            counted: 0,
            counted_by: vec![0; ports],
            generated: 0,
            generates_by: 0,
            counters: vec![PortCounts::default(); ports],
            deferred: 0,
        }
    }

    pub(super) fn spent_on_interrupt(&mut self) {
        self.spent.add(Class::Interrupt, self.costs.interrupt);
    }

    pub(super) fn spent_on_entry(&mut self) -> Time {
        self.deferred += 1;
        self.spent.add(Class::Scheduler, self.costs.soft_interrupt);
        self.spent.take()
    }

    pub(super) fn spent_on_switch(&mut self) {
        self.spent.add(Class::Scheduler, self.costs.switch);
    }

    /// Packets on the backlog.
    pub fn backlog_length(&self) -> usize {
        self.backlog.len()
    }

    /// Entries of the route cache that hold a flow, and all that there are.
    pub fn cache_entries(&self) -> [usize; 2] {
        self.routes.as_ref().map_or([0, 0], Routes::entries)
    }

    pub(super) fn leaves_to_click(&self) -> bool {
        self.click.is_some()
    }

    /// Packets in the queues on the way out.
    pub fn queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Packets that the kernel holds.
    pub fn held(&self) -> usize {
        let in_hand = matches!(self.hand, Hand::Waits(..) | Hand::Works(Some(_)));
        let in_hands = usize::from(in_hand) + usize::from(self.handled.is_some());
        let by_click = self.click.as_ref().map_or(0, Click::held);
        self.backlog.len() + self.queued() + in_hands + by_click
    }

    /// A port is not to interrupt.
    pub(super) fn mask(&mut self, port: usize) {
        self.lines[port].masked = true;
    }

    /// The cards' masks are as the mechanisms want them; each that changes takes a write to a register.
    pub(super) fn set_masks(&mut self, around: &mut Around<'_>) {
        for (line, nic) in self.lines.iter().zip(&mut around.hardware.nics) {
            if nic.masked != line.masked {
                nic.masked = line.masked;
                self.spent.add(Class::Interrupt, self.costs.register_write);
            }
        }
    }

    /// The processor reads or writes something and may wait for memory.
    pub(super) fn touch(&mut self, class: Class, place: Place, around: &mut Around<'_>) {
        // A piece of work begins now; what it did so far is behind it when it comes here.
        let now_ps = around.queue.now_ps() + self.spent.total();
        let stall_ps = around.hardware.touch(now_ps, place);
        self.spent.add(class, stall_ps);
    }

    /// Takes the next packet from a ring.
    pub(super) fn take(&mut self, port: usize, around: &mut Around<'_>) -> Option<Frame> {
        let place = around.hardware.nics[port].receive_place();
        let frame = around.hardware.nics[port].take()?;
        self.lacks[port] += 1;
        self.spent.add(Class::Receive, self.costs.receive);
        self.touch(Class::Receive, Place::Received(port, place), around);
        if !matches!(self.role, Role::CountUntouched | Role::Transfer) {
            self.touch(Class::Ethernet, Place::Headers(frame.buffer), around);
        }
        self.touch(Class::Receive, Place::Head(frame.buffer, 0), around);
        self.touch(Class::Receive, Place::Head(frame.buffer, 1), around);
        around.trace.note(frame.number, around.queue.now_ps(), "is taken from the ring");
        Some(frame)
    }

    /// What the packet's way through the kernel takes, once it was received.
    pub(super) fn route(&mut self, frame: &Frame, around: &mut Around<'_>) {
        match self.role {
            Role::Forward | Role::Route(_) => {
                self.spent.add(Class::Ip, self.costs.route);
                self.look_up(frame, around);
                self.spent.add(Class::Transmit, self.costs.transmit);
            }
            // A packet for which there is no room in the queue goes no further.
            Role::Transfer if self.queues[frame.to].len() >= self.queue_most => {}
            Role::Transfer => self.spent.add(Class::Transmit, self.costs.transmit),
            Role::Count | Role::CountUntouched | Role::Generate | Role::Click(_) | Role::Affinity(_) => {
                self.spent.add(Class::Memory, self.costs.free);
            }
        }
    }

    fn look_up(&mut self, frame: &Frame, around: &mut Around<'_>) {
        let Some(mut routes) = self.routes.take() else { return };
        self.spent.add(Class::Ip, routes.look_up(frame.number));
        for &place in &routes.reads {
            self.touch(Class::Ip, place, around);
        }
        self.routes = Some(routes);
    }

    /// Whether a card that had packets is looked at again before its interrupts are let through.
    pub(super) fn looks_again(&self) -> bool {
        matches!(self.role, Role::Route(_)) && !self.without.second_look
    }

    fn forwards(&self) -> bool {
        matches!(self.role, Role::Forward | Role::Route(_) | Role::Transfer)
    }

    /// Frees what a card has sent, and fills its ring from the queue.
    pub(super) fn clean(&mut self, port: usize, around: &mut Around<'_>) {
        let mut cleaned = 0;
        while let Some((frame, place)) = around.hardware.nics[port].clean() {
            cleaned = 1;
            self.spent.add(Class::Transmit, self.costs.clean);
            self.touch(Class::Transmit, Place::Sent(port, place), around);
            if self.role != Role::Generate {
                self.touch(Class::Memory, Place::Head(frame.buffer, 0), around);
                self.touch(Class::Memory, Place::Head(frame.buffer, 1), around);
                self.free(frame, around);
            }
        }
        self.counters[port].cleanings += cleaned;
        let mut posted = false;
        while around.hardware.nics[port].has_room()
            && let Some(frame) = self.queues[port].pop_front()
        {
            self.post(port, frame, around);
            posted = true;
        }
        if posted {
            self.tell(port, Engine::Transmit, around);
        }
    }

    fn free(&mut self, frame: Frame, around: &mut Around<'_>) {
        self.spent.add(Class::Memory, self.costs.free);
        around.hardware.buffers.give(frame.buffer);
    }

    pub(super) fn drop(&mut self, frame: Frame, reason: Drop, around: &mut Around<'_>) {
        self.drops[reason as usize] += 1;
        around.trace.note(frame.number, around.queue.now_ps(), "is dropped by the kernel");
        self.free(frame, around);
    }

    pub(super) fn post(&mut self, port: usize, frame: Frame, around: &mut Around<'_>) {
        let place = around.hardware.nics[port].post(frame);
        self.touch(Class::Transmit, Place::Sent(port, place), around);
        around.trace.note(frame.number, around.queue.now_ps(), "is on the ring for transmission");
    }

    pub(super) fn tell(&mut self, port: usize, engine: Engine, around: &mut Around<'_>) {
        let class = if engine == Engine::Receive { Class::Receive } else { Class::Transmit };
        self.spent.add(class, self.costs.register_write);
        around.hardware.ring(port, engine, around.queue);
    }

    /// A turn of a port is over: its ring gets new buffers.
    pub(super) fn end_turn(&mut self, port: usize, around: &mut Around<'_>) {
        if self.turn == Some(port) {
            self.turn = None;
            self.emptied = false;
        }
        let lacks = std::mem::take(&mut self.lacks[port]);
        for _ in 0..lacks {
            self.spent.add(Class::Memory, self.costs.allocate);
            let buffer = around.hardware.buffers.take();
            around.hardware.nics[port].give(buffer);
        }
        if lacks > 0 {
            self.tell(port, Engine::Receive, around);
        }
    }

    pub(super) fn hand_waits(&self) -> bool {
        matches!(self.hand, Hand::Waits(..))
    }

    /// Deferred work begins with the packet that it took, if it took one.
    pub(super) fn begin_hand(&mut self) -> Option<Time> {
        let Hand::Waits(frame, duration_ps) = self.hand else { return None };
        self.hand = Hand::Works(Some(frame));
        // What handlers and the ends of pieces left to be paid is paid here.
        Some(duration_ps + self.spent.take())
    }

    /// The packet in hand goes to its port.
    pub(super) fn finish(&mut self, around: &mut Around<'_>) {
        if let Hand::Works(Some(frame)) = std::mem::replace(&mut self.hand, Hand::Empty) {
            self.deliver(frame, around);
        }
    }

    /// So does the packet that a handler forwards itself.
    pub(super) fn finish_handled(&mut self, around: &mut Around<'_>) {
        if let Some(frame) = self.handled.take() {
            self.deliver(frame, around);
        }
    }

    pub(super) fn count(&mut self, frame: Frame, around: &mut Around<'_>) {
        self.counted += 1;
        self.counted_by[frame.from] += 1;
        around.hardware.buffers.give(frame.buffer);
    }

    fn deliver(&mut self, frame: Frame, around: &mut Around<'_>) {
        if !self.forwards() {
            return self.count(frame, around);
        }
        let port = frame.to;
        // Under load no other handler comes between that would clean the ring.
        if self.without.backlog && !around.hardware.nics[port].has_room() {
            self.clean(port, around);
        }
        if self.queues[port].is_empty() && around.hardware.nics[port].has_room() {
            self.post(port, frame, around);
            self.tell(port, Engine::Transmit, around);
        } else if self.queues[port].len() < self.queue_most {
            self.queues[port].push_back(frame);
        } else {
            self.drop(frame, Drop::Queue, around);
        }
    }

    /// The generator makes the next packet, if there is room for it on a card, which it asks in turn.
    pub(super) fn generate(&mut self, around: &mut Around<'_>) -> Option<Time> {
        if self.role != Role::Generate {
            return None;
        }
        let ports = self.lines.len();
        let next = (0..ports).map(|n| (self.generates_by + n) % ports);
        self.generates_by = next.into_iter().find(|&port| around.hardware.nics[port].has_room())?;
        self.spent.add(Class::Transmit, self.costs.generate);
        Some(self.spent.take())
    }

    pub(super) fn generated(&mut self, around: &mut Around<'_>) {
        let (number, port) = (self.generated, self.generates_by);
        self.generated += 1;
        self.generates_by = (port + 1) % self.lines.len();
        let arrived_ps = around.queue.now_ps();
        let frame = Frame { number, from: port, to: port, bytes: 64, arrived_ps, buffer: 0 };
        self.post(port, frame, around);
        self.tell(port, Engine::Transmit, around);
    }
}
