//! Hot swap: another graph takes the place of the running one between two batches.
//!
//! All that can fail comes first: the new graph is built and initialised beside the old one, then every worker stops
//! and lends its graph. Until then the old graph can go on as it was, and does if anything fails. Only then elements
//! take the state of their predecessors, counters and time go on, and what cannot be undone is done
//! ([`crate::Element::commit`]). The old graph is dropped when the workers run again.

use super::{ANSWER, Router, StartError, build};
use crate::assemble::Assembly;
use crate::core::Core;
use crate::crossing::Doorbell;
use crate::devices::Devices;
use crate::driver::{Command, Driver};
use crate::handler::NoAnswer;
use crate::node::Place;
use crate::plan::Plan;
use crate::worker::Worker;
use std::collections::HashMap;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// A worker's graph on loan.
type Loan = Arc<Mutex<Option<Worker>>>;

/// A worker that waits for a graph. It gets its own back when this is dropped.
struct Parked {
    worker: Option<Worker>,
    loan: Loan,
    unpark: Sender<Worker>,
}

impl Drop for Parked {
    #[allow(clippy::disallowed_methods, reason = "a worker that has lent its graph waits for another")]
    fn drop(&mut self) {
        // The worker looks here when it sees that no other graph will come: after this, when the sender is dropped.
        *self.loan.lock().unwrap_or_else(PoisonError::into_inner) = self.worker.take();
    }
}

impl Router {
    /// Replaces the graph by `plan`. The new graph is built and initialised beside the running one; if that
    /// fails nothing changes. Then the workers stop between two batches, each new element takes the state of its
    /// predecessor, and the new graph runs. Packets that arrive meanwhile wait in the devices' rings; those that an
    /// element without successor held are counted as `drop.swap`.
    ///
    /// # Errors
    /// The new graph cannot be built, or a worker does not answer.
    pub fn swap(&mut self, plan: Plan) -> Result<(), StartError> {
        let doorbells: Vec<Arc<Doorbell>> = self.handles.iter().map(|h| h.doorbell.clone()).collect();
        // Time goes on: elements find the clock that runs.
        let clock = self.call(0, |w| w.core.clock.clone())?;
        let mut assembly = build(&self.library, &plan, &self.options, &doorbells, clock)?;
        let mut cores = std::mem::take(&mut assembly.cores);
        let manager = super::manager(&cores);
        let ways = self.handles.iter().map(|h| (h.commands.clone(), h.doorbell.clone())).collect();
        let others = super::others(ways, &assembly.index);
        let Router { plan: old_plan, env: old_env, options, .. } = &*self;
        let class =
            |plan: &Plan, name: &str| plan.elements.iter().find(|e| e.name == name).map(|e| e.class.clone());
        let stays = |element: &str| class(old_plan, element) == class(&plan, element);
        let mut parked = self.park_all()?;
        assembly.env.counters.carry(&old_env.counters, stays);
        let mut kept = self.kept.clone();
        kept.note(&old_env.counters, stays, |element| class(old_plan, element));
        assembly.env.counters.resume(&mut kept, |element| class(&plan, element));
        let mut old: Vec<&mut Worker> = parked.iter_mut().filter_map(|p| p.worker.as_mut()).collect();
        take_state(&mut old, &mut cores);
        let nodes = old.iter_mut().flat_map(|worker| &mut worker.core.nodes);
        nodes.filter_map(|node| node.element.as_mut()).for_each(|element| element.retire());
        let mut retired = Vec::new();
        for (mut parked, mut core) in parked.into_iter().zip(cores) {
            let Some(mut old) = parked.worker.take() else { continue };
            core.clock = old.core.clock.clone();
            core.others = others.clone();
            core.commit();
            let counters = &mut assembly.env.counters;
            let mut devices = Devices::new(&mut core, counters, options.mechanism, options.budget);
            devices.take_over(&mut core, &mut old);
            core.swapped.add(old.held() as u64);
            // A worker that has ended since then is told by itself.
            let _ = parked.unpark.send(Worker::new(core, devices));
            retired.push(old);
        }
        assembly.env.counters.commit();
        let Assembly { index, names, control_sides, ports, env, .. } = assembly;
        (self.plan, self.index, self.names) = (plan, index, names);
        (self.meter, self.manager, self.kept) = (None, manager, kept);
        (self.control_sides, self.ports, self.env) = (control_sides, ports, env);
        Ok(())
    }

    /// What elements have counted that the next graph does not have is kept: they go on from it when a later graph has them again.
    pub fn keep_counts(&mut self) {
        self.kept.next = true;
    }

