//! Queues: where pushing ends and pulling begins.

use causeway_engine::Spec;

mod queue;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&queue::SPEC];
