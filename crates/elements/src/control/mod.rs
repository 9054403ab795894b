//! Control: elements by which other programs, or the configuration itself, steer the router.

use causeway_engine::Spec;

mod block_thread;
mod change_uid;
mod control_socket;
mod kernel_filter;
mod kernel_handler_proxy;
mod message;
mod progress_bar;
mod quit_watcher;
mod script;
mod spinlock;

pub use control_socket::{CONTROL, ControlPlace, OpenControl, OpenedControl};
pub use script::{SIGNALS, WatchSignals};

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &block_thread::SPEC,
    &change_uid::SPEC,
    &control_socket::SPEC,
    &kernel_filter::SPEC,
    &kernel_handler_proxy::SPEC,
    &message::SPEC,
    &progress_bar::SPEC,
    &quit_watcher::SPEC,
    &script::DRIVER_MANAGER,
    &script::SPEC,
    &spinlock::ACQUIRE,
    &spinlock::INFO,
    &spinlock::PUSH,
    &spinlock::RELEASE,
];
