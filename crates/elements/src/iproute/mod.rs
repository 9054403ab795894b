//! Routing tables: longest-prefix match on the destination annotation.
//!
//! All classes here are one element ([`lookup`]) over different lookup structures of `causeway-fib`, with one route
//! syntax ([`routes`]) and one set of next hops ([`hops`]). IPLookup and LookupIP6Route are the ones to take; the
//! others are for comparison, for configurations written for Click, and for the lookup paper's experiments.

use causeway_engine::Spec;

mod cached_ip_lookup;
mod direct_ip_lookup;
mod error;
mod family;
pub(crate) mod hops;
mod ip_lookup;
mod lc_trie_ip_lookup;
mod linear_ip_lookup;
mod linux_ip_lookup;
pub(crate) mod lookup;
mod lookup_ip6_route;
pub(crate) mod lower;
mod policy_ip_lookup;
#[cfg(test)]
mod policy_tests;
mod radix_ip_lookup;
mod range_ip_lookup;
mod rip_send;
mod routes;
mod rules;
mod static_ip_lookup;
#[cfg(test)]
mod tests;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &cached_ip_lookup::SPEC,
    &cached_ip_lookup::SPEC6,
    &direct_ip_lookup::SPEC,
    &ip_lookup::SPEC,
    &lc_trie_ip_lookup::SPEC,
    &lc_trie_ip_lookup::SPEC6,
    &linear_ip_lookup::SPEC,
    &linux_ip_lookup::SPEC,
    &lookup_ip6_route::SPEC,
    &policy_ip_lookup::SPEC,
    &policy_ip_lookup::SPEC6,
    &radix_ip_lookup::SPEC,
    &radix_ip_lookup::SPEC6,
    &range_ip_lookup::SPEC,
    &rip_send::SPEC,
    &static_ip_lookup::SPEC,
];
