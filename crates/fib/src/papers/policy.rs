//! Policy routing (the lookup paper's RPDB, §II.B): ordered rules choose among up to 255 tables.
//!
//! A rule selects packets by source, ToS, mark and incoming interface and sends them to a table, or ends the search.
//! No match in the table means the next rule. The rules are compiled into bit vectors, one for each class of each
//! field (Lakshman and Stiliadis, SIGCOMM 1998) with a summary bit for every 64 rules (Baboescu and Varghese,
//! SIGCOMM 2001), so thousands of rules cost one lookup of the source and a few words.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::error::FibError;
use crate::fib::Fib;
use crate::prefix::Prefix;
use crate::table::{AdjacencyIndex, BATCH_MAX, Lookup, MISS, Structure};

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

/// A set of rules by position: the bits, and a summary with a bit for every word that is not zero.
#[derive(Clone, Debug, Default)]
struct Bits {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Bits {
    fn of(count: usize, contains: impl Fn(usize) -> bool) -> Self {
        let mut words = vec![0_u64; count.div_ceil(64)];
        (0..count).filter(|&rule| contains(rule)).for_each(|rule| words[rule / 64] |= 1 << (rule % 64));
        let mut summary = vec![0_u64; words.len().div_ceil(64)];
        let filled = words.iter().enumerate().filter(|(_, word)| **word != 0);
        filled.for_each(|(at, _)| summary[at / 64] |= 1 << (at % 64));
        Bits { words, summary }
    }
}

/// The first rule at or after `from` that is in all sets.
fn first_common(sets: &[&Bits], from: usize) -> Option<usize> {
    let all = |pick: &dyn Fn(&Bits) -> u64| sets.iter().fold(u64::MAX, |bits, set| bits & pick(set));
    for group in from / 4096..sets[0].summary.len() {
        let mut summary = all(&|set| set.summary[group]);
        if group == from / 4096 {
            summary &= u64::MAX << (from / 64 % 64);
        }
        while summary != 0 {
            let at = group * 64 + summary.trailing_zeros() as usize;
            let mut word = all(&|set| set.words[at]);
            if at == from / 64 {
                word &= u64::MAX << (from % 64);
            }
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            summary &= summary - 1;
        }
    }
    None
}

/// One exact-match field: the set for each value that rules name, and for all others.
#[derive(Clone, Debug, Default)]
struct Field {
    values: Vec<(u32, Bits)>,
    others: Bits,
}

impl Field {
    /// `value` gives what a rule wants of the field; rules that want nothing are in every set.
    fn compile<A: Address>(rules: &[Rule<A>], value: impl Fn(&Rule<A>) -> Option<u32>) -> Self {
        let named: BTreeSet<u32> = rules.iter().filter_map(&value).collect();
        let set = |wanted: Option<u32>| {
            Bits::of(rules.len(), |at| value(&rules[at]).is_none_or(|value| Some(value) == wanted))
        };
        Field {
            values: named.into_iter().map(|value| (value, set(Some(value)))).collect(),
            others: set(None),
        }
    }

    fn set(&self, value: u32) -> &Bits {
        match self.values.binary_search_by_key(&value, |entry| entry.0) {
            Ok(at) => &self.values[at].1,
            Err(_) => &self.others,
        }
    }
}

/// The rules, compiled.
#[derive(Debug)]
struct Compiled<A: Address, S> {
    /// Class of a source, 0 for sources that no rule names.
    classes: Fib<A, S>,
    sources: Vec<Bits>,
    tos: Field,
    interface: Field,
    /// A field for each mask that rules use.
    marks: Vec<(u32, Field)>,
}

/// Fields a packet is classified by at once: source, ToS, interface and this many masks of the mark.
const MASKS_MAX: usize = 8;

impl<A: Address, S: Structure<A>> Compiled<A, S> {
    fn new(rules: &[Rule<A>]) -> Result<Self, FibError> {
        let prefixes: BTreeSet<Prefix<A>> = rules.iter().filter_map(|rule| rule.source).collect();
        let covers = |rule: &Rule<A>, prefix: Option<Prefix<A>>| {
            rule.source.is_none_or(|source| prefix.is_some_and(|prefix| source.covers(prefix)))
        };
        let set = |prefix| Bits::of(rules.len(), |at| covers(&rules[at], prefix));
        let routes: Vec<_> = prefixes.iter().copied().zip(1..).collect();
        let masks: BTreeSet<u32> = rules.iter().filter_map(|rule| rule.mark.map(|mark| mark.1)).collect();
        if masks.len() > MASKS_MAX {
            return Err(FibError::Full);
        }
        let mark = |mask| {
            // A rule with another mask wants nothing of this field.
            let wanted =
                move |rule: &Rule<A>| rule.mark.filter(|mark| mark.1 == mask).map(|mark| mark.0 & mask);
            (mask, Field::compile(rules, wanted))
        };
        Ok(Compiled {
            classes: Fib::build(&routes)?,
            sources: std::iter::once(set(None))
                .chain(prefixes.iter().map(|&prefix| set(Some(prefix))))
                .collect(),
            tos: Field::compile(rules, |rule| rule.tos.map(u32::from)),
            interface: Field::compile(rules, |rule| rule.interface),
            marks: masks.into_iter().map(mark).collect(),
        })
    }

