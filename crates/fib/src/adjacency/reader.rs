//! The workers' side: what an index leads to, for the length of a batch.

use std::sync::Arc;

use super::Entry;
use crate::lookup::AdjacencyIndex;
use crate::sync::cells::{Announcement, Cells, Seen};
use crate::sync::epoch::{Participant, Pinned};

/// A worker's handle of [`Adjacencies`](super::Adjacencies).
#[derive(Debug)]
pub struct AdjacencyReader<T> {
    entries: Arc<Cells<Entry<T>>>,
    participant: Participant,
}

impl<T> Clone for AdjacencyReader<T> {
    fn clone(&self) -> Self {
        AdjacencyReader { entries: self.entries.clone(), participant: self.participant.clone() }
    }
}

impl<T> AdjacencyReader<T> {
    pub(super) fn new(entries: &Arc<Cells<Entry<T>>>) -> Self {
        AdjacencyReader { entries: entries.clone(), participant: entries.domain().participant() }
    }

    /// A view for one batch. Pin before the lookup in the forwarding table: then no index that the lookup returns is
    /// handed out for another next hop before the view is dropped.
    #[inline]
    #[must_use]
    pub fn pin(&self) -> AdjacencyView<'_, T> {
        AdjacencyView(self.entries.under(Announcement::Own(self.participant.pin())))
    }

    /// The same under an announcement that stands already, for the forwarding table too. Where that is made in another
    /// domain, the view shows nothing.
    #[inline]
    #[must_use]
    pub fn under<'a>(&'a self, pinned: &'a Pinned<'_>) -> AdjacencyView<'a, T> {
        AdjacencyView(self.entries.under(Announcement::Of(pinned)))
    }
}

/// The adjacencies for the length of a batch.
///
/// Look up in the forwarding table, resolve, check and use what was found under one view. An index that is kept past
/// its view may lead to another next hop in the next one, with nothing to tell.
pub struct AdjacencyView<'a, T>(Seen<'a, Entry<T>>);

impl<T> AdjacencyView<'_, T> {
    #[inline]
    fn entry(&self, index: AdjacencyIndex) -> Option<&Entry<T>> {
        self.0.get(index as usize)
    }

    /// The next hop for a packet and its own index: those of the entry, or of the member of the group that the
    /// packet's flow hash chooses; `flow_hash` is called for groups only. `None` for [`MISS`](crate::MISS) and for
    /// indices that lead nowhere.
    ///
    /// The index has to come from a lookup under this view (see [`AdjacencyReader::pin`]).
    #[inline]
    #[must_use]
    pub fn choose_with(
        &self,
        index: AdjacencyIndex,
        flow_hash: impl FnOnce() -> u32,
    ) -> Option<(AdjacencyIndex, &T)> {
        match self.entry(index)? {
            Entry::NextHop(next_hop) => Some((index, next_hop)),
            Entry::Group(group) => {
                let member = group.choose(flow_hash())?;
                match self.entry(member)? {
                    Entry::NextHop(next_hop) => Some((member, next_hop)),
                    Entry::Group(_) => None,
                }
            }
        }
    }

    /// The next hop that [`choose_with`](Self::choose_with) finds, under the same condition: the index has to come
    /// from a lookup under this view.
    #[inline]
    #[must_use]
    pub fn resolve_with(&self, index: AdjacencyIndex, flow_hash: impl FnOnce() -> u32) -> Option<&T> {
        self.choose_with(index, flow_hash).map(|(_, next_hop)| next_hop)
    }

    /// [`resolve_with`](Self::resolve_with) for a hash that is known already.
    #[inline]
    #[must_use]
    pub fn resolve(&self, index: AdjacencyIndex, flow_hash: u32) -> Option<&T> {
        self.resolve_with(index, || flow_hash)
    }
}
