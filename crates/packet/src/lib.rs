//! Frames, the frame pool, packets, batches, annotations, wire formats and checksums.
//!
//! # What this crate is for
//!
//! Everything that touches the bytes of a packet does it through this crate. A **frame** is a fixed-size chunk
//! of one big mapping; the mapping can be registered as the UMEM of every AF_XDP port, so that forwarding moves
//! a pointer and never the bytes. A [`Packet`] owns one frame. It is not `Clone`: dropping it puts the frame
//! back on the free list of the thread that drops it, so nothing leaks and nothing is freed twice. A [`Batch`]
//! is up to [`BATCH`] packets in an inline array, the unit in which the whole router works.
//!
//! # The parts
//!
//! * [`pool`]: the mapping, the free lists (the papers' buffer recycling) and the general-allocator mode that
//!   the buffer-recycling experiment compares with;
//! * [`Packet`] and its [`meta::Meta`]: data window, header offsets, annotations, hot fields;
//! * [`Batch`];
//! * [`wire`]: checked views of Ethernet, ARP, IPv4, IPv6, ICMP, UDP and TCP;
//! * [`checksum`]: the internet checksum, whole and incremental;
//! * [`words`]: counters in a shared-memory file that any process may map and read.
//!
//! # Invariants
//!
//! * A frame is in exactly one place: one `Packet`, one thread's magazine, the shared free stack, or a device's
//!   ring. Ownership moves with the value; there is no reference count.
//! * The data window always lies inside the frame: `data + len <= frame size`.
//! * Per packet nothing here allocates, locks or makes a system call; a magazine is refilled from the shared
//!   stack once per [`pool::CHUNK`] frames, without a lock.
//!
//! # Where metadata lives
//!
//! Packet metadata is kept in one dense array beside the frames and not in the frames' headroom. AF_XDP wants
//! power-of-two frames, and at a stride of 2 048 bytes the metadata of all packets would share two of the 64
//! sets of a first-level cache: a batch of 256 would evict itself. At a stride of 128 bytes it fits.

#![cfg_attr(not(test), warn(clippy::disallowed_macros))]

mod annotations;
mod batch;
pub mod checksum;
pub mod meta;
mod packet;
pub mod pool;
mod region;
pub mod wire;
pub mod words;

pub use batch::{BATCH, Batch};
pub use meta::{Anno, PacketType};
pub use packet::{NoRoom, Packet};
