//! A model of PC routers: what a machine that nobody here has would do, and why.
//!
//! # What this crate is for
//!
//! The papers measured routers on hardware of their time. Here that hardware is a simulation of its parts, made from what
//! the papers and data sheets say of them, so that each figure comes out with its reasons: which resource is saturated,
//! where the processor's time goes, where packets are lost. `causeway model OSR-4` prints a figure beside the paper's numbers, in the
//! format and under the names of the laboratory's experiments, so that one page can show both. Nothing here is measured,
//! and everything that comes out says so.
//!
//! # The parts, in the order to read them
//!
//! | where | what |
//! | --- | --- |
//! | [`event`] | the queue of events, which anybody may use: time is u64 picoseconds, an event is any small value |
//! | [`link`] | wires and sources of frames |
//! | [`bus`], [`memory`], [`cache`], [`nic`], [`processor`] | a part of a machine each; none knows another or the clock |
//! | [`hardware`], [`layout`] | the parts beside the processor, put together, and where things are in memory |
//! | [`software`] | a kernel: the live router's reception mechanisms over simulated rings, and what surrounds them in Linux |
//! | [`several`] | the same with several processors: a kernel on each, locks, caches that take lines from each other |
//! | [`router`] | hardware, processor and kernel under one queue of events |
//! | [`machine`] | a machine from a TOML file, each value with its unit and where it comes from |
//! | [`run`] | a router under load until its numbers are sure, many at a time |
//! | [`figures`] | the papers' figures, what they found, and what the model makes of them |
//! | [`trace`] | one packet's way, with times |
//! | [`enhanced`] | cards that route by themselves and share a bus by a protocol of their own (FPGA) |
//! | [`pcie`], [`dram`], [`ddio`] | links, memory and shared caches of today, a part each |
//! | [`today`] | machines of today from those parts: what goes first, and what one more of anything buys; graphs of the live router on them |
//! | [`cluster`] | many machines: growth, and failures |
//! | [`veth`] | the laboratory's bed on this machine: a tester and a device between veths, on two processors |
//! | [`calibrate`] | this machine, from a few of the laboratory's numbers, held against the others |
//!
//! # What is modelled and what is not
//!
//! A card's engines ask a shared bus for a transaction at a time: descriptors fetched, frames moved, descriptors reported.
//! Writes of registers are transactions too; reads of registers are time of the processor alone. A processor has one level of
//! cache, the last, which several may share; what the kernel touches of a packet, its descriptors and headers is looked up
//! there, and a card's writes invalidate it. All else that the kernel does is a number of cycles from the machine's file.
//! Handlers of interrupts preempt deferred work at any time; deferred work that does not end in so many runs is a thread's
//! among others. Not modelled: the clock's interrupt, the first-level cache, instruction fetches, what user processes do.
//!
//! A file of a paper's machine has at most six calibrated values, and that of this machine six for each bed; the points that they
//! were calibrated on are named and are no results. `assumed` are values that nobody gives, each with the reason, and
//! [`figures::sensitivity`] says what hangs on them. No value depends on the figure, nor does how long it runs: that depends on
//! what is offered and on how sure the numbers are. What stands in the code is what structures and frames are like: sizes in
//! [`layout`], [`nic::DESCRIPTOR`], the backlog of 300 packets, which is the live router's, too.
//!
//! # Invariants
//!
//! - Same machine, scenario and seed: the same bytes, on any machine and however many run at a time.
//! - Every packet ends in one counted place: it left, was counted by a program, was dropped for one reason, or is inside.
//! - Nothing panics on a machine's file, whatever it says; what is wrong is said with line and what is allowed.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_macros))]

pub mod bus;
pub mod cache;
pub mod calibrate;
pub mod cluster;
pub mod ddio;
pub mod dram;
pub mod enhanced;
pub mod event;
pub mod figures;
pub mod hardware;
pub mod layout;
pub mod link;
pub mod machine;
pub mod memory;
pub mod nic;
pub mod pcie;
pub mod processor;
pub mod router;
pub mod run;
mod series;
pub mod several;
pub mod software;
pub mod today;
pub mod trace;
pub mod veth;
