//! Ethernet: encapsulation and address resolution.

use causeway_engine::Spec;

mod arp_querier;
mod arp_responder;
mod arp_table;
pub(crate) mod drop_broadcasts;
mod ether_encap;
mod ether_mirror;
mod ether_rewrite;
mod ether_vlan_encap;
pub(crate) mod header_cache;
mod host_ether_filter;
mod mark_mac_header;
mod neighbour_table;
mod neighbours;
mod set_vlan_anno;
mod store_ether_address;
mod strip_ether_vlan_header;
mod vlan_decap;
mod vlan_encap;
mod vlan_tag;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &arp_querier::SPEC,
    &arp_responder::SPEC,
    &arp_table::SPEC,
    &drop_broadcasts::SPEC,
    &ether_encap::SPEC,
    &ether_mirror::SPEC,
    &ether_rewrite::SPEC,
    &ether_vlan_encap::SPEC,
    &host_ether_filter::SPEC,
    &mark_mac_header::SPEC,
    &set_vlan_anno::SPEC,
    &store_ether_address::SPEC,
    &strip_ether_vlan_header::SPEC,
    &vlan_decap::SPEC,
    &vlan_encap::SPEC,
];
