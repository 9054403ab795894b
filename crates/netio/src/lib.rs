//! Ports: how packets come into the router and leave it.
//!
//! # What this crate is for
//!
//! The interface stays the kernel's: the default port (AF_XDP) attaches a small XDP program that hands to user space
//! what is surely in transit and leaves the rest to the kernel's stack. That program, and all others, are assembled
//! with `causeway-bpf`; there is no compiler and no ELF in between.
//!
//! # The parts
//!
//! * [`port`]: what a port is, and how to add a backend; [`opener`]: which backends there are, by name;
//! * [`completion`], [`statistics`]: what was sent when, and what was counted;
//! * [`afxdp`], [`tcx`], [`afpacket`], [`tap`], [`pcap`], [`memory`]: the ports, with a function each that opens them;
//! * [`live`]: transmission of large batches on copy-mode ports;
//! * [`punt`]: the way back into the kernel's stack;
//! * [`interface`], [`features`], [`offload`]: what the kernel says of an interface, and changes that undo themselves;
//! * [`front`]: the programs in front of the ports, which decide what the router takes and what the kernel keeps.
//!
//! # Invariants
//!
//! * Nothing outlives the process: programs are held by descriptors, never pinned, and what was changed on an
//!   interface is put back when the port is dropped. When the process is killed all ports pass to the kernel at once,
//!   before their descriptors are closed.
//! * Every frame that a socket or a device drops is counted somewhere this crate shows.
//! * A frame is a packet's or one ring's. Frames go to a ring and come back by its
//!   [`RingFrames`](causeway_packet::ledger::RingFrames), which believes no number that it did not give out, and those
//!   of a closed socket when the kernel cannot touch them any more.
//! * Foreign bytes (frames, capture files) never make it panic.

#![allow(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::missing_errors_doc)
)]

pub mod addresses;
pub mod afpacket;
pub mod afxdp;
mod attachment;
pub mod completion;
mod device_counters;
mod ethtool;
pub mod features;
pub mod front;
pub mod interface;
mod link;
pub mod live;
pub mod memory;
mod netlink;
pub mod offload;
pub mod opener;
mod parcel;
pub mod pcap;
pub mod port;
pub mod punt;
mod socket_option;
pub mod statistics;
pub mod tap;
pub mod tcx;
#[cfg(test)]
mod testnet;

pub use causeway_bpf::{Error, ErrorKind, Result};
pub use port::{Capabilities, Event, Events, Port, Queue, Rx, Tx};
pub use socket_option::{filter_dumps, netns_cookie, socket_option};
pub use statistics::{RX_DROP, Statistic, Statistics, TX_DROP};
