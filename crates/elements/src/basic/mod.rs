//! The simplest elements: pass, drop, copy, cut.

use causeway_engine::Spec;

mod align;
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
mod resize;
mod strip;
mod tee;
mod timed_sink;
mod truncate;
mod unstrip;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &align::SPEC,
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
    &resize::SPEC,
    &strip::SPEC,
    &tee::SPEC,
    &timed_sink::SPEC,
    &truncate::SPEC,
    &unstrip::SPEC,
];
