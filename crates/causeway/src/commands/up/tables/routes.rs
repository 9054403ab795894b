//! The routes of one family: the table that workers look up in, and what did not fit it.

use super::super::driver::Readers;
use causeway_fib::{Address, AdjacencyIndex, Fib, FibError, Prefix, Rib, Shared, Table};
use std::sync::Arc;
use std::time::Duration;

/// Waits for workers between two tries of a change; a worker is done with a batch in much less.
const WAIT: Duration = Duration::from_millis(1);
/// Waits while the tables are brought up to date once: longer than a worker that is ready to run has to wait for its
/// processor.
const WAITS: u32 = 50;

/// Changes between two signs of progress: some milliseconds.
const STRETCH: usize = 4_096;

/// How long workers are waited for.
pub(super) struct Patience {
    waits: u32,
    /// The programs in the driver, which have to be waited for as well.
    readers: Option<Arc<Readers>>,
}

impl Patience {
    /// For all changes that are made at once.
    pub(super) fn new(readers: Option<Arc<Readers>>) -> Patience {
        Patience { waits: WAITS, readers }
    }

    /// Makes a change, and tries again as long as it is refused because of readers and patience lasts.
    pub(super) fn until<R>(
        &mut self,
        mut change: impl FnMut() -> Result<R, FibError>,
    ) -> Result<R, FibError> {
        // What was replaced before is the only thing in the way, so that programs are waited for once.
        let mut readers = self.readers.as_ref();
        loop {
            match change() {
                Err(FibError::Busy) if self.waits > 0 => {
                    self.waits -= 1;
                    if let Some(readers) = readers.take() {
                        readers.move_on();
                        continue;
                    }
                    std::thread::sleep(WAIT);
                }
                done => return done,
            }
        }
    }
}

/// A prefix with the index it leads to, or none if it is gone.
pub(super) type Change<A> = (Prefix<A>, Option<AdjacencyIndex>);

/// See the module.
pub(super) struct Routes<A: Address, S> {
    fib: Fib<A, S>,
    /// All routes, as long as they do not fit the table, which is empty then: to leave one out would let a shorter
    /// prefix take its packets, and what a table finds no route for is the kernel's.
    outside: Rib<A>,
}

impl<A: Address, S: Shared<A>> Routes<A, S> {
    pub(super) fn new(structure: S) -> Self {
        Routes { fib: Fib::with_structure(structure), outside: Rib::default() }
    }

    /// The table.
    pub(super) fn fib(&self) -> &Fib<A, S> {
        &self.fib
    }

    /// Whether the table holds all routes.
    pub(super) fn fit(&self) -> bool {
        self.outside.is_empty()
    }

    /// Brings the table up to date: route by route, or, if that does not fit or all are new, by putting all routes in
    /// at once.
    ///
    /// # Errors
    /// Why the routes do not fit even so. The next change tries again.
    pub(super) fn change(
        &mut self,
        changes: Vec<Change<A>>,
        patience: &mut Patience,
        progress: &mut dyn FnMut(),
    ) -> Result<(), FibError> {
        progress();
        // One build is much cheaper than a change for each of a million routes.
        let is_first = self.fib.rib().is_empty() && !changes.is_empty();
        if self.fit() && !is_first && self.apply(&changes, patience, progress).is_ok() {
            return Ok(());
        }
        let mut all = if self.fit() { self.fib.rib().clone() } else { std::mem::take(&mut self.outside) };
        for (prefix, index) in changes {
            match index {
                Some(index) => all.set(prefix, index),
                None => all.remove(prefix),
            };
        }
        let routes: Vec<_> = all.iter().collect();
        // What nothing is in is in one piece again.
        let done = self.fib.load(&[]).and_then(|()| patience.until(|| self.fib.load(&routes)));
        if done.is_err() {
            self.outside = all;
        }
        done
    }

    /// Changes route by route.
    fn apply(
        &mut self,
        changes: &[Change<A>],
        patience: &mut Patience,
        progress: &mut dyn FnMut(),
    ) -> Result<(), FibError> {
        let fib = &mut self.fib;
        for (n, &(prefix, index)) in changes.iter().enumerate() {
            if n % STRETCH == 0 {
                progress();
            }
            match index {
                Some(index) => patience.until(|| fib.replace(prefix, index)).map(drop)?,
                // To withdraw what is not there is no change, and nothing else refuses it.
                None => drop(fib.withdraw(prefix)),
            }
        }
        // What a withdrawal hid must be there again before the workers go on: a source without route is trusted.
        patience.until(|| fib.settle())
    }
}

#[cfg(test)]
mod tests;
