//! Policy routing for several workers: rules and the set of tables published whole, routes shared as tables share them.

use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::sync::Arc;

use super::compiled::Compiled;
use super::{Policy, PolicyKey, Rule, lookup_batch};
use crate::address::Address;
use crate::error::FibError;
use crate::fib::Fib;
use crate::lookup::{AdjacencyIndex, BATCH_MAX, MISS};
use crate::reader::Handle;
use crate::reader::Shared;
use crate::sync::cells::{Cells, Retired};
use crate::sync::epoch::{Domain, Limbo, Participant, Pinned};

/// What workers follow: the rules and the ways to the tables as they were at some moment.
struct State<A: Address, S: Shared<A>> {
    rules: Arc<Compiled<A, S>>,
    tables: BTreeMap<u8, S::Handle>,
}

/// A [`Policy`] whose lookups may run on other threads while its owner changes it; the writer's handle.
///
/// A change of a route is seen at once, as the tables show it; a change of the rules and a new table from a reader's
/// next batch on. What readers no longer see is freed by the writer.
pub struct SharedPolicy<A: Address, S: Shared<A>> {
    policy: Policy<A, S>,
    published: Arc<Cells<State<A, S>>>,
    limbo: Limbo<Retired<State<A, S>>>,
}

impl<A: Address, S: Shared<A>> SharedPolicy<A, S> {
    /// No rules and no tables: every lookup misses.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn new() -> Result<Self, FibError> {
        Self::in_domain(&Domain::new())
    }

    /// The same, read under the announcements of a domain, as others are.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_domain(domain: &Domain) -> Result<Self, FibError> {
        let published = Arc::new(Cells::empty(1, domain));
        let mut shared = SharedPolicy { policy: Policy::new()?, published, limbo: Limbo::new() };
        shared.publish();
        Ok(shared)
    }

    /// The rules in the order they apply.
    #[must_use]
    pub fn rules(&self) -> &[Rule<A>] {
        self.policy.rules()
    }

    /// Puts `rules` in the place of all rules.
    ///
    /// # Errors
    /// As [`Policy::set_rules`].
    pub fn set_rules(&mut self, rules: &[Rule<A>]) -> Result<(), FibError> {
        self.policy.set_rules(rules)?;
        self.publish();
        Ok(())
    }

    /// A table, made when it is first asked for.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn table(&mut self, number: NonZeroU8) -> Result<&mut Fib<A, S>, FibError> {
        if !self.policy.tables.contains_key(&number.get()) {
            let table = Fib::in_domain(self.published.domain())?;
            self.policy.tables.insert(number.get(), table);
            self.publish();
        }
        self.policy.table(number)
    }

    /// The numbers of the tables there are.
    pub fn tables(&self) -> impl Iterator<Item = NonZeroU8> {
        self.policy.tables.keys().filter_map(|&number| NonZeroU8::new(number))
    }

    /// The adjacency for a packet.
    #[must_use]
    pub fn lookup(&self, key: &PolicyKey<A>) -> AdjacencyIndex {
        self.policy.lookup(key)
    }

    /// A handle for a worker.
    #[must_use]
    pub fn reader(&self) -> PolicyReader<A, S> {
        PolicyReader { published: self.published.clone(), participant: self.published.domain().participant() }
    }

    /// Shows readers the rules and the tables as they are now.
    fn publish(&mut self) {
        let tables = self.policy.tables.iter().map(|(&number, table)| (number, table.structure().handle()));
        let state = State { rules: self.policy.compiled.clone(), tables: tables.collect() };
        let old = self.published.swap(0, Some(Box::new(state)));
        let domain = self.published.domain();
        self.limbo.retire(domain, old);
        // SAFETY: `reclaim` hands out only what no reader of this domain can see.
        self.limbo.reclaim(domain, true, |retired| unsafe { retired.free() });
    }
}

impl<A: Address, S: Shared<A>> Drop for SharedPolicy<A, S> {
    fn drop(&mut self) {
        self.published.leave(self.limbo.drain());
    }
}

