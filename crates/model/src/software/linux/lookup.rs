//! How a kernel of LUT finds a packet's route: by the route cache, by a tree of all routes, or by rules that choose among trees.
//!
//! Cache, trees and rules are those of [`causeway_fib`], with their real chains and nodes. What they read goes through the
//! processor's cache; what they do with it is a number of cycles for each.

use crate::event::Time;
use crate::layout::Place;
use crate::machine::Machine;
use causeway_fib::baseline::lctrie::{LcTrie, TriePlace};
use causeway_fib::baseline::radix::Radix;
use causeway_fib::policy::{Action, Policy, PolicyKey, PolicyPlace, Rule};
use causeway_fib::route_cache::{CacheConfig, CacheKey, CachePlace, Flow, RouteCache};
use causeway_fib::{Prefix, Rib, Structure, Table};
use std::num::NonZeroU8;
use std::sync::Arc;

/// By what routes are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The route cache, with this key; every flow is in it already, since a run of the paper is much longer than what it
    /// takes to see all.
    Cache(CacheKey),
    /// The Radix tree, without a cache.
    Radix,
    /// The LC-trie, without a cache.
    Trie,
    /// So many rules of policy routing, without a cache: one for each source, as far as they go, in turn to the tables that
    /// know nothing and to those that have the routes. A last one sends all to the main table, a Radix tree as the others.
    Rules(u32),
}

/// What is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// By what.
    pub by: By,
    /// Addresses that packets come from, at random.
    pub sources: u32,
    /// Networks that packets go to, at random, each with a route of 24 bits.
    pub destinations: u32,
}

/// The first network and the first source.
const NETWORK: u32 = 0x0a00_0000;
const SOURCE: u32 = 0xc000_0000;
/// Tables that rules name, of which every second one has routes, and the main one (LUT §2.2: there may be 255).
const TABLES: u32 = 8;
const MAIN: NonZeroU8 = NonZeroU8::new(254).unwrap();
/// From what rules read of one kind to the next, and from a table to the next: no multiple of what a cache repeats after.
const KIND_STRIDE: u64 = (1 << 28) + 4_160;
const TABLE_STRIDE: u64 = (1 << 22) + 4_160;
/// Bytes of a group of rules, of a place of their values and of one of their lists, as `fib` has them.
const GROUP: u64 = 16;
const VALUES: u64 = 16;
const RULE: u64 = 4;

#[derive(Clone, Debug)]
enum Structures {
    Cache(Box<RouteCache<u32>>),
    Radix(Radix<u32>),
    Trie(LcTrie<u32>),
    Rules(Arc<Policy<u32, Radix<u32>>>),
}

#[derive(Clone, Debug)]
struct Costs {
    step: Time,
    table: Time,
    radix_node: Time,
    trie: Time,
    trie_node: Time,
}

/// A kernel's routes.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    lookup: Lookup,
    structures: Structures,
    costs: Costs,
    /// What the last lookup read.
    pub reads: Vec<Place>,
}

impl Routes {
    /// The routes of a machine; `None` if its file says nothing of lookups.
    pub fn new(machine: &Machine, lookup: Lookup) -> Option<Routes> {
        let (values, clock) = (machine.lookup.as_ref()?, &machine.processor.clock);
        let structures = match lookup.by {
            By::Cache(key) => {
                let config = CacheConfig::with_buckets(key, values.buckets.value as usize);
                let mut cache = RouteCache::new(config, 1);
                for n in 0..lookup.sources.max(lookup.destinations) {
                    cache.lookup(flow(n % lookup.sources, n % lookup.destinations), 0, |_| 1);
                }
                Structures::Cache(Box::new(cache))
            }
            By::Radix => Structures::Radix(built(lookup.destinations)?),
            By::Trie => Structures::Trie(built(lookup.destinations)?),
            By::Rules(rules) => Structures::Rules(Arc::new(ruled(rules, lookup.destinations)?)),
        };
        let costs = Costs {
            step: values.step.at(clock),
            table: values.table.at(clock),
            radix_node: values.radix_node.at(clock),
            trie: values.trie.at(clock),
            trie_node: values.trie_node.at(clock),
        };
        Some(Routes { lookup, structures, costs, reads: Vec::new() })
    }

    /// Entries of the route cache that hold a flow, and all that there are; none without one.
    pub fn entries(&self) -> [usize; 2] {
        match &self.structures {
            Structures::Cache(cache) => [cache.active(), cache.total()],
            Structures::Radix(_) | Structures::Trie(_) | Structures::Rules(_) => [0, 0],
        }
    }

