//! A list of routes, longest prefix first, searched from the start.

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup, MISS};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::table::Structure;

/// The list; right for a handful of routes.
#[derive(Clone, Debug)]
pub struct Linear<A: Address>(Vec<(Prefix<A>, AdjacencyIndex)>);

impl<A: Address> Lookup<A> for Linear<A> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        self.0.iter().find(|route| route.0.contains(address)).map_or(MISS, |route| route.1)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

impl<A: Address> Structure<A> for Linear<A> {
    const NAME: &'static str = "linear";
    const ADJACENCY_MAX: AdjacencyIndex = u32::MAX;

    fn empty() -> Result<Self, FibError> {
        Ok(Linear(Vec::new()))
    }

    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<(), FibError> {
        for &prefix in changed {
            self.0.retain(|route| route.0 != prefix);
            if let Some(adjacency) = rib.exact(prefix) {
                let at = self.0.partition_point(|route| route.0.len() > prefix.len());
                self.0.insert(at, (prefix, adjacency));
            }
        }
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<A>) -> Result<(), FibError> {
        self.0 = rib.iter().collect();
        self.0.sort_by_key(|route| std::cmp::Reverse(route.0.len()));
        Ok(())
    }
}
