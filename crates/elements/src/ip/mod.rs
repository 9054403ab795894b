//! IPv4: checking, marking, forwarding.

use causeway_engine::Spec;

pub(crate) mod check_ip_header;
#[cfg(test)]
mod combos;
#[cfg(test)]
pub(crate) mod corpus;
pub(crate) mod dec_ip_ttl;
mod fix_ip_src;
mod get_ip_address;
pub(crate) mod header;
mod ip_encap;
pub(crate) mod ip_fragmenter;
mod ip_gw_options;
mod ip_input_combo;
mod ip_mirror;
mod ip_output_combo;
mod ip_rate_monitor;
mod ip_reassembler;
mod mark_ip_ce;
mod mark_ip_header;
mod rate_tree;
mod reassembly;
mod set_ip_address;
mod set_ip_checksum;
pub(crate) mod set_ip_dscp;
mod set_ip_ecn;
mod set_rand_ip_address;
mod store_ip_address;
mod strip_ip_header;
pub(crate) mod tally;
pub(crate) mod template;
pub(crate) mod transport_check;
mod truncate_ip_payload;
mod unstrip_ip_header;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &check_ip_header::SPEC,
    &check_ip_header::UNSUMMED,
    &dec_ip_ttl::SPEC,
    &fix_ip_src::SPEC,
    &get_ip_address::SPEC,
    &ip_encap::SPEC,
    &ip_fragmenter::SPEC,
    &ip_gw_options::SPEC,
    &ip_input_combo::SPEC,
    &ip_mirror::SPEC,
    &ip_output_combo::SPEC,
    &ip_rate_monitor::SPEC,
    &ip_reassembler::SPEC,
    &mark_ip_ce::SPEC,
    &mark_ip_header::SPEC,
    &set_ip_address::SPEC,
    &set_ip_checksum::SPEC,
    &set_ip_dscp::SPEC,
    &set_ip_ecn::SPEC,
    &set_rand_ip_address::SPEC,
    &store_ip_address::SPEC,
    &strip_ip_header::SPEC,
    &truncate_ip_payload::SPEC,
    &unstrip_ip_header::SPEC,
];
