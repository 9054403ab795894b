//! Hot swap: another graph takes the place of the running one between two batches, in two phases.
//!
//! First all that can fail, while the old graph runs: the new one is built and initialised beside it, what goes on from what is
//! worked out, and each worker gets its part and says so. If anything fails the old graph goes on as if nothing had been.
//!
//! Then it is decided, and each worker puts its part in place by itself ([`crate::exchange`]): elements take the state of
//! their predecessors, counters and time go on, and what cannot be undone is done ([`crate::Element::commit`]). Only workers
//! between which state moves stop together ([`super::heirs`]), lend their graphs and get the next ones back. What follows is
//! done while all run: the directory of the counters, and dropping the old graph. No worker drops a graph: it may hold a
//! million flows.

use super::ask::Limit;
use super::heirs::Keys;
use super::{Router, StartError, build};
use crate::assemble::Assembly;
use crate::core::Core;
use crate::counters::Kept;
use crate::crossing::Doorbell;
use crate::devices::Devices;
use crate::driver::{Command, Driver};
use crate::error::NoAnswer;
use crate::exchange::{Back, Decision, Next, Pending, Replaced, register};
use crate::plan::Plan;
use crate::worker::Worker;
use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A worker's graph on loan.
type Loan = Arc<Mutex<Option<Worker>>>;

/// A worker that waits for a graph. It gets its own back when this is dropped.
struct Parked {
    worker: Option<Worker>,
    loan: Loan,
    unpark: Sender<Worker>,
    /// For how long it stood still, once it goes on.
    stood_still: Receiver<Duration>,
}

impl Drop for Parked {
    #[expect(clippy::disallowed_methods, reason = "a worker that has lent its graph waits for another")]
    fn drop(&mut self) {
        // The worker looks here when it sees that no other graph will come: after this, when the sender is dropped.
        *self.loan.lock().unwrap_or_else(PoisonError::into_inner) = self.worker.take();
    }
}

/// A worker that has been asked to lend its graph.
struct Lending {
    number: usize,
    loan: Loan,
    lent: Receiver<()>,
    unpark: Sender<Worker>,
    stood_still: Receiver<Duration>,
}

impl Lending {
    #[expect(clippy::disallowed_methods, reason = "a worker that has lent its graph waits for another")]
    fn wait(self, limit: Limit) -> Result<Parked, NoAnswer> {
        let Lending { number, loan, lent, unpark, stood_still } = self;
        lent.recv_timeout(limit.left()).map_err(|_| NoAnswer(number))?;
        let worker = loan.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(Parked { worker, loan, unpark, stood_still })
    }
}

/// The class of the element called `name`.
fn class(plan: &Plan, name: &str) -> Option<String> {
    plan.find(name).map(|i| plan.elements[i].class.clone())
}

impl Router {
    /// Replaces the graph by `plan`. The new graph is built and initialised beside the running one; if that
    /// fails nothing changes. Then each worker, between two batches, lets the new elements take the state of their
    /// predecessors and goes on with the new graph. Packets that arrive meanwhile wait in the devices' rings; those that an
    /// element without successor held are counted as `drop.swap`.
    ///
    /// A worker that does not answer any more once it is decided is logged; it takes its graph if it ever goes on.
    ///
    /// # Errors
    /// The new graph cannot be built, or a worker does not answer.
    pub fn swap(&mut self, plan: Plan) -> Result<(), StartError> {
        let doorbells: Vec<Arc<Doorbell>> = self.handles.iter().map(|h| h.doorbell.clone()).collect();
        // Time goes on: elements find the clock that runs.
        let clock = self.call(0, Limit::new(), |w| w.core.clock.clone())?;
        let mut assembly = build(&self.library, &plan, &self.options, &doorbells, clock)?;
        let manager = super::manager(&assembly.cores);
        let keys = Keys::of(&mut assembly.cores);
        let mut kept = self.kept.clone();
        let nexts = self.prepare(&mut assembly, &plan, &keys, &mut kept);
        let replaced = self.exchange(nexts, &keys.together(&self.keys))?;

        // The new graph runs.
        assembly.env.counters.commit();
        let stays = |element: &str| class(&self.plan, element) == class(&plan, element);
        kept.note(&self.env.counters, stays, |element| class(&self.plan, element));
        self.stood_still = vec![Duration::ZERO; self.handles.len()];
        let lost = replaced.iter().filter_map(|Replaced { worker, stood_still }| {
            let number = worker.core.worker;
            self.stood_still[number] = *stood_still;
            // Only now, when nobody sends anything more to any of its elements.
            let lost = worker.held() as u64;
            (lost > 0).then_some((number, move |w: &mut Worker| w.core.swapped.add(lost)))
        });
        let lost: Vec<_> = lost.collect();
        // A worker that has ended since then is told by itself.
        let _ = self.call_each(Limit::new(), lost.into_iter());
        let Assembly { index, names, control_sides, ports, env, .. } = assembly;
        (self.plan, self.index, self.names, self.keys) = (plan, index, names, keys);
        (self.meter, self.manager, self.kept) = (None, manager, kept);
        (self.control_sides, self.ports, self.env) = (control_sides, ports, env);
        Ok(())
    }

