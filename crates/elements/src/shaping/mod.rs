//! Shaping: how fast packets go, and where they go by their rate.

use causeway_engine::Spec;

mod bandwidth_meter;
mod bandwidth_rated_splitter;
mod bandwidth_rated_unqueue;
mod bandwidth_shaper;
mod block;
mod bucket;
mod burster;
mod compare_block;
mod delay_shaper;
mod delay_unqueue;
mod gap_rate;
mod link_unqueue;
mod measure;
mod meter;
mod rated_splitter;
mod rated_unqueue;
mod shaper;
mod timed_unqueue;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &bandwidth_meter::SPEC,
    &bandwidth_rated_splitter::SPEC,
    &bandwidth_rated_unqueue::SPEC,
    &bandwidth_shaper::SPEC,
    &block::SPEC,
    &burster::SPEC,
    &compare_block::SPEC,
    &delay_shaper::SPEC,
    &delay_unqueue::SPEC,
    &link_unqueue::SPEC,
    &meter::SPEC,
    &rated_splitter::SPEC,
    &rated_unqueue::SPEC,
    &shaper::SPEC,
    &timed_unqueue::SPEC,
];
