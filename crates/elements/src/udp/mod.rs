//! UDP: encapsulation and checksums.

use causeway_engine::Spec;

mod set_udp_checksum;
pub(crate) mod udp_ip_encap;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&set_udp_checksum::SPEC, &udp_ip_encap::SPEC];