    /// How long each worker passed no packets on at the last hot swap, by number.
    pub fn stood_still(&self) -> &[Duration] {
        &self.stood_still
    }

    /// What elements have counted that the next graph does not have is kept: they go on from it when a later graph has them again.
    pub fn keep_counts(&mut self) {
        self.kept.next = true;
    }

    /// The workers' parts of a graph that has been built, with all that they need to go on from the one that runs.
    fn prepare(&self, assembly: &mut Assembly, plan: &Plan, keys: &Keys, kept: &mut Kept) -> Vec<Next> {
        let ways = self.handles.iter().map(|h| (h.commands.clone(), h.doorbell.clone())).collect();
        let others = super::others(ways, &assembly.index);
        let mut cores = std::mem::take(&mut assembly.cores);
        let (counters, options) = (&mut assembly.env.counters, &self.options);
        let receive = |core| Devices::new(core, counters, options.mechanism, options.budget);
        let devices: Vec<Devices> = cores.iter_mut().map(receive).collect();
        let stays = |element: &str| class(&self.plan, element) == class(plan, element);
        let carried = counters.carry(&self.env.counters, stays);
        counters.resume(kept, |element| class(plan, element));
        let heirs = keys.heirs(&self.keys);
        let parts = cores.into_iter().zip(devices).zip(heirs.into_iter().zip(carried));
        let next = |((mut core, devices), (heirs, carried)): ((Core, Devices), _)| {
            core.others = others.clone();
            Next { core, devices, heirs, carried }
        };
        parts.map(next).collect()
    }

    /// Gives the workers their graphs and has them put in place, on those that stop `together` with each other's states. The
    /// answer is what they had before; after an error all still have it.
    #[expect(clippy::disallowed_methods, reason = "the control side")]
    fn exchange(&self, nexts: Vec<Next>, together: &BTreeSet<usize>) -> Result<Vec<Replaced>, NoAnswer> {
        let (decision, limit) = (Decision::default(), Limit::new());
        let (back, given_back) = mpsc::channel();
        let (joint, single): (Vec<_>, Vec<_>) =
            nexts.into_iter().partition(|next| together.contains(&next.core.worker));
        let numbers: Vec<usize> = single.iter().map(|next| next.core.worker).collect();
        let hand_out = |next: Next| {
            let pending = Pending { next, decision: decision.clone(), back: back.clone() };
            self.hand_out(pending, limit)
        };
        let handed_out = single.into_iter().try_for_each(hand_out);
        let parked = handed_out.and_then(|()| self.park_all(together, limit));
        match &parked {
            Ok(_) => decision.put_in_place(),
            Err(_) => decision.give_up(),
        }
        for &number in &numbers {
            // It may be asleep; one that has ended is told by itself.
            let _ = self.send(number, Command::Call(Box::new(|_| ())));
        }
        drop(back);
        let parked = match parked {
            Ok(parked) => parked,
            Err(stuck) => {
                self.drop_late(given_back);
                return Err(stuck);
            }
        };
        // What has been decided has its own time: a worker that took long until now may put its graph in place all the same.
        let limit = Limit::new();
        let mut all = replace_together(parked, joint, limit);
        let given = numbers.iter().map_while(|_| given_back.recv_timeout(limit.left()).ok());
        all.extend(given.filter_map(Back::replaced));
        if all.len() < self.handles.len() {
            log::error!("a worker does not answer, and still has the graph that was replaced");
            self.drop_late(given_back);
        }
        // What was sent by a ring that is no more may have rung at who had its other end before.
        self.handles.iter().for_each(|handle| handle.doorbell.wake());
        Ok(all)
    }

