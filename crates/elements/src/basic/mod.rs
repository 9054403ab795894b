//! The simplest elements: pass, drop, copy, cut.

use causeway_engine::Spec;

mod align;
mod check_crc32;
mod check_length;
mod clipboard;
mod discard;
mod hub;
mod idle;
mod null;
mod pad;
mod pull_null;
mod pull_tee;
mod push_null;
mod random_bit_errors;
mod resize;
mod set_crc32;
mod store_data;
mod strip;
mod strip_to_network_header;
mod tee;
mod timed_sink;
mod truncate;
mod unstrip;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &align::SPEC,
    &check_crc32::SPEC,
    &check_length::SPEC,
    &clipboard::SPEC,
    &discard::SPEC,
    &hub::SPEC,
    &idle::SPEC,
    &null::SPEC,
    &pad::SPEC,
    &pull_null::SPEC,
    &pull_tee::SPEC,
    &push_null::SPEC,
    &random_bit_errors::SPEC,
    &resize::SPEC,
    &set_crc32::SPEC,
    &store_data::SPEC,
    &strip::SPEC,
    &strip_to_network_header::SPEC,
    &tee::SPEC,
    &timed_sink::SPEC,
    &truncate::SPEC,
    &unstrip::SPEC,
];
