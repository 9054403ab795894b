//! TCP: checking, checksums, cutting, packets made by hand, and a client of web servers.

use causeway_engine::Spec;

mod check_tcp_header;
mod set_tcp_checksum;
mod tcp_fragmenter;
mod tcp_ip_send;
mod web_connection;
mod web_gen;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &check_tcp_header::SPEC,
    &set_tcp_checksum::SPEC,
    &tcp_fragmenter::SPEC,
    &tcp_ip_send::SPEC,
    &web_gen::SPEC,
];