    /// Looks up the packet of this number. Says what that takes beside waiting for memory.
    pub fn look_up(&mut self, number: u64) -> Time {
        let Routes { lookup, structures, costs, reads } = self;
        let draw = causeway_results::traffic::nth(0, number);
        let flow = flow((draw >> 32) as u32 % lookup.sources, draw as u32 % lookup.destinations);
        reads.clear();
        match structures {
            Structures::Cache(cache) => {
                let (mut spent, mut last) = (0, None);
                cache.visit(
                    flow,
                    0,
                    |_| 1,
                    |place| match place {
                        CachePlace::Bucket(n) => reads.push(Place::Bucket(n)),
                        CachePlace::Entry(n) => {
                            last = Some(Place::Entry(n));
                            reads.push(Place::EntryKey(n));
                            spent += costs.step;
                        }
                    },
                );
                reads.extend(last);
                spent
            }
            Structures::Radix(radix) => {
                let bytes = Radix::<u32>::NODE_BYTES as u64;
                radix.visit(flow.destination, |n| reads.push(Place::Table(u64::from(n) * bytes)));
                costs.table + reads.len() as Time * costs.radix_node
            }
            Structures::Trie(trie) => {
                let mut child = 0;
                trie.visit(flow.destination, |place| match place {
                    TriePlace::Root(n) => {
                        child = n;
                        reads.push(Place::TrieRoot(n));
                    }
                    TriePlace::Node(n) => reads.push(Place::TrieNode(child, n)),
                    TriePlace::Entry(n) => reads.push(Place::TrieRoute(child, n)),
                });
                costs.table + costs.trie + reads.len() as Time * costs.trie_node
            }
            Structures::Rules(policy) => {
                let Flow { source, destination, tos } = flow;
                let mut spent = costs.table;
                policy.visit(&PolicyKey { source, destination, tos, ..PolicyKey::default() }, |place| {
                    let node = matches!(place, PolicyPlace::Source(_) | PolicyPlace::Table(..));
                    spent += if node { costs.radix_node } else { costs.step };
                    reads.push(Place::Table(address(place)));
                });
                spent
            }
        }
    }
}

fn flow(source: u32, destination: u32) -> Flow<u32> {
    Flow { source: SOURCE + source, destination: NETWORK + (destination << 8) + 1, tos: 0 }
}

/// The network of this number.
fn network(n: u32) -> Prefix<u32> {
    Prefix::truncated(NETWORK + (n << 8), 24)
}

/// A structure with so many routes of 24 bits.
fn built<S: Structure<u32>>(routes: u32) -> Option<S> {
    let route = |n: u32| (network(n), 1);
    let rib: Rib<u32> = (0..routes).map(route).collect();
    let mut structure = S::empty().ok()?;
    structure.rebuild(&rib).ok()?;
    Some(structure)
}

/// Rules and their tables, with routes as [`built`].
fn ruled(rules: u32, routes: u32) -> Option<Policy<u32, Radix<u32>>> {
    let to = |table: u8, source: Option<Prefix<u32>>| {
        let action = Action::Table(table);
        Rule { priority: 0, source, tos: None, mark: None, interface: None, action }
    };
    let named = |n: u32| NonZeroU8::MIN.saturating_add((n % TABLES) as u8);
    let one = |n: u32| to(named(n).get(), Some(Prefix::truncated(SOURCE + n, 32)));
    let all: Vec<_> = (0..rules).map(one).chain([to(MAIN.get(), None)]).collect();
    let mut policy = Policy::new().ok()?;
    policy.set_rules(&all).ok()?;
    for number in (1..TABLES).step_by(2).map(named).chain([MAIN]) {
        let table = policy.table(number).ok()?;
        (0..routes).try_for_each(|n| table.insert(network(n), 1)).ok()?;
    }
    Some(policy)
}

/// Where something that rules read is.
fn address(place: PolicyPlace) -> u64 {
    let node = Radix::<u32>::NODE_BYTES as u64;
    match place {
        PolicyPlace::Source(n) => u64::from(n) * node,
        PolicyPlace::Group(n) => KIND_STRIDE + u64::from(n) * GROUP,
        PolicyPlace::Values(n) => 2 * KIND_STRIDE + u64::from(n) * VALUES,
        PolicyPlace::Rule(n) => 3 * KIND_STRIDE + u64::from(n) * RULE,
        PolicyPlace::Table(table, n) => {
            4 * KIND_STRIDE + u64::from(table) * TABLE_STRIDE + u64::from(n) * node
        }
    }
}
