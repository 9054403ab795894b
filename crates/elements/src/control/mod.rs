//! Control: elements by which other programs, or the configuration itself, steer the router.

use causeway_engine::Spec;

mod control_socket;
mod message;
mod script;

pub use control_socket::{CONTROL, ControlPlace, OpenControl, OpenedControl};
pub use script::{SIGNALS, WatchSignals};

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] =
    &[&control_socket::SPEC, &script::DRIVER_MANAGER, &message::SPEC, &script::SPEC];
