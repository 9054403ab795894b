//! Sources: packets that the router makes by itself.

use causeway_engine::Spec;

mod fast_udp_source;
mod generator;
mod infinite_source;
mod rated_source;
mod set_test_payload;
mod timed_source;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &fast_udp_source::SPEC,
    &fast_udp_source::SPEC_IP6,
    &infinite_source::SPEC,
    &rated_source::SPEC,
    &set_test_payload::SPEC,
    &timed_source::SPEC,
];
