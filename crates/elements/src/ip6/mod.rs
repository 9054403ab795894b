//! IPv6: checking, forwarding, errors, tunnels, and translation from and to IPv4.

use causeway_engine::Spec;

mod address_translator;
mod check_ip6_header;
mod dec_ip6_hlim;
mod get_ip6_address;
mod icmp6_error;
pub(crate) mod ip6_encap;
mod ip6_fragmenter;
mod ip6_mirror;
mod ip6_print;
mod mark_ip6_header;
mod protocol_translator;
mod set_ip6_address;
mod set_ip6_dscp;
mod translate;
pub(crate) mod written;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &address_translator::SPEC,
    &check_ip6_header::SPEC,
    &dec_ip6_hlim::SPEC,
    &get_ip6_address::SPEC,
    &icmp6_error::SPEC,
    &ip6_encap::SPEC,
    &ip6_fragmenter::SPEC,
    &ip6_mirror::SPEC,
    &ip6_print::SPEC,
    &mark_ip6_header::SPEC,
    &protocol_translator::SPEC_46,
    &protocol_translator::SPEC_64,
    &set_ip6_address::SPEC,
    &set_ip6_dscp::SPEC,
];
