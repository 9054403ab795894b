//! UDP: encapsulation, checking and checksums.

use causeway_engine::Spec;

mod check_udp_header;
mod set_udp_checksum;
pub(crate) mod udp_ip_encap;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&check_udp_header::SPEC, &set_udp_checksum::SPEC, &udp_ip_encap::SPEC];
