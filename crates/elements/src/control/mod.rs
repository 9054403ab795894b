//! Control: elements by which other programs, or the configuration itself, steer the router.

use causeway_engine::Spec;

mod control_socket;

pub use control_socket::{CONTROL, ControlPlace, OpenControl, OpenedControl};

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&control_socket::SPEC];
