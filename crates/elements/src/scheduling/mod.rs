//! Scheduling: which input is pulled next.

use causeway_engine::Spec;

mod drr_sched;
mod prio_sched;
mod pull_switch;
mod round_robin_sched;
mod sched_order_test;
mod simple_pull_switch;
mod static_pull_switch;
pub(crate) mod stride;
mod stride_sched;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &drr_sched::SPEC,
    &prio_sched::SPEC,
    &pull_switch::SPEC,
    &round_robin_sched::SPEC,
    &sched_order_test::SPEC,
    &simple_pull_switch::SPEC,
    &static_pull_switch::SPEC,
    &stride_sched::SPEC,
];
