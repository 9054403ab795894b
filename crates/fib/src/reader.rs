//! A worker's handle of a structure that its owner changes at the same time.

use std::sync::Arc;

use crate::address::Address;
use crate::epoch::{Domain, Participant};
use crate::table::{AdjacencyIndex, Lookup};

/// Looks up in the shared part `C` of a structure: wait-free, one per thread, cheap to clone.
///
/// Each call announces itself for its own length, which costs about as much as one lookup; batches share it.
pub struct Reader<C> {
    core: Arc<C>,
    participant: Participant,
}

impl<C> Clone for Reader<C> {
    fn clone(&self) -> Self {
        Reader { core: self.core.clone(), participant: self.participant.clone() }
    }
}

impl<C> Reader<C> {
    pub(crate) fn new(core: &Arc<C>, domain: &Arc<Domain>) -> Self {
        Reader { core: core.clone(), participant: domain.participant() }
    }
}

impl<A: Address, C: Lookup<A>> Lookup<A> for Reader<C> {
    #[inline]
    fn lookup(&self, address: A) -> AdjacencyIndex {
        let _pinned = self.participant.pin();
        self.core.lookup(address)
    }

    #[inline]
    fn lookup_batch(&self, addresses: &[A], results: &mut [AdjacencyIndex]) {
        let _pinned = self.participant.pin();
        self.core.lookup_batch(addresses, results);
    }

    fn bytes(&self) -> usize {
        self.core.bytes()
    }
}
