//! Any structure, made readable by other threads while its owner changes it.
//!
//! Two copies (left-right; Ramalhete and Correia, 2015): readers look up in the visible one, the writer changes the
//! hidden one, makes it visible by one store, and brings the copy it took out of sight in step at its next change,
//! when the readers have moved on. So a lookup sees the whole of a change or nothing of it, a change costs twice what
//! the structure alone asks for, and memory doubles with the first change after a load. The default tables do without
//! a second copy; this is for the structures that they are compared with.

use std::sync::Arc;

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Lookup, in_batches};
use crate::prefix::Prefix;
use crate::reader::Handle;
use crate::reader::Shared;
use crate::rib::Rib;
use crate::sync::cells::{Cells, Retired};
use crate::sync::epoch::{Domain, Limbo, Participant, Pinned};
use crate::table::Structure;

/// Two copies of `S`; see the module.
#[derive(Debug)]
pub struct LeftRight<A: Address, S> {
    visible: Arc<Cells<S>>,
    /// The writer's own, through which it sees what readers see.
    participant: Participant,
    /// None after a load and after a refused change: the next change starts from a clone of the visible copy.
    hidden: Option<Hidden<A, S>>,
    /// Copies that were given up while readers held them.
    limbo: Limbo<Retired<S>>,
}

/// The copy out of sight, with readers until its stamp has passed.
#[derive(Debug)]
struct Hidden<A: Address, S> {
    copy: Retired<S>,
    stamp: u64,
    /// What it lacks that the visible one has; all if nothing is said.
    behind: Option<Vec<Prefix<A>>>,
}

/// How often the readers are asked before the processor is given to others: about as long as a batch in the slowest
/// of the structures takes, and less than it takes to get the processor back from a busy machine.
const TRIES: u32 = if cfg!(loom) { 0 } else { 4096 };
/// How often the processor is given to others before a reader counts as stopped.
const PAUSES: u32 = if cfg!(loom) { u32::MAX } else { 200 };

#[cfg(loom)]
fn pause() {
    loom::thread::yield_now();
}

#[cfg(not(loom))]
#[expect(clippy::disallowed_methods, reason = "the writer waits for readers, and no reader for it")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_micros(100));
}

/// Copies that wait for a reader before a withdrawal makes do without a further one.
#[cfg(not(loom))]
const COPIES_MAX: usize = 4;
#[cfg(loom)]
const COPIES_MAX: usize = 1;

/// Waits until no reader sees what was taken out of sight before `stamp`: a reader is pinned for a batch at most, unless
/// it does not run at all. Says whether it was worth while.
fn wait(domain: &Domain, stamp: u64) -> bool {
    let is_over = || domain.oldest() > stamp;
    let spun = (0..TRIES).any(|_| {
        std::hint::spin_loop();
        is_over()
    });
    spun || (0..PAUSES).any(|_| {
        let is_over = is_over();
        if !is_over {
            pause();
        }
        is_over
    })
}

impl<A: Address, S: Structure<A> + Clone + Send + Sync> LeftRight<A, S> {
    /// Starts with `structure`, which may have been made with parameters of its own.
    #[must_use]
    pub fn new(structure: S) -> Self {
        Self::with(structure, &Domain::new())
    }

    fn with(structure: S, domain: &Domain) -> Self {
        let visible = Cells::empty(1, domain);
        visible.swap(0, Some(Box::new(structure)));
        LeftRight {
            visible: Arc::new(visible),
            participant: domain.participant(),
            hidden: None,
            limbo: Limbo::new(),
        }
    }

    fn look<R>(&self, at: impl FnOnce(&S) -> R) -> R {
        let pinned = self.participant.pin();
        at(self.visible.get(0, &pinned).expect("a copy is visible from the beginning on"))
    }

    /// A copy that nobody sees, in step with `rib` but for the change under way. [`FibError::Busy`] if a reader holds it.
    fn take_hidden(&mut self, rib: &Rib<A>) -> Result<Box<S>, FibError> {
        if self.hidden.as_ref().is_some_and(|hidden| !wait(self.visible.domain(), hidden.stamp)) {
            return Err(FibError::Busy);
        }
        if let Some(Hidden { copy, behind, .. }) = self.hidden.take() {
            // SAFETY: the readers that could see the copy have moved on.
            let mut copy = unsafe { copy.reuse() };
            if let Some(behind) = behind
                && copy.update(rib, &behind).is_ok()
            {
                return Ok(copy);
            }
        }
        Ok(Box::new(self.look(S::clone)))
    }

