//! Elements that work together on one worker: a mapper and the rewriter it maps for, rewriters with one table.
//!
//! An element never holds a reference to another. It asks the run-time for the place of its peer once
//! ([`Cx::find_peer`]) and for the peer itself when it needs it ([`Cx::peer`]). Both must live on one worker, which
//! their classes say ([`crate::Spec::lives_with`]).

use crate::conf::Defaults;
use crate::cx::Cx;
use crate::element::Element;
use crate::error::Error;

/// The place of an element of the same worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(usize);

impl Cx<'_> {
    /// The place of the element that this one calls `name`, looked up from its compound outwards.
    ///
    /// # Errors
    /// If there is none on this worker.
    pub fn find_peer(&self, name: &str) -> Result<Peer, Error> {
        let handler = format!("{name}.");
        let found = self.core.find_from(self.name(), &handler);
        found.map(|(node, _)| Peer(node)).map_err(|_| {
            Error::new(format!("no element '{name}' on worker {}, where this one lives", self.core.worker))
        })
    }

    /// The place of this element.
    pub fn here(&self) -> Peer {
        Peer(self.node)
    }

    /// The element at `peer`, if it is a `T` and not the one that asks.
    #[inline]
    pub fn peer<T: Element>(&mut self, peer: Peer) -> Option<&mut T> {
        self.core.nodes.get_mut(peer.0)?.element.as_mut()?.downcast_mut()
    }

    /// Lets the task of the element at `peer` run.
    pub fn wake_peer(&mut self, peer: Peer) {
        if self.core.nodes.get(peer.0).is_some_and(|n| !n.quiescent) {
            self.core.tasks.wake(peer.0);
        }
    }

    /// What a read handler of the element at `peer` answers.
    pub fn read_peer(&mut self, peer: Peer, handler: &str) -> Option<String> {
        crate::handler::read(self.core, peer.0, handler, "").ok()
    }

    /// What a read handler of the element at `peer` answers to this parameter.
    pub fn ask_peer(&mut self, peer: Peer, handler: &str, arg: &str) -> Option<String> {
        crate::handler::read(self.core, peer.0, handler, arg).ok()
    }

    /// The name of the element at `peer`.
    pub fn peer_name(&self, peer: Peer) -> &str {
        self.core.nodes.get(peer.0).map_or("", |n| &n.name)
    }

    /// The class of the element at `peer`.
    pub fn peer_class(&self, peer: Peer) -> &'static str {
        self.core.nodes.get(peer.0).map_or("", |n| n.spec.name)
    }

    /// The present configuration string of the element at `peer`.
    pub fn peer_config(&self, peer: Peer) -> &str {
        self.core.nodes.get(peer.0).map_or("", |n| &n.config)
    }

    /// Sets the present configuration string of the element at `peer`. Where the defaults are Click's, the handler `config` shows
    /// what it showed before.
    pub fn set_peer_config(&mut self, peer: Peer, config: String) {
        let keeps = self.core.context.defaults == Defaults::Click;
        if let Some(node) = self.core.nodes.get_mut(peer.0) {
            node.reconfigured(config, keeps);
        }
    }

    /// Number of outputs in use of the element at `peer`.
    pub fn peer_outputs(&self, peer: Peer) -> usize {
        self.core.nodes.get(peer.0).map_or(0, |n| n.outs.len())
    }
}
