//! Routing tables in the intermediate representation.

use super::family::Family;
use super::hops::View;
use causeway_engine::ir::{Builder, Program, Table};
use causeway_fib::{Address, AdjacencyIndex, Lookup, MISS};

/// A routing table in programs: finds the output, and the destination annotation that the packet gets.
pub(crate) struct RouteLookup<A> {
    pub reader: Box<dyn BatchLookup<A>>,
    pub hops: View<A>,
}

/// Looks up batches; what is called once a batch may be called through a table of functions.
pub(crate) trait BatchLookup<A>: Send {
    /// As [`Lookup::lookup_batch`].
    fn lookup_batch(&self, addresses: &[A], results: &mut [AdjacencyIndex]);
}

impl<A: Address, R: Lookup<A> + Send> BatchLookup<A> for R {
    fn lookup_batch(&self, addresses: &[A], results: &mut [AdjacencyIndex]) {
        Lookup::lookup_batch(self, addresses, results);
    }
}

impl<A: Family> RouteLookup<A> {
    /// The program of an element that sends packets by this table. Packets without route are given up.
    pub fn program(self) -> Option<Program> {
        let mut b = Builder::new();
        let key = A::lower_destination(&mut b);
        let [port, high, low] = b.look_up(Box::new(self), key);
        A::lower_set_destination(&mut b, [high, low]);
        b.leave_by(port);
        b.finish()
    }
}

impl<A: Family> Table for RouteLookup<A> {
    fn look_up(&mut self, key: [u64; 2], _now_ns: u64) -> Option<[u64; 3]> {
        let mut found = [MISS];
        let destination = A::from_words(key);
        self.reader.lookup_batch(&[destination], &mut found);
        let hop = self.hops.current().get((found[0] as usize).wrapping_sub(1))?;
        let next = if hop.gateway == A::ZERO { destination } else { hop.gateway };
        let [first, second] = next.to_words();
        Some([hop.port.into(), first, second])
    }
}
