//! The writer's list of routes, in prefix order: the truth that every lookup structure is compiled from.

use std::collections::BTreeMap;

use crate::address::Address;
use crate::lookup::{AdjacencyIndex, Change, Lookup, MISS};
use crate::prefix::Prefix;

/// Routes sorted by prefix. Control-path only; lookups cost a few tree searches.
#[derive(Clone, Debug)]
pub struct Rib<A: Address> {
    routes: BTreeMap<Prefix<A>, AdjacencyIndex>,
}

impl<A: Address> Default for Rib<A> {
    fn default() -> Self {
        Rib { routes: BTreeMap::new() }
    }
}

impl<A: Address> FromIterator<(Prefix<A>, AdjacencyIndex)> for Rib<A> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, AdjacencyIndex)>>(routes: I) -> Self {
        Rib { routes: routes.into_iter().collect() }
    }
}

impl<A: Address> Rib<A> {
    /// Number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there is no route.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Adds or changes a route; returns the adjacency it had.
    pub fn set(&mut self, prefix: Prefix<A>, adjacency: AdjacencyIndex) -> Option<AdjacencyIndex> {
        self.routes.insert(prefix, adjacency)
    }

    /// Removes a route; returns the adjacency it had.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<AdjacencyIndex> {
        self.routes.remove(&prefix)
    }

    /// Makes a change; returns the adjacency that the route had.
    pub(crate) fn change(&mut self, (prefix, adjacency): Change<A>) -> Option<AdjacencyIndex> {
        match adjacency {
            Some(adjacency) => self.set(prefix, adjacency),
            None => self.remove(prefix),
        }
    }

    /// The adjacency of exactly this prefix.
    #[must_use]
    pub fn exact(&self, prefix: Prefix<A>) -> Option<AdjacencyIndex> {
        self.routes.get(&prefix).copied()
    }

    /// The longest prefix that contains `address`, and where it leads.
    #[must_use]
    pub fn longest(&self, address: A) -> Option<(Prefix<A>, AdjacencyIndex)> {
        self.longest_covering(Prefix::host(address))
    }

    /// The longest prefix that covers `prefix` (itself included), and where it leads.
    ///
    /// A cover of `prefix` sorts at or before it and also covers every route between the two, so whenever the
    /// nearest route before is no cover, no cover is longer than the bits it shares with `prefix`.
    #[must_use]
    pub fn longest_covering(&self, prefix: Prefix<A>) -> Option<(Prefix<A>, AdjacencyIndex)> {
        let mut bound = prefix;
        loop {
            let (&candidate, &adjacency) = self.routes.range(..=bound).next_back()?;
            if candidate.covers(prefix) {
                return Some((candidate, adjacency));
            }
            let shared = candidate.first().common_bits(prefix.first()).min(candidate.len());
            bound = Prefix::truncated(prefix.first(), shared.min(bound.len()));
        }
    }

    /// The longest prefix that covers `prefix` and is shorter than it, and where it leads.
    #[must_use]
    pub fn longest_above(&self, prefix: Prefix<A>) -> Option<(Prefix<A>, AdjacencyIndex)> {
        let parent = prefix.len().checked_sub(1)?;
        self.longest_covering(Prefix::truncated(prefix.first(), parent))
    }

    /// Every route covered by `prefix`, itself included, in order.
    pub fn covered(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, AdjacencyIndex)> + '_ {
        self.routes.range(prefix..=Prefix::host(prefix.last())).map(|(&p, &a)| (p, a))
    }

    /// Every route that starts between two addresses, both included, in order.
    pub(crate) fn starting(
        &self,
        first: A,
        last: A,
    ) -> impl Iterator<Item = (Prefix<A>, AdjacencyIndex)> + '_ {
        let shortest = Prefix::truncated(first, A::BITS - first.trailing_zeros() as u8);
        self.routes.range(shortest..=Prefix::host(last)).map(|(&p, &a)| (p, a))
    }

    /// Every route, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, AdjacencyIndex)> + '_ {
        self.routes.iter().map(|(&p, &a)| (p, a))
    }
}

impl<A: Address> Lookup<A> for Rib<A> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        self.longest(address).map_or(MISS, |(_, adjacency)| adjacency)
    }

    /// About what the tree takes: its nodes have room for eleven routes and are filled to two thirds.
    fn bytes(&self) -> usize {
        self.routes.len() * (size_of::<(Prefix<A>, AdjacencyIndex)>() + 2) * 3 / 2
    }
}
