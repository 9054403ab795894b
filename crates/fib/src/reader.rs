//! A worker's handle of a structure that its owner changes at the same time.

use std::sync::Arc;

use crate::address::Address;
use crate::epoch::{Domain, Participant};
use crate::table::{AdjacencyIndex, Lookup, in_batches};

/// Looks up in the shared part `C` of a structure: wait-free, one per thread, cheap to clone.
///
/// Each call announces itself for its own length, which costs about as much as one lookup; batches share it. A long
/// call announces itself anew every [`BATCH_MAX`](crate::BATCH_MAX) lookups, so that it holds no memory back for longer than a batch.
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
        in_batches(addresses, results, |addresses, results| {
            let _pinned = self.participant.pin();
            self.core.lookup_batch(addresses, results);
        });
    }

    fn bytes(&self) -> usize {
        self.core.bytes()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::compact16::Compact16;
    use crate::directory6::Lines6;
    use crate::error::FibError;
    use crate::fib::{Fib, Shared};
    use crate::prefix::Prefix;
    use crate::rank24::Rank24;
    use crate::table::{BATCH_MAX, MISS, Structure, Table};
    use std::sync::Mutex;

    /// Changes a table under a reader that stands still until there is no room, and then lets the reader go on.
    fn stalls<A: Address, C: Lookup<A>>(structure: impl Shared<A, Reader = Reader<C>>, prefix: Prefix<A>) {
        let mut fib = Fib::with_structure(structure);
        let reader = fib.reader();
        fib.insert(prefix, 1).unwrap();
        let stalled = reader.participant.pin();
        let refused = (0..).find_map(|n| Some((n, fib.replace(prefix, 2 + n % 2).err()?)));
        let Some((n, error)) = refused else { unreachable!("an endless search") };
        assert_eq!(error, FibError::Busy, "after {n} changes");
        assert_eq!(fib.replace(prefix, 4), Err(FibError::Busy), "nothing has moved");
        assert_eq!(reader.lookup(prefix.first()), 2 + (n + 1) % 2, "as it was before the change refused");
        drop(stalled);
        fib.replace(prefix, 4).unwrap();
        assert_eq!(reader.lookup(prefix.first()), 4);
    }

    #[test]
    fn a_change_that_waits_for_a_reader_may_be_tried_again() {
        stalls(Rank24::with_capacity(100).unwrap(), "10.1.2.0/24".parse().unwrap());
        stalls(Compact16::empty().unwrap(), "10.1.2.0/24".parse().unwrap());
        stalls(Lines6::with_capacity(100).unwrap(), "2001:db8:1::/48".parse().unwrap());
    }

    /// Routes that many changes have left no room for, though they fit.
    fn holes<A: Address>(structure: impl Structure<A>, small: &[Prefix<A>], large: &[Prefix<A>]) {
        let mut fib = Fib::with_structure(structure);
        let full = small.iter().find_map(|&prefix| fib.insert(prefix, 1).err());
        assert_eq!(full, Some(FibError::Full), "{} routes fit", small.len());
        let every_second: Vec<_> = fib.rib().iter().step_by(2).collect();
        every_second.into_iter().for_each(|(prefix, _)| drop(fib.withdraw(prefix)));
        let one_large: Vec<_> = large.iter().copied().zip((1..3).cycle()).collect();
        let refused = one_large.iter().find_map(|&(prefix, adjacency)| fib.replace(prefix, adjacency).err());
        assert_eq!(refused, Some(FibError::Full), "large pieces fit into small holes");
        let wanted: Vec<_> = fib.rib().iter().chain(one_large).collect();
        fib.load(&[]).unwrap();
        fib.load(&wanted).unwrap();
        assert!(wanted.iter().all(|&(prefix, adjacency)| fib.lookup(prefix.first()) == adjacency));
    }

    #[test]
    fn what_many_changes_left_no_room_for_fits_a_table_loaded_anew() {
        let small: Vec<Prefix<u32>> = (0..60).map(|n| Prefix::truncated(n << 13 | 1 << 8, 24)).collect();
        let large: Vec<Prefix<u32>> = (0..31).map(|n| Prefix::truncated(200 << 13 | n << 8, 24)).collect();
        holes(Rank24::with_capacity(100).unwrap(), &small, &large);
        let small: Vec<Prefix<u128>> = (1..120).map(|n| Prefix::truncated(n << 112 | 1 << 80, 48)).collect();
        let large: Vec<Prefix<u128>> =
            (0..64).map(|n| Prefix::truncated(0x2001 << 112 | n << 80, 48)).collect();
        holes(Lines6::with_capacity(100).unwrap(), &small, &large);
    }

    /// A core that lets its writer ask what readers hold back, at every call.
    struct Probe {
        domain: Arc<Domain>,
        stamps: Mutex<Vec<u64>>,
    }

    impl Lookup<u32> for Probe {
        fn lookup(&self, _address: u32) -> AdjacencyIndex {
            MISS
        }

        fn lookup_batch(&self, addresses: &[u32], results: &mut [AdjacencyIndex]) {
            assert!(addresses.len() <= BATCH_MAX && addresses.len() == results.len());
            let mut stamps = self.stamps.lock().unwrap();
            let oldest = self.domain.oldest();
            assert!(stamps.iter().all(|&stamp| stamp < oldest), "an earlier batch holds {stamps:?} back");
            stamps.push(self.domain.stamp());
            assert!(self.domain.oldest() <= stamps[stamps.len() - 1], "this batch announces nothing");
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    #[test]
    fn a_long_call_holds_memory_back_for_a_batch_only() {
        let domain = Domain::new();
        let probe = Arc::new(Probe { domain: domain.clone(), stamps: Mutex::default() });
        let reader = Reader::new(&probe, &domain);
        let length = 3 * BATCH_MAX + 7;
        reader.lookup_batch(&vec![0; length], &mut vec![MISS; length]);
        assert_eq!(probe.stamps.lock().unwrap().len(), 4);
    }
}
