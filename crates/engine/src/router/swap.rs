//! Hot swap: another graph takes the place of the running one between two batches.
//!
//! All that can fail comes first: the new graph is built and initialised beside the old one, then every worker stops
//! and lends its graph. Until then the old graph can go on as it was, and does if anything fails. Only then elements
//! take the state of their predecessors, and what cannot be undone is done ([`crate::Element::commit`]).

use super::{ANSWER, Router, StartError, build};
use crate::assemble::{Assembly, Place};
use crate::core::Core;
use crate::crossing::Doorbell;
use crate::devices::Devices;
use crate::handler::NoAnswer;
use crate::plan::Plan;
use crate::worker::{Command, Worker};
use std::collections::HashMap;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// A worker's graph on loan.
type Loan = Arc<Mutex<Option<Core>>>;

/// A worker that waits for a graph. It gets its own back when this is dropped.
struct Parked {
    core: Option<Core>,
    loan: Loan,
    unpark: Sender<(Core, Devices)>,
}

impl Drop for Parked {
    fn drop(&mut self) {
        // The worker looks here when it sees that no other graph will come: after this, when the sender is dropped.
        *self.loan.lock().unwrap_or_else(PoisonError::into_inner) = self.core.take();
    }
}

impl Router {
    /// Replaces the graph by `plan`. The new graph is built and initialised beside the running one; if that
    /// fails nothing changes. Then the workers stop between two batches, each new element takes the state of its
    /// predecessor, and the new graph runs. Packets that arrive meanwhile wait in the devices' rings.
    pub fn swap(&mut self, plan: Plan) -> Result<(), StartError> {
        let doorbells: Vec<Arc<Doorbell>> = self.handles.iter().map(|h| h.doorbell.clone()).collect();
        let mut assembly = build(&self.library, &plan, &self.options, &doorbells)?;
        let mut parked = self.park_all()?;
        let mut new = std::mem::take(&mut assembly.cores);
        let mut old: Vec<&mut Core> = parked.iter_mut().filter_map(|p| p.core.as_mut()).collect();
        take_state(&mut old, &mut new);
        let mut retired = Vec::new();
        for (mut parked, mut core) in parked.into_iter().zip(new) {
            core.commit();
            let counters = &mut assembly.env.counters;
            let devices = Devices::new(&mut core, counters, self.options.mechanism, self.options.budget);
            retired.extend(parked.core.take());
            // A worker that has ended since then is told by itself.
            let _ = parked.unpark.send((core, devices));
        }
        assembly.env.counters.commit();
        let Assembly { index, names, env, .. } = assembly;
        (self.plan, self.index, self.names, self.env) = (plan, index, names, env);
        Ok(())
    }

    /// Takes the graphs of all workers, which then wait; of none if one of them does not answer.
    fn park_all(&self) -> Result<Vec<Parked>, NoAnswer> {
        // A worker that is stuck is found while the others still run.
        (0..self.handles.len()).try_for_each(|worker| self.call(worker, |_| ()))?;
        (0..self.handles.len()).map(|worker| self.park(worker)).collect()
    }

    fn park(&self, worker: usize) -> Result<Parked, NoAnswer> {
        let (lent, taken) = mpsc::channel();
        let (unpark, another) = mpsc::channel::<(Core, Devices)>();
        let loan = Loan::default();
        let slot = loan.clone();
        let exchange = move |w: &mut Worker| {
            w.devices.unregister(&w.poll);
            let empty = Core::new(w.core.worker, w.core.clock.clone(), w.core.looped.clone(), 0);
            let own = std::mem::replace(&mut w.core, empty);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
            // Whoever asked may have stopped waiting; the next line finds that out.
            let _ = lent.send(());
            match another.recv() {
                Ok((core, devices)) => (w.core, w.devices) = (core, devices),
                Err(_) => {
                    if let Some(own) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() {
                        w.core = own;
                    }
                }
            }
            if let Err(e) = w.devices.register(&mut w.core, &w.poll) {
                log::error!("worker {}: a device cannot be waited for: {e}", w.core.worker);
            }
        };
        self.send(worker, Command::Call(Box::new(exchange)))?;
        taken.recv_timeout(ANSWER).map_err(|_| NoAnswer(worker))?;
        let core = loan.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(Parked { core, loan, unpark })
    }
}

/// Lets each new element take the state of its predecessor: the one with the same swap key on the same worker,
/// else on any.
fn take_state(old: &mut [&mut Core], new: &mut [Core]) {
    let mut keys: HashMap<String, Vec<Place>> = HashMap::new();
    for (worker, core) in old.iter().enumerate() {
        for (node, n) in core.nodes.iter().enumerate() {
            let key = n.element.as_ref().and_then(|e| e.swap_key()).unwrap_or_else(|| n.name.to_string());
            keys.entry(key).or_default().push(Place { worker, node });
        }
    }
    for (worker, core) in new.iter_mut().enumerate() {
        for node in 0..core.nodes.len() {
            let n = &core.nodes[node];
            let key = n.element.as_ref().and_then(|e| e.swap_key()).unwrap_or_else(|| n.name.to_string());
            let Some(places) = keys.get(&key) else { continue };
            let Some(&place) = places.iter().find(|p| p.worker == worker).or(places.first()) else {
                continue;
            };
            if let Some(partner) = old[place.worker].nodes[place.node].element.as_mut() {
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
    use crate::{Cx, Element, Options, Run};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    static GATE: AtomicBool = AtomicBool::new(false);

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
        fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), String> {
            cx.wake();
            Ok(())
        }

        fn task(&mut self, _: &mut Cx<'_>) -> Run {
            self.runs += 1;
            while self.waits && !GATE.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Run::Idle
        }

        fn read(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, String> {
            cx.wake();
            Ok(self.runs.to_string())
        }

        fn write(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<(), String> {
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
        assert!(router.park(0).is_err());
        GATE.store(true, Ordering::Relaxed);
        runs_on(&router, before);
    }
}
