//! One worker's share of the router: its elements, edges, tasks, timers and notifiers, and the delivery of
//! packets between them.
//!
//! Push delivery is a stack of batches. An element runs, its outputs go on the stack in reverse, and the top is
//! delivered next: depth first, outputs in order, without recursion, so neither a long chain nor a loop in the
//! graph can exhaust the call stack. Pulling is a call: the puller's element is set aside while its upstream
//! neighbour runs, so two elements are never borrowed at once.

#![allow(clippy::vec_box)] // A batch is 2 KiB; the boxes move between elements, the batches do not.

mod delivery;

use crate::conf::Context;
use crate::counters::{Counter, Counters};
use crate::cx::Cx;
use crate::element::{Element, RECEIVED};
use crate::globals::Globals;
use crate::measure::Unit;
use crate::node::{Call, Delivery, Node};
use crate::others::Others;
use crate::reception::Received;
use crate::said::ElementWarning;
use crate::signal::{SignalId, Signals};
use crate::task::Run;
use crate::task::Tasks;
use crate::timer::Timers;
use crate::watch::trace::Tracer;
use crate::work::{Costs, Visit, Work};
use causeway_packet::Batch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Key of an element's timer that the run-time sets by itself ([`Cx::notify_packets_at`]).
pub(crate) const NOT_BEFORE: u32 = u32::MAX;
/// Empty batches kept for reuse.
const SPARE_BATCHES: usize = 64;

/// What a write handler left besides its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Its status; 0 unless it says otherwise.
    pub status: i32,
    /// Errors that it mentioned although it succeeded, a line each.
    pub mentioned: String,
}

/// One worker's share of the router.
pub(crate) struct Core {
    pub worker: usize,
    pub nodes: Vec<Node>,
    /// What configurations are read with that come while it runs.
    pub context: Arc<Context>,
    pub tasks: Tasks,
    pub timers: Timers,
    pub signals: Signals,
    pub clock: crate::clock::Clock,
    /// Reasons to run on, less requests to stop; the worker stops when none is left.
    pub run_count: i32,
    /// The element that decides whether the router stops when it is asked to.
    pub manager: Option<usize>,
    /// The other workers, if there are any.
    pub others: Option<Arc<Others>>,
    /// The router's own handlers.
    pub globals: Option<Arc<dyn Globals>>,
    /// What a write handler that has just been called says of itself, and the errors that it mentions though it succeeded.
    pub outcome: Outcome,
    /// What a write handler has left that takes long to drop ([`Cx::dispose_of`]).
    pub disposed: Vec<Box<dyn Send>>,
    /// What elements say while they are initialised.
    pub said: Vec<ElementWarning>,
    /// Packets dropped because the graph sent them round and round.
    pub looped: Counter,
    /// Packets that elements of the graph before held, for which nothing came in their place.
    pub swapped: Counter,
    pub rng: fastrand::Rng,
    /// Nanoseconds of each node by itself, while somebody measures.
    pub profile: Option<Vec<u64>>,
    /// Of the running element: nanoseconds spent in elements that it pulled from.
    nested_ns: u64,
    /// Handlers of elements that were written.
    pub written: u64,
    /// Handlers to be called when the present delivery is over.
    pub calls: VecDeque<Call>,
    pub calling: bool,
    /// Whether somebody captures or traces packets.
    pub watched: bool,
    /// Follows some packets.
    pub tracer: Option<Box<Tracer>>,
    pub stack: Vec<Delivery>,
    /// What elements pushed out while they were pulled from, in order: it goes on before what the puller emits.
    drawn: VecDeque<Delivery>,
    /// Deliveries since nothing was under way.
    deliveries: usize,
    pub spare: Vec<Box<Batch>>,
    /// What work costs, where time is simulated. Then one delivery goes at a time.
    pub costs: Option<Costs>,
    /// Whether packets go one by one, however many there are.
    pub apart: bool,
}

impl Core {
    pub fn new(worker: usize, clock: crate::clock::Clock, counters: &mut Counters, seed: u64) -> Self {
        let looped = counters.add(worker, "", "drop.loop", Unit::Packets);
        let swapped = counters.add(worker, "", "drop.swap", Unit::Packets);
        Self::empty(worker, clock, looped, swapped, fastrand::Rng::with_seed(seed))
    }

    /// One with the same number, clock and counters, and no elements.
    pub fn without_graph(&self) -> Core {
        let (looped, swapped) = (self.looped.clone(), self.swapped.clone());
        Self::empty(self.worker, self.clock.clone(), looped, swapped, self.rng.clone())
    }

