//! Cores that run a graph: pieces of work of its workers, between which cards do theirs.

use super::super::cores::{Work, buffer_address};
use super::super::graph::{Offered, Ready, Reply, Taken, when_ps};
use super::{Event, Frame, Router};
use crate::event::Time;
use causeway_engine::simulation::Step;

/// The number of a frame that the graph has made.
pub(super) const MADE: u64 = u64::MAX;
/// The generation of an event that only ends a piece of work, of a worker that sleeps then.
const ENDS: u64 = 0;
/// An answer with its checksum, bytes.
const ANSWER_BYTES: u32 = 64;

impl Router {
    /// The core whose buffers a ring has: a graph's come from one pool.
    pub(super) fn home(&self, core: usize) -> usize {
        if self.graph.is_some() { 0 } else { core }
    }

    /// A buffer for a ring.
    pub(super) fn take_buffer(&mut self, core: usize) -> u32 {
        match &mut self.graph {
            Some(graph) => graph.buffers.take(),
            None => self.cores[core].take(),
        }
    }

    /// Frames of a ring may be taken.
    pub(super) fn hand_over(&mut self, port: usize, queue: usize) {
        let Some(graph) = &mut self.graph else { return self.wake(queue) };
        let ready = std::mem::take(&mut self.ports[port].rings[queue].ready);
        let as_ready = |inside: u32| {
            let Frame { bytes, flow, reply, .. } = self.frames[inside as usize];
            Ready { inside, bytes, flow, reply }
        };
        let worker = graph.hand_over(port, queue, ready.into_iter().map(as_ready));
        if let Some(worker) = worker {
            let now_ps = self.queue.now_ps();
            self.wake_worker(worker, now_ps);
        }
    }

    /// A graph has as many buffers as are in use at most.
    pub(super) fn count_buffers(&mut self) {
        let held = self.held() as u32;
        if let Some(graph) = &mut self.graph {
            let given: usize =
                self.ports.iter().flat_map(|port| &port.rings).map(|rings| rings.given.len()).sum();
            graph.buffers.most = graph.buffers.most.max(given as u32 + held);
        }
    }

    /// The card reported so many frames of a ring that have left.
    pub(super) fn cleaned(&mut self, port: usize, queue: usize, n: usize) {
        let rings = &mut self.ports[port].rings[queue];
        match &mut self.graph {
            Some(graph) => {
                // Its buffers are used in turns, whichever these are.
                rings.sent.clear();
                graph.cleaned(port, queue, n);
            }
            None => rings.cleanable += n,
        }
    }

    /// The graph, for tests.
    #[cfg(test)]
    pub fn graph(&mut self) -> Option<&mut super::super::graph::Graph> {
        self.graph.as_deref_mut()
    }

    /// A worker that sleeps hears of something at `now_ps`.
    fn wake_worker(&mut self, worker: usize, now_ps: Time) {
        let wake_ps = self.plan.mechanism().wake.value;
        let Some(of_worker) = self.graph.as_mut().map(|graph| &mut graph.workers[worker]) else { return };
        if of_worker.asleep {
            of_worker.asleep = false;
            let when_ps = (now_ps + wake_ps).max(of_worker.free_ps);
            self.intend(worker, when_ps);
        }
    }

    /// A worker goes on then, whatever it had in mind before.
    fn intend(&mut self, worker: usize, when_ps: Time) {
        let Some(graph) = &mut self.graph else { return };
        graph.workers[worker].generation += 1;
        self.queue.at(when_ps, Event::Work(worker, graph.workers[worker].generation));
    }

    /// All workers begin.
    pub(super) fn begin_work(&mut self) {
        let workers = self.graph.as_ref().map_or(0, |graph| graph.workers.len());
        (0..workers).for_each(|worker| self.intend(worker, 0));
    }

    /// The last piece of a worker's work has ended: the next one.
    pub(super) fn work(&mut self, worker: usize, generation: u64) {
        let now_ps = self.queue.now_ps();
        let Some(current) = self.graph.as_ref().map(|graph| graph.workers[worker].generation) else { return };
        if generation == current || generation == ENDS {
            self.finish(worker);
        }
        let Some(graph) = self.graph.as_mut().filter(|_| generation == current) else { return };
        let found = match graph.step(worker, now_ps) {
            Ok(found) => found,
            Err(error) => {
                self.failed.get_or_insert(error.to_string());
                return;
            }
        };
        self.collect(worker, now_ps);
        self.go_on_with(worker, now_ps, found);
    }

