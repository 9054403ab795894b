//! A worker's handle of a structure that its owner changes at the same time.

use std::sync::Arc;

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup, MISS, in_batches};
use crate::sync::epoch::{Domain, Participant, Pinned};
use crate::table::Structure;

/// The way to what lookups walk. Threads share it; to look they need an announcement.
pub trait Handle<A: Address>: Clone + Send + Sync + 'static {
    /// What is looked at.
    type Table: Lookup<A>;

    /// The domain that an announcement has to be made in.
    fn domain(&self) -> &Domain;

    /// The table, for as long as the announcement stands. None if it is made in another domain.
    fn under<'a>(&'a self, pinned: &'a Pinned<'_>) -> Option<&'a Self::Table>;
}

/// A structure whose lookups may run on other threads while its owner changes it.
pub trait Shared<A: Address>: Structure<A> {
    /// The way that workers take to it.
    type Handle: Handle<A>;

    /// An empty structure that is read under the announcements of a domain.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    fn in_domain(domain: &Domain) -> Result<Self, FibError>
    where
        Self: Sized;

    /// The way to this structure.
    fn handle(&self) -> Self::Handle;
}

/// The way to a structure whose owner changes it in place.
#[derive(Debug)]
pub struct InPlace<C> {
    core: Arc<C>,
    domain: Domain,
}

impl<C> Clone for InPlace<C> {
    fn clone(&self) -> Self {
        InPlace { core: self.core.clone(), domain: self.domain.clone() }
    }
}

impl<C> InPlace<C> {
    pub(crate) fn new(core: &Arc<C>, domain: &Domain) -> Self {
        InPlace { core: core.clone(), domain: domain.clone() }
    }
}

impl<A: Address, C: Lookup<A> + Send + Sync + 'static> Handle<A> for InPlace<C> {
    type Table = C;

    fn domain(&self) -> &Domain {
        &self.domain
    }

    #[inline]
    fn under<'a>(&'a self, pinned: &'a Pinned<'_>) -> Option<&'a C> {
        pinned.is_in(&self.domain).then_some(&self.core)
    }
}

/// Looks up by a [`Handle`]: wait-free, one per thread, cheap to clone.
///
/// Each call announces itself for its own length, which costs about as much as one lookup; batches share it. A long
/// call announces itself anew every [`BATCH_MAX`](crate::BATCH_MAX) lookups, so that it holds no memory back for longer
/// than a batch. Who looks at several tables announces himself once, and looks at each [`under`](Self::under) that.
#[derive(Clone, Debug)]
pub struct Reader<H> {
    handle: H,
    participant: Participant,
}

impl<H> Reader<H> {
    /// A reader of its own.
    pub fn new<A: Address>(handle: H) -> Self
    where
        H: Handle<A>,
    {
        let participant = handle.domain().participant();
        Reader { handle, participant }
    }

    /// The domain that announcements have to be made in.
    #[must_use]
    pub fn domain<A: Address>(&self) -> &Domain
    where
        H: Handle<A>,
    {
        self.handle.domain()
    }

    /// The table, for as long as an announcement stands that is made already; no other is made. None if that is in
    /// another domain than the table.
    #[inline]
    pub fn under<'a, A: Address>(&'a self, pinned: &'a Pinned<'_>) -> Option<&'a H::Table>
    where
        H: Handle<A>,
    {
        self.handle.under(pinned)
    }
}

impl<A: Address, H: Handle<A>> Lookup<A> for Reader<H> {
    #[inline]
    fn lookup(&self, address: A) -> AdjacencyIndex {
        let pinned = self.participant.pin();
        self.handle.under(&pinned).map_or(MISS, |table| table.lookup(address))
    }

    #[inline]
    fn lookup_batch(&self, addresses: &[A], results: &mut [AdjacencyIndex]) {
        in_batches(addresses, results, |addresses, results| {
            let pinned = self.participant.pin();
            if let Some(table) = self.handle.under(&pinned) {
                table.lookup_batch(addresses, results);
            }
        });
    }

    fn bytes(&self) -> usize {
        self.handle.under(&self.participant.pin()).map_or(0, Lookup::bytes)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::FibError;
    use crate::fib::Fib;
    use crate::lookup::{BATCH_MAX, MISS};
    use crate::prefix::Prefix;
    use crate::table::{Structure, Table};
    use crate::v4::compact16::Compact16;
    use crate::v4::rank24::Rank24;
    use crate::v6::lines6::Lines6;
    use std::sync::Mutex;

    /// Changes a table under a reader that stands still until there is no room, and then lets the reader go on.
    fn stalls<A: Address>(structure: impl Shared<A>, prefix: Prefix<A>) {
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
        domain: Domain,
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
    fn one_announcement_serves_all_tables_of_a_domain() {
        let domain = Domain::new();
        let mut four = Fib::<u32, Rank24>::in_domain(&domain).unwrap();
        let mut six = Fib::<u128, Lines6>::in_domain(&domain).unwrap();
        four.insert(Prefix::DEFAULT, 4).unwrap();
        six.insert(Prefix::DEFAULT, 6).unwrap();
        let (of_four, of_six, elsewhere) =
            (four.reader(), six.reader(), Fib::<u32, Rank24>::new().unwrap().reader());
        let worker = domain.participant();
        let round = worker.pin();
        let before = domain.stamp();
        assert_eq!(of_four.under(&round).map(|table| table.lookup(1)), Some(4));
        assert_eq!(of_six.under(&round).map(|table| table.lookup(1)), Some(6));
        assert!(elsewhere.under(&round).is_none(), "another domain");
        assert!(domain.oldest() <= before, "the round holds back what was there");
        drop(round);
        assert_eq!(domain.oldest(), u64::MAX, "the readers announced nothing");
    }

    #[test]
    fn a_long_call_holds_memory_back_for_a_batch_only() {
        let domain = Domain::new();
        let probe = Arc::new(Probe { domain: domain.clone(), stamps: Mutex::default() });
        let reader = Reader::new(InPlace::new(&probe, &domain));
        let length = 3 * BATCH_MAX + 7;
        reader.lookup_batch(&vec![0; length], &mut vec![MISS; length]);
        assert_eq!(probe.stamps.lock().unwrap().len(), 4);
    }
}
