//! IPv4: checking, marking, forwarding.

use causeway_engine::Spec;

mod check_ip_header;
mod dec_ip_ttl;
mod fix_ip_src;
mod get_ip_address;
pub(crate) mod header;
mod mark_ip_header;
mod set_ip_checksum;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &check_ip_header::SPEC,
    &dec_ip_ttl::SPEC,
    &fix_ip_src::SPEC,
    &get_ip_address::SPEC,
    &mark_ip_header::SPEC,
    &set_ip_checksum::SPEC,
];
