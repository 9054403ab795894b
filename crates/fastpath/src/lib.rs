//! The graph in the driver: elements that say what they do are compiled to one BPF program, which runs where packets arrive.
//!
//! # Parts, in the order to read them
//!
//! | where | what |
//! | --- | --- |
//! | [`Graph`] | elements, as programs of the intermediate representation ([`causeway_engine::ir`]), and the edges between them |
//! | [`split()`] | which part of a graph in a file that is |
//! | [`compile()`] | one BPF program of it: elements are blocks, joined by jumps |
//! | `state` | what is known of a packet at a place of the code, so that where its data and headers are costs no instruction |
//! | `parts` | what may be done at tcx to packets that are to be cut into others |
//! | `registers`, `write` | where registers are kept, and what an operation becomes |
//! | [`Table`] | lookups: the memory of a routing table, members of groups, words, or a hash table |
//! | [`Hops`] | what a routing table's entries lead to, each in one piece |
//! | [`Check`], [`Checks`], [`Asker`] | the kernel is asked about some packets whether it would do the same |
//! | [`Exit`], [`Luggage`] | how packets leave: by a port, dropped, or up to the graph in user space with what is known of them |
//! | [`Outlet`] | where packets of the stack go out by a port |
//! | [`Counters`] | what is counted, in memory that user space reads |
//!
//! # What always holds
//!
//! - The program does what the interpreter does ([`causeway_engine::ir::Program::run`]): the same way out, bytes, counters
//!   and reasons. It gives up where the interpreter does, and where a checksum's sum is over more than [`SUM_BYTES`] bytes.
//! - A packet that is given up goes up as it came to the element that gave it up, with its headers and annotations.
//! - A program has no loops, and calls no helper for a packet that needs none but the number of its processor, which the
//!   kernel compiles to an instruction.
//! - At tcx a super-packet is decided on and changed in one piece as each of its parts would be, or goes up and comes in parts.
//! - What the kernel would not forward as the table does is the kernel's, as soon as that is noticed.
//! - A packet that leaves changed leaves: whether the kernel takes it is settled before it is written ([`Routes::interfaces`]),
//!   or else it is dropped and counted, and never passed.
//! - What cannot be compiled is not lost: its packets go up, and [`Compiled::left`] says why.

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

mod check;
mod compile;
mod counters;
mod exit;
mod frame;
mod graph;
mod hops;
mod load;
mod outlet;
mod parts;
mod registers;
mod split;
mod state;
mod table;
mod ways;
mod write;

pub use check::{Answer, Asked, Asker, Check, Checks, Report, Version};
pub use compile::{Compiled, Failure, Options, compile};
pub use counters::Counters;
pub use exit::{Above, Action, Arrival, Exit, Hook, Luggage, Place};
pub use graph::{Graph, Node, Target};
pub use hops::{Hop, Hops, Marks};
pub use outlet::Outlet;
pub use split::{Known, Split, split};
pub use table::{Members, NextHops, Routes, SharedRegion, Table, Trie, Words, rank24};
pub use ways::Ways;
pub use write::SUM_BYTES;
