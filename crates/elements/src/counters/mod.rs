//! Counters: how many packets and bytes passed, and how fast.

use causeway_engine::Spec;

mod average_counter;
mod counter;
mod test_counter;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&average_counter::SPEC, &counter::SPEC, &test_counter::SPEC];
