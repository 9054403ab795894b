//! TCP: checking, checksums, cutting, and packets made by hand.

use causeway_engine::Spec;

mod check_tcp_header;
mod set_tcp_checksum;
mod tcp_fragmenter;
mod tcp_ip_send;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] =
    &[&check_tcp_header::SPEC, &set_tcp_checksum::SPEC, &tcp_fragmenter::SPEC, &tcp_ip_send::SPEC];