    /// Settles when a worker goes on.
    fn go_on_with(&mut self, worker: usize, now_ps: Time, found: Step) {
        let Some(graph) = &mut self.graph else { return };
        let end_ps = graph.now_ps(worker).max(now_ps);
        let crossed = graph.crossed();
        let of_worker = &mut graph.workers[worker];
        of_worker.busy_ps += end_ps - now_ps;
        of_worker.free_ps = end_ps;
        of_worker.asleep = matches!(found, Step::Until(_) | Step::Blocked);
        if of_worker.asleep && of_worker.has_left_something() {
            self.queue.at(end_ps, Event::Work(worker, ENDS));
        }
        match found {
            Step::Until(ns) => self.intend(worker, when_ps(ns).max(end_ps)),
            Step::Blocked => {}
            Step::Worked | Step::Stopped => self.intend(worker, end_ps),
        }
        if crossed {
            let others = self.graph.as_ref().map_or(0, |graph| graph.workers.len());
            (0..others).filter(|other| *other != worker).for_each(|other| self.wake_worker(other, end_ps));
        }
    }

    /// Takes what a piece of work has left, and lets the worker wait for the lines that it touched.
    fn collect(&mut self, worker: usize, now_ps: Time) {
        let Some(left) = self.graph.as_mut().map(|graph| graph.left_on_desk()) else { return };
        left.taken.iter().for_each(|taken| self.collect_taken(worker, now_ps, taken, left.receiver));
        for (element, lines) in left.lookups {
            self.lookups += lines;
            let wait_ps = (0..lines).map(|n| self.near.table_ps(now_ps, self.lookups - n)).sum();
            if let Some(graph) = &mut self.graph {
                graph.wait(worker, element, wait_ps);
            }
        }
        for (port, queue, offered) in left.offered {
            self.collect_offered(worker, now_ps, (port, queue), &offered, left.sender);
        }
    }

    /// A frame is a packet of the graph now.
    fn collect_taken(&mut self, worker: usize, now_ps: Time, taken: &Taken, receiver: usize) {
        let frame = self.forget(taken.inside);
        self.trace.note(frame.number, now_ps, "is taken from the ring");
        let address = buffer_address(0, frame.buffer);
        let wait_ps = self.near.received_ps(now_ps, &Work { address, bytes: frame.bytes, flow: frame.flow });
        let Some(graph) = &mut self.graph else { return };
        graph.remember(taken, frame.number, frame.arrived_ps, frame.buffer);
        graph.workers[worker].refills.push((taken.port, taken.queue));
        graph.wait(worker, receiver, wait_ps);
    }

    /// A packet of the graph is a frame for a ring.
    fn collect_offered(
        &mut self,
        worker: usize,
        now_ps: Time,
        (port, queue): (usize, usize),
        offered: &Offered,
        sender: usize,
    ) {
        let Some(graph) = &mut self.graph else { return };
        let travel = graph.recall(offered);
        graph.made += u64::from(offered.tag.is_none());
        let buffer = travel.map_or_else(|| graph.buffers.take(), |travel| travel.buffer);
        let frame = Frame {
            number: travel.map_or(MADE, |travel| travel.number),
            bytes: offered.bytes,
            flow: 0,
            core: queue,
            buffer,
            moved: 0,
            arrived_ps: travel.map_or(now_ps, |travel| travel.arrived_ps),
            reply: offered.answer,
        };
        let inside = match self.unused.pop() {
            Some(inside) => inside,
            None => {
                self.frames.push(frame);
                (self.frames.len() - 1) as u32
            }
        };
        self.frames[inside as usize] = frame;
        let work = Work { address: buffer_address(0, buffer), bytes: frame.bytes, flow: 0 };
        let wait_ps = self.near.sent_ps(now_ps, &work);
        graph.workers[worker].posts.push((port, queue, inside));
        graph.wait(worker, sender, wait_ps);
    }

    /// A worker's last piece of work has ended: rings get buffers and frames, and their cards are told.
    fn finish(&mut self, worker: usize) {
        let Some(graph) = &mut self.graph else { return };
        let refills = std::mem::take(&mut graph.workers[worker].refills);
        let posts = std::mem::take(&mut graph.workers[worker].posts);
        let mut told: Vec<(usize, usize)> = Vec::new();
        for (port, queue) in refills {
            let buffer = self.take_buffer(queue);
            self.ports[port].rings[queue].given.push_back(buffer);
            if !told.contains(&(port, queue)) {
                told.push((port, queue));
            }
        }
        told.into_iter().for_each(|(port, queue)| self.ring_bell(port, queue, 0));
        let mut told: Vec<(usize, usize)> = Vec::new();
        for (port, queue, inside) in posts {
            self.ports[port].rings[queue].untold.push_back(inside);
            self.note(inside, "is on the ring for transmission");
            if !told.contains(&(port, queue)) {
                told.push((port, queue));
            }
        }
        for (port, queue) in told {
            let posted = self.ports[port].rings[queue].untold.len() as u32;
            self.ring_bell(port, queue, posted);
        }
    }

    /// What comes back from the wire for a frame that has left.
    pub(super) fn answered_from_outside(&mut self, port: usize, reply: Option<Reply>) {
        if reply.is_some() {
            self.come(port, ANSWER_BYTES, 0, reply);
        }
    }
}
