//! What an element may do while it runs.

use crate::conf::with_argument;
use crate::core::{Core, NOT_BEFORE};
use crate::drops::DropReason;
use crate::error::Error;
use crate::names::Scope;
use crate::node::{Call, OutPort};
use crate::said::ElementWarning;
use crate::value::Value;
use crate::value::written;
use causeway_lang::{Of, Severity};
use causeway_packet::{Batch, Packet};

/// The element's view of the run-time during one call.
pub struct Cx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) node: usize,
    pub(crate) outs: Vec<OutPort>,
    /// Outputs that something was emitted to; one may stand there twice.
    pub(crate) used: Vec<u32>,
    pub(crate) last_output_first: bool,
}

impl Cx<'_> {
    /// In place of the number of an output: none ([`Cx::emit_each_or_drop`]).
    pub const NOWHERE: u32 = u32::MAX;

    /// The element's name.
    pub fn name(&self) -> &str {
        &self.core.nodes[self.node].name
    }

    /// The name of the element's class.
    pub fn class(&self) -> &'static str {
        self.core.nodes[self.node].spec.name
    }

    /// Says something odd of the place `of` in a file, or of the element, that does not keep it from being initialised.
    /// To be called in [`crate::Element::initialize`].
    pub fn warn_of(&mut self, of: impl Into<Option<Of>>, text: &str) {
        self.say(Severity::Warning, of.into(), text);
    }

    /// As [`Cx::warn_of`], of an error that does not keep the element from being initialised.
    pub fn tell(&mut self, error: &str) {
        self.say(Severity::Note, None, error);
    }

    fn say(&mut self, severity: Severity, of: Option<Of>, text: &str) {
        let (name, class, message) = (self.core.nodes[self.node].name.clone(), self.class(), text.to_owned());
        self.core.said.push(ElementWarning { name, class, of, message, severity, configuring: false });
    }

    /// Number of the worker that the element lives on.
    pub fn worker(&self) -> usize {
        self.core.worker
    }

    /// Number of inputs in use.
    pub fn n_inputs(&self) -> usize {
        self.core.nodes[self.node].ins.len()
    }

    /// Number of outputs in use.
    #[inline]
    pub fn n_outputs(&self) -> usize {
        self.outs.len()
    }

    /// Whether output `port` leads somewhere by push.
    #[inline]
    pub fn connected(&self, port: usize) -> bool {
        self.outs.get(port).is_some_and(|o| o.to.is_some())
    }

    /// Whether input `port` is pulled.
    pub fn pulls_from(&self, port: usize) -> bool {
        self.core.nodes[self.node].ins.get(port).is_some_and(|i| i.from.is_some())
    }

    /// Drops a packet for `reason`.
    #[inline]
    pub fn drop(&mut self, reason: impl Into<DropReason>, packet: Packet) {
        drop(packet);
        self.count_drops(reason, 1);
    }

    /// Counts `n` packets that were dropped for `reason`.
    #[inline]
    pub fn count_drops(&mut self, reason: impl Into<DropReason>, n: u64) {
        let node = &self.core.nodes[self.node];
        let counter = node.drops.get(reason.into().index());
        debug_assert!(counter.is_some(), "a drop reason of another class, in {}", node.spec.name);
        counter.unwrap_or(&node.unconnected).add(n);
    }

    /// Packets dropped so far, for all reasons.
    pub fn dropped(&self) -> u64 {
        self.core.nodes[self.node].drops.iter().map(|c| c.get()).sum()
    }

    /// Packets dropped so far for `reason`.
    pub fn dropped_for(&self, reason: impl Into<DropReason>) -> u64 {
        self.core.nodes[self.node].drops.get(reason.into().index()).map_or(0, |c| c.get())
    }

    /// Emits a packet to output `port` if that leads somewhere, else drops it for `reason`: what a/ah elements do
    /// with packets that fail their check.
    #[inline]
    pub fn divert(&mut self, port: usize, reason: impl Into<DropReason>, packet: Packet) {
        if self.connected(port) { self.emit(port, packet) } else { self.drop(reason, packet) }
    }

    /// Emits a packet to output `port`. At an output that is not connected it is counted as `unconnected`.
    #[inline]
    pub fn emit(&mut self, port: usize, packet: Packet) {
        match self.outs.get_mut(port) {
            Some(out) => {
                if out.emitted.is_empty() {
                    self.used.push(port as u32);
                }
                out.emit(packet, &mut self.core.spare);
            }
            None => self.core.nodes[self.node].unconnected.add(1),
        }
    }

    /// Emits a whole batch to output `port`.
    pub fn emit_batch(&mut self, port: usize, batch: Box<Batch>) {
        match self.outs.get_mut(port) {
            Some(out) if !batch.is_empty() => {
                out.emitted.push(batch);
                self.used.push(port as u32);
            }
            Some(_) => self.core.keep_batch(batch),
            None => self.core.unconnected(self.node, batch),
        }
    }

    /// Emits each packet of `batch` to the output of the same place in `outputs`; those of output 0 may stay in the batch, as
    /// [`Element::push`](crate::Element::push) leaves them. Packets that all go one way, the usual case, go as they are.
    #[inline]
    pub fn emit_each(&mut self, batch: &mut Batch, outputs: &[u32]) {
        let first = outputs.first().copied().unwrap_or_default();
        if outputs.len() == batch.len() && outputs.iter().all(|&output| output == first) {
            if first != 0 {
                let mut all = self.lend_batch();
                all.append(batch);
                self.emit_batch(first as usize, all);
            }
            return;
        }
        // A packet too many goes nowhere, and is counted there.
        let outputs = outputs.iter().copied().chain(std::iter::repeat(u32::MAX));
        for (packet, output) in batch.drain().zip(outputs) {
            self.emit(output as usize, packet);
        }
    }

    /// Counts `n` packets that left by output `port` elsewhere, such as in a driver, as if they had been emitted there.
    pub fn count_left(&self, port: usize, n: u64) {
        if let Some(packets) = self.outs.get(port).and_then(|out| out.packets.as_ref()) {
            packets.add(n);
        }
    }

    /// As [`Cx::emit_each`], but packets whose output is [`Cx::NOWHERE`] are dropped for `reason`.
    #[inline]
    pub fn emit_each_or_drop(&mut self, batch: &mut Batch, outputs: &[u32], reason: impl Into<DropReason>) {
        debug_assert_eq!(outputs.len(), batch.len());
        let dropped = outputs.iter().filter(|&&output| output == Cx::NOWHERE).count();
        if dropped == 0 {
            return self.emit_each(batch, outputs);
        }
        self.count_drops(reason, dropped as u64);
        if dropped == batch.len() {
            return batch.clear();
        }
        for (packet, &output) in batch.drain().zip(outputs).filter(|(_, output)| **output != Cx::NOWHERE) {
            self.emit(output as usize, packet);
        }
    }

    /// Lets what this call emits go on by the last output first and by output 0 at the end, instead of in order.
    #[inline]
    pub fn last_output_first(&mut self) {
        self.last_output_first = true;
    }

    /// Pulls at most `max` packets from input `port` into the empty `batch`.
    pub fn pull(&mut self, port: usize, max: usize, batch: &mut Batch) {
        if let Some((node, out)) = self.core.nodes[self.node].ins.get(port).and_then(|i| i.from) {
            let max = if self.core.watched { self.core.pulled_at_once(max) } else { max };
            self.core.pull(node, out, max.min(causeway_packet::BATCH), batch);
            if let Some(packets) = &self.core.nodes[self.node].ins[port].packets {
                packets.add(batch.len() as u64);
            }
            if self.core.watched {
                self.core.watch_pulled(self.node, port, batch);
            }
        }
    }

    /// Lends an empty batch; give it back with [`Cx::return_batch`].
    pub fn lend_batch(&mut self) -> Box<Batch> {
        self.core.take_batch()
    }

    /// Takes back a lent batch; packets still in it are recycled without being counted.
    pub fn return_batch(&mut self, batch: Box<Batch>) {
        self.core.keep_batch(batch);
    }

    /// Nanoseconds since the epoch. Live it is read once a scheduling round; under simulated time each call
    /// advances it by one.
    #[inline]
    pub fn now_ns(&mut self) -> u64 {
        self.core.clock.now_ns()
    }

    /// Schedules the element's task.
    pub fn wake(&mut self) {
        if !self.core.nodes[self.node].quiescent {
            self.core.tasks.wake(self.node);
        }
    }

    /// Keeps the element's task from running until it is woken.
    pub fn sleep(&mut self) {
        self.core.tasks.sleep(self.node);
    }

    /// Whether the element's task is scheduled.
    pub fn is_scheduled(&self) -> bool {
        self.core.tasks.is_scheduled(self.node)
    }

    /// Scheduling weight of the element's task; 1024 is the usual one.
    pub fn tickets(&self) -> u32 {
        self.core.tasks.tickets(self.node)
    }

    /// Sets the scheduling weight of the element's task, 1 to 32768.
    pub fn set_tickets(&mut self, tickets: u32) {
        self.core.tasks.set_tickets(self.node, tickets);
    }

    /// Sets timer `key` of the element to expire at `when_ns` on the clock of [`Cx::now_ns`]; a timer set before
    /// under the same key is replaced.
    pub fn set_timer(&mut self, key: u32, when_ns: u64) {
        if !self.core.nodes[self.node].quiescent {
            self.core.timers.set(self.node, key, when_ns);
        }
    }

    /// Stops timer `key` of the element.
    pub fn clear_timer(&mut self, key: u32) {
        self.core.timers.clear(self.node, key);
    }

    /// Whether pulling from input `port` may give packets: false only while every notifier upstream says no.
    pub fn packets_upstream(&self, port: usize) -> bool {
        match self.core.nodes[self.node].ins.get(port).and_then(|i| i.signals.as_ref()) {
            Some(signals) => signals.iter().any(|&s| self.core.signals.is_active(s)),
            None => true,
        }
    }

    /// Whether what is pushed to output `port` may find room: false only while every notifier downstream says no.
    pub fn room_downstream(&self, port: usize) -> bool {
        let Some(out) = self.outs.get(port) else { return true };
        out.room.is_empty() || out.room.iter().any(|&s| self.core.signals.is_active(s))
    }

    /// Tells pullers whether this element has packets; waking those that sleep. Of an element that pulls, the notifiers
    /// upstream turn its own on as well.
    pub fn notify_packets(&mut self, available: bool) {
        if let Some(id) = self.core.nodes[self.node].packets_signal {
            if self.core.signals.hold(id, false) {
                self.clear_timer(NOT_BEFORE);
            }
            self.core.signal(id, available);
        }
    }

    /// Tells pullers that this element has no packets before `when_ns`, on the clock of [`Cx::now_ns`], whatever comes to
    /// it meanwhile. Those that sleep are woken then.
    pub fn notify_packets_at(&mut self, when_ns: u64) {
        if let Some(id) = self.core.nodes[self.node].packets_signal {
            self.core.signals.hold(id, true);
            self.core.signal(id, false);
            self.set_timer(NOT_BEFORE, when_ns);
        }
    }

    /// Tells pushers whether this element has room; waking those that sleep.
    pub fn notify_room(&mut self, available: bool) {
        if let Some(id) = self.core.nodes[self.node].room_signal {
            self.core.signal(id, available);
        }
    }

    /// Writes `value` to `handler` once the packets now under way are delivered: to `stop`, which stops the router,
    /// or to `element.handler` of an element on the same worker, looked up from this element's compound outwards. An
    /// error is logged.
    pub fn call_later(&mut self, handler: &str, value: &str) {
        match handler {
            "stop" => self.stop_driver(),
            _ => {
                let (handler, value) = (handler.to_owned(), value.to_owned());
                self.core.calls.push_back(Call { node: self.node, handler, value });
            }
        }
    }

    /// An error if [`Cx::call_later`] would find no write handler of that name.
    ///
    /// # Errors
    /// [`Cx::call_later`] would find no write handler of that name.
    pub fn check_call(&self, handler: &str) -> Result<(), Error> {
        if handler == "stop" {
            return Ok(());
        }
        if handler.is_empty() {
            return Err(Error::new("syntax error"));
        }
        let missing = || Error::new(format!("no '{handler}' write handler"));
        if !handler.contains('.') {
            return Err(missing());
        }
        let (node, name) = self.core.find_from(self.name(), handler)?;
        let node = &self.core.nodes[node];
        let own = node.spec.handlers.iter().find(|h| h.is(name, node.numbered()));
        match own.is_some_and(|h| h.access.writes()) {
            true => Ok(()),
            false => Err(missing()),
        }
    }

    /// The name of `element.handler`, if [`Cx::call_later`] would call this element itself.
    pub fn own_handler<'h>(&self, handler: &'h str) -> Option<&'h str> {
        let (node, name) = self.core.find_from(self.name(), handler).ok()?;
        (node == self.node).then_some(name)
    }

    /// Hands over what takes long to drop, such as a table that a write handler has emptied: whoever wrote to that drops it, and
    /// not the worker, unless it was an element.
    pub fn dispose_of(&mut self, what: impl Send + 'static) {
        self.core.disposed.push(Box::new(what));
    }

    /// Asks the driver to stop the router.
    pub fn stop_driver(&mut self) {
        self.adjust_run_count(-1);
    }

    /// Asks so many times for the router to run on, or to stop if the number is negative. The router begins with one reason
    /// to run on; with none left it asks its manager ([`Cx::manage`]) whether to stop.
    pub fn adjust_run_count(&mut self, by: i32) {
        self.core.adjust_run_count(by);
    }

    /// From now on the handler `step` of this element is written with `router` when the router is asked to stop. It may
    /// find reasons to run on; if it fails, or says so by [`Cx::set_status`], the router stops.
    pub fn manage(&mut self) {
        self.core.manager = Some(self.node);
    }

    /// Whether the element's task and timers run.
    pub fn is_quiescent(&self) -> bool {
        self.core.nodes[self.node].quiescent
    }

    /// The worker's random numbers; `RandomSeed` and the command line fix their seed.
    pub fn rng(&mut self) -> &mut fastrand::Rng {
        &mut self.core.rng
    }

    /// The element's present configuration string.
    pub fn config(&self) -> &str {
        &self.core.nodes[self.node].config
    }

    /// The names of addresses as the element sees them.
    pub fn scope(&self) -> Scope<'_> {
        self.core.context.names.scope(self.name())
    }

    /// The value that was written to `handler`, in the form that arguments of its type have.
    ///
    /// # Errors
    /// It is no value of the type.
    pub fn value<T: Value>(&self, handler: &str, text: &str) -> Result<T, Error> {
        written(handler, text, &self.scope())
    }

    /// Sets the element's present configuration string, as the `config` handler returns it. Handlers that have an
    /// argument's name need not set it.
    pub fn set_config(&mut self, config: String) {
        let node = &mut self.core.nodes[self.node];
        (node.config, node.shown) = (config, None);
    }

    /// Makes `text` the argument `name` in the element's present configuration string.
    pub fn set_argument(&mut self, name: &str, text: &str) {
        let node = &mut self.core.nodes[self.node];
        if let Some(argument) = node.spec.args.iter().find(|a| a.name == name) {
            node.config = with_argument(node.spec, &node.config, argument, text);
        }
    }
}
