//! A table: routes and the structure compiled from them, changed together or not at all.

use crate::address::Address;
use crate::error::FibError;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::table::{AdjacencyIndex, Lookup, MISS, Structure, Table};

/// Routes plus the lookup structure `S` compiled from them; the writer's handle.
#[derive(Debug)]
pub struct Fib<A: Address, S> {
    rib: Rib<A>,
    structure: S,
}

/// A structure whose lookups may run on other threads while its owner changes it.
pub trait Shared<A: Address>: Structure<A> {
    /// The handle a worker looks up with.
    type Reader: Lookup<A> + Clone + Send + 'static;

    /// A reader of this structure.
    fn reader(&self) -> Self::Reader;
}

impl<A: Address, S: Structure<A>> Default for Fib<A, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address, S: Structure<A>> Fib<A, S> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::with_structure(S::empty())
    }

    /// An empty table over an empty structure made with parameters of its own.
    #[must_use]
    pub fn with_structure(structure: S) -> Self {
        Fib { rib: Rib::default(), structure }
    }

    /// A table of `routes`; of duplicate prefixes the last counts.
    ///
    /// # Errors
    /// [`FibError::Full`], which no waiting mends, or [`FibError::AdjacencyRange`].
    pub fn build(routes: &[(Prefix<A>, AdjacencyIndex)]) -> Result<Self, FibError> {
        let mut fib = Self::new();
        fib.load(routes)?;
        Ok(fib)
    }

    /// The lookup structure.
    #[must_use]
    pub fn structure(&self) -> &S {
        &self.structure
    }

    /// A handle for a worker; cheap to clone, one per thread.
    #[must_use]
    pub fn reader(&self) -> S::Reader
    where
        S: Shared<A>,
    {
        self.structure.reader()
    }

    fn check(adjacency: AdjacencyIndex) -> Result<(), FibError> {
        if adjacency == MISS || adjacency > S::ADJACENCY_MAX {
            return Err(FibError::AdjacencyRange { adjacency, largest: S::ADJACENCY_MAX });
        }
        Ok(())
    }
}

impl<A: Address, S: Structure<A>> Table<A> for Fib<A, S> {
    fn load(&mut self, routes: &[(Prefix<A>, AdjacencyIndex)]) -> Result<(), FibError> {
        routes.iter().try_for_each(|&(_, adjacency)| Self::check(adjacency))?;
        let rib = routes.iter().copied().collect();
        self.structure.rebuild(&rib)?;
        self.rib = rib;
        Ok(())
    }

    fn insert(&mut self, prefix: Prefix<A>, adjacency: AdjacencyIndex) -> Result<(), FibError> {
        if self.rib.exact(prefix).is_some() {
            return Err(FibError::Exists);
        }
        self.replace(prefix, adjacency).map(|_| ())
    }

    fn replace(
        &mut self,
        prefix: Prefix<A>,
        adjacency: AdjacencyIndex,
    ) -> Result<Option<AdjacencyIndex>, FibError> {
        Self::check(adjacency)?;
        let before = self.rib.set(prefix, adjacency);
        if before == Some(adjacency) {
            return Ok(before);
        }
        if let Err(error) = self.structure.update(&self.rib, prefix) {
            match before {
                Some(old) => self.rib.set(prefix, old),
                None => self.rib.remove(prefix),
            };
            return Err(error);
        }
        Ok(before)
    }

    fn withdraw(&mut self, prefix: Prefix<A>) -> Result<AdjacencyIndex, FibError> {
        let before = self.rib.remove(prefix).ok_or(FibError::NotFound)?;
        if let Err(error) = self.structure.update(&self.rib, prefix) {
            self.rib.set(prefix, before);
            return Err(error);
        }
        Ok(before)
    }

    fn rib(&self) -> &Rib<A> {
        &self.rib
    }
}

impl<A: Address, S: Structure<A>> Lookup<A> for Fib<A, S> {
    fn lookup(&self, address: A) -> AdjacencyIndex {
        self.structure.lookup(address)
    }

    fn lookup_batch(&self, addresses: &[A], results: &mut [AdjacencyIndex]) {
        self.structure.lookup_batch(addresses, results);
    }

    fn bytes(&self) -> usize {
        self.structure.bytes()
    }
}
