//! UDP: encapsulation, checking and checksums.

use causeway_engine::Spec;

mod check_udp_header;
mod dynamic_udp_ip_encap;
mod set_udp_checksum;
mod store_udp_time_seq_record;
mod udp_ip6_encap;
pub(crate) mod udp_ip_encap;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &check_udp_header::SPEC,
    &dynamic_udp_ip_encap::SPEC,
    &set_udp_checksum::SPEC,
    &store_udp_time_seq_record::SPEC,
    &udp_ip6_encap::SPEC,
    &udp_ip_encap::SPEC,
];
