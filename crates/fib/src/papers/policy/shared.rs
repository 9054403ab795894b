//! Policy routing for several workers: rules and the set of tables published whole, routes shared as tables share them.

use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::compiled::Compiled;
use super::{Policy, PolicyKey, Rule, lookup_batch};
use crate::address::Address;
use crate::error::FibError;
use crate::fib::{Fib, Shared};
use crate::table::AdjacencyIndex;

/// What workers follow: the rules and the handles of the tables as they were at some moment.
struct State<A: Address, S: Shared<A>> {
    rules: Arc<Compiled<A, S>>,
    tables: BTreeMap<u8, S::Reader>,
}

impl<A: Address, S: Shared<A>> Clone for State<A, S> {
    fn clone(&self) -> Self {
        State { rules: self.rules.clone(), tables: self.tables.clone() }
    }
}

struct Published<A: Address, S: Shared<A>> {
    version: AtomicU64,
    state: Mutex<State<A, S>>,
}

impl<A: Address, S: Shared<A>> Published<A, S> {
    fn state(&self) -> MutexGuard<'_, State<A, S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`Policy`] whose lookups may run on other threads while its owner changes it; the writer's handle.
///
/// A change of a route is seen at once, as the tables show it; a change of the rules and a new table from a reader's
/// next batch on.
pub struct SharedPolicy<A: Address, S: Shared<A>> {
    policy: Policy<A, S>,
    published: Arc<Published<A, S>>,
}

impl<A: Address, S: Shared<A>> SharedPolicy<A, S> {
    /// No rules and no tables: every lookup misses.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn new() -> Result<Self, FibError> {
        let policy = Policy::new()?;
        let state = State { rules: policy.compiled.clone(), tables: BTreeMap::new() };
        let published = Arc::new(Published { version: AtomicU64::new(0), state: Mutex::new(state) });
        Ok(SharedPolicy { policy, published })
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
        self.published.state().rules = self.policy.compiled.clone();
        self.published.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// A table, made when it is first asked for.
    ///
    /// # Errors
    /// [`FibError::Memory`] if the system gives no address space.
    pub fn table(&mut self, number: NonZeroU8) -> Result<&mut Fib<A, S>, FibError> {
        let is_new = !self.policy.tables.contains_key(&number.get());
        let table = self.policy.table(number)?;
        if is_new {
            self.published.state().tables.insert(number.get(), table.reader());
            self.published.version.fetch_add(1, Ordering::Release);
        }
        Ok(table)
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
        let seen = self.published.version.load(Ordering::Acquire);
        PolicyReader { published: self.published.clone(), seen, state: self.published.state().clone() }
    }
}

/// A worker's handle of a [`SharedPolicy`]; one per thread.
pub struct PolicyReader<A: Address, S: Shared<A>> {
    published: Arc<Published<A, S>>,
    seen: u64,
    state: State<A, S>,
}

impl<A: Address, S: Shared<A>> PolicyReader<A, S> {
    /// Looks up `keys[i]` into `results[i]`; the shorter slice decides how many.
    pub fn lookup_batch(&mut self, keys: &[PolicyKey<A>], results: &mut [AdjacencyIndex]) {
        let version = self.published.version.load(Ordering::Acquire);
        if version != self.seen {
            self.renew(version);
        }
        lookup_batch(&self.state.rules, &self.state.tables, keys, results);
    }

    #[cold]
    fn renew(&mut self, version: u64) {
        self.seen = version;
        // Taken only after a change of the rules, and only against the control side.
        self.state = self.published.state().clone();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::compact16::Compact16;
    use crate::papers::policy::Action;
    use crate::prefix::Prefix;
    use crate::table::{MISS, Table};
    use std::sync::atomic::AtomicBool;

    fn number(number: u8) -> NonZeroU8 {
        NonZeroU8::new(number).unwrap()
    }

    fn rule(priority: u32, action: Action) -> Rule<u32> {
        Rule { priority, source: None, tos: None, mark: None, interface: None, action }
    }

    #[test]
    fn readers_follow_rules_tables_and_routes() {
        let mut policy = SharedPolicy::<u32, Compact16>::new().unwrap();
        let mut reader = policy.reader();
        let mut look = || {
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
                let (mut reader, done) = (policy.reader(), &done);
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
