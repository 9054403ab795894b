//! Trace: the way of a few packets through the graph, edge by edge, to where each ends and why.
//!
//! A packet that is followed carries a number. It is delivered in a batch of its own, so that what an element's drop
//! counters and its store gained is what became of this packet; what the element emitted meanwhile without a number was
//! made from it, and is followed under the same one. So elements need know nothing of traces.

use super::{Bytes, Interest};
use crate::core::Core;
use crate::crossing::FROM_WORKER;
use crate::element::Element;
use crate::node::{Delivery, OutPort};
use causeway_packet::{Batch, Packet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Steps that wait to be taken away; beyond that they are lost.
const WAITING: usize = 4_096;
/// Bytes of a packet that each step shows.
const SHOWN: usize = 256;

/// Something that happened to a packet that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of the packet in this trace, from 1.
    pub packet: u16,
    /// Worker that it happened on.
    pub worker: usize,
    /// When, on the workers' clock, nanoseconds since the epoch.
    pub time_ns: u64,
    /// What happened.
    pub what: What,
}

/// What happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It passed an edge.
    Passed {
        /// Element that it left, with the number of the output.
        from: (String, usize),
        /// Element that it reached, with the number of the input.
        to: (String, usize),
        /// What it was then.
        bytes: Bytes,
        /// Whether the element that it left has just made it from another one.
        made: bool,
    },
    /// It ended, or rests, in an element.
    Ended {
        /// The element.
        element: String,
        /// Its class.
        class: &'static str,
        /// How it ended.
        how: Ending,
    },
}

/// How a packet ended in an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Dropped, for this reason of the element's.
    Dropped(&'static str),
    /// Emitted to an output that leads nowhere.
    Unconnected,
    /// The element holds it, and may send it on.
    Held,
    /// The element took it: it has left the graph.
    Taken,
}

/// Which packets are followed.
pub type Filter = Arc<dyn Fn(&Packet) -> bool + Send + Sync>;

/// A trace; it ends when this is dropped.
pub struct Trace {
    /// What happens. The workers end it when the graph is replaced.
    pub steps: Receiver<Step>,
    _watcher: Arc<()>,
}

/// Follows packets on one worker.
#[derive(Clone)]
pub(crate) struct Tracer {
    sender: SyncSender<Step>,
    pub(super) interest: Interest,
    filter: Filter,
    /// Where packets begin to be followed: an output. `None` = at every element that none leads to.
    pub start: Option<(usize, usize)>,
    /// The next number to be given; the workers share it.
    next: Arc<AtomicU16>,
    /// The numbers of this trace.
    numbers: RangeInclusive<u16>,
    /// Numbers of the packets that are about to be delivered.
    arriving: Vec<u16>,
    /// Numbers of the packets that the running element was given or has pulled.
    entered: Vec<u16>,
    /// Numbers of those that it has given to who pulls.
    given: Vec<u16>,
}

impl Trace {
    /// A trace and what follows packets on a worker, `numbers` of them.
    pub(crate) fn new(filter: Filter, numbers: RangeInclusive<u16>) -> (Trace, Tracer) {
        let (sender, steps) = sync_channel(WAITING);
        let (watcher, interest) = Interest::new();
        let tracer = Tracer {
            sender,
            interest,
            filter,
            start: None,
            next: Arc::new(AtomicU16::new(*numbers.start())),
            numbers,
            arriving: Vec::new(),
            entered: Vec::new(),
            given: Vec::new(),
        };
        (Trace { steps, _watcher: watcher }, tracer)
    }
}

impl Tracer {
    /// The number of a packet that this trace follows.
    fn number(&self, packet: &Packet) -> Option<u16> {
        Some(packet.trace()).filter(|number| self.numbers.contains(number))
    }

    /// Begins to follow a packet, if it is wanted and there are numbers left.
    fn begin(&self, packet: &mut Packet) {
        if self.next.load(Ordering::Relaxed) > *self.numbers.end() || !(self.filter)(packet) {
            return;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.numbers.contains(&number) {
            packet.set_trace(number);
        }
    }

    fn say(&self, worker: usize, time_ns: u64, number: u16, what: What) {
        // Who does not keep up misses some.
        let packet = number - self.numbers.start() + 1;
        let _ = self.sender.try_send(Step { packet, worker, time_ns, what });
    }
}

/// What is remembered of an element while it runs.
pub(crate) struct Before {
    entered: Vec<u16>,
    given: Vec<u16>,
    drops: Vec<u64>,
    unconnected: u64,
    held: usize,
}

impl Core {
    /// Follows packets from now on.
    pub fn follow(&mut self, tracer: Tracer) {
        self.tracer = Some(Box::new(tracer));
        self.watched = false;
        self.set_watched();
    }

    /// Takes from `batch`, which is to be delivered, all but the packets up to the first that is followed: what comes
    /// behind it is delivered later, and itself alone.
    #[cold]
    pub fn split_for_trace(&mut self, node: usize, port: usize, batch: &mut Box<Batch>) {
        let Some(tracer) = &self.tracer else { return };
        let Some(at) = batch.iter().position(|p| tracer.number(p).is_some()) else { return };
        let alone = if at == 0 { 1 } else { at };
        if batch.len() > alone {
            let mut rest = self.take_batch();
            let mut i = 0;
            batch.filter_map(|packet| {
                i += 1;
                if i <= alone {
                    return Some(packet);
                }
                // The rest is no longer than a batch.
                let _ = rest.push(packet);
                None
            });
            self.stack.push(Delivery { node, port, batch: rest });
        }
        let Some(tracer) = &mut self.tracer else { return };
        let numbers: Vec<u16> = batch.iter().filter_map(|p| tracer.number(p)).collect();
        tracer.arriving = numbers;
    }

