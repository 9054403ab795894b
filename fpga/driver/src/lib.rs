//! The software side of the FPGA-enhanced NIC: one rule table, and everything that is made from it.
//!
//! The NIC forwards from card to card what its rules are sure of and hands the rest to the host (Bianco et al.,
//! *Boosting the Performance of PC-based Software Routers with FPGA-enhanced Network Interface Cards*, HPSR 2006).
//! The rules are few: some ternary routes, each towards a card with the next hop's MAC address or to the host, and a
//! ternary class rule for each destination. They are written once, in a [`RuleTable`], and compiled to
//!
//! * register writes for the NIC ([`registers`]),
//! * a verdict and a rewritten frame in plain Rust ([`golden`]), the reference that the hardware is compared with,
//! * an XDP program that does the same in the kernel, in the crate `causeway-nic-xdp`: apart, so that who compiles
//!   registers builds no BPF loader.
//!
//! Parts:
//!
//! * [`rules`]: the table, its text form and its checks;
//! * [`golden`]: parse, match, classify and rewrite, bit for bit as the NIC does;
//! * [`registers`]: the register map of one card, from which the Verilog package and its documentation are made, and the
//!   writes that load a table into it;
//! * [`corpus`]: a deterministic stream of frames, well-formed and malformed, and the tables under which all forms
//!   must agree on them.
//!
//! Invariants:
//!
//! * The routes of a valid table are disjoint but for those to the host, which come first, so that the order in which
//!   they were written cannot matter.
//! * The golden model never panics, whatever the bytes of the frame.
//! * A frame that is not forwarded is never changed.

#![forbid(unsafe_code)]

pub mod corpus;
pub mod golden;
pub mod registers;
pub mod rules;

pub use golden::{DropReason, Verdict};
pub use rules::{ClassKey, ClassRule, Mac, Policy, Route, RuleError, RuleTable, Target};
