//! Scheduling: which input is pulled next.

use causeway_engine::Spec;

mod prio_sched;
mod round_robin_sched;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&prio_sched::SPEC, &round_robin_sched::SPEC];
