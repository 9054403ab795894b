//! What whoever changes a table sees of it, [`Table`], and what is compiled from its routes, [`Structure`].

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Change, Lookup};
use crate::prefix::Prefix;
use crate::rib::Rib;

/// What a table takes of a process's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What lookups walk, without what waits to be used again.
    pub index_bytes: usize,
    /// The writer's own: the routes, and what it knows of the memory that lookups walk.
    pub writer_bytes: usize,
    /// The pages behind what lookups walk.
    pub resident_bytes: usize,
}

/// A lookup structure compiled from a [`Rib`] and kept in step with it.
///
/// Implementations hold no routes of their own: the [`Rib`] is handed in, already changed.
pub trait Structure<A: Address>: Lookup<A> {
    /// The name in tables, plots and the command line.
    const NAME: &'static str;
    /// The largest adjacency index the structure stores.
    const ADJACENCY_MAX: AdjacencyIndex;

    /// An empty structure.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    fn empty() -> Result<Self, FibError>
    where
        Self: Sized;

    /// What the structure takes; one that is not in mappings of its own is where it says it is.
    fn memory(&self) -> Memory {
        Memory { index_bytes: self.bytes(), writer_bytes: 0, resident_bytes: self.bytes() }
    }

    /// Brings the structure in step with `rib` after the routes of `changed`, which is in order, were added, replaced or
    /// removed.
    ///
    /// # Errors
    /// [`FibError::Busy`] if what would make room waits for readers, [`FibError::Full`] if nothing does; the
    /// structure is as before.
    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<(), FibError>;

    /// Compiles the whole of `rib`, beside what is there.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    fn rebuild(&mut self, rib: &Rib<A>) -> Result<(), FibError>;

    /// Lets go of the routes of `changed`, which is in order and which `rib` has no more, after an update was refused: as the
    /// routes that are left say, if that can be done after all, and else so that lookups miss where they were, and around
    /// it. Wants no room in the structure, so it can always be done. Returns where lookups miss now, in order: `rebuild`
    /// or, unless that is everywhere, `update` with it among what changed makes it good.
    fn forget(&mut self, _rib: &Rib<A>, _changed: &[Prefix<A>]) -> Vec<Prefix<A>> {
        let done = self.rebuild(&Rib::default());
        debug_assert!(done.is_ok(), "nothing always fits");
        vec![Prefix::DEFAULT]
    }
}

/// A table that can be changed. One owner (the control thread) holds it; every refused change leaves it as it was.
///
/// A change that is refused with [`FibError::Busy`] may fit when the readers have moved on, which takes them a batch.
/// One that is refused with [`FibError::Full`] may still fit a table that is loaded anew, first with nothing and then
/// with all routes: memory that many changes have cut into pieces is whole again when nothing is in it.
pub trait Table<A: Address>: Lookup<A> {
    /// Puts `routes` in the place of everything; of duplicate prefixes the last counts. Room is wanted for them beside
    /// the routes there are. To load nothing needs none, and is never refused.
    ///
    /// # Errors
    /// [`FibError::Busy`] if what would make room waits for readers, [`FibError::Full`] if nothing does, or
    /// [`FibError::AdjacencyRange`].
    fn load(&mut self, routes: &[(Prefix<A>, AdjacencyIndex)]) -> Result<(), FibError>;

    /// Adds a route.
    ///
    /// # Errors
    /// [`FibError::Exists`], or as [`replace`](Self::replace).
    fn insert(&mut self, prefix: Prefix<A>, adjacency: AdjacencyIndex) -> Result<(), FibError>;

    /// Adds a route or changes where it leads; returns the adjacency it had.
    ///
    /// # Errors
    /// [`FibError::Busy`] if what would make room waits for readers, [`FibError::Full`] if nothing does, or
    /// [`FibError::AdjacencyRange`].
    fn replace(
        &mut self,
        prefix: Prefix<A>,
        adjacency: AdjacencyIndex,
    ) -> Result<Option<AdjacencyIndex>, FibError>;

    /// Makes many changes, all or none, of those of one prefix the last. To withdraw what is not there is no change, and
    /// withdrawals alone are never refused, as [`withdraw`](Self::withdraw) is not.
    /// Costs much less than one change after the other where they lie close together. Lookups meanwhile see some of
    /// them made and some not, each as a whole, and all when the call returns.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    fn apply(&mut self, changes: &[Change<A>]) -> Result<(), FibError>;

    /// Removes a route; returns the adjacency it had. That is never refused: where a structure needs room to shrink and
    /// has none, lookups miss there and around it from now on ([`unsettled`](Self::unsettled)).
    ///
    /// # Errors
    /// [`FibError::NotFound`].
    fn withdraw(&mut self, prefix: Prefix<A>) -> Result<AdjacencyIndex, FibError>;

    /// Brings back what lookups miss for want of room, as each change does that finds room for it and for itself.
    ///
    /// # Errors
    /// [`FibError::Busy`] if what would make room waits for readers, [`FibError::Full`] if nothing does.
    fn settle(&mut self) -> Result<(), FibError>;

    /// How many routes lookups miss for want of room, since a withdrawal found none.
    fn unsettled(&self) -> usize;

    /// The routes themselves, for iteration, exact and longest match and covered prefixes.
    fn rib(&self) -> &Rib<A>;
}