    /// Gives a worker its graph. One that does not answer finds none when it goes on.
    #[expect(
        clippy::disallowed_methods,
        reason = "once a hot swap, and only one that is stuck finds it locked"
    )]
    fn hand_out(&self, pending: Pending, limit: Limit) -> Result<(), NoAnswer> {
        let number = pending.next.core.worker;
        let slot = Arc::new(Mutex::new(Some(pending)));
        let taken = slot.clone();
        let take =
            move |slot: &Mutex<Option<Pending>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let give = move |driver: &mut Driver| driver.pending = take(&taken);
        let answer = self.ask(Command::Call, number, give).and_then(|asked| asked.wait(limit));
        if answer.is_err() {
            // What it was asked stays with it for as long as it is stuck.
            drop(take(&slot));
        }
        answer
    }

    /// Takes the graphs of these workers, which then wait; of none if one of them does not answer.
    fn park_all(&self, workers: &BTreeSet<usize>, limit: Limit) -> Result<Vec<Parked>, NoAnswer> {
        // A worker that is stuck is found while the others still run.
        self.call_each(limit, workers.iter().map(|&worker| (worker, |_: &mut Worker| ())))?;
        // All are asked before one is waited for, so that none stands still for as long as the others take in turn.
        let asked: Vec<Lending> =
            workers.iter().map(|&worker| self.ask_to_park(worker)).collect::<Result<_, _>>()?;
        asked.into_iter().map(|lending| lending.wait(limit)).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "a worker that has lent its graph waits for another")]
    fn ask_to_park(&self, number: usize) -> Result<Lending, NoAnswer> {
        let (lend, lent) = mpsc::channel();
        let (unpark, another) = mpsc::channel::<Worker>();
        let (tell, stood_still) = mpsc::channel();
        let loan = Loan::default();
        let slot = loan.clone();
        let exchange = move |driver: &mut Driver| {
            let begin = Instant::now();
            let Driver { worker, waiter, .. } = driver;
            worker.unregister(waiter);
            let own = std::mem::replace(worker, worker.without_graph());
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(own);
            // Whoever asked may have stopped waiting; the next line finds that out.
            let _ = lend.send(());
            let back = || slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(next) = another.recv().ok().or_else(back) {
                *worker = next;
            }
            register(worker, waiter);
            let _ = tell.send(begin.elapsed());
        };
        self.send(number, Command::Call(Box::new(exchange)))?;
        Ok(Lending { number, loan, lent, unpark, stood_still })
    }

    /// Drops graphs as they come back too late or unused, on a thread of its own, which ends with the last that may come. What
    /// one held that was in use is lost, and counted.
    fn drop_late(&self, graphs: Receiver<Back>) {
        let ways: Vec<_> = self.handles.iter().map(|h| (h.commands.clone(), h.doorbell.clone())).collect();
        let one = move |Replaced { worker, .. }: Replaced| {
            let lost = worker.held() as u64;
            let count = Box::new(move |driver: &mut Driver| driver.worker.core.swapped.add(lost));
            // One that has ended is told by itself.
            if let Some((commands, doorbell)) = ways.get(worker.core.worker)
                && commands.send(Command::Call(count)).is_ok()
            {
                doorbell.wake();
            }
        };
        let thread = thread::Builder::new().name("late-graphs".to_owned());
        if let Err(e) = thread.spawn(move || graphs.into_iter().filter_map(Back::replaced).for_each(one)) {
            log::warn!("no thread for graphs that are not used, and workers drop them: {e}");
        }
    }
}

/// Replaces the graphs of workers that wait, between which states may move.
#[expect(clippy::disallowed_methods, reason = "the control side")]
fn replace_together(mut parked: Vec<Parked>, mut nexts: Vec<Next>, limit: Limit) -> Vec<Replaced> {
    let mut old: Vec<&mut Worker> = parked.iter_mut().filter_map(|p| p.worker.as_mut()).collect();
    nexts.iter_mut().zip(&old).for_each(|(next, old)| next.go_on_from(old));
    nexts.iter_mut().for_each(|next| next.inherit(&mut old));
    old.iter_mut().for_each(|worker| worker.retire());
    let mut gone = Vec::new();
    for (parked, next) in parked.iter_mut().zip(nexts) {
        let Some(mut old) = parked.worker.take() else { continue };
        // A worker that has ended since then is told by itself.
        let _ = parked.unpark.send(next.commit(&mut old));
        gone.push(old);
    }
    let times = parked.iter().map(|p| p.stood_still.recv_timeout(limit.left()).unwrap_or_default());
    gone.into_iter().zip(times).map(|(worker, stood_still)| Replaced { worker, stood_still }).collect()
}

#[cfg(test)]
mod tests;
