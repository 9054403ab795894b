//! When may memory that readers could still be looking at be used again?
//!
//! Epoch-based reclamation for one writer and any number of readers. A reader announces the epoch it saw for the
//! length of a batch ([`Participant::pin`]); the writer takes something out of sight, stamps it with the epoch
//! and moves the epoch on ([`Domain::stamp`]); it reuses what is stamped before the oldest epoch announced
//! ([`Domain::oldest`]). Readers only ever store to their own cache line, so they wait for nobody; an idle reader
//! announces nothing and holds nothing back.

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering, fence},
};
use std::cell::Cell;
use std::sync::{Arc, PoisonError};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering, fence},
};

use crate::error::FibError;

/// The announcement of an idle reader.
const IDLE: u64 = 0;
/// The last announcement of a reader whose handle went away.
const GONE: u64 = u64::MAX;

/// A moment in a domain ([`Domain::moment`]).
#[derive(Clone, Copy, Debug)]
pub struct Moment(u64);

/// One reader's announcement, on a cache line of its own.
#[repr(align(128))]
#[derive(Debug)]
struct Slot(AtomicU64);

/// The epoch counter and the readers' announcements, shared by all clones.
///
/// Tables that are made in one domain are read under one announcement: a worker pins its [`Participant`] once a round
/// and looks at each table [`under`](crate::Reader::under) that.
#[derive(Clone, Debug)]
pub struct Domain(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    epoch: AtomicU64,
    slots: Mutex<Vec<Arc<Slot>>>,
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl Domain {
    /// A domain without readers.
    #[must_use]
    pub fn new() -> Self {
        Domain(Arc::new(Shared { epoch: AtomicU64::new(IDLE + 1), slots: Mutex::new(Vec::new()) }))
    }

    /// Registers a reader. Control path: takes a lock that only registration and the writer's scan share.
    #[must_use]
    pub fn participant(&self) -> Participant {
        let slot = Arc::new(Slot(AtomicU64::new(IDLE)));
        self.slots().push(slot.clone());
        Participant { domain: self.clone(), slot, depth: Cell::new(0) }
    }

    /// An announcement for readers that are no threads of this process, which stands until it is dropped.
    #[must_use]
    pub fn stand(&self) -> Standing {
        let participant = self.participant();
        std::mem::forget(participant.pin());
        Standing(participant)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "taken where readers come and go and by writers; to pin takes no lock"
    )]
    fn slots(&self) -> MutexGuard<'_, Vec<Arc<Slot>>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the current epoch; everything taken out of sight before this call gets the returned stamp.
    pub(crate) fn stamp(&self) -> u64 {
        // Release: a reader that announces the next epoch has seen what was unpublished before.
        self.0.epoch.fetch_add(1, Ordering::AcqRel)
    }

    /// A moment, for [`Domain::has_outlasted`].
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment(self.stamp())
    }

    /// Whether no announcement stands any more that was made before a moment. All that are made later see what the caller has
    /// stored before this call.
    #[must_use]
    pub fn has_outlasted(&self, moment: Moment) -> bool {
        self.oldest() > moment.0
    }

    /// What carries a smaller stamp than this, no reader can see.
    pub(crate) fn oldest(&self) -> u64 {
        // Pairs with the fence in `pin`: either this scan sees a reader's announcement, or that reader sees
        // everything that was unpublished before this call.
        fence(Ordering::SeqCst);
        let mut oldest = u64::MAX;
        self.slots().retain(|slot| {
            let epoch = slot.0.load(Ordering::Acquire);
            if epoch != IDLE {
                oldest = oldest.min(epoch);
            }
            epoch != GONE
        });
        oldest
    }
}

/// A reader's side, used by one thread at a time (`Send`, not `Sync`). A clone announces for itself.
#[derive(Debug)]
pub struct Participant {
    domain: Domain,
    slot: Arc<Slot>,
    depth: Cell<u32>,
}

impl Clone for Participant {
    fn clone(&self) -> Self {
        self.domain.participant()
    }
}