    /// Takes the graphs of all workers, which then wait; of none if one of them does not answer.
    fn park_all(&self) -> Result<Vec<Parked>, NoAnswer> {
        // A worker that is stuck is found while the others still run.
        (0..self.handles.len()).try_for_each(|worker| self.call(worker, |_| ()))?;
        (0..self.handles.len()).map(|worker| self.park(worker)).collect()
    }

    #[allow(clippy::disallowed_methods, reason = "a worker that has lent its graph waits for another")]
    fn park(&self, worker: usize) -> Result<Parked, NoAnswer> {
        let (lent, taken) = mpsc::channel();
        let (unpark, another) = mpsc::channel::<Worker>();
        let loan = Loan::default();
        let slot = loan.clone();
        let exchange = move |driver: &mut Driver| {
            let Driver { worker, waiter, .. } = driver;
            worker.unregister(waiter);
            let number = worker.core.worker;
            let own = std::mem::replace(worker, worker.without_graph());
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
            // Whoever asked may have stopped waiting; the next line finds that out.
            let _ = lent.send(());
            let back = || slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(next) = another.recv().ok().or_else(back) {
                *worker = next;
            }
            if let Err(e) = worker.register(waiter) {
                log::error!("worker {number}: a device cannot be waited for: {e}");
            }
        };
        self.send(worker, Command::Call(Box::new(exchange)))?;
        taken.recv_timeout(ANSWER).map_err(|_| NoAnswer(worker))?;
        let worker = loan.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(Parked { worker, loan, unpark })
    }
}

/// Lets each new element take the state of its predecessor: the one with the same swap key on the same worker,
/// else on any.
fn take_state(old: &mut [&mut Worker], new: &mut [Core]) {
    let mut keys: HashMap<String, Vec<Place>> = HashMap::new();
    for (worker, old) in old.iter().enumerate() {
        for node in 0..old.core.nodes.len() {
            keys.entry(old.core.swap_key(node)).or_default().push(Place { worker, node });
        }
    }
    for (worker, core) in new.iter_mut().enumerate() {
        for node in 0..core.nodes.len() {
            let Some(places) = keys.get(&core.swap_key(node)) else { continue };
            let Some(&place) = places.iter().find(|p| p.worker == worker).or(places.first()) else {
                continue;
            };
            if let Some(partner) = old[place.worker].core.nodes[place.node].element.as_mut() {
                core.activate(node, |e, cx| e.take_state(&mut **partner, cx));
                core.deliver();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Library, Spec, reads, writes};
    use crate::{Cx, Element, Error, Options, Run};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    static GATE: AtomicBool = AtomicBool::new(false);
    static AT_GATE: AtomicBool = AtomicBool::new(false);

    /// Counts the runs of its task; one of them waits at the gate.
    static RUNNER: Spec = Spec {
        name: "Runner",
        ports: "0/0",
        handlers: &[reads("runs", "runs of its task"), writes("wait", "waits at the gate in the next")],
        build: |_| Ok(Box::new(Runner { runs: 0, waits: false })),
        ..Spec::DEFAULT
    };

    struct Runner {
        runs: u64,
        waits: bool,
    }

    impl Element for Runner {
        fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
            cx.wake();
            Ok(())
        }

        fn task(&mut self, _: &mut Cx<'_>) -> Run {
            self.runs += 1;
            while self.waits && !GATE.load(Ordering::Relaxed) {
                AT_GATE.store(true, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
            Run::Idle
        }

        fn read(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
            cx.wake();
            Ok(self.runs.to_string())
        }

        fn write(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
            self.waits = true;
            cx.wake();
            Ok(())
        }
    }

    fn runs(router: &Router) -> u64 {
        router.read("r", "runs", "").unwrap().parse().unwrap()
    }

    /// Waits until the graph that has run before runs again.
    fn runs_on(router: &Router, before: u64) {
        let start = Instant::now();
        while runs(router) <= before + 3 {
            assert!(start.elapsed() < Duration::from_secs(20), "the old graph does not run");
        }
    }

    #[test]
    fn a_worker_gets_its_graph_back_when_there_is_no_other() {
        let library = Library::new([&RUNNER]);
        let compiled =
            causeway_lang::compile("t", b"r :: Runner;", &causeway_lang::NoLibraries, &library, &[]);
        let plan = Plan::new(&compiled.unwrap_or_else(|_| panic!("a good configuration")));
        let router = Router::start(library, plan, Options::default()).unwrap();
        router.resume();
        runs_on(&router, 0);
        let before = runs(&router);
        drop(router.park(0).unwrap());
        runs_on(&router, before);

        // Asked while it is stuck, it finds out too late that nobody waits any more.
        router.write("r", "wait", "").unwrap();
        while !AT_GATE.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        assert!(router.park(0).is_err());
        GATE.store(true, Ordering::Relaxed);
        runs_on(&router, before);
    }
}
