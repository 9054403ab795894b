//! An element in its place: its ports, what leads to them, and what counts there.

#![allow(clippy::vec_box)] // A batch is 2 KiB; the boxes move between elements, the batches do not.

use crate::counters::Counter;
use crate::element::Element;
use crate::signal::SignalId;
use crate::spec::Spec;
use crate::watch::Tap;
use causeway_packet::{Batch, Packet};
use std::collections::HashMap;
use std::sync::Arc;

/// An element in its place.
pub(crate) struct Node {
    pub name: Arc<str>,
    pub spec: &'static Spec,
    pub config: String,
    /// What the handler `config` shows instead, after a setting was changed that Click's `config` does not follow.
    pub shown: Option<String>,
    /// `None` while the element runs.
    pub element: Option<Box<dyn Element>>,
    pub outs: Vec<OutPort>,
    /// How many of the last outputs are in no configuration.
    pub entries: usize,
    /// Outputs that the running activation emitted to.
    pub used: Vec<u32>,
    pub ins: Vec<InPort>,
    /// One counter for each of the class's drop reasons.
    pub drops: Vec<Counter>,
    /// Packets emitted to an output that leads nowhere.
    pub unconnected: Counter,
    /// Active while the element has packets for pullers.
    pub packets_signal: Option<SignalId>,
    /// Active while the element has room for pushers.
    pub room_signal: Option<SignalId>,
    /// Whether the element's task and timers never run.
    pub quiescent: bool,
    /// Whether the element gets packets one by one, because it or one behind it acts on others.
    pub one_by_one: bool,
    /// Whether the clock is read for each of the element's runs.
    pub stamps: bool,
    /// Nodes that do the element's work for some packets, and ask again when a write handler has changed it.
    pub fused: Vec<usize>,
}

impl Node {
    /// What the handler `config` shows.
    pub fn shown_config(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.config)
    }

    /// `config` is the configuration from now on; the handler of that name shows it, unless it `keeps` to what it shows.
    pub fn reconfigured(&mut self, config: String, keeps: bool) {
        if keeps {
            self.shown = Some(self.shown_config().to_owned());
        }
        self.config = config;
    }

    /// For how many handlers a name that ends in `#` stands.
    pub fn numbered(&self) -> usize {
        self.spec.numbered(self.ins.len(), self.outs.len())
    }
}

/// An output.
#[derive(Default)]
pub(crate) struct OutPort {
    /// Where packets go; `None` for a pull output or an unconnected one.
    pub to: Option<(usize, usize)>,
    /// Notifiers of room downstream; empty = never held back.
    pub room: Vec<SignalId>,
    /// Packets emitted in the running activation.
    pub emitted: Vec<Box<Batch>>,
    /// Packets that were pushed along the edge, if it is there.
    pub packets: Option<Counter>,
    /// Who looks at them.
    pub taps: Vec<Tap>,
}

/// An input.
#[derive(Default)]
pub(crate) struct InPort {
    /// Where packets are pulled from; `None` for a push input.
    pub from: Option<(usize, usize)>,
    /// Notifiers of packets upstream; `None` = unknown, always worth a try.
    pub signals: Option<Vec<SignalId>>,
    /// Packets that were pulled along the edge, if it is there.
    pub packets: Option<Counter>,
    /// Who looks at them.
    pub taps: Vec<Tap>,
}

/// A write handler that an element wants called.
pub(crate) struct Call {
    /// Node that wants it, from where names are looked up.
    pub node: usize,
    /// `element.handler`.
    pub handler: String,
    pub value: String,
}

/// A batch on its way to an input.
pub(crate) struct Delivery {
    pub node: usize,
    pub port: usize,
    pub batch: Box<Batch>,
}

impl OutPort {
    /// Adds a packet to what the running activation emitted.
    #[inline]
    pub fn emit(&mut self, mut packet: Packet, spare: &mut Vec<Box<Batch>>) {
        if let Some(batch) = self.emitted.last_mut() {
            match batch.push(packet) {
                Ok(()) => return,
                Err(back) => packet = back,
            }
        }
        let mut batch = spare.pop().unwrap_or_default();
        // An empty batch has room for one.
        let _ = batch.push(packet);
        self.emitted.push(batch);
    }
}

/// A node of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub worker: usize,
    pub node: usize,
}

/// Where elements are, by name: one place, or one a worker when the graph is replicated.
pub(crate) type Index = HashMap<Arc<str>, Vec<Place>>;
