//! Sources: packets that the router makes by itself.

use causeway_engine::Spec;

mod ether_pause_source;
mod fast_flows;
mod fast_udp_source;
mod flows;
mod generator;
mod infinite_source;
mod rated_source;
mod set_test_payload;
mod timed_source;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &ether_pause_source::SPEC,
    &fast_flows::TCP,
    &fast_flows::UDP,
    &fast_udp_source::SPEC,
    &fast_udp_source::SPEC_IP6,
    &infinite_source::SPEC,
    &infinite_source::RANDOM,
    &rated_source::SPEC,
    &set_test_payload::SPEC,
    &timed_source::SPEC,
];
