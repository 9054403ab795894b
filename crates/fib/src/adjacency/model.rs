//! An index is never handed out again under a reader that may have met it: every interleaving of a reader that looks
//! up a route and follows it, and the writer that moves the route and gives the index to another next hop.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// A next hop in memory that loom watches: to drop it while a reader looks at it is an error.
struct Watched(u32, UnsafeCell<u32>);

// SAFETY: the cell is written when the value is dropped, where nobody else has it, which is what loom checks here.
unsafe impl Sync for Watched {}
// SAFETY: owns all it has.
unsafe impl Send for Watched {}

impl Watched {
    fn new(name: u32) -> Self {
        Watched(name, UnsafeCell::new(name))
    }

    fn read(&self) -> u32 {
        // SAFETY: loom panics if the value is dropped at the same time.
        self.1.with(|name| unsafe { *name })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: as above.
        self.1.with_mut(|name| unsafe { *name = u32::MAX });
    }
}

impl Clone for Watched {
    fn clone(&self) -> Self {
        Watched::new(self.0)
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Follows a route; where it leads must not be `stranger`.
fn follow(route: &AtomicU32, reader: &AdjacencyReader<Watched>, stranger: u32) {
    let view = reader.pin();
    let index = route.load(Ordering::Acquire);
    let found = view.resolve(index, 0).map(Watched::read);
    assert_ne!(found, Some(stranger), "by index {index}, which no route to it ever held");
}

#[test]
fn an_index_under_a_reader_is_never_given_to_another_next_hop() {
    loom::model(|| {
        let mut table = Adjacencies::new();
        let [old, new, _] = [1, 2, 3].map(|name| table.acquire(Watched::new(name)).unwrap());
        let route = Arc::new(AtomicU32::new(old));
        let (reader, read) = (table.reader(), route.clone());
        let worker = thread::spawn(move || follow(&read, &reader, 4));
        route.store(new, Ordering::Release);
        table.release(old).unwrap();
        let now = table.acquire(Watched::new(4));
        worker.join().unwrap();
        let then = if now.is_ok() { now } else { table.acquire(Watched::new(4)) };
        assert_eq!(then, Ok(old), "the reader is done");
    });
}

#[test]
fn a_member_under_a_reader_is_never_given_to_another_next_hop() {
    loom::model(|| {
        let mut table = Adjacencies::new();
        let [left, right] = [1, 2].map(|name| table.acquire(Watched::new(name)).unwrap());
        let group = table.group(&[(left, 1), (right, 1)]).unwrap();
        table.release(left).unwrap();
        let (route, reader) = (AtomicU32::new(group), table.reader());
        let worker = thread::spawn(move || follow(&route, &reader, 4));
        table.set_members(group, &[(right, 1)]).unwrap();
        let now = table.acquire(Watched::new(4));
        worker.join().unwrap();
        let then = if now.is_ok() { now } else { table.acquire(Watched::new(4)) };
        assert_eq!(then, Ok(left), "the reader is done");
    });
}
