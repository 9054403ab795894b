//! How a kernel of LUT finds a packet's route: by the route cache, or by a tree of all routes.
//!
//! Cache and trees are those of [`causeway_fib`], with their real chains and nodes. What they read goes through the
//! processor's cache; what they do with it is a number of cycles for each.

use crate::event::Time;
use crate::layout::Place;
use crate::machine::Machine;
use causeway_fib::baseline::lctrie::{LcTrie, TriePlace};
use causeway_fib::baseline::radix::Radix;
use causeway_fib::route_cache::{CacheConfig, CacheKey, CachePlace, Flow, RouteCache};
use causeway_fib::{Prefix, Rib, Structure};

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

#[derive(Clone, Debug)]
enum Structures {
    Cache(Box<RouteCache<u32>>),
    Radix(Radix<u32>),
    Trie(LcTrie<u32>),
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

    /// Looks up the packet of this number. Says what that takes beside waiting for memory.
    pub fn look_up(&mut self, number: u64) -> Time {
        let Routes { lookup, structures, costs, reads } = self;
        let draw = mixed(number);
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
        }
    }
}

fn flow(source: u32, destination: u32) -> Flow<u32> {
    Flow { source: SOURCE + source, destination: NETWORK + (destination << 8) + 1, tos: 0 }
}

/// A structure with so many routes of 24 bits.
fn built<S: Structure<u32>>(routes: u32) -> Option<S> {
    let route = |n: u32| (Prefix::truncated(NETWORK + (n << 8), 24), 1);
    let rib: Rib<u32> = (0..routes).map(route).collect();
    let mut structure = S::empty().ok()?;
    structure.rebuild(&rib).ok()?;
    Some(structure)
}

/// Bits that look random, the same for the same number (Steele et al., OOPSLA 2014: SplitMix).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
