//! The kernel's routes as elements: forwarding by tables that follow the kernel's, and the way back into its stack.
//!
//! Whoever runs the router keeps [`Forwarding`] in step with the kernel and puts it among the values that outlive a
//! hot swap, under [`FORWARDING`]. The elements only read it. What the tables are not sure of is left to the kernel.

use causeway_engine::Spec;

mod flow;
mod forwarding;
mod kernel_forward;
pub mod lower;
mod punts;
#[cfg(test)]
mod tests;
mod to_kernel;
mod version;

pub use flow::{FlowFields, FlowHash, FlowPolicy};
pub use forwarding::{
    Deadline, FORWARDING, Forwarding, InDriver, KERNEL, Neighbour, PORTS_MAX, Paths, PortPolicy, ReversePath,
    Tally,
};
pub use punts::{PUNTS, Punts};

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[&kernel_forward::SPEC, &to_kernel::SPEC];
