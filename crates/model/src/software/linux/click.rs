//! Click of 2004 in the kernel's thread (CvL §3.B): no interrupts, tasks in turn, headers prefetched, buffers of its own.
//!
//! A task looks at a card's ring or at a queue and goes on with at most a burst of packets; then it is the next one's turn,
//! since all have the same share. While a packet is worked on, the header of the next one comes from memory.

use super::account::{Class, Drop};
use super::stack::Stack;
use super::{Around, Without};
use crate::event::Time;
use crate::layout::Place;
use crate::machine::Machine;
use crate::nic::{Engine, Frame};
use std::collections::VecDeque;

/// What Click's graph does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graph {
    /// Counts them (its udpcount).
    Count,
    /// Makes them and sends them by all ports (its udpgen).
    Generate,
    /// Puts them into the queue of a fixed port, without looking at them.
    Transfer,
    /// Routes them, as RFC 1812 wants it.
    Route,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Receive(usize),
    Send(usize),
    Generate(usize),
}

#[derive(Clone, Debug)]
struct Costs {
    look: Time,
    receive: Time,
    count: Time,
    generate: Time,
    queue: Time,
    graph: Time,
    send: Time,
}

/// What the piece of work under way ends with.
#[derive(Clone, Copy, Debug)]
enum End {
    Nothing,
    Count(Frame),
    Queue(Frame),
    Post(usize, Frame),
}

/// Click.
#[derive(Clone, Debug)]
pub(super) struct Click {
    graph: Graph,
    costs: Costs,
    prefetch: usize,
    burst: usize,
    in_turn: bool,
    tasks: Vec<Task>,
    /// The task whose turn it is, and packets that it may go on with.
    turn: usize,
    left: usize,
    /// When the headers that were asked for are there, by port: of the packets that wait, in their order.
    coming: Vec<VecDeque<Time>>,
    end: End,
}

impl Click {
    /// Click as it starts; `None` if the machine's file says nothing of it.
    pub fn new(machine: &Machine, graph: Graph, ports: usize, without: Without) -> Option<Click> {
        let (values, clock) = (machine.click.as_ref()?, &machine.processor.clock);
        let costs = Costs {
            look: values.look.at(clock),
            receive: values.receive.at(clock),
            count: values.count.at(clock),
            generate: values.generate.at(clock),
            queue: values.queue.at(clock),
            graph: if graph == Graph::Route { values.graph.at(clock) } else { 0 },
            send: values.send.at(clock),
        };
        let of = |port: usize| match graph {
            Graph::Count => vec![Task::Receive(port)],
            Graph::Generate => vec![Task::Generate(port)],
            Graph::Transfer | Graph::Route => vec![Task::Receive(port), Task::Send(port)],
        };
        let burst = values.burst.value as usize;
        Some(Click {
            graph,
            costs,
            prefetch: values.prefetch.value as usize,
            burst,
            in_turn: !without.turns,
            tasks: (0..ports).flat_map(of).collect(),
            turn: 0,
            left: burst,
            coming: vec![VecDeque::new(); ports],
            end: End::Nothing,
        })
    }

    /// Packets of the piece under way.
    pub fn held(&self) -> usize {
        usize::from(!matches!(self.end, End::Nothing))
    }

    fn next_task(&mut self) {
        let next = self.in_turn || self.left == self.burst;
        self.turn = if next { (self.turn + 1) % self.tasks.len() } else { 0 };
        self.left = self.burst;
    }

    /// A task's packet: `None` ends its turn.
    fn work(&mut self, stack: &mut Stack, around: &mut Around<'_>) -> Option<End> {
        match self.tasks[self.turn] {
            Task::Receive(port) => self.receive(port, stack, around),
            Task::Send(port) => {
                if self.left == self.burst {
                    self.clean(port, stack, around);
                }
                if !around.hardware.nics[port].has_room() {
                    return None;
                }
                let frame = stack.queues[port].pop_front()?;
                stack.spent.add(Class::Transmit, self.costs.send);
                Some(End::Post(port, frame))
            }
            Task::Generate(port) => {
                if self.left == self.burst {
                    self.clean(port, stack, around);
                }
                if !around.hardware.nics[port].has_room() {
                    return None;
                }
                stack.spent.add(Class::Transmit, self.costs.generate + self.costs.send);
                let arrived_ps = around.queue.now_ps();
                let frame =
                    Frame { number: stack.generated, from: port, to: port, bytes: 64, arrived_ps, buffer: 0 };
                stack.generated += 1;
                Some(End::Post(port, frame))
            }
        }
    }