    /// The first rule at or after `from` that selects a packet of the given class of sources.
    fn first(&self, key: &PolicyKey<A>, class: u32, from: usize) -> Option<usize> {
        let mut sets = [&self.sources[class as usize]; 3 + MASKS_MAX];
        sets[1] = self.tos.set(u32::from(key.tos));
        sets[2] = self.interface.set(key.interface);
        for (set, (mask, field)) in sets[3..].iter_mut().zip(&self.marks) {
            *set = field.set(key.mark & mask);
        }
        first_common(&sets[..3 + self.marks.len()], from)
    }
}

/// Rules and tables; see the module. Owned by one worker.
#[derive(Debug)]
pub struct Policy<A: Address, S> {
    rules: Vec<Rule<A>>,
    compiled: Compiled<A, S>,
    tables: BTreeMap<u8, Fib<A, S>>,
}

impl<A: Address, S: Structure<A>> Policy<A, S> {
    /// No rules and no tables: every lookup misses.
    ///
    /// # Errors
    /// None in practice: an empty table has room.
    pub fn new() -> Result<Self, FibError> {
        Ok(Policy { rules: Vec::new(), compiled: Compiled::new(&[])?, tables: BTreeMap::new() })
    }

    /// The rules in the order they apply.
    #[must_use]
    pub fn rules(&self) -> &[Rule<A>] {
        &self.rules
    }

    /// Puts `rules` in the place of all rules.
    ///
    /// # Errors
    /// [`FibError::Full`] with more than 8 masks of the mark, or [`FibError::AdjacencyRange`] with more source
    /// prefixes than a table has adjacencies; the rules are as before.
    pub fn set_rules(&mut self, rules: &[Rule<A>]) -> Result<(), FibError> {
        let mut sorted = rules.to_vec();
        sorted.sort_by_key(|rule| rule.priority);
        self.compiled = Compiled::new(&sorted)?;
        self.rules = sorted;
        Ok(())
    }

    /// A table, made when it is first asked for. `None` for number 0, which no rule can name.
    pub fn table(&mut self, number: u8) -> Option<&mut Fib<A, S>> {
        (number > 0).then(|| self.tables.entry(number).or_default())
    }

    /// The adjacency for a packet.
    #[must_use]
    pub fn lookup(&self, key: &PolicyKey<A>) -> AdjacencyIndex {
        let class = self.compiled.classes.lookup(key.source);
        let mut from = 0;
        while let Some(rule) = self.compiled.first(key, class, from) {
            match self.rules[rule].action {
                Action::Unreachable => return MISS,
                Action::Table(number) => {
                    let found = self.tables.get(&number).map_or(MISS, |table| table.lookup(key.destination));
                    if found != MISS {
                        return found;
                    }
                }
            }
            from = rule + 1;
        }
        MISS
    }

    /// Looks up `keys[i]` into `results[i]`; the shorter slice decides how many.
    pub fn lookup_batch(&self, keys: &[PolicyKey<A>], results: &mut [AdjacencyIndex]) {
        for (keys, results) in keys.chunks(BATCH_MAX).zip(results.chunks_mut(BATCH_MAX)) {
            self.group(keys, results);
        }
    }

    fn group(&self, keys: &[PolicyKey<A>], results: &mut [AdjacencyIndex]) {
        let mut addresses = [A::ZERO; BATCH_MAX];
        let mut classes = [0; BATCH_MAX];
        addresses.iter_mut().zip(keys).for_each(|(address, key)| *address = key.source);
        self.compiled.classes.lookup_batch(&addresses[..keys.len()], &mut classes);
        // The rule each packet is at; past the last one it is done.
        let done = self.rules.len();
        let mut at = [done; BATCH_MAX];
        for (lane, key) in keys.iter().enumerate() {
            results[lane] = MISS;
            at[lane] = self.compiled.first(key, classes[lane], 0).unwrap_or(done);
        }
        while let Some(lane) = at[..keys.len()].iter().position(|&rule| rule < done) {
            let Action::Table(number) = self.rules[at[lane]].action else {
                at[lane] = done;
                continue;
            };
            self.look_in(number, keys, &classes, &mut at, results);
        }
    }

