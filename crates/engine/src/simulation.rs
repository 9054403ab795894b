//! Workers without threads, for a model: whoever calls says when a worker runs, and what its work costs.
//!
//! The graph, its scheduler and the reception mechanisms are those of the live router. What differs is time: each piece of
//! work is asked for by itself, and the simulated clock of the worker goes on by what it costs. So anything can happen between
//! two pieces: packets come, an interrupt is raised in the middle of a port's quota, another worker runs. Packets go one by
//! one ([`Simulation::new`]), or in the batches that a live worker makes of them ([`Simulation::in_batches`]), where a piece
//! is what one element does with one batch.

use crate::assemble::Assembly;
use crate::clock::SIMULATED_START_NS;
use crate::counters::Line;
use crate::crossing::Doorbell;
use crate::devices::Devices;
use crate::handler::{self, HandlerError};
use crate::library::Library;
use crate::node::{Index, Place};
use crate::plan::Plan;
use crate::router::{Options, StartError, build, clock};
use crate::waiter::Waiter;
use crate::worker::Worker;
use causeway_packet::BATCH;
use std::sync::Arc;

pub use crate::work::{Visit, Work};
pub use crate::worker::Step;

/// A router without threads.
pub struct Simulation {
    workers: Vec<Worker>,
    index: Index,
    counters: crate::Counters,
    /// Packets of a piece of work at most.
    limit: usize,
}

impl Simulation {
    /// Builds `plan` for the workers that `options` name, whose clocks begin with [`Options::simulated_ns`] (1 000 000 000 s
    /// unless given). `costs` makes for each worker what says how many nanoseconds a piece of work takes.
    ///
    /// # Errors
    ///
    /// As [`crate::Router::start`].
    pub fn new<C: FnMut(&Visit<'_>) -> u64 + Send + 'static>(
        library: &Library,
        plan: &Plan,
        options: &Options,
        costs: impl FnMut(usize) -> C,
    ) -> Result<Simulation, StartError> {
        Simulation::build(library, plan, options, 1, costs)
    }

    /// As [`Simulation::new`], but packets stay together as they do live: a batch visits an element once.
    ///
    /// # Errors
    ///
    /// As [`crate::Router::start`].
    pub fn in_batches<C: FnMut(&Visit<'_>) -> u64 + Send + 'static>(
        library: &Library,
        plan: &Plan,
        options: &Options,
        costs: impl FnMut(usize) -> C,
    ) -> Result<Simulation, StartError> {
        Simulation::build(library, plan, options, BATCH, costs)
    }

    fn build<C: FnMut(&Visit<'_>) -> u64 + Send + 'static>(
        library: &Library,
        plan: &Plan,
        options: &Options,
        limit: usize,
        mut costs: impl FnMut(usize) -> C,
    ) -> Result<Simulation, StartError> {
        let options = Options {
            simulated_ns: Some(options.simulated_ns.unwrap_or(SIMULATED_START_NS)),
            ..options.clone()
        };
        // Nobody sleeps, but an edge between workers wants a bell to ring.
        let waiter = Waiter::new().map_err(|e| StartError::Io("cannot make an epoll instance", e))?;
        let bell = Arc::new(Doorbell::new(waiter.waker()));
        let assembly = build(library, plan, &options, &vec![bell; options.workers.max(1)], clock(&options))?;
        let Assembly { cores, index, mut env, .. } = assembly;
        let mut workers = Vec::new();
        for mut core in cores {
            core.costs = Some(Box::new(costs(core.worker)));
            core.apart = limit == 1;
            crate::single::mark(&mut core);
            let mut devices = Devices::new(&mut core, &mut env.counters, options.mechanism, options.budget);
            core.commit();
            devices.start(&mut core);
            workers.push(Worker::new(core, devices));
        }
        env.counters.commit();
        Ok(Simulation { workers, index, counters: env.counters, limit })
    }

    /// Lets a worker do the next piece of work, with at most one packet or one batch. `None`: it did, or looked for some; the last
    /// piece of a scheduling round says what the round found. A worker that is blocked may have work again when another
    /// has run, or when packets came; one that stopped goes on when it is asked again.
    ///
    /// # Panics
    ///
    /// If there is no such worker, here and below.
    pub fn step(&mut self, worker: usize) -> Option<Step> {
        let worker = &mut self.workers[worker];
        let found = worker.piece(self.limit);
        if found == Some(Step::Stopped) {
            worker.core.run_count = 1;
        }
        found
    }

    /// Lets a worker go on until its clock reaches `until_ns`, which its last piece of work may pass, or until it has
    /// nothing to do; its clock then stands at `until_ns`, or where the router was asked to stop.
    pub fn run(&mut self, worker: usize, until_ns: u64) {
        while self.now_ns(worker) < until_ns {
            match self.step(worker) {
                None | Some(Step::Worked) => {}
                Some(Step::Until(when_ns)) => self.idle(worker, when_ns.min(until_ns)),
                Some(Step::Blocked) => self.idle(worker, until_ns),
                Some(Step::Stopped) => return,
            }
        }
    }

    /// A worker's time, nanoseconds.
    pub fn now_ns(&self, worker: usize) -> u64 {
        self.workers[worker].core.clock.reading_ns()
    }

    /// Lets a worker do nothing until `when_ns`.
    pub fn idle(&mut self, worker: usize, when_ns: u64) {
        self.workers[worker].core.clock.jump(when_ns);
    }

    /// The elements that receive from devices, by port.
    pub fn ports(&self, worker: usize) -> Vec<Arc<str>> {
        let Worker { core, devices, .. } = &self.workers[worker];
        devices.nodes().map(|node| core.nodes[node].name.clone()).collect()
    }

    /// The device of a port raised its interrupt; without effect while it is masked.
    pub fn interrupt(&mut self, worker: usize, port: usize) {
        self.workers[worker].devices.interrupt(port);
    }

    /// Packets that the workers hold: in queues, on the backlog, under way.
    pub fn held(&self) -> usize {
        self.workers.iter().map(Worker::held).sum()
    }

    fn places(&self, element: &str) -> Result<&[Place], HandlerError> {
        let places = self.index.get(element).ok_or_else(|| HandlerError::NoElement(element.to_owned()))?;
        Ok(places)
    }

    /// All counters with their values.
    pub fn counters(&self) -> impl Iterator<Item = (&Line, u64)> {
        self.workers.iter().for_each(|worker| worker.devices.publish());
        self.counters.read()
    }

    /// Reads a handler, of the first copy of an element that has several. Only what it makes elements push takes time.
    ///
    /// # Errors
    ///
    /// If there is no such element or handler, or if the element says so.
    pub fn read(&mut self, element: &str, name: &str, arg: &str) -> Result<String, HandlerError> {
        let place = *self.places(element)?.first().ok_or(HandlerError::Gone)?;
        let core = &mut self.workers[place.worker].core;
        core.aside(|core| handler::read(core, place.node, name, arg))
    }

    /// Writes a handler, of all copies of an element. Only what it makes elements push takes time.
    ///
    /// # Errors
    ///
    /// As [`Simulation::read`].
    pub fn write(&mut self, element: &str, name: &str, value: &str) -> Result<(), HandlerError> {
        for place in self.places(element)?.to_vec() {
            let core = &mut self.workers[place.worker].core;
            core.aside(|core| handler::write(core, place.node, name, value))?;
        }
        Ok(())
    }
}