    fn receive(&mut self, port: usize, stack: &mut Stack, around: &mut Around<'_>) -> Option<End> {
        let place = around.hardware.nics[port].receive_place();
        let frame = around.hardware.nics[port].take()?;
        stack.spent.add(Class::Receive, self.costs.receive);
        stack.touch(Class::Receive, Place::Received(port, place), around);
        self.wait_for(&frame, stack, around);
        self.ask_ahead(port, stack, around);
        // The descriptor gets its next buffer at once; the card is told at the end of the turn.
        let buffer = around.hardware.buffers.take();
        around.hardware.nics[port].give(buffer);
        stack.counters[port].polls += u64::from(self.left == self.burst);
        around.trace.note(frame.number, around.queue.now_ps(), "is taken from the ring");
        if self.graph == Graph::Count {
            stack.spent.add(Class::Memory, self.costs.count);
            return Some(End::Count(frame));
        }
        stack.spent.add(Class::Ip, self.costs.graph);
        stack.spent.add(Class::Transmit, self.costs.queue);
        Some(End::Queue(frame))
    }

    /// What of the packet is in memory alone: its header, where it is looked at, and what is known of it.
    fn wait_for(&mut self, frame: &Frame, stack: &mut Stack, around: &mut Around<'_>) {
        if let Some(there_ps) = self.coming[frame.from].pop_front() {
            let now_ps = around.queue.now_ps() + stack.spent.total();
            stack.spent.add(Class::Ethernet, there_ps.saturating_sub(now_ps));
        }
        if self.graph != Graph::Transfer {
            stack.touch(Class::Ethernet, Place::Headers(frame.buffer), around);
        }
        stack.touch(Class::Receive, Place::Head(frame.buffer, 0), around);
        stack.touch(Class::Receive, Place::Head(frame.buffer, 1), around);
    }

    /// Asks for what is needed of the packets that come next.
    fn ask_ahead(&mut self, port: usize, stack: &mut Stack, around: &mut Around<'_>) {
        while self.coming[port].len() < self.prefetch
            && let Some(buffer) = around.hardware.nics[port].peek(self.coming[port].len())
        {
            let now_ps = around.queue.now_ps() + stack.spent.total();
            let places = [Place::Headers(buffer), Place::Head(buffer, 0), Place::Head(buffer, 1)];
            let looks = if self.graph == Graph::Transfer { &places[1..] } else { &places[..] };
            let longest_ps = looks.iter().map(|&place| around.hardware.touch(now_ps, place)).max();
            self.coming[port].push_back(now_ps + longest_ps.unwrap_or_default());
        }
    }

    fn clean(&mut self, port: usize, stack: &mut Stack, around: &mut Around<'_>) {
        while let Some((frame, place)) = around.hardware.nics[port].clean() {
            stack.touch(Class::Transmit, Place::Sent(port, place), around);
            if self.graph != Graph::Generate {
                around.hardware.buffers.give(frame.buffer);
            }
        }
    }

    /// A turn with packets ends: the card is told of its buffers or its frames.
    fn tell(&self, stack: &mut Stack, around: &mut Around<'_>) {
        if self.left < self.burst {
            match self.tasks[self.turn] {
                Task::Receive(port) => stack.tell(port, Engine::Receive, around),
                Task::Send(port) | Task::Generate(port) => stack.tell(port, Engine::Transmit, around),
            }
        }
    }
}

impl Stack {
    /// The next piece of Click's work: a packet, or a look at what is empty.
    pub(super) fn click(&mut self, around: &mut Around<'_>) -> Option<Time> {
        let mut click = self.click.take()?;
        match click.work(self, around) {
            Some(end) => {
                click.end = end;
                click.left -= 1;
                if click.left == 0 {
                    click.tell(self, around);
                    click.next_task();
                }
            }
            None => {
                self.spent.add(Class::Scheduler, click.costs.look);
                click.tell(self, around);
                click.next_task();
            }
        }
        self.click = Some(click);
        Some(self.spent.take().max(1))
    }

    /// The piece is at its end: its packet is where it goes.
    pub(super) fn clicked(&mut self, around: &mut Around<'_>) {
        let Some(click) = &mut self.click else { return };
        match std::mem::replace(&mut click.end, End::Nothing) {
            End::Nothing => {}
            End::Count(frame) => self.count(frame, around),
            End::Queue(frame) if self.queues[frame.to].len() < self.queue_most => {
                self.queues[frame.to].push_back(frame);
            }
            End::Queue(frame) => {
                self.drops[Drop::Queue as usize] += 1;
                around.trace.note(frame.number, around.queue.now_ps(), "is dropped by a queue");
                around.hardware.buffers.give(frame.buffer);
            }
            End::Post(port, frame) => self.post(port, frame, around),
        }
    }
}
