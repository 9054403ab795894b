//! A table: routes and the structure compiled from them, changed together or not at all.

use crate::address::Address;
use crate::error::FibError;
use crate::lookup::{AdjacencyIndex, Change, Lookup, MISS};
use crate::prefix::Prefix;
use crate::reader::{Reader, Shared};
use crate::rib::Rib;
use crate::sync::epoch::Domain;
use crate::table::{Memory, Structure, Table};

/// Routes plus the lookup structure `S` compiled from them; the writer's handle.
#[derive(Debug)]
pub struct Fib<A: Address, S> {
    rib: Rib<A>,
    structure: S,
    /// Where lookups miss, for want of room, in order.
    unsettled: Vec<Prefix<A>>,
}

impl<A: Address, S: Structure<A>> Fib<A, S> {
    /// An empty table.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn new() -> Result<Self, FibError> {
        S::empty().map(Self::with_structure)
    }

    /// An empty table over an empty structure made with parameters of its own.
    #[must_use]
    pub fn with_structure(structure: S) -> Self {
        Fib { rib: Rib::default(), structure, unsettled: Vec::new() }
    }

    /// A table of `routes`; of duplicate prefixes the last counts.
    ///
    /// # Errors
    /// [`FibError::Memory`]; [`FibError::Full`], which no waiting mends; [`FibError::AdjacencyRange`].
    pub fn build(routes: &[(Prefix<A>, AdjacencyIndex)]) -> Result<Self, FibError> {
        let mut fib = Self::new()?;
        fib.load(routes)?;
        Ok(fib)
    }

    /// What the table takes.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let memory = self.structure.memory();
        Memory { writer_bytes: memory.writer_bytes + self.rib.bytes(), ..memory }
    }

    /// The lookup structure.
    #[must_use]
    pub fn structure(&self) -> &S {
        &self.structure
    }

    /// Where lookups miss, for want of room, until [`Table::settle`] succeeds: prefixes in order.
    #[must_use]
    pub fn forgotten(&self) -> &[Prefix<A>] {
        &self.unsettled
    }

    /// A handle for a worker; cheap to clone, one per thread.
    #[must_use]
    pub fn reader(&self) -> Reader<S::Handle>
    where
        S: Shared<A>,
    {
        Reader::new(self.structure.handle())
    }

    /// An empty table that is read under the announcements of a domain, as others are.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn in_domain(domain: &Domain) -> Result<Self, FibError>
    where
        S: Shared<A>,
    {
        S::in_domain(domain).map(Self::with_structure)
    }

    /// Brings the structure in step with the routes after a change of these, and with what it forgot.
    fn refresh(&mut self, changed: &[Prefix<A>]) -> Result<(), FibError> {
        if self.unsettled.is_empty() {
            return self.structure.update(&self.rib, changed);
        }
        if self.unsettled == [Prefix::DEFAULT] {
            self.structure.rebuild(&self.rib)?;
        } else {
            let mut changed = [&self.unsettled, changed].concat();
            changed.sort_unstable();
            changed.dedup();
            self.structure.update(&self.rib, &changed)?;
        }
        self.unsettled.clear();
        Ok(())
    }

    /// The same after withdrawals.
    fn refresh_or_forget(&mut self, withdrawn: &[Prefix<A>]) {
        if self.refresh(withdrawn).is_ok() {
            return;
        }
        let misses = |prefix: &Prefix<A>| self.unsettled.iter().any(|range| range.covers(*prefix));
        if withdrawn.iter().all(misses) {
            return;
        }
        self.unsettled.extend(self.structure.forget(&self.rib, withdrawn));
        self.unsettled.sort_unstable();
        self.unsettled.dedup_by(|next, range| range.covers(*next));
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
        match self.structure.rebuild(&rib) {
            Err(_) if routes.is_empty() => drop(self.structure.forget(&rib, &[Prefix::DEFAULT])),
            done => done?,
        }
        self.rib = rib;
        self.unsettled.clear();
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
        if let Err(error) = self.refresh(&[prefix]) {
            self.rib.change((prefix, before));
            return Err(error);
        }
        Ok(before)
    }

    fn apply(&mut self, changes: &[Change<A>]) -> Result<(), FibError> {
        changes.iter().filter_map(|change| change.1).try_for_each(Self::check)?;
        let mut before = Vec::with_capacity(changes.len());
        for &change in changes {
            let old = self.rib.change(change);
            if old != change.1 {
                before.push((change.0, old));
            }
        }
        let mut changed: Vec<_> = before.iter().map(|change| change.0).collect();
        changed.sort_unstable();
        changed.dedup();
        if changed.is_empty() {
            return Ok(());
        }
        if changes.iter().all(|change| change.1.is_none()) {
            self.refresh_or_forget(&changed);
        } else if let Err(error) = self.refresh(&changed) {
            for change in before.into_iter().rev() {
                self.rib.change(change);
            }
            return Err(error);
        }
        Ok(())
    }

    fn withdraw(&mut self, prefix: Prefix<A>) -> Result<AdjacencyIndex, FibError> {
        let before = self.rib.remove(prefix).ok_or(FibError::NotFound)?;
        self.refresh_or_forget(&[prefix]);
        Ok(before)
    }

    fn settle(&mut self) -> Result<(), FibError> {
        if self.unsettled.is_empty() { Ok(()) } else { self.refresh(&[]) }
    }

    fn unsettled(&self) -> usize {
        self.unsettled.iter().map(|&range| self.rib.covered(range).count()).sum()
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::baseline::linear::Linear;
    use crate::v4::compact16::Compact16;
    use crate::v4::rank24::Rank24;
    use crate::v6::lines6::Lines6;

    /// Routes of which a table has room for the first few but not for all.
    fn all_or_none<A: Address>(structure: impl Structure<A>, routes: &[(Prefix<A>, AdjacencyIndex)]) {
        let mut fib = Fib::with_structure(structure);
        let few: Vec<_> = routes[..8].iter().map(|&(prefix, adjacency)| (prefix, Some(adjacency))).collect();
        fib.apply(&few).unwrap();
        let others = routes.iter().map(|&(prefix, adjacency)| (prefix, Some(adjacency + 1)));
        let all: Vec<_> =
            [(routes[3].0, None)].into_iter().chain(others).chain([(routes[5].0, None)]).collect();
        assert_eq!(fib.apply(&all), Err(FibError::Full), "{} routes fit", routes.len());
        for (number, &(prefix, adjacency)) in routes.iter().enumerate() {
            let expected = if number < 8 { adjacency } else { MISS };
            assert_eq!(fib.lookup(prefix.first()), expected, "{prefix}");
            assert_eq!(fib.rib().exact(prefix).unwrap_or(MISS), expected, "{prefix}");
        }
        fib.apply(&[few[0], (few[1].0, None), few[2]]).unwrap();
        assert_eq!((fib.lookup(few[1].0.first()), fib.rib().len()), (MISS, 7));
    }

    #[test]
    fn changes_that_do_not_all_fit_are_not_made() {
        let four: Vec<_> = (0..400).map(|n| (Prefix::truncated(n << 13 | 1 << 8, 24), 1 + n % 9)).collect();
        all_or_none(Rank24::with_capacity(100).unwrap(), &four);
        let six: Vec<_> =
            (0..400).map(|n| (Prefix::truncated((n as u128) << 112 | 1 << 80, 48), 1 + n % 9)).collect();
        all_or_none(Lines6::with_capacity(100).unwrap(), &six);
    }

    #[test]
    fn of_changes_to_one_prefix_the_last_counts() {
        fn check<S: Structure<u32>>() {
            let mut fib = Fib::<u32, S>::new().unwrap();
            let [outer, inner] = ["10.0.0.0/8", "10.1.0.0/16"].map(|text| text.parse().unwrap());
            fib.apply(&[(inner, Some(1)), (outer, Some(2)), (inner, None), (inner, Some(3))]).unwrap();
            let (addresses, mut results) = ([0x0a01_0000, 0x0a02_0000], [9, 9]);
            assert_eq!(addresses.map(|address| fib.lookup(address)), [3, 2], "{}", S::NAME);
            fib.lookup_batch(&addresses, &mut results);
            assert_eq!(results, [3, 2], "{}", S::NAME);
            fib.apply(&[(inner, Some(4)), (outer, None), (inner, None), (Prefix::DEFAULT, None)]).unwrap();
            assert_eq!((fib.lookup(0x0a01_0000), fib.rib().len()), (MISS, 0), "{}", S::NAME);
            assert_eq!(fib.apply(&[(inner, Some(1)), (outer, Some(MISS))]).map_err(drop), Err(()));
            assert_eq!(fib.lookup(0x0a01_0000), MISS, "{}", S::NAME);
        }
        check::<Rank24>();
        check::<Compact16>();
        check::<Linear<u32>>();
    }

    #[test]
    fn adjacencies_are_numbers_of_15_bits() {
        fn check<A: Address, S: Structure<A>>() {
            let mut fib = Fib::<A, S>::new().unwrap();
            fib.insert(Prefix::DEFAULT, 32_767).unwrap();
            let refused = FibError::AdjacencyRange { adjacency: 32_768, largest: 32_767 };
            assert_eq!(fib.replace(Prefix::DEFAULT, 32_768), Err(refused), "{}", S::NAME);
            assert_eq!(fib.lookup(A::from_u32(1)), 32_767, "{}", S::NAME);
        }
        check::<u32, Rank24>();
        check::<u32, Compact16>();
        check::<u128, Lines6>();
    }
}
