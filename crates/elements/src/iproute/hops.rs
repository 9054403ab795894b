//! Next hops: the pairs of gateway and output that routes share.
//!
//! The lookup structure maps a prefix to the index of a hop. Routes to the same gateway and output share one, so the
//! table holds few distinct values and compresses well. A worker announces itself once for the table and the hops, so
//! that an index that it found leads where its route led for as long as the batch takes.

use super::family::Family;
use causeway_fib::{Adjacencies, AdjacencyIndex, AdjacencyView};

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hop<A> {
    /// Gateway, or zero when the destination is on the link.
    pub gateway: A,
    /// Output of the element.
    pub port: u16,
}

impl<A: Family> Hop<A> {
    /// Where packets to a destination go next.
    #[inline]
    pub fn next(&self, destination: A) -> A {
        if self.gateway == A::ZERO { destination } else { self.gateway }
    }
}

/// The control side's hops.
pub(crate) type Hops<A> = Adjacencies<Hop<A>>;

/// `OUTPUT [GATEWAY]` for the hop that an index leads to, or -1.
pub(crate) fn text<A: Family>(hops: &Hops<A>, index: AdjacencyIndex) -> String {
    match hops.next_hop(index) {
        Some(hop) if hop.gateway != A::ZERO => format!("{} {}", hop.port, hop.gateway.to_text()),
        Some(hop) => hop.port.to_string(),
        None => "-1".to_owned(),
    }
}

/// The hop that an index leads to, which a lookup gave under the same announcement.
#[inline]
pub(crate) fn hop<'v, A>(hops: &'v AdjacencyView<'_, Hop<A>>, index: AdjacencyIndex) -> Option<&'v Hop<A>> {
    // The routes here lead to one hop each.
    hops.resolve(index, 0)
}
