//! Queues: where pushing ends and pulling begins.

use causeway_engine::Spec;

mod cpu_queue;
mod deque;
mod fifo;
mod front_drop_queue;
mod mixed_queue;
mod notifier_debug;
mod notifier_queue;
mod queue;
mod quick_note_queue;
mod simple_queue;
mod thread_safe_queue;
mod unqueue;
mod unqueue2;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &cpu_queue::SPEC,
    &front_drop_queue::SPEC,
    &mixed_queue::SPEC,
    &notifier_debug::SPEC,
    &notifier_queue::SPEC,
    &queue::SPEC,
    &quick_note_queue::SPEC,
    &simple_queue::SPEC,
    &thread_safe_queue::SPEC,
    &unqueue::SPEC,
    &unqueue2::SPEC,
];
