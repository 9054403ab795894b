//! Frames, the frame pool, packets, batches, annotations, wire formats and checksums.
//!
//! # What this crate is for
//!
//! Everything that touches the bytes of a packet does it through this crate. A **frame** is a fixed-size chunk
//! of one big mapping; the mapping can be registered as the UMEM of every AF_XDP port, so that forwarding moves
//! a number and never the bytes. A [`Packet`] owns one frame. It is not `Clone`: dropping it puts the frame
//! back on the free list of the thread that drops it, so nothing leaks and nothing is freed twice. A [`Batch`]
//! is up to [`BATCH`] packets in an inline array, the unit in which the whole router works.
//!
//! # The parts, in the order in which to read them
//!
//! * [`pool`]: the free lists (the papers' buffer recycling) and the general-allocator mode that the
//!   buffer-recycling experiment compares with; below it the mapping (`memory`) and the stack of free frames that
//!   threads share (`stack`);
//! * [`ledger`]: who has each frame, and how frames go to a device's rings and come back;
//! * [`Packet`] and its [`meta::Meta`]: data window, header offsets, annotations, hot fields;
//! * [`Batch`], and [`Receiver`]: whatever fills batches with packets from outside;
//! * [`Alert`]: how who has packets for another wakes him;
//! * [`wire`]: checked views of Ethernet, ARP, IPv4, IPv6, ICMP, UDP and TCP;
//! * [`checksum`]: the internet checksum, whole and incremental;
//! * [`hints`]: what processor and system may be told of memory;
//! * [`words`]: counters in a shared-memory file that any process may map and read.
//!
//! # Invariants
//!
//! * A frame is a number, and has one owner, which the ledger in the mapping notes: nobody (its number is in one
//!   thread's magazine or on the shared stack), one `Packet`, or one ring of a device. There is no reference count.
//! * Who owns a frame is the only one to change its owner: the thread that has the number, the packet, or the ring's
//!   [`ledger::RingFrames`], which belongs to one thread at a time. So the words of the ledger are plain loads and
//!   stores.
//! * What a device says is checked against the ledger before it is believed: a frame that the ring does not have makes
//!   no packet and is not freed. The frames of a ring that was closed stay its own until its [`ledger::Claim`] is made
//!   good, which is for him to say who knows that the device has done with them.
//! * Metadata and bytes of a frame belong to its packet alone. Metadata is written when a frame becomes a packet, and
//!   neither read nor written while it is free or with a device.
//! * The data window always lies inside the frame: `data + len <= frame size`.
//! * Per packet nothing here allocates, locks or makes a system call; a magazine is refilled from the shared
//!   stack once per 256 frames, without a lock.
//!
//! # Where metadata lives
//!
//! Packet metadata is kept in one dense array beside the frames and not in the frames' headroom. AF_XDP wants
//! power-of-two frames, and at a stride of 2 048 bytes the metadata of all packets would share two of the 64
//! sets of a first-level cache: a batch of 256 would evict itself. At a stride of 128 bytes it fits.

#![allow(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

mod alert;
mod annotations;
mod batch;
pub mod checksum;
mod fifo;
pub mod flow;
pub mod hints;
pub mod ledger;
mod memory;
pub mod meta;
mod packet;
pub mod pool;
mod receiver;
mod stack;
pub mod wire;
pub mod words;

pub use alert::Alert;
pub use batch::{BATCH, Batch};
pub use fifo::Fifo;
pub use meta::{Anno, PacketType};
pub use packet::{NoRoom, Packet};
pub use receiver::Receiver;