    fn empty(
        worker: usize,
        clock: crate::clock::Clock,
        looped: Counter,
        swapped: Counter,
        rng: fastrand::Rng,
    ) -> Self {
        Core {
            worker,
            nodes: Vec::new(),
            said: Vec::new(),
            context: Arc::default(),
            tasks: Tasks::default(),
            timers: Timers::default(),
            signals: Signals::default(),
            clock,
            run_count: 1,
            manager: None,
            others: None,
            globals: None,
            outcome: Outcome::default(),
            disposed: Vec::new(),
            looped,
            swapped,
            rng,
            profile: None,
            nested_ns: 0,
            written: 0,
            calls: VecDeque::new(),
            calling: false,
            watched: false,
            tracer: None,
            stack: Vec::new(),
            drawn: VecDeque::new(),
            deliveries: 0,
            spare: Vec::new(),
            costs: None,
            apart: false,
        }
    }

    /// The key by which a hot swap finds the predecessor of the element of `node`.
    pub fn swap_key(&self, node: usize) -> String {
        let n = &self.nodes[node];
        n.element.as_ref().and_then(|e| e.swap_key()).unwrap_or_else(|| n.name.to_string())
    }

    /// An empty batch from the spare ones.
    pub fn take_batch(&mut self) -> Box<Batch> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps an emptied batch for reuse; packets still in it are recycled.
    pub fn keep_batch(&mut self, mut batch: Box<Batch>) {
        batch.clear();
        if self.spare.len() < SPARE_BATCHES {
            self.spare.push(batch);
        }
    }

