//! Many machines: nodes behind a router that spreads packets over them, and routers of several stages.
//!
//! Everything here is of frames and whole machines: a machine handles so many frames a second and has room for so many. What
//! one machine does is asked of [`today`](crate::today) or measured.
//!
//! - [`hashing`]: which node a flow goes through, by the kernel's own hash and its rules, and which flows move.
//! - [`timers`]: how long it takes until a failure is noticed, as the protocols and their daemons have it.
//! - [`failure`]: a node fails under traffic: what is lost, which flows move, how long it takes.
//! - [`network`]: throughput, delays and reordering of whole layouts, from one machine to many.
//! - [`report`]: all of it for people, and in the common format.
//!
//! `causeway lab cluster` does the same for real with a few nodes; flows there are these, so that numbers can be compared one
//! by one.

pub mod failure;
pub mod hashing;
pub mod network;
pub mod report;
#[cfg(test)]
mod tests;
pub mod timers;
