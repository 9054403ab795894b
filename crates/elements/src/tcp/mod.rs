//! TCP.

use causeway_engine::Spec;

mod tcp_ip_send;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&tcp_ip_send::SPEC];
