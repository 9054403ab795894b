//! What the packet path sees of a table: [`Lookup`].

use crate::address::Address;
use crate::prefix::Prefix;

/// What a route leads to: an index into an adjacency table; [`MISS`] means "no route".
pub type AdjacencyIndex = u32;

/// The result of a lookup that no route matches: a number that no route leads to, and no type of its own. Structures keep it
/// among the others, in 15 bits; batches of results are filled with it before a lookup; a program in the driver reads it as it
/// lies in memory; and an adjacency table has nothing at that index, so who looks there need not ask first.
pub const MISS: AdjacencyIndex = 0;

/// A change of the route of a prefix: where it leads from now on, or `None` if there is none any more.
pub type Change<A> = (Prefix<A>, Option<AdjacencyIndex>);

/// The most addresses that callers put in one batch; longer slices work and are cut into batches.
pub const BATCH_MAX: usize = 256;

/// From so many lookups on a batch is faster than one lookup after the other.
pub(crate) const BATCH_MIN: usize = 8;

/// Calls `lookup` for one batch after the other, so that a handle can let go of its table in between.
#[inline(always)]
pub(crate) fn in_batches<A>(
    mut addresses: &[A],
    mut results: &mut [AdjacencyIndex],
    mut lookup: impl FnMut(&[A], &mut [AdjacencyIndex]),
) {
    while addresses.len() > BATCH_MAX && results.len() > BATCH_MAX {
        let (some, found);
        (some, addresses) = addresses.split_at(BATCH_MAX);
        (found, results) = results.split_at_mut(BATCH_MAX);
        lookup(some, found);
    }
    lookup(addresses, results);
}

/// Longest-prefix match, as the packet path sees it.
///
/// Nothing here allocates, blocks or fails.
pub trait Lookup<A: Address> {
    /// The adjacency of the longest prefix that contains `address`, or [`MISS`].
    fn lookup(&self, address: A) -> AdjacencyIndex;

    /// Looks up `addresses[i]` into `results[i]`; the shorter slice decides how many.
    ///
    /// The main interface: implementations interleave the lookups so that their cache misses overlap.
    fn lookup_batch(&self, addresses: &[A], results: &mut [AdjacencyIndex]) {
        for (result, &address) in results.iter_mut().zip(addresses) {
            *result = self.lookup(address);
        }
    }

    /// Memory the lookup structure occupies, in bytes, without the writer's own route list.
    fn bytes(&self) -> usize;
}
