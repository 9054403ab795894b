//! Sockets of the kernel's as ends of the graph.
//!
//! [`descriptors`] are what outlives a hot swap; [`inlet`] receives and [`outlet`] sends, neither of which ever waits for
//! the kernel. The classes are about addresses and options.

use causeway_engine::{Error, Spec};
use rustix::io::Errno;

mod descriptors;
mod inlet;
mod mcast_socket;
mod one_way;
mod outlet;
mod raw_socket;
mod socket;
mod socket_args;
mod stream;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &mcast_socket::SPEC,
    &one_way::FROM,
    &one_way::FROM_RAW,
    &one_way::TO,
    &one_way::TO_RAW,
    &raw_socket::SPEC,
    &socket::SPEC,
];

/// The error of a system call in Click's words.
fn failed(call: &str) -> impl Fn(Errno) -> Error {
    move |e| Error::new(text(e)).of(call)
}

/// What the system says of an error, without its number.
fn text(e: Errno) -> String {
    let text = std::io::Error::from(e).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
