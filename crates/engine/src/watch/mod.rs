//! Looking at packets while they flow: [`capture`] copies those on some edges, [`trace`] follows a few on their way, `meter`
//! counts bytes.
//!
//! A worker that nobody watches pays one branch for each run of an element. While somebody does, no element does the work
//! of others ([`crate::Element::fuse`]), so that packets take the edges that the configuration has.

pub mod capture;
pub(crate) mod meter;
pub mod trace;

use crate::core::Core;
use crate::element::Element;
use crate::node::OutPort;
use causeway_packet::{Batch, Packet};
use std::sync::{Arc, Weak};

/// Bytes of a packet, and what they begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The first bytes of the packet.
    pub data: Vec<u8>,
    /// Bytes that the packet has.
    pub len: usize,
    /// Whether it begins with its IP header, rather than with that of the link.
    pub is_ip: bool,
}

impl Bytes {
    /// The first `most` bytes of `packet`.
    fn of(packet: &Packet, most: usize) -> Bytes {
        let data = packet.data();
        // Who takes the link's header away says where the next one is.
        let is_ip = packet.network_offset() == Some(0);
        Bytes { data: data[..data.len().min(most)].to_vec(), len: data.len(), is_ip }
    }
}

/// What the watched worker has: whether whoever watches is still there.
#[derive(Clone)]
pub(crate) struct Interest(Weak<()>);

impl Interest {
    fn new() -> (Arc<()>, Interest) {
        let watcher = Arc::new(());
        let interest = Interest(Arc::downgrade(&watcher));
        (watcher, interest)
    }

    fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Somebody looks at what passes one edge.
#[derive(Clone)]
pub(crate) struct Tap {
    pub interest: Interest,
    pub look: Look,
}

/// How.
#[derive(Clone)]
pub(crate) enum Look {
    Copy(capture::Copier),
    Measure(meter::Metered),
}

impl Tap {
    fn see(&self, batch: &Batch, now_ns: u64) {
        match &self.look {
            Look::Copy(copier) => copier.copy(batch, now_ns),
            Look::Measure(edge) => edge.add(batch.iter().map(Packet::len).sum()),
        }
    }
}

impl Core {
    /// Shows what leaves output `port` of `node`, or what its input `port` pulls, to whoever is at the other end of `tap`.
    pub fn tap(&mut self, node: usize, port: usize, pulled: bool, tap: Tap) {
        let taps = self.nodes.get_mut(node).and_then(|n| match pulled {
            true => n.ins.get_mut(port).map(|input| &mut input.taps),
            false => n.outs.get_mut(port).map(|out| &mut out.taps),
        });
        taps.into_iter().for_each(|taps| taps.push(tap.clone()));
        self.set_watched();
    }

    /// Shows those who watch what input `port` of `node` has pulled.
    #[cold]
    pub fn watch_pulled(&mut self, node: usize, port: usize, batch: &mut Batch) {
        self.trace_pulled(node, port, batch);
        let now_ns = self.clock.now_ns();
        if let Some(input) = self.nodes[node].ins.get(port) {
            input.taps.iter().for_each(|tap| tap.see(batch, now_ns));
        }
    }

    /// Whether somebody looks has changed: elements go past others, or not.
    fn set_watched(&mut self) {
        let taps = |taps: &Vec<Tap>| !taps.is_empty();
        let tapped = |n: &crate::node::Node| {
            n.outs.iter().any(|o| taps(&o.taps)) || n.ins.iter().any(|i| taps(&i.taps))
        };
        let watched = self.tracer.is_some() || self.nodes.iter().any(tapped);
        if watched != self.watched {
            self.watched = watched;
            for node in 0..self.nodes.len() {
                self.fuse(node);
            }
        }
    }

    /// Forgets watchers that have gone. Called between two rounds of the worker, while it is watched.
    #[cold]
    pub fn forget_watchers(&mut self) {
        for node in &mut self.nodes {
            let taps =
                node.outs.iter_mut().map(|o| &mut o.taps).chain(node.ins.iter_mut().map(|i| &mut i.taps));
            taps.for_each(|taps| taps.retain(|tap| tap.interest.is_there()));
        }
        self.tracer = self.tracer.take().filter(|tracer| tracer.interest.is_there());
        self.set_watched();
    }

    /// Shows those who watch what the element of `node` emitted when it ran.
    #[cold]
    pub fn watch_outs(
        &mut self,
        node: usize,
        element: &dyn Element,
        outs: &mut [OutPort],
        before: Option<trace::Before>,
    ) {
        self.trace_outs(node, outs);
        if let Some(before) = before {
            self.trace_end(node, element, outs, before);
        }
        let now_ns = self.clock.now_ns();
        for out in outs {
            for tap in &out.taps {
                out.emitted.iter().for_each(|batch| tap.see(batch, now_ns));
            }
        }
    }
}
