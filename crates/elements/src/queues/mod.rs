//! Queues: where pushing ends and pulling begins.

use causeway_engine::Spec;

mod fifo;
mod queue;
mod simple_queue;
mod unqueue;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&queue::SPEC, &simple_queue::SPEC, &unqueue::SPEC];
