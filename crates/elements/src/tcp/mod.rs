//! TCP: checking, checksums, and packets from a trace.

use causeway_engine::Spec;

mod check_tcp_header;
mod set_tcp_checksum;
mod tcp_ip_send;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&check_tcp_header::SPEC, &set_tcp_checksum::SPEC, &tcp_ip_send::SPEC];
