//! ICMP: errors and answers.

use causeway_engine::Spec;

mod check_icmp_header;
mod encap;
mod icmp_error;
mod icmp_ip_encap;
mod icmp_ping_encap;
mod icmp_ping_responder;
mod icmp_ping_source;
pub(crate) mod names;
mod report;
mod round_trips;

pub(crate) use report::source_route;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &check_icmp_header::SPEC,
    &icmp_error::SPEC,
    &icmp_ip_encap::SPEC,
    &icmp_ping_encap::SPEC,
    &icmp_ping_responder::SPEC,
    &icmp_ping_source::SPEC,
];