    /// How many of the `max` packets that an element wants to pull it gets at once.
    #[cold]
    pub fn pulled_at_once(&self, max: usize) -> usize {
        // What becomes of one must not be taken for what becomes of another.
        if self.tracer.is_some() { max.min(1) } else { max }
    }

    /// An element is about to run.
    #[cold]
    pub fn trace_begin(&mut self, node: usize, element: &dyn Element) -> Option<Before> {
        let tracer = self.tracer.as_mut()?;
        // Those are of the element that pulls from this one.
        let entered = std::mem::replace(&mut tracer.entered, std::mem::take(&mut tracer.arriving));
        let given = std::mem::take(&mut tracer.given);
        let n = &self.nodes[node];
        let drops = n.drops.iter().map(|c| c.get()).collect();
        Some(Before { entered, given, drops, unconnected: n.unconnected.get(), held: element.held() })
    }

    /// The element of `node` has run: says which packets ended in it.
    #[cold]
    pub(super) fn trace_end(&mut self, node: usize, element: &dyn Element, outs: &[OutPort], before: Before) {
        let (worker, time_ns) = (self.worker, self.clock.now_ns());
        let Some(tracer) = self.tracer.as_mut() else { return };
        let n = &self.nodes[node];
        let emitted = outs.iter().flat_map(|o| &o.emitted).flat_map(|batch| batch.iter());
        let mut left: Vec<u16> = emitted.filter_map(|p| tracer.number(p)).collect();
        left.append(&mut tracer.given);
        let mut dropped =
            n.drops.iter().zip(&before.drops).zip(n.spec.drops).filter(|((now, then), _)| now.get() > **then);
        let how = match dropped.next() {
            Some((_, reason)) => Ending::Dropped(reason.name),
            None if n.unconnected.get() > before.unconnected => Ending::Unconnected,
            // What has no outputs lets nothing go on, though it may not be sent yet.
            None if element.held() > before.held && !outs.is_empty() => Ending::Held,
            None => Ending::Taken,
        };
        for &number in tracer.entered.iter().filter(|number| !left.contains(number)) {
            let (element, class) = (n.name.to_string(), n.spec.name);
            tracer.say(worker, time_ns, number, What::Ended { element, class, how: how.clone() });
        }
        (tracer.entered, tracer.given) = (before.entered, before.given);
    }

    /// Looks at what the element of `node` emitted: begins to follow packets, and tells of those that are followed.
    pub(super) fn trace_outs(&mut self, node: usize, outs: &mut [OutPort]) {
        let (worker, time_ns) = (self.worker, self.clock.now_ns());
        let Some(tracer) = self.tracer.as_mut() else { return };
        let n = &self.nodes[node];
        let is_source = n.ins.is_empty() && !std::ptr::eq(n.spec, &FROM_WORKER);
        let made_of = tracer.entered.first().copied();
        for (port, out) in outs.iter_mut().enumerate() {
            let Some((to, input)) = out.to else { continue };
            let starts = tracer.start.map_or(is_source, |start| start == (node, port));
            for packet in out.emitted.iter_mut().flat_map(|batch| batch.iter_mut()) {
                let mut made = false;
                if tracer.number(packet).is_none() {
                    if let Some(number) = made_of {
                        made = true;
                        packet.set_trace(number);
                    } else if starts {
                        tracer.begin(packet);
                    }
                }
                let Some(number) = tracer.number(packet) else { continue };
                let (from, to) = ((n.name.to_string(), port), (self.nodes[to].name.to_string(), input));
                let passed = What::Passed { from, to, bytes: Bytes::of(packet, SHOWN), made };
                tracer.say(worker, time_ns, number, passed);
            }
        }
    }

    /// Looks at what was pulled into input `port` of `node`.
    pub(super) fn trace_pulled(&mut self, node: usize, port: usize, batch: &mut Batch) {
        let (worker, time_ns) = (self.worker, self.clock.now_ns());
        let Some((from, output)) = self.nodes[node].ins.get(port).and_then(|i| i.from) else { return };
        let Some(tracer) = self.tracer.as_mut() else { return };
        let starts =
            tracer.start == Some((from, output)) || tracer.start.is_none() && self.nodes[from].ins.is_empty();
        for packet in batch.iter_mut() {
            if tracer.number(packet).is_none() && starts {
                tracer.begin(packet);
            }
            let Some(number) = tracer.number(packet) else { continue };
            let (from, to) = (&self.nodes[from].name, &self.nodes[node].name);
            let (from, to) = ((from.to_string(), output), (to.to_string(), port));
            tracer.say(
                worker,
                time_ns,
                number,
                What::Passed { from, to, bytes: Bytes::of(packet, SHOWN), made: false },
            );
            tracer.entered.push(number);
        }
    }

    /// The element of a pulled output gives these packets to who pulls.
    #[cold]
    pub fn trace_given(&mut self, batch: &Batch) {
        if let Some(tracer) = self.tracer.as_mut() {
            let numbers: Vec<u16> = batch.iter().filter_map(|p| tracer.number(p)).collect();
            tracer.given.extend(numbers);
        }
    }
}
