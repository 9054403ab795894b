//! Routing tables: longest-prefix match on the destination annotation.
//!
//! All classes here are one element ([`lookup`]) over different lookup structures of `causeway-fib`, with one route
//! syntax ([`routes`]) and one set of next hops ([`hops`]).

use causeway_engine::Spec;

mod family;
pub(crate) mod hops;
mod linear_ip_lookup;
pub(crate) mod lookup;
mod lookup_ip6_route;
mod radix_ip_lookup;
mod routes;
mod static_ip_lookup;
#[cfg(test)]
mod tests;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] =
    &[&linear_ip_lookup::SPEC, &lookup_ip6_route::SPEC, &radix_ip_lookup::SPEC, &static_ip_lookup::SPEC];