    /// Makes `copy` visible and keeps the one before.
    fn publish(&mut self, copy: Box<S>, behind: Option<Vec<Prefix<A>>>) {
        let old = self.visible.swap(0, Some(copy));
        let stamp = self.visible.domain().stamp();
        self.hidden = old.map(|copy| Hidden { copy, stamp, behind });
    }

    /// Frees the copies given up that nobody sees any more.
    fn reclaim(&mut self) {
        // SAFETY: `reclaim` hands out only what no reader of this domain can see.
        self.limbo.reclaim(self.visible.domain(), true, |copy| unsafe { copy.free() });
    }

    /// Frees the hidden copy if nobody sees it any more.
    fn free_hidden(&mut self) {
        let gone = self.hidden.take_if(|hidden| wait(self.visible.domain(), hidden.stamp));
        if let Some(Hidden { copy, .. }) = gone {
            // SAFETY: the readers that could see the copy have moved on.
            unsafe { copy.free() };
        }
    }
}

impl<A: Address, S> Drop for LeftRight<A, S> {
    fn drop(&mut self) {
        let hidden = self.hidden.take().map(|hidden| hidden.copy);
        self.visible.leave(self.limbo.drain().chain(hidden));
    }
}

impl<A: Address, S: Structure<A> + Clone + Send + Sync> Structure<A> for LeftRight<A, S> {
    const NAME: &'static str = S::NAME;
    const ADJACENCY_MAX: AdjacencyIndex = S::ADJACENCY_MAX;

    fn empty() -> Result<Self, FibError> {
        S::empty().map(Self::new)
    }

    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<(), FibError> {
        self.reclaim();
        let mut copy = self.take_hidden(rib)?;
        copy.update(rib, changed)?;
        self.publish(copy, Some(changed.to_vec()));
        Ok(())
    }

    fn rebuild(&mut self, rib: &Rib<A>) -> Result<(), FibError> {
        let mut copy = self.take_hidden(rib)?;
        copy.rebuild(rib)?;
        self.publish(copy, None);
        self.free_hidden();
        Ok(())
    }

    fn forget(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Vec<Prefix<A>> {
        self.limbo.retire(self.visible.domain(), self.hidden.take().map(|hidden| hidden.copy));
        self.reclaim();
        let mut copy = Box::new(self.look(S::clone));
        let everywhere = changed == [Prefix::DEFAULT];
        let done = match self.limbo.len() {
            // The copy that is published takes another out of sight.
            COPIES_MAX.. => Err(FibError::Busy),
            _ if everywhere => copy.rebuild(rib),
            _ => copy.update(rib, changed),
        };
        let ranges = if done.is_ok() { Vec::new() } else { copy.forget(rib, changed) };
        self.publish(copy, None);
        ranges
    }
}

impl<A: Address, S: Structure<A> + Clone + Send + Sync> Lookup<A> for LeftRight<A, S> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        self.look(|copy| copy.lookup(address))
    }

    fn lookup_batch(&self, addresses: &[A], results: &mut [AdjacencyIndex]) {
        in_batches(addresses, results, |addresses, results| {
            self.look(|copy| copy.lookup_batch(addresses, results));
        });
    }

    fn bytes(&self) -> usize {
        self.look(S::bytes) * (1 + usize::from(self.hidden.is_some()))
    }
}

impl<A: Address, S: Structure<A> + Clone + Send + Sync + 'static> Shared<A> for LeftRight<A, S> {
    type Handle = InTwo<S>;

    fn in_domain(domain: &Domain) -> Result<Self, FibError> {
        S::empty().map(|structure| Self::with(structure, domain))
    }

    fn handle(&self) -> InTwo<S> {
        InTwo(self.visible.clone())
    }
}

