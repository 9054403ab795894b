//! IPv6: checking and forwarding.

use causeway_engine::Spec;

mod check_ip6_header;
mod dec_ip6_hlim;
mod get_ip6_address;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&check_ip6_header::SPEC, &dec_ip6_hlim::SPEC, &get_ip6_address::SPEC];
