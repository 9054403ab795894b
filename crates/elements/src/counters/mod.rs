//! Counters: how many packets and bytes passed, and how fast.

use causeway_engine::Spec;

mod average_counter;
mod counter;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&average_counter::SPEC, &counter::SPEC];
