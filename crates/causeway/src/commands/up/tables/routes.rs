//! The routes of one family: the table that workers look up in, and what found no room in it.
//!
//! To leave a route out would let a shorter prefix take its packets. So where a change finds no room its *block*, some addresses around
//! it, is closed: one route to the kernel takes the place of all routes inside, which wait beside the table. That needs no
//! room, and gives some back. What changes in a closed block costs next to nothing; every time a few blocks are opened again, as far
//! as there is room. All routes are put in at once, which mends what is in pieces, only once in a while, so that what a change
//! costs does not depend on how many routes find no room.

use super::super::driver::Readers;
use causeway_fib::{Address, AdjacencyIndex, Fib, FibError, Prefix, Rib, Shared, Table};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Waits for workers between two tries of a change; a worker is done with a batch in much less.
pub(super) const WAIT: Duration = Duration::from_millis(1);
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

/// Routes that blocks are opened for at one time.
const ROUND: usize = 4_096;
/// Times between two that all routes are put in at once, if few of them change.
const TIMES: usize = 8;

/// See the module.
pub(super) struct Routes<A: Address, S> {
    fib: Fib<A, S>,
    /// The index that leaves packets to the kernel.
    kernel: AdjacencyIndex,
    /// Blocks that are closed, and their routes. Where all is closed the table is empty: what it has no route for is the kernel's.
    closed: BTreeMap<Prefix<A>, Rib<A>>,
    /// Changes since all routes were put in at once, or that was tried.
    changes: usize,
}

impl<A: Address, S: Shared<A>> Routes<A, S> {
    /// Bits of a block. Routes shorter than that are blocks of their own.
    const BLOCK: u8 = if A::BITS == 32 { 16 } else { 32 };

    /// Without routes; packets with the index `kernel` are left to the kernel.
    pub(super) fn new(structure: S, kernel: AdjacencyIndex) -> Self {
        let fib = Fib::with_structure(structure);
        Routes { fib, kernel, closed: BTreeMap::new(), changes: 0 }
    }

    /// The table.
    pub(super) fn fib(&self) -> &Fib<A, S> {
        &self.fib
    }

    /// Whether the table holds all routes.
    pub(super) fn fit(&self) -> bool {
        self.closed.is_empty()
    }

    /// Routes that found no room.
    pub(super) fn outside(&self) -> usize {
        self.closed.values().map(Rib::len).sum()
    }

    /// Routes in the table and outside of it.
    pub(super) fn len(&self) -> usize {
        let stand_ins = self.closed.keys().filter(|block| self.fib.rib().exact(**block).is_some()).count();
        self.fib.rib().len() - stand_ins + self.outside()
    }

    /// Brings the table up to date: route by route, or, if that does not fit or all are new, by putting all routes in
    /// at once.
    ///
    /// # Errors
    /// Why not all routes fit even so. The next change tries again.
    pub(super) fn change(
        &mut self,
        changes: Vec<Change<A>>,
        patience: &mut Patience,
        progress: &mut dyn FnMut(),
    ) -> Result<(), FibError> {
        progress();
        self.changes = self.changes.saturating_add(changes.len() + self.len() / TIMES + 1);
        // One build is much cheaper than a change for each of a million routes.
        if self.fit() && self.fib.rib().is_empty() && !changes.is_empty() {
            let mut all = Rib::default();
            changes.into_iter().for_each(|change| set(&mut all, change));
            return self.put_all(all, patience, progress);
        }
        let mut done = Ok(());
        for (n, &change) in changes.iter().enumerate() {
            if n % STRETCH == 0 {
                progress();
            }
            if let Err(error) = self.put(change, patience) {
                done = Err(error);
                self.close(&[change.0], patience);
                self.closed_at(change.0).into_iter().for_each(|routes| set(routes, change));
            }
        }
        // What a withdrawal hid must be there again before the workers go on: a source without route is trusted.
        if let Err(error) = patience.until(|| self.fib.settle()) {
            done = Err(error);
            self.close(&[], patience);
        }
        self.open(done, patience, progress)
    }

    /// Makes one change.
    fn put(&mut self, change: Change<A>, patience: &mut Patience) -> Result<(), FibError> {
        let (prefix, index) = change;
        if let Some(routes) = self.closed_at(prefix) {
            set(routes, change);
            return Ok(());
        }
        match index {
            Some(index) => patience.until(|| self.fib.replace(prefix, index)).map(drop),
            // To withdraw what is not there is no change, and nothing else refuses it.
            None => {
                let _ = self.fib.withdraw(prefix);
                Ok(())
            }
        }
    }

    /// The routes of the closed block that a prefix is in.
    fn closed_at(&mut self, prefix: Prefix<A>) -> Option<&mut Rib<A>> {
        if self.closed.is_empty() {
            return None;
        }
        let block = |len| Prefix::truncated(prefix.first(), len);
        let len = (0..=prefix.len().min(Self::BLOCK)).find(|&len| self.closed.contains_key(&block(len)))?;
        self.closed.get_mut(&block(len))
    }