impl Participant {
    /// Announces this reader: what is visible from now on is not used again until the last guard is dropped. Wait-free;
    /// under an announcement that stands already it costs next to nothing. Memory that writers replace piles up as long
    /// as it stands, so it should stand for a round of work and not longer.
    #[inline]
    #[must_use]
    pub fn pin(&self) -> Pinned<'_> {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0 {
            let epoch = self.domain.0.epoch.load(Ordering::Acquire);
            // Release: the writer may meet this announcement without ever having met the idle one before it, and
            // takes from it that this reader is done with what it read under the pin before.
            self.slot.0.store(epoch, Ordering::Release);
            fence(Ordering::SeqCst);
        }
        Pinned(self)
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.slot.0.store(GONE, Ordering::Release);
    }
}

/// Proof that a reader's announcement stands.
#[derive(Debug)]
pub struct Pinned<'a>(&'a Participant);

impl Pinned<'_> {
    /// Whether the announcement is made in a domain.
    #[inline]
    pub(crate) fn is_in(&self, domain: &Domain) -> bool {
        Arc::ptr_eq(&self.0.domain.0, &domain.0)
    }
}

impl Drop for Pinned<'_> {
    #[inline]
    fn drop(&mut self) {
        let depth = self.0.depth.get() - 1;
        self.0.depth.set(depth);
        if depth == 0 {
            self.0.slot.0.store(IDLE, Ordering::Release);
        }
    }
}

