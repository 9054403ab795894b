//! TCP: checking and checksums.

use causeway_engine::Spec;

mod check_tcp_header;
mod set_tcp_checksum;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&check_tcp_header::SPEC, &set_tcp_checksum::SPEC];
