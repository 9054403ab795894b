//! How a watcher is to work, and what it counts.

use std::sync::Arc;

use crate::doubt::OnDoubt;
use crate::managed::{OnManaged, WasUsed};
use crate::pulse::Pulse;

/// How a [`Watcher`](super::Watcher) is to work.
pub struct WatcherConfig {
    /// The interfaces that the router holds, by index.
    pub ports: Vec<u32>,
    /// The kernel's buffer for messages that have not been read, octets.
    pub receive_buffer_bytes: usize,
    /// Keep the gateways in use resolved, by entries in the kernel's neighbour tables.
    pub keep_resolved: bool,
    /// Have the kernel manage those entries from the start. Else gateways are only said to be in use until
    /// [`Watcher::adopt`](super::Watcher::adopt) is called, so that nothing is left behind by one that ends before.
    pub manage: bool,
    /// Is told when what the watcher said cannot be relied on, and when it can again. Until it is first told that all is known,
    /// nothing can be relied on. It is called on the watcher's thread or on another one, and must not wait for either.
    pub on_doubt: OnDoubt,
    /// Is touched whenever the watcher gets on.
    pub pulse: Pulse,
    /// Whether packets went to an adjacency since this was last asked of it: a host that none go to is left to age.
    pub was_used: WasUsed,
    /// Is told all neighbours that are managed when some come or go: those that come before the kernel is told, those that go
    /// after, so that the list that was told last is enough for [`release_managed`](crate::release_managed).
    pub on_managed: OnManaged,
}

impl WatcherConfig {
    /// The usual settings, for a router that holds these interfaces: nobody is told anything, and every host counts as used.
    pub fn new(ports: impl IntoIterator<Item = u32>) -> Self {
        WatcherConfig {
            ports: ports.into_iter().collect(),
            receive_buffer_bytes: 128 << 20,
            keep_resolved: true,
            manage: true,
            on_doubt: Arc::new(|_| {}),
            pulse: Pulse::new(),
            was_used: Box::new(|_| true),
            on_managed: Box::new(|_| {}),
        }
    }
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatcherStats {
    /// Messages taken in, of events and dumps.
    pub messages: u64,
    /// Messages passed over because a dump had shown already what they said.
    pub outdated: u64,
    /// Messages that could not be parsed; each led to a new dump.
    pub malformed: u64,
    /// Times that messages were lost because they were not read fast enough.
    pub overruns: u64,
    /// Dumps after the first.
    pub resyncs: u64,
    /// Dumps that had to be begun again because the kernel's tables changed under them.
    pub interrupted: u64,
    /// Prefixes left to the kernel for a time because messages did not tell which route it has.
    pub unclear: u64,
    /// Neighbours that the kernel was asked about.
    pub asked: u64,
    /// How long the last dump took, nanoseconds.
    pub resync_ns: u64,
}

impl WatcherStats {
    /// All counts by name.
    pub fn lines(&self) -> [(&'static str, u64); 9] {
        [
            ("messages", self.messages),
            ("outdated", self.outdated),
            ("malformed", self.malformed),
            ("overruns", self.overruns),
            ("resyncs", self.resyncs),
            ("interrupted", self.interrupted),
            ("unclear", self.unclear),
            ("asked", self.asked),
            ("resync_ns", self.resync_ns),
        ]
    }
}
