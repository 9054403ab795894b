//! Simulation of the FPGA-enhanced NIC: the Verilog of `fpga/rtl` under Verilator, several cards on one bus with a
//! host, and a tester at the ports.
//!
//! What is simulated is the synthesizable description itself, clock edge by clock edge, in picoseconds: two clocks of
//! 125 MHz for each MAC, 66.67 or 133.33 MHz for packet logic and bus. Around it are models: the chipset's arbiter and bridge (Verilog, in
//! `fpga/tb`), the host's memory and processor, and traffic sources and sinks (Rust).
//!
//! Parts:
//!
//! * [`models`]: the Verilated models, with bindings that the build script writes from the generated headers;
//! * [`card`]: a card and the bus as the testbed sees them;
//! * [`gmii`]: frames to GMII bytes and back;
//! * [`traffic`]: flows at exact or random spacing, with stamped payloads;
//! * [`host`]: memory, rings and a processor that polls them NAPI-style and forwards at a given cost a packet;
//! * [`slot`]: a card with its clocks and the port at it;
//! * [`testbed`]: cards, bus, host and tester wired together, and the clocks; [`faults`]: what it can do to them;
//! * [`scoreboard`]: every delivered frame against the golden model, order, loss, latency;
//! * [`live`]: the same with TAPs for ports, for people to touch;
//! * [`scenario`]: the experiments as data, of which [`causeway_model::enhanced`] says what the fast path should do; [`report`]: their results as a document, charts and a page.
//!
//! Invariants:
//!
//! * All bus and GMII outputs of a card are registers, so cards can be evaluated one after the other at an edge and
//!   the wires between them settled after it; the order cannot matter.
//! * A run is a function of its parameters and seeds: the same numbers on every machine.
//! * Sent = delivered + counted drops, for every run but those that reset a card; the scoreboard fails otherwise.

#![deny(unsafe_code)]

pub mod card;
pub mod faults;
pub mod gmii;
pub mod host;
pub mod live;
pub mod models;
pub mod report;
pub mod scenario;
pub mod scoreboard;
pub mod slot;
pub mod testbed;
pub mod traffic;