    /// Closes the blocks of these prefixes, and of those that the table has forgotten for want of room.
    fn close(&mut self, prefixes: &[Prefix<A>], patience: &mut Patience) {
        for bits in [Self::BLOCK, Self::BLOCK / 2] {
            let of = |prefix: &Prefix<A>| Prefix::truncated(prefix.first(), prefix.len().min(bits));
            let mut blocks: Vec<Prefix<A>> = prefixes.iter().chain(self.fib.forgotten()).map(of).collect();
            blocks.sort_unstable();
            blocks.dedup_by(|next, block| block.covers(*next));
            let mut changes = Vec::new();
            for &block in &blocks {
                changes.extend(self.fib.rib().covered(block).map(|(prefix, _)| (prefix, None)));
                changes.push((block, Some(self.kernel)));
            }
            let inside: Vec<_> = blocks.iter().map(|&block| (block, self.inside(block))).collect();
            if patience.until(|| self.fib.apply(&changes)).is_ok() {
                self.closed.retain(|closed, _| !blocks.iter().any(|block| block.covers(*closed)));
                self.closed.extend(inside);
                return;
            }
        }
        self.close_all();
    }

    /// The routes of a block, those of closed ones inside it too.
    fn inside(&self, block: Prefix<A>) -> Rib<A> {
        let open = self.fib.rib().covered(block).filter(|(prefix, _)| !self.closed.contains_key(prefix));
        let closed = self.closed.range(block..=Prefix::host(block.last()));
        open.chain(closed.flat_map(|(_, routes)| routes.iter())).collect()
    }

    fn close_all(&mut self) {
        let all = self.inside(Prefix::DEFAULT);
        // To hold nothing is never refused.
        let _ = self.fib.load(&[]);
        self.closed = BTreeMap::from([(Prefix::DEFAULT, all)]);
    }

    /// Opens closed blocks as far as there is room, or puts all routes in at once if that may be done again. `done` says why
    /// there was none before.
    fn open(
        &mut self,
        done: Result<(), FibError>,
        patience: &mut Patience,
        progress: &mut dyn FnMut(),
    ) -> Result<(), FibError> {
        if self.fit() {
            return Ok(());
        }
        // Where all is closed nothing can be worse, and it is seldom for long: a reader stands still.
        if self.changes >= self.len() || self.closed.contains_key(&Prefix::DEFAULT) {
            return self.put_all(self.inside(Prefix::DEFAULT), patience, progress);
        }
        let opened = self.open_blocks(ROUND, patience, progress);
        if self.fit() { Ok(()) } else { done.and(opened).and(Err(FibError::Full)) }
    }

    /// Opens blocks for about so many routes, those with few first.
    fn open_blocks(
        &mut self,
        most: usize,
        patience: &mut Patience,
        progress: &mut dyn FnMut(),
    ) -> Result<(), FibError> {
        let mut blocks: Vec<(usize, Prefix<A>)> =
            self.closed.iter().map(|(&block, routes)| (routes.len(), block)).collect();
        blocks.sort_unstable();
        let (mut opened, mut done) = (0, Ok(()));
        for (routes, block) in blocks {
            if opened >= most {
                break;
            }
            progress();
            let mut changes = vec![(block, None)];
            changes.extend(self.closed[&block].iter().map(|(prefix, index)| (prefix, Some(index))));
            done = patience.until(|| self.fib.apply(&changes));
            if done.is_err() {
                break;
            }
            self.closed.remove(&block);
            opened += routes;
        }
        // Of a block that has no routes any more the table may have forgotten what shorter ones say.
        if patience.until(|| self.fib.settle()).is_err() {
            self.close(&[], patience);
        }
        done
    }

    /// Puts in all routes at once. If they do not fit, first those that are shorter than blocks, with all blocks closed, and then
    /// block by block.
    fn put_all(
        &mut self,
        all: Rib<A>,
        patience: &mut Patience,
        progress: &mut dyn FnMut(),
    ) -> Result<(), FibError> {
        self.changes = 0;
        self.closed.clear();
        let routes: Vec<_> = all.iter().collect();
        // What nothing is in is in one piece again.
        let done = self.fib.load(&[]).and_then(|()| patience.until(|| self.fib.load(&routes)));
        let Err(error) = done else { return Ok(()) };
        let mut blocks: BTreeMap<Prefix<A>, Rib<A>> = BTreeMap::new();
        let mut few = Vec::new();
        for (prefix, index) in routes {
            if prefix.len() < Self::BLOCK {
                few.push((prefix, index));
            } else {
                let block = Prefix::truncated(prefix.first(), Self::BLOCK);
                blocks.entry(block).or_default().set(prefix, index);
            }
        }
        few.extend(blocks.keys().map(|&block| (block, self.kernel)));
        if patience.until(|| self.fib.load(&few)).is_err() {
            self.closed = BTreeMap::from([(Prefix::DEFAULT, all)]);
            return Err(error);
        }
        self.closed = blocks;
        // That one of them finds no room is known.
        let _ = self.open_blocks(usize::MAX, patience, progress);
        if self.fit() { Ok(()) } else { Err(error) }
    }
}

fn set<A: Address>(routes: &mut Rib<A>, (prefix, index): Change<A>) {
    match index {
        Some(index) => routes.set(prefix, index),
        None => routes.remove(prefix),
    };
}

#[cfg(test)]
mod tests;
