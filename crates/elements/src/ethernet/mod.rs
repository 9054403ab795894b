//! Ethernet: encapsulation and address resolution.

use causeway_engine::Spec;

mod arp_faker;
mod arp_querier;
mod arp_responder;
mod arp_table;
mod check_arp_header;
pub(crate) mod drop_broadcasts;
mod ensure_ether;
mod ether_encap;
mod ether_mirror;
mod ether_rewrite;
mod ether_switch;
mod ether_vlan_encap;
mod get_ether_address;
pub(crate) mod header_cache;
mod host_ether_filter;
mod ip6_nd_advertiser;
mod ip6_nd_solicitor;
mod mark_mac_header;
mod nd_message;
mod neighbour_table;
mod neighbours;
mod set_ether_address;
mod set_vlan_anno;
mod store_ether_address;
mod strip_ether_vlan_header;
mod vlan_decap;
mod vlan_encap;
mod vlan_tag;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &arp_faker::SPEC,
    &arp_querier::SPEC,
    &arp_responder::SPEC,
    &arp_table::SPEC,
    &check_arp_header::SPEC,
    &drop_broadcasts::SPEC,
    &ensure_ether::SPEC,
    &ether_encap::SPEC,
    &ether_mirror::SPEC,
    &ether_rewrite::SPEC,
    &ether_switch::SPEC,
    &ether_vlan_encap::SPEC,
    &get_ether_address::SPEC,
    &host_ether_filter::SPEC,
    &ip6_nd_advertiser::SPEC,
    &ip6_nd_solicitor::SPEC,
    &mark_mac_header::SPEC,
    &set_ether_address::SPEC,
    &set_vlan_anno::SPEC,
    &store_ether_address::SPEC,
    &strip_ether_vlan_header::SPEC,
    &vlan_decap::SPEC,
    &vlan_encap::SPEC,
];
