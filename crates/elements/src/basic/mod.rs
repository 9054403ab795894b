//! The simplest elements: pass, drop, copy, cut.

use causeway_engine::Spec;

mod check_length;
mod discard;
mod idle;
mod null;
mod strip;
mod tee;
mod unstrip;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &check_length::SPEC,
    &discard::SPEC,
    &idle::SPEC,
    &null::SPEC,
    &strip::SPEC,
    &tee::SPEC,
    &unstrip::SPEC,
];
