//! The way of packets from element to element, pushed or pulled.

use super::Core;
use crate::node::Delivery;
use crate::work::Work;
use causeway_packet::Batch;

/// Deliveries that one push may cause before the graph is taken to be a loop without end.
const MAX_DELIVERIES: usize = 1 << 16;

impl Core {
    /// Counts and throws away what goes out by a port that leads nowhere.
    pub fn unconnected(&mut self, node: usize, batch: Box<Batch>) {
        self.nodes[node].unconnected.add(batch.len() as u64);
        self.keep_batch(batch);
    }

    /// Delivers `batch` to input `port` of `node`, and everything that follows from it.
    pub fn push(&mut self, node: usize, port: usize, batch: Box<Batch>) {
        self.stack.push(Delivery { node, port, batch });
        self.deliver();
    }

    /// Delivers what is on the stack. Handlers that elements ask for are called before what they emitted goes on.
    pub fn deliver(&mut self) {
        while self.deliver_one() {}
    }

    /// Delivers the batch on top of the stack to its element. False: nothing is under way.
    #[inline]
    pub fn deliver_one(&mut self) -> bool {
        self.run_calls();
        let Some(delivery) = self.stack.pop() else {
            self.deliveries = 0;
            self.stack.extend(self.drawn.drain(..).rev());
            return !self.stack.is_empty();
        };
        self.deliver_this(delivery);
        true
    }

    #[inline]
    fn deliver_this(&mut self, Delivery { node, port, mut batch }: Delivery) {
        self.deliveries += 1;
        if self.watched {
            self.split_for_trace(node, port, &mut batch);
        }
        if self.deliveries > MAX_DELIVERIES {
            self.looped.add(batch.len() as u64);
            self.keep_batch(batch);
            return;
        }
        if self.nodes[node].one_by_one && batch.len() > 1 {
            batch = self.first_of(node, port, batch);
        }
        let packets = batch.len();
        let ran = self.activate(node, |element, cx| {
            element.push(port, &mut batch, cx);
            if !batch.is_empty() {
                let empty = cx.core.take_batch();
                cx.emit_batch(0, std::mem::replace(&mut batch, empty));
            }
        });
        debug_assert!(ran.is_some(), "a pushed element never runs already");
        self.keep_batch(batch);
        self.charge(node, Work::Push, packets);
    }

    /// Lets go on what an element has just emitted: all the way, unless work costs time.
    #[inline]
    pub(super) fn go_on(&mut self) {
        if self.costs.is_none() {
            self.deliver();
        }
    }

    /// The first packet of `batch`; the others are delivered when all is done that follows from it.
    #[cold]
    fn first_of(&mut self, node: usize, port: usize, mut batch: Box<Batch>) -> Box<Batch> {
        let mut first = self.take_batch();
        first.append_up_to(&mut batch, 1);
        self.stack.push(Delivery { node, port, batch });
        first
    }

    /// Fills the empty `batch` with at most `max` packets from output `port` of `node`.
    pub fn pull(&mut self, node: usize, port: usize, max: usize, batch: &mut Batch) {
        let max = if self.nodes.get(node).is_some_and(|n| n.one_by_one) { max.min(1) } else { max };
        let under_way = self.stack.len();
        self.activate(node, |element, cx| {
            element.pull(port, max, batch, cx);
            // What an agnostic element emits to the output that is being pulled is part of the answer.
            if let Some(out) = cx.outs.get_mut(port).filter(|o| !o.emitted.is_empty()) {
                for mut emitted in std::mem::take(&mut out.emitted) {
                    batch.append(&mut emitted);
                    let lost = emitted.len() as u64;
                    cx.core.nodes[node].unconnected.add(lost);
                    cx.core.keep_batch(emitted);
                }
            }
            if cx.core.watched {
                cx.core.trace_given(batch);
            }
        });
        if self.stack.len() > under_way {
            self.set_aside(under_way);
        }
        self.charge(node, Work::Pull, batch.len());
    }

    /// Lets what lies above `under_way` on the stack go on: what an element pushed out while it was pulled from is there
    /// before what it gives, as in Click. Sets aside what cannot: what leads to an element that is running, and everything
    /// where work costs time.
    #[cold]
    fn set_aside(&mut self, under_way: usize) {
        while self.costs.is_none()
            && self.stack.len() > under_way
            && let Some(delivery) = self.stack.pop_if(|top| self.nodes[top.node].element.is_some())
        {
            self.deliver_this(delivery);
        }
        self.drawn.extend(self.stack.drain(under_way..).rev());
    }
}
