//! Policy routing (the lookup paper's RPDB, §II.B): ordered rules choose among up to 255 tables.
//!
//! A rule selects packets by source, ToS, mark and incoming interface and sends them to a table, or ends the search.
//! No match in a table means the next rule. The rules are compiled (`compiled`) and batches walk them together
//! (`walk`): packets at rules of the same table look up in one batch.

mod compiled;
mod shared;
mod values;
mod walk;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::num::NonZeroU8;
use std::sync::Arc;

use self::compiled::Compiled;
pub use self::shared::{PolicyReader, SharedPolicy};
use self::walk::Walk;
use crate::address::Address;
use crate::baseline::radix::Radix;
use crate::error::FibError;
use crate::fib::Fib;
use crate::lookup::{AdjacencyIndex, BATCH_MAX, Lookup, MISS};
use crate::prefix::Prefix;
use crate::table::Structure;

/// What a rule does with the packets it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Looks the destination up in a table, 1 to 255.
    Table(u8),
    /// Ends the search: no route.
    Unreachable,
}

/// A rule; fields that are `None` select everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<A: Address> {
    /// Rules apply in ascending order of priority; of equal ones the older first.
    pub priority: u32,
    /// Source prefix.
    pub source: Option<Prefix<A>>,
    /// ToS or traffic class.
    pub tos: Option<u8>,
    /// Mark and the bits of it that count.
    pub mark: Option<(u32, u32)>,
    /// Incoming interface.
    pub interface: Option<u32>,
    /// What to do.
    pub action: Action,
}

impl<A: Address> Rule<A> {
    /// Whether the rule selects a packet.
    #[must_use]
    pub fn selects(&self, key: &PolicyKey<A>) -> bool {
        self.source.is_none_or(|source| source.contains(key.source))
            && self.tos.is_none_or(|tos| tos == key.tos)
            && self.mark.is_none_or(|(mark, mask)| mark & mask == key.mark & mask)
            && self.interface.is_none_or(|interface| interface == key.interface)
    }
}

/// The fields of a packet that rules and tables look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyKey<A> {
    /// Source address.
    pub source: A,
    /// Destination address.
    pub destination: A,
    /// ToS or traffic class.
    pub tos: u8,
    /// Mark that earlier elements put on the packet.
    pub mark: u32,
    /// Number of the incoming interface.
    pub interface: u32,
}

/// What a lookup reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPlace {
    /// A node of the tree of sources.
    Source(u32),
    /// The rules of a source prefix, or those for every source: 0.
    Group(u32),
    /// A place of the hash table of the values that rules look at.
    Values(u32),
    /// A place of the lists of rules.
    Rule(u32),
    /// A node of the tree of the table of this number.
    Table(u8, u32),
}

/// Rules and tables; see the module. Owned by one worker.
#[derive(Debug)]
pub struct Policy<A: Address, S> {
    rules: Vec<Rule<A>>,
    compiled: Arc<Compiled<A, S>>,
    tables: BTreeMap<u8, Fib<A, S>>,
}

impl<A: Address, S: Structure<A>> Policy<A, S> {
    /// No rules and no tables: every lookup misses.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn new() -> Result<Self, FibError> {
        Ok(Policy { rules: Vec::new(), compiled: Arc::new(Compiled::new(&[])?), tables: BTreeMap::new() })
    }

    /// The rules in the order they apply.
    #[must_use]
    pub fn rules(&self) -> &[Rule<A>] {
        &self.rules
    }

    /// Puts `rules` in the place of all rules.
    ///
    /// # Errors
    /// [`FibError::Full`] with more than 8 masks of the mark, [`FibError::AdjacencyRange`] with more source prefixes
    /// than a table has adjacencies, [`FibError::Memory`]. None passes by waiting; the rules are as before.
    pub fn set_rules(&mut self, rules: &[Rule<A>]) -> Result<(), FibError> {
        let mut sorted = rules.to_vec();
        sorted.sort_by_key(|rule| rule.priority);
        self.compiled = Arc::new(Compiled::new(&sorted)?);
        self.rules = sorted;
        Ok(())
    }

    /// A table, made when it is first asked for.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn table(&mut self, number: NonZeroU8) -> Result<&mut Fib<A, S>, FibError> {
        match self.tables.entry(number.get()) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(Fib::new()?)),
        }
    }

    /// The adjacency for a packet.
    #[must_use]
    pub fn lookup(&self, key: &PolicyKey<A>) -> AdjacencyIndex {
        let group = self.compiled.group(key.source);
        self.search(key, group, &mut |_| (), |_, table, _| table.lookup(key.destination))
    }

    /// Goes from rule to rule until a table that `look` looks into has a route.
    fn search<R: FnMut(PolicyPlace)>(
        &self,
        key: &PolicyKey<A>,
        group: u32,
        reads: &mut R,
        look: impl Fn(u8, &Fib<A, S>, &mut R) -> AdjacencyIndex,
    ) -> AdjacencyIndex {
        let mut rule = self.compiled.next(key, group, 0, reads);
        loop {
            let number = self.compiled.table(rule);
            if number == 0 {
                return MISS;
            }
            let found = self.tables.get(&number).map_or(MISS, |table| look(number, table, reads));
            if found != MISS {
                return found;
            }
            rule = self.compiled.next(key, group, rule + 1, reads);
        }
    }

    /// Looks up `keys[i]` into `results[i]`; the shorter slice decides how many.
    pub fn lookup_batch(&self, keys: &[PolicyKey<A>], results: &mut [AdjacencyIndex]) {
        lookup_batch(&self.compiled, &|number| self.tables.get(&number), keys, results);
    }
}

impl<A: Address> Policy<A, Radix<A>> {
    /// As [`Policy::lookup`]; tells of each thing that it reads, for who wants to know what that takes.
    pub fn visit(&self, key: &PolicyKey<A>, mut reads: impl FnMut(PolicyPlace)) -> AdjacencyIndex {
        let reads = &mut reads;
        let group = self.compiled.visit_group(key.source, reads);
        self.search(key, group, reads, |number, table, reads| {
            table.structure().visit(key.destination, |node| reads(PolicyPlace::Table(number, node)))
        })
    }
}

/// As [`Policy::lookup_batch`], in the tables that `table` finds by their numbers.
fn lookup_batch<'t, A: Address, S: Structure<A>, T: Lookup<A> + 't>(
    rules: &Compiled<A, S>,
    table: &impl Fn(u8) -> Option<&'t T>,
    keys: &[PolicyKey<A>],
    results: &mut [AdjacencyIndex],
) {
    for (keys, results) in keys.chunks(BATCH_MAX).zip(results.chunks_mut(BATCH_MAX)) {
        let keys = &keys[..keys.len().min(results.len())];
        results[..keys.len()].fill(MISS);
        let mut walk = Walk::start(rules, keys);
        while walk.round(table, results) {}
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
