//! The FPGA-enhanced NIC without the NIC: its rule table, compiled to an XDP program for interfaces of the kernel.
//!
//! The card of `fpga/rtl` forwards from card to card what its few rules are sure of and hands the rest to the host.
//! XDP in a driver draws the same line: the program runs before the kernel's stack, a redirect takes the frame to
//! another interface without it, and what is passed goes the usual way. So one [`RuleTable`] serves both, and this
//! crate is its second compiler beside [`causeway_nic_driver::registers`]:
//!
//! | card | here |
//! |---|---|
//! | registers with routes, class rules, addresses, control | constants in the program's instructions |
//! | card number | index into a device map; the interface's number is its card |
//! | fast path: burst to the other card over the bus | rewritten in place, `XDP_REDIRECT` by the device map |
//! | slow path: receive ring of the host | `XDP_PASS`, untouched |
//! | drops, each with its counter | `XDP_DROP`, counters of the same names |
//! | class, one FIFO each | a counter for each destination and class |
//!
//! Rules are constants and not map entries because there are few: comparing with constants costs no look-up, and a
//! new table is a new program, assembled and verified in about a millisecond, that takes the old one's place between two
//! frames. A frame is never judged by half of a change, as it can be while a card's registers are written. The
//! device map and the counters outlive the change.
//!
//! Parts:
//!
//! * [`program`]: the compiler, a table and a card's number to instructions;
//! * [`counters`]: what a card counts, and under which names;
//! * [`router`]: cards on interfaces, rules replaced while they run;
//! * the binary `causeway-nic-xdp`, which does that for a table in a file.
//!
//! Invariants:
//!
//! * On every frame of the shared corpus the verdict, the class and the frame afterwards are the golden model's, bit
//!   for bit; the NIC's simulation is held to the same (`tests/conformance.rs`, `fpga/sim/tests/card.rs`).
//! * A frame that is not forwarded is never changed: the device map is asked before the frame is rewritten, so that
//!   a frame towards an interface that is not there takes the slow path as it came.
//! * Every frame is counted once by its fate; the counters add up to what the interface received.
//! * Nothing outlives the process: program, maps and offload settings go back when it ends.
//!
//! What XDP does not have is the card's reservation of output space: see `fpga/README.md`.
//!
//! [`RuleTable`]: causeway_nic_driver::RuleTable

#![forbid(unsafe_code)]

pub mod counters;
mod error;
pub mod program;
pub mod router;

pub use error::{Error, Result};
pub use router::{Card, Router};
