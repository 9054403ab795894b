//! ICMP: errors and answers.

use causeway_engine::Spec;

mod check_icmp_header;
mod icmp_error;
mod icmp_ping_responder;
pub(crate) mod names;
mod report;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&check_icmp_header::SPEC, &icmp_error::SPEC, &icmp_ping_responder::SPEC];
