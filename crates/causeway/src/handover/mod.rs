//! One process takes the place of another that forwards by the kernel's routes, and no packet is lost: a new binary, the same
//! interfaces.
//!
//! The new one ([`New`]) starts as any other, up to the ports, and asks the old one ([`Old`]) at a socket beside its record.
//! Each message is a line of JSON ([`message`]):
//!
//! | from | message | what is done then |
//! | --- | --- | --- |
//! | new | `hello`: version of these messages, ports | |
//! | old | `welcome`, or `refused` and why | the new one reads the kernel's tables and compiles its programs |
//! | new | `ready` | the old one gives up the right to forward, empties its rings and closes its ports; the kernel forwards |
//! | old | `handed`, with descriptors: the ports' links, the sockets that clients know | the new one puts its program into each link, opens its ports, writes the record |
//! | new | `opened`, as often as there are more: how many rings are open by now | the old one is patient for as long again |
//! | new | `taken` | the old one ends, and undoes nothing |
//!
//! `opened` is said only to an old one whose `handed` says that it hears it: earlier versions do not, and say none either.
//!
//! Links at XDP are never closed, so no driver stops its rings to take a program off, and no carrier is lost; what is at tcx the
//! stack takes off and puts on without a packet's noticing, so those programs go with the ports. Until it has heard
//! `taken` the old one can go on: when the other says nothing more or goes away, it is ended by force, so that it holds no queue
//! and never wakes up again; then the old one puts its own program into the links and opens its ports again. Before `ready`
//! it forwards, after it the kernel does: no step depends on another's being quick.
//!
//! Counters begin anew; those of the old one's elements go on if it does. What was changed on interfaces and neighbours goes over with the record.

mod message;
mod new;
mod old;
mod peer;
mod progress;
mod queues;
#[cfg(test)]
mod tests;

pub use new::New;
pub use old::{Old, Running};

/// Of the messages. Others are refused.
const VERSION: u64 = 1;
/// Where ports are, in a `hello`.
const AT_XDP: &str = "xdp";
const AT_TCX: &str = "tcx";
/// The code of what is said of this, and of the objection to forwarding meanwhile.
pub const CODE: &str = "upgrade";