    /// Runs `f` on the element of `node`, then puts what it emitted on the delivery stack. `None` if the element
    /// is running already, which only a pull loop in the graph can cause.
    #[expect(clippy::disallowed_methods, reason = "only while somebody measures, a batch at a time")]
    pub fn activate<R>(
        &mut self,
        node: usize,
        f: impl FnOnce(&mut dyn Element, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let n = self.nodes.get_mut(node)?;
        let mut element = n.element.take()?;
        let (outs, used) = (std::mem::take(&mut n.outs), std::mem::take(&mut n.used));
        if n.stamps {
            self.clock.touch();
        }
        let started = self.profile.is_some().then(|| (Instant::now(), std::mem::take(&mut self.nested_ns)));
        let before = if self.watched { self.trace_begin(node, &*element) } else { None };
        let mut cx = Cx { core: self, node, outs, used, last_output_first: false };
        let result = f(&mut *element, &mut cx);
        let Cx { mut outs, mut used, last_output_first, .. } = cx;
        if self.watched {
            self.watch_outs(node, &*element, &mut outs, before);
        }
        if let Some((start, outer_ns)) = started {
            self.account(node, start.elapsed().as_nanos() as u64, outer_ns);
        }
        // What goes on the stack last is delivered first: the outputs backwards, and each one's batches too.
        used.sort_unstable();
        if !last_output_first {
            used.reverse();
        }
        for port in used.drain(..) {
            let out = &mut outs[port as usize];
            while let Some(batch) = out.emitted.pop() {
                match out.to {
                    Some((node, port)) => {
                        if let Some(packets) = &out.packets {
                            packets.add(batch.len() as u64);
                        }
                        self.stack.push(Delivery { node, port, batch });
                    }
                    None => self.unconnected(node, batch),
                }
            }
        }
        let n = &mut self.nodes[node];
        (n.outs, n.used) = (outs, used);
        n.element = Some(element);
        Some(result)
    }

    /// Lets the element of `node` ask the others what they lower to; those asked remember it.
    pub fn fuse(&mut self, node: usize) -> Option<String> {
        let mut element = self.nodes.get_mut(node)?.element.take()?;
        let watched = self.watched;
        let found = element.fuse(&mut |name| {
            // Who watches packets sees the elements that the configuration has.
            if watched {
                return None;
            }
            let asked = self.nodes.iter_mut().find(|n| *n.name == *name)?;
            if !asked.fused.contains(&node) {
                asked.fused.push(node);
            }
            asked.element.as_ref()?.lower()
        });
        self.nodes[node].element = Some(element);
        found
    }

    /// Adds to a counter what something else has counted in the place of the element of `node`.
    pub fn add(&mut self, node: Option<usize>, counter: &Counter, n: u64) {
        counter.add(n);
        if let Some(node) = node {
            self.activate(node, |element, cx| element.counted(counter, n, cx));
        }
    }

    /// Adds the time of one activation to the profile. A clock read a batch is what profiling costs.
    fn account(&mut self, node: usize, elapsed_ns: u64, outer_ns: u64) {
        let own_ns = elapsed_ns.saturating_sub(self.nested_ns);
        self.nested_ns = outer_ns + elapsed_ns;
        if let Some(profile) = &mut self.profile {
            if node >= profile.len() {
                profile.resize(node + 1, 0);
            }
            profile[node] += own_ns;
        }
    }

    /// Lets simulated time pass for work.
    #[inline]
    pub fn charge(&mut self, node: usize, work: Work, packets: usize) {
        if let Some(costs) = &mut self.costs {
            let n = &self.nodes[node];
            let cost_ns = costs(&Visit { element: &n.name, class: n.spec.name, work, packets });
            self.clock.pass(cost_ns);
        }
    }

    /// Does something apart from what is under way, which goes on afterwards.
    pub fn aside<R>(&mut self, f: impl FnOnce(&mut Core) -> R) -> R {
        let (stack, deliveries) = (std::mem::take(&mut self.stack), std::mem::take(&mut self.deliveries));
        let drawn = std::mem::take(&mut self.drawn);
        let result = f(self);
        (self.stack, self.deliveries, self.drawn) = (stack, deliveries, drawn);
        result
    }

    /// Runs one task; returns what it says, or `None` if none is scheduled.
    pub fn run_task(&mut self) -> Option<Run> {
        let node = self.tasks.next()?;
        let run = self.activate(node, |element, cx| element.task(cx)).unwrap_or(Run::Sleep);
        self.tasks.done(node, run);
        self.charge(node, Work::Task, 0);
        self.stack.extend(self.drawn.drain(..).rev());
        self.go_on();
        Some(run)
    }

    /// Runs the first timer that is due at `now_ns`; says whether there was one.
    pub fn run_timer(&mut self, now_ns: u64) -> bool {
        let Some((node, key)) = self.timers.pop_due(now_ns) else { return false };
        match key {
            NOT_BEFORE => self.let_go(node),
            _ => {
                self.activate(node, |element, cx| element.timer(key, cx));
                self.charge(node, Work::Timer, 0);
                self.stack.extend(self.drawn.drain(..).rev());
                self.go_on();
            }
        }
        true
    }

    /// Receives at most `budget` packets from the device of `node` and forwards them. A batch visits the element once: it
    /// is filled, treated as pushed and emitted in one activation.
    pub fn receive(&mut self, node: usize, budget: usize) -> Received {
        let mut received = Received { packets: 0, more: true };
        while received.more && received.packets < budget {
            let most = (budget - received.packets).min(causeway_packet::BATCH);
            let mut batch = self.take_batch();
            let mut got = 0;
            let more = self.activate(node, |element, cx| {
                let more = element.receiver().is_some_and(|r| r.poll(&mut batch, most));
                got = batch.len();
                if got > 0 {
                    pass(element, &mut batch, cx);
                }
                more
            });
            self.keep_batch(batch);
            self.charge(node, Work::Receive, got);
            self.go_on();
            received.packets += got;
            received.more = got > 0 && more == Some(true);
        }
        received
    }

    /// Lets the device element of `node` treat received packets as pushed to it, and forwards what it emits.
    pub fn inject(&mut self, node: usize, mut batch: Box<Batch>) {
        if !batch.is_empty() {
            let packets = batch.len();
            self.activate(node, |element, cx| pass(element, &mut batch, cx));
            self.charge(node, Work::Forward, packets);
            self.go_on();
        }
        self.keep_batch(batch);
    }

    /// Lets all elements do what cannot be undone: the graph is put in place.
    pub fn commit(&mut self) {
        for node in 0..self.nodes.len() {
            self.activate(node, |element, cx| element.commit(cx));
        }
    }

    /// Sets a notifier and wakes those who wait for it.
    pub fn signal(&mut self, id: SignalId, active: bool) {
        if self.signals.set(id, active) && active {
            for i in 0..self.signals.listeners(id).len() {
                let node = self.signals.listeners(id)[i];
                if !self.nodes[node].quiescent {
                    self.tasks.wake(node);
                }
            }
            for i in 0..self.signals.relays(id).len() {
                let to = self.signals.relays(id)[i];
                if !self.signals.is_held(to) {
                    self.signal(to, true);
                }
            }
        }
    }

    /// The element of `node` said that it has no packets before now.
    fn let_go(&mut self, node: usize) {
        if let Some(id) = self.nodes.get(node).and_then(|n| n.packets_signal) {
            self.signals.hold(id, false);
            self.signal(id, true);
        }
    }
}

/// Lets a device element treat received packets as pushed to it. What it leaves goes out by output 0.
#[inline]
fn pass(element: &mut dyn Element, batch: &mut Box<Batch>, cx: &mut Cx<'_>) {
    element.push(RECEIVED, batch, cx);
    if !batch.is_empty() {
        let empty = cx.core.take_batch();
        cx.emit_batch(0, std::mem::replace(batch, empty));
    }
}
