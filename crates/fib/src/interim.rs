//! The reference structure: the routes themselves behind a lock.

use std::sync::{Arc, PoisonError, RwLock};

use crate::address::Address;
use crate::error::FibError;
use crate::fib::Shared;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::table::{AdjacencyIndex, Lookup, Structure};

/// A copy of the routes that readers search under a lock.
#[derive(Clone, Debug, Default)]
pub struct Locked<A: Address>(Arc<RwLock<Rib<A>>>);

impl<A: Address> Lookup<A> for Locked<A> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        self.0.read().unwrap_or_else(PoisonError::into_inner).lookup(address)
    }

    fn bytes(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).bytes()
    }
}

impl<A: Address> Structure<A> for Locked<A> {
    const NAME: &'static str = "locked";
    const ADJACENCY_MAX: AdjacencyIndex = 0x7fff;

    fn empty() -> Self {
        Self::default()
    }

    fn update(&mut self, rib: &Rib<A>, changed: Prefix<A>) -> Result<(), FibError> {
        let mut copy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if changed == Prefix::DEFAULT {
            *copy = rib.clone();
        } else if let Some(adjacency) = rib.exact(changed) {
            copy.set(changed, adjacency);
        } else {
            copy.remove(changed);
        }
        Ok(())
    }
}

impl<A: Address> Shared<A> for Locked<A> {
    type Reader = Self;

    fn reader(&self) -> Self {
        self.clone()
    }
}
