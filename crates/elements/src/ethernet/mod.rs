//! Ethernet: encapsulation and address resolution.

use causeway_engine::Spec;

mod arp_querier;
mod arp_responder;
mod arp_table;
pub(crate) mod drop_broadcasts;
mod ether_encap;
pub(crate) mod header_cache;
mod neighbour_table;
mod neighbours;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] =
    &[&arp_querier::SPEC, &arp_responder::SPEC, &arp_table::SPEC, &drop_broadcasts::SPEC, &ether_encap::SPEC];
