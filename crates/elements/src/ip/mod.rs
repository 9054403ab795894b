//! IPv4: checking, marking, forwarding.

use causeway_engine::Spec;

mod check_ip_header;
mod dec_ip_ttl;
mod get_ip_address;
pub(crate) mod header;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&check_ip_header::SPEC, &dec_ip_ttl::SPEC, &get_ip_address::SPEC];