/// The way to the visible copy of a [`LeftRight`].
#[derive(Debug)]
pub struct InTwo<S>(Arc<Cells<S>>);

impl<S> Clone for InTwo<S> {
    fn clone(&self) -> Self {
        InTwo(self.0.clone())
    }
}

impl<A: Address, S: Lookup<A> + Send + Sync + 'static> Handle<A> for InTwo<S> {
    type Table = S;

    fn domain(&self) -> &Domain {
        self.0.domain()
    }

    #[inline]
    fn under<'a>(&'a self, pinned: &'a Pinned<'_>) -> Option<&'a S> {
        self.0.get(0, pinned)
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::lookup::MISS;
    use crate::reader::Reader;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    /// A structure whose changes are two stores, so that a reader of a copy under change would see them differ.
    struct Halves([AtomicU32; 2]);

    impl Clone for Halves {
        fn clone(&self) -> Self {
            Halves([0, 1].map(|half| AtomicU32::new(self.0[half].load(Ordering::Relaxed))))
        }
    }

    impl Lookup<u32> for Halves {
        fn lookup(&self, _address: u32) -> AdjacencyIndex {
            let [first, second] = [0, 1].map(|half| self.0[half].load(Ordering::Relaxed));
            assert_eq!(first, second, "a change was seen half done");
            first
        }

        fn bytes(&self) -> usize {
            0
        }
    }

    impl Structure<u32> for Halves {
        const NAME: &'static str = "halves";
        const ADJACENCY_MAX: AdjacencyIndex = u32::MAX;

        fn empty() -> Result<Self, FibError> {
            Ok(Halves([0, 1].map(|_| AtomicU32::new(MISS))))
        }

        fn update(&mut self, rib: &Rib<u32>, _changed: &[Prefix<u32>]) -> Result<(), FibError> {
            self.rebuild(rib)
        }

        fn rebuild(&mut self, rib: &Rib<u32>) -> Result<(), FibError> {
            let adjacency = rib.exact(Prefix::DEFAULT).unwrap_or(MISS);
            self.0.iter().for_each(|half| half.store(adjacency, Ordering::Relaxed));
            Ok(())
        }
    }

    #[test]
    fn a_reader_sees_whole_changes_in_order() {
        loom::model(|| {
            let mut rib = Rib::default();
            let mut table = LeftRight::<u32, Halves>::empty().unwrap();
            let reader = Reader::new(table.handle());
            let worker = thread::spawn(move || {
                let first = reader.lookup(0);
                assert!(reader.lookup(0) >= first);
            });
            for adjacency in 1..=2 {
                rib.set(Prefix::DEFAULT, adjacency);
                table.update(&rib, &[Prefix::DEFAULT]).unwrap();
            }
            worker.join().unwrap();
            assert_eq!(table.lookup(0), 2);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::baseline::linear::Linear;
    use crate::fib::Fib;
    use crate::lookup::{BATCH_MAX, MISS};
    use crate::table::Table;
    use proptest::prelude::*;

    /// A list with room for few routes.
    #[derive(Clone)]
    struct Small(Linear<u32>);

    const ROOM: usize = 4;

    impl Lookup<u32> for Small {
        fn lookup(&self, address: u32) -> AdjacencyIndex {
            self.0.lookup(address)
        }

        fn lookup_batch(&self, addresses: &[u32], results: &mut [AdjacencyIndex]) {
            assert!(addresses.len() <= BATCH_MAX, "a reader is pinned for a batch at most");
            self.0.lookup_batch(addresses, results);
        }

        fn bytes(&self) -> usize {
            self.0.bytes()
        }
    }

    impl Structure<u32> for Small {
        const NAME: &'static str = "small";
        const ADJACENCY_MAX: AdjacencyIndex = u32::MAX;

        fn empty() -> Result<Self, FibError> {
            Linear::empty().map(Small)
        }

        fn update(&mut self, rib: &Rib<u32>, changed: &[Prefix<u32>]) -> Result<(), FibError> {
            if rib.len() > ROOM { Err(FibError::Full) } else { self.0.update(rib, changed) }
        }

        fn rebuild(&mut self, rib: &Rib<u32>) -> Result<(), FibError> {
            if rib.len() > ROOM { Err(FibError::Full) } else { self.0.rebuild(rib) }
        }
    }

    #[test]
    fn a_long_call_is_cut_into_batches() {
        let fib = Fib::<u32, LeftRight<u32, Small>>::build(&[(Prefix::DEFAULT, 1)]).unwrap();
        let mut results = vec![0; 2 * BATCH_MAX + 1];
        fib.reader().lookup_batch(&vec![0; results.len()], &mut results);
        assert!(results.iter().all(|&result| result == 1));
    }

    #[test]
    fn a_stopped_reader_stops_no_writer() {
        let mut fib = Fib::<u32, LeftRight<u32, Small>>::build(&[(Prefix::DEFAULT, 1)]).unwrap();
        let reader = fib.reader();
        let stopped = fib.structure().visible.domain().participant();
        let pinned = stopped.pin();
        fib.replace(Prefix::DEFAULT, 2).unwrap();
        assert_eq!(fib.replace(Prefix::DEFAULT, 3), Err(FibError::Busy), "the reader may see the other copy");
        assert_eq!(fib.load(&[(Prefix::DEFAULT, 3)]), Err(FibError::Busy));
        assert_eq!((reader.lookup(0), fib.rib().exact(Prefix::DEFAULT)), (2, Some(2)));
        drop(pinned);
        fib.load(&[(Prefix::DEFAULT, 3)]).unwrap();
        let pinned = stopped.pin();
        fib.load(&[(Prefix::DEFAULT, 4)]).unwrap();
        assert_eq!(reader.lookup(0), 4);
        drop(fib);
        assert_eq!(reader.lookup(0), 4, "what readers see stays with them");
        drop(pinned);
    }

    #[test]
    fn a_reader_that_is_kept_from_running_hides_no_routes() {
        let prefix = |top: u32| Prefix::truncated(top << 24, 8);
        let routes: Vec<_> = (1..9).map(|top| (prefix(top), top)).collect();
        let mut fib = Fib::<u32, LeftRight<u32, Linear<u32>>>::build(&routes).unwrap();
        let reader = fib.reader();
        let stopped = fib.structure().visible.domain().participant();
        let pinned = stopped.pin();
        fib.replace(prefix(1), 9).unwrap();
        assert_eq!(fib.replace(prefix(1), 1), Err(FibError::Busy));
        assert_eq!(fib.withdraw(prefix(2)), Ok(2));
        assert_eq!((1..5).map(|top| reader.lookup(top << 24)).collect::<Vec<_>>(), [9, MISS, 3, 4]);
        assert_eq!(fib.unsettled(), 0);
        // It never runs again: there is an end to the copies, and what is gone is not followed even so.
        for top in 3..8 {
            assert_eq!(fib.withdraw(prefix(top)), Ok(top));
            assert_eq!(reader.lookup(top << 24), MISS);
        }
        assert!(fib.structure().limbo.len() <= COPIES_MAX);
        drop(pinned);
        fib.settle().unwrap();
        assert_eq!((1..9).map(|top| reader.lookup(top << 24)).collect::<Vec<_>>(), [9, 0, 0, 0, 0, 0, 0, 8]);
        fib.withdraw(prefix(8)).unwrap();
        assert_eq!(fib.structure().limbo.len(), 0, "copies are freed when the reader has moved on");
    }

    proptest! {
        #[test]
        fn refused_changes_leave_no_trace(changes in prop::collection::vec((0_u32..8, 0_u32..4), 1..60)) {
            let mut fib = Fib::<u32, LeftRight<u32, Small>>::new().unwrap();
            let reader = fib.reader();
            for (top, adjacency) in changes {
                let prefix = Prefix::truncated(top << 29, 3);
                let room = fib.rib().len() < ROOM || fib.rib().exact(prefix).is_some();
                match adjacency {
                    0 => drop(fib.withdraw(prefix)),
                    _ => prop_assert_eq!(fib.replace(prefix, adjacency).is_ok(), room),
                }
                for top in 0..8 {
                    prop_assert_eq!(reader.lookup(top << 29), fib.rib().lookup(top << 29));
                }
            }
        }
    }
}
