//! A worker takes another graph.
//!
//! All workers get theirs first, ready to run, and go on with what they have. Then one word decides for all of them, and each
//! puts its graph in place by itself, between two of its steps: none waits for another, nor for a thread that has to be
//! woken. What that takes is what the graph's elements take over from their predecessors on the same worker.

use crate::core::Core;
use crate::counters::Carried;
use crate::devices::Devices;
use crate::driver::Driver;
use crate::node::Place;
use crate::waiter::Waiter;
use crate::worker::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Whether the graphs are put in place that the workers have been given. It is decided once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision(Arc<AtomicU8>);

const PUT_IN_PLACE: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Decision {
    /// Now they are.
    pub fn put_in_place(&self) {
        self.0.store(PUT_IN_PLACE, Ordering::Release);
    }

    /// They never will be.
    pub fn give_up(&self) {
        self.0.store(GIVEN_UP, Ordering::Release);
    }
}

/// A worker's next graph, ready to be put in place.
pub(crate) struct Next {
    pub core: Core,
    pub devices: Devices,
    /// Nodes of the graph, and whose state each takes.
    pub heirs: Vec<(usize, Place)>,
    pub carried: Carried,
}

/// A graph that has been replaced, and how long its worker stood still.
pub(crate) struct Replaced {
    pub worker: Worker,
    pub stood_still: Duration,
}

/// What a worker gives back, since it has no time to drop it.
pub(crate) enum Back {
    Replaced(Replaced),
    /// What was not put in place.
    Unused(#[allow(dead_code, reason = "it is dropped")] Next),
}

impl Back {
    pub fn replaced(self) -> Option<Replaced> {
        match self {
            Back::Replaced(replaced) => Some(replaced),
            Back::Unused(_) => None,
        }
    }
}

/// What a worker keeps until it is decided.
pub(crate) struct Pending {
    pub next: Next,
    pub decision: Decision,
    pub back: Sender<Back>,
}

impl Next {
    /// Time and counts go on from those of `old`, the same worker's.
    pub fn go_on_from(&mut self, old: &Worker) {
        self.core.clock = old.core.clock.clone();
        self.carried.add();
    }

    /// Lets elements take the states of their predecessors, which are on these workers.
    pub fn inherit(&mut self, old: &mut [&mut Worker]) {
        let core = &mut self.core;
        for &(node, from) in &self.heirs {
            let worker = old.iter_mut().find(|worker| worker.core.worker == from.worker);
            let before = worker.and_then(|worker| worker.core.nodes.get_mut(from.node)?.element.as_mut());
            if let Some(before) = before {
                core.activate(node, |element, cx| element.take_state(&mut **before, cx));
                core.deliver();
            }
        }
    }

    /// Does what cannot be undone, and takes what waits for `old` to forward it.
    pub fn commit(mut self, old: &mut Worker) -> Worker {
        self.core.commit();
        self.devices.take_over(&mut self.core, old);
        Worker::new(self.core, self.devices)
    }

    /// Takes the place of `old`, all of whose successors are on the same worker.
    fn replace(mut self, old: &mut Worker) -> Worker {
        self.go_on_from(old);
        self.inherit(&mut [old]);
        old.retire();
        self.commit(old)
    }
}

impl Driver {
    /// Puts the next graph in place if it has been decided to.
    #[inline]
    pub fn exchange(&mut self) {
        let decided = |pending: &Pending| pending.decision.0.load(Ordering::Acquire);
        match self.pending.as_ref().map_or(0, decided) {
            PUT_IN_PLACE => self.put_in_place(),
            GIVEN_UP => self.give_back(),
            _ => {}
        }
    }

    #[cold]
    #[expect(clippy::disallowed_methods, reason = "twice a hot swap, which says how long it took")]
    fn put_in_place(&mut self) {
        let Some(Pending { next, back, .. }) = self.pending.take() else { return };
        let begin = Instant::now();
        let Driver { worker, waiter, .. } = self;
        worker.unregister(waiter);
        let next = next.replace(worker);
        let old = std::mem::replace(worker, next);
        register(worker, waiter);
        // Somebody takes it, even too late.
        let _ = back.send(Back::Replaced(Replaced { worker: old, stood_still: begin.elapsed() }));
    }

    #[cold]
    fn give_back(&mut self) {
        if let Some(Pending { next, back, .. }) = self.pending.take() {
            let _ = back.send(Back::Unused(next));
        }
    }
}

/// Lets `waiter` wait for the devices of a graph that has just been put in place.
pub(crate) fn register(worker: &mut Worker, waiter: &Waiter) {
    if let Err(e) = worker.register(waiter) {
        log::error!("worker {}: a device cannot be waited for: {e}", worker.core.worker);
    }
}
