//! Switching: which output a packet takes, whatever is in it.

use causeway_engine::Spec;

mod bypass;
mod cpu_switch;
mod hash_switch;
mod input_switch;
mod random_sample;
mod random_switch;
mod round_robin_switch;
mod static_switch;
mod stride_switch;
mod suppressor;
mod switch;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &bypass::SPEC,
    &cpu_switch::SPEC,
    &hash_switch::SPEC,
    &input_switch::SPEC,
    &random_sample::SPEC,
    &random_switch::SPEC,
    &round_robin_switch::SPEC,
    &static_switch::SPEC,
    &stride_switch::SPEC,
    &suppressor::SPEC,
    &switch::SPEC,
];
