//! The kernel's routes as elements: lookups in tables that follow the kernel's, and the way back into its stack.
//!
//! Whoever runs the router keeps [`Forwarding`] in step with the kernel and puts it among the values that outlive a
//! hot swap, under [`FORWARDING`]. The elements only read it. What the tables are not sure of is left to the kernel.

use causeway_engine::Spec;

mod flow;
mod forwarding;
mod lookup;
mod neighbor_rewrite;
#[cfg(test)]
mod tests;
mod to_kernel;

pub use flow::{FlowFields, FlowHash, FlowPolicy};
pub use forwarding::{FORWARDING, Forwarding, KERNEL, Neighbor};

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] =
    &[&lookup::SPEC, &lookup::SPEC6, &neighbor_rewrite::SPEC, &to_kernel::SPEC];
