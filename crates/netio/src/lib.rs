//! Ports: how packets come into the router and leave it, and the BPF machinery under them.
//!
//! The interface stays the kernel's: the default port (AF_XDP) attaches a small XDP program that hands to user space
//! what is surely in transit and leaves the rest to the kernel's stack. That program, and all others, are assembled
//! in this crate and loaded with bpf(2); there is no compiler, no ELF and no library in between.
//!
//! - [`bpf`]: assembler, maps, programs, links, and the classifying XDP programs.
//!
//! Invariants:
//! - Nothing outlives the process: programs are held by descriptors, never pinned, and what was changed on an
//!   interface is put back when the port is dropped.
//! - Every frame that a socket or a device drops is counted somewhere this crate shows.
//! - Foreign bytes (frames, capture files) never make it panic.

pub mod bpf;
mod error;

pub use error::{Error, ErrorKind, Result};