/// An announcement that stands by itself ([`Domain::stand`]), such as for programs in the kernel that read a table's region.
///
/// It holds back what is replaced while it stands. So whoever answers for such readers makes a new one, waits until all are
/// done that began before that, and drops the old one: those that began since see nothing that was replaced before, and the
/// new one holds back the rest.
#[derive(Debug)]
pub struct Standing(#[expect(dead_code, reason = "its announcement ends with it")] Participant);

/// Things out of sight that wait for the readers to move on, oldest first.
#[derive(Debug)]
pub(crate) struct Limbo<T> {
    waiting: std::collections::VecDeque<(u64, T)>,
}

impl<T> Limbo<T> {
    /// How many wait before the readers are asked: asking costs a fence and a scan.
    const SCAN_EVERY: usize = 64;

    pub(crate) fn new() -> Self {
        Limbo { waiting: std::collections::VecDeque::new() }
    }

    /// Adds things that were taken out of sight just now.
    pub(crate) fn retire(&mut self, domain: &Domain, things: impl IntoIterator<Item = T>) {
        let mut things = things.into_iter().peekable();
        if things.peek().is_some() {
            let stamp = domain.stamp();
            self.waiting.extend(things.map(|thing| (stamp, thing)));
        }
    }

    /// Everything that waits, for an owner that goes away before its readers do.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.waiting.drain(..).map(|(_, thing)| thing)
    }

    /// How many things wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes that what waits takes.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(u64, T)>()
    }

    /// Why there is no room for a change after everything was reclaimed that could be.
    pub(crate) fn refusal(&self) -> FibError {
        if self.waiting.is_empty() { FibError::Full } else { FibError::Busy }
    }

    /// Hands back what no reader can see, if enough waits to be worth asking or `now` is set.
    pub(crate) fn reclaim(&mut self, domain: &Domain, now: bool, mut free: impl FnMut(T)) {
        if self.waiting.is_empty() || (!now && self.waiting.len() < Self::SCAN_EVERY) {
            return;
        }
        let oldest = domain.oldest();
        while let Some((stamp, thing)) = self.waiting.pop_front() {
            if stamp >= oldest {
                self.waiting.push_front((stamp, thing));
                break;
            }
            free(thing);
        }
        // Of a whole table that was replaced once.
        let most = 16 * Self::SCAN_EVERY.max(self.waiting.len());
        if self.waiting.capacity() > most {
            self.waiting.shrink_to(most / 4);
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    /// Two cells of plain memory, and which of them is in sight.
    struct Table {
        entry: AtomicUsize,
        cells: [UnsafeCell<usize>; 2],
    }

    // SAFETY: epochs keep readers and the writer of a cell apart, which is what loom checks here.
    unsafe impl Sync for Table {}

    impl Table {
        fn write(&self, cell: usize, value: usize) {
            // SAFETY: loom panics if anyone reads or writes the cell at the same time.
            self.cells[cell].with_mut(|place| unsafe { *place = value });
        }

        fn read(&self) {
            let cell = self.entry.load(Ordering::Acquire);
            // SAFETY: as above.
            let value = self.cells[cell].with(|place| unsafe { *place });
            assert_eq!(value, 10 + cell, "a cell that was out of sight");
        }
    }

    /// The writer moves the entry to the other cell and reuses the one it left, as the tables reuse leaves. Readers
    /// look twice, so that the writer may meet the announcement of the second look and none of the pause between.
    fn readers_never_see_a_cell_reused(readers: usize, preemptions: Option<usize>) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = preemptions;
        model.check(move || {
            let domain = Domain::new();
            let cells = [UnsafeCell::new(10), UnsafeCell::new(0)];
            let table = Arc::new(Table { entry: AtomicUsize::new(0), cells });
            let read = |_| {
                let (reader, table) = (domain.participant(), table.clone());
                thread::spawn(move || {
                    (0..2).for_each(|_| {
                        let _pinned = reader.pin();
                        table.read();
                    });
                })
            };
            let threads: Vec<_> = (0..readers).map(read).collect();
            let mut limbo = Limbo::new();
            table.write(1, 11);
            table.entry.store(1, Ordering::Release);
            limbo.retire(&domain, [0]);
            limbo.reclaim(&domain, true, |cell| table.write(cell, 99));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            limbo.reclaim(&domain, true, |cell| table.write(cell, 99));
            assert!(limbo.waiting.is_empty(), "nothing waits once the readers are idle");
        });
    }

    #[test]
    fn a_reader_never_sees_a_cell_reused() {
        readers_never_see_a_cell_reused(1, None);
    }

    #[test]
    fn two_readers_never_see_a_cell_reused() {
        readers_never_see_a_cell_reused(2, Some(3));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_reader_holds_back_only_what_came_after_its_pin() {
        let domain = Domain::new();
        let reader = domain.participant();
        let mut limbo = Limbo::new();
        limbo.retire(&domain, ["before"]);
        let pinned = reader.pin();
        limbo.retire(&domain, ["during"]);
        let mut freed = Vec::new();
        limbo.reclaim(&domain, true, |thing| freed.push(thing));
        assert_eq!(freed, ["before"]);
        drop(pinned);
        limbo.reclaim(&domain, true, |thing| freed.push(thing));
        assert_eq!(freed, ["before", "during"]);
    }

    #[test]
    fn an_announcement_that_stands_holds_back_until_it_is_replaced() {
        let domain = Domain::new();
        let (mut limbo, mut freed) = (Limbo::new(), Vec::new());
        let first = domain.stand();
        limbo.retire(&domain, ["first"]);
        let second = domain.stand();
        limbo.retire(&domain, ["second"]);
        limbo.reclaim(&domain, true, |thing| freed.push(thing));
        assert_eq!(freed, [""; 0]);
        drop(first);
        limbo.reclaim(&domain, true, |thing| freed.push(thing));
        assert_eq!(freed, ["first"]);
        drop(second);
        limbo.reclaim(&domain, true, |thing| freed.push(thing));
        assert_eq!(freed, ["first", "second"]);
    }

    #[test]
    fn a_moment_is_outlasted_by_what_is_announced_after_it() {
        let domain = Domain::new();
        let (first, second) = (domain.participant(), domain.participant());
        let before = first.pin();
        let moment = domain.moment();
        let _after = second.pin();
        assert!(!domain.has_outlasted(moment));
        drop(before);
        assert!(domain.has_outlasted(moment));
        let _again = first.pin();
        assert!(domain.has_outlasted(moment) && !domain.has_outlasted(domain.moment()));
    }

    #[test]
    fn nested_pins_end_with_the_outermost() {
        let domain = Domain::new();
        let reader = domain.participant();
        let outer = reader.pin();
        drop(reader.pin());
        let stamp = domain.stamp();
        assert!(domain.oldest() <= stamp);
        drop(outer);
        assert!(domain.oldest() > stamp);
        drop(reader);
        assert_eq!(domain.oldest(), u64::MAX);
    }
}
