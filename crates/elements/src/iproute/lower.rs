//! Routing tables in the intermediate representation.

use super::family::Family;
use super::hops::{self, Hop};
use causeway_engine::ir::{Builder, Key, Program, Table};
use causeway_fib::{
    Address, AdjacencyIndex, AdjacencyReader, Handle, Lookup, MISS, Participant, Pinned, Reader,
};

/// A routing table in programs: finds the output, and the destination annotation that the packet gets.
pub(crate) struct RouteLookup<A> {
    pub reader: Box<dyn BatchLookup<A>>,
    pub hops: AdjacencyReader<Hop<A>>,
    /// Announces a reader of both.
    pub participant: Participant,
}

/// Looks up batches; what is called once a batch may be called through a table of functions.
pub(crate) trait BatchLookup<A>: Send {
    /// As [`Lookup::lookup_batch`], under an announcement.
    fn look_up(&self, round: &Pinned<'_>, addresses: &[A], results: &mut [AdjacencyIndex]);
}

impl<A: Address, H: Handle<A>> BatchLookup<A> for Reader<H> {
    fn look_up(&self, round: &Pinned<'_>, addresses: &[A], results: &mut [AdjacencyIndex]) {
        if let Some(table) = self.under(round) {
            table.lookup_batch(addresses, results);
        }
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
    fn look_up(&mut self, [first, second, ..]: Key<u64>, _now_ns: u64) -> Option<[u64; 3]> {
        let round = self.participant.pin();
        let mut found = [MISS];
        let destination = A::from_words([first, second]);
        self.reader.look_up(&round, &[destination], &mut found);
        let view = self.hops.under(&round);
        let hop = hops::hop(&view, found[0])?;
        let [first, second] = hop.next(destination).to_words();
        Some([hop.port.into(), first, second])
    }
}
