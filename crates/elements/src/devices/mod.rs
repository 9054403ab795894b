//! Devices: where packets come from outside and go there.

use causeway_engine::Spec;

mod egress;
mod from_device;
mod from_host;
mod given_up;
pub(crate) mod handled;
mod kernel_tap;
mod kernel_tun;
mod names;
pub(crate) mod open_port;
mod queues;
pub(crate) mod registry;
mod to_device;
mod to_host;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &from_device::POLL,
    &from_device::SPEC,
    &from_host::SPEC,
    &kernel_tap::SPEC,
    &kernel_tun::SPEC,
    &to_device::SPEC,
    &to_host::SPEC,
];

pub use egress::{EGRESSES, Egresses, OVERHEAD};
pub use given_up::{Entry, GIVEN_UP, GivenUp, Luggage};
pub use handled::{HANDLED, Handled};
pub(crate) use kernel_tun::mark_ip;
pub use names::{interface, interfaces};
pub use registry::{FRONT, OpenPorts, PORTS};