    /// Takes every packet whose rule names this table to it, and those it does not know to their next rule.
    fn look_in(
        &self,
        number: u8,
        keys: &[PolicyKey<A>],
        classes: &[u32; BATCH_MAX],
        at: &mut [usize; BATCH_MAX],
        results: &mut [AdjacencyIndex],
    ) {
        let (mut lanes, mut addresses, mut found) = ([0; BATCH_MAX], [A::ZERO; BATCH_MAX], [MISS; BATCH_MAX]);
        let mut count = 0;
        for (lane, key) in keys.iter().enumerate() {
            let rule = self.rules.get(at[lane]);
            if rule.is_some_and(|rule| rule.action == Action::Table(number)) {
                lanes[count] = lane;
                addresses[count] = key.destination;
                count += 1;
            }
        }
        if let Some(table) = self.tables.get(&number) {
            table.lookup_batch(&addresses[..count], &mut found);
        }
        for (&lane, &adjacency) in lanes[..count].iter().zip(&found) {
            results[lane] = adjacency;
            at[lane] = match adjacency {
                MISS => self.compiled.first(&keys[lane], classes[lane], at[lane] + 1),
                _ => None,
            }
            .unwrap_or(self.rules.len());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::compact16::Compact16;
    use crate::table::Table;
    use proptest::prelude::*;

    fn rule() -> impl Strategy<Value = Rule<u32>> {
        let source = prop::option::of(
            (0_u32..8, 0_u8..=8)
                .prop_map(|(top, len)| Prefix::new(top << 29, len).expect("a length up to 8")),
        );
        let mark = prop::option::of((0_u32..4, prop::sample::select(vec![1, 3, u32::MAX])));
        let action = prop_oneof![4 => (1_u8..5).prop_map(Action::Table), 1 => Just(Action::Unreachable)];
        (0_u32..100, source, prop::option::of(0_u8..3), mark, prop::option::of(0_u32..3), action).prop_map(
            |(priority, source, tos, mark, interface, action)| Rule {
                priority,
                source,
                tos,
                mark,
                interface,
                action,
            },
        )
    }

    fn key() -> impl Strategy<Value = PolicyKey<u32>> {
        (any::<u32>(), 0_u32..4, 0_u8..3, 0_u32..4, 0_u32..3).prop_map(
            |(source, top, tos, mark, interface)| PolicyKey {
                source,
                destination: top << 24,
                tos,
                mark,
                interface,
            },
        )
    }

    fn naive(rules: &[Rule<u32>], policy: &Policy<u32, Compact16>, key: &PolicyKey<u32>) -> u32 {
        let mut sorted = rules.to_vec();
        sorted.sort_by_key(|rule| rule.priority);
        for rule in sorted.iter().filter(|rule| rule.selects(key)) {
            let Action::Table(number) = rule.action else { return MISS };
            let found = policy.tables.get(&number).map_or(MISS, |table| table.lookup(key.destination));
            if found != MISS {
                return found;
            }
        }
        MISS
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn compiled_rules_choose_as_a_list_does(
            rules in prop::collection::vec(rule(), 0..300),
            keys in prop::collection::vec(key(), 1..300),
        ) {
            let mut policy = Policy::<u32, Compact16>::new().unwrap();
            policy.set_rules(&rules).unwrap();
            // Table n knows the destinations up to n: the others go on to the next rule.
            for number in 1..4_u8 {
                for top in 0..u32::from(number) {
                    let prefix = Prefix::new(top << 24, 8).unwrap();
                    policy.table(number).unwrap().insert(prefix, u32::from(number) * 10 + top).unwrap();
                }
            }
            let mut results = vec![u32::MAX; keys.len()];
            policy.lookup_batch(&keys, &mut results);
            for (key, result) in keys.iter().zip(results) {
                let expected = naive(&rules, &policy, key);
                prop_assert_eq!(policy.lookup(key), expected);
                prop_assert_eq!(result, expected);
            }
        }
    }

    #[test]
    fn thousands_of_rules_are_found_past_the_first_summary_word() {
        let last = 10_000;
        let rules: Vec<Rule<u32>> = (0..=last)
            .map(|number| Rule {
                priority: number,
                source: Prefix::new(0x0a00_0000 | number, 32).ok(),
                tos: None,
                mark: None,
                interface: None,
                action: Action::Table(1),
            })
            .collect();
        let mut policy = Policy::<u32, Compact16>::new().unwrap();
        policy.set_rules(&rules).unwrap();
        policy.table(1).unwrap().insert(Prefix::DEFAULT, 5).unwrap();
        let key = |source| PolicyKey { source, ..PolicyKey::default() };
        assert_eq!(policy.lookup(&key(0x0a00_0000 | last)), 5);
        assert_eq!(policy.lookup(&key(0x0a00_0001 + last)), MISS);
    }
}