/// A worker's handle of a [`SharedPolicy`]; one per thread.
pub struct PolicyReader<A: Address, S: Shared<A>> {
    published: Arc<Cells<State<A, S>>>,
    participant: Participant,
}

impl<A: Address, S: Shared<A>> PolicyReader<A, S> {
    /// Looks up `keys[i]` into `results[i]`; the shorter slice decides how many.
    pub fn lookup_batch(&self, keys: &[PolicyKey<A>], results: &mut [AdjacencyIndex]) {
        for (keys, results) in keys.chunks(BATCH_MAX).zip(results.chunks_mut(BATCH_MAX)) {
            self.lookup_batch_under(&self.participant.pin(), keys, results);
        }
    }

    /// The same under an announcement that stands already. Where that is made in another domain, nothing is found.
    pub fn lookup_batch_under(
        &self,
        pinned: &Pinned<'_>,
        keys: &[PolicyKey<A>],
        results: &mut [AdjacencyIndex],
    ) {
        let Some(state) = self.published.get(0, pinned) else { return results.fill(MISS) };
        let table = |number| state.tables.get(&number).and_then(|table| table.under(pinned));
        lookup_batch(&state.rules, &table, keys, results);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::policy::Action;
    use crate::prefix::Prefix;
    use crate::table::Table;
    use crate::v4::compact16::Compact16;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn number(number: u8) -> NonZeroU8 {
        NonZeroU8::new(number).unwrap()
    }

    fn rule(priority: u32, action: Action) -> Rule<u32> {
        Rule { priority, source: None, tos: None, mark: None, interface: None, action }
    }

    #[test]
    fn readers_follow_rules_tables_and_routes() {
        let mut policy = SharedPolicy::<u32, Compact16>::new().unwrap();
        let reader = policy.reader();
        let look = || {
            let mut result = [9];
            reader.lookup_batch(&[PolicyKey::default()], &mut result);
            result[0]
        };
        assert_eq!(look(), MISS);
        policy.set_rules(&[rule(1, Action::Table(7)), rule(2, Action::Table(8))]).unwrap();
        policy.table(number(8)).unwrap().insert(Prefix::DEFAULT, 80).unwrap();
        assert_eq!(look(), 80);
        policy.table(number(7)).unwrap().insert(Prefix::DEFAULT, 70).unwrap();
        assert_eq!(look(), 70);
        policy.set_rules(&[rule(0, Action::Unreachable), rule(1, Action::Table(7))]).unwrap();
        assert_eq!(look(), MISS);
        assert_eq!(policy.tables().map(NonZeroU8::get).collect::<Vec<_>>(), [7, 8]);
    }

    #[test]
    fn readers_see_whole_sets_of_rules_while_they_change() {
        let mut policy = SharedPolicy::<u32, Compact16>::new().unwrap();
        for table in 1..=4 {
            policy.table(number(table)).unwrap().insert(Prefix::DEFAULT, table.into()).unwrap();
        }
        // Either set sends every packet to one pair of tables, by source; a mixture would not.
        let set = |first: u8| {
            let low = Rule { source: Prefix::new(0, 1).ok(), ..rule(1, Action::Table(first)) };
            [low, rule(2, Action::Table(first + 1))]
        };
        policy.set_rules(&set(1)).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (reader, done) = (policy.reader(), &done);
                scope.spawn(move || {
                    let keys: Vec<_> = [0, u32::MAX]
                        .iter()
                        .map(|&source| PolicyKey { source, ..PolicyKey::default() })
                        .collect();
                    while !done.load(Ordering::Relaxed) {
                        let mut found = [MISS; 2];
                        reader.lookup_batch(&keys, &mut found);
                        assert!([[1, 2], [3, 4]].contains(&found), "{found:?}");
                    }
                });
            }
            for change in 0..300 {
                policy.set_rules(&set(if change % 2 == 0 { 3 } else { 1 })).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
