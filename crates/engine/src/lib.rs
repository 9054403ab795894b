//! The run-time: elements, workers, tasks, timers, notifiers, handlers, hot swap, reception mechanisms.
//!
//! # What this crate is for
//!
//! It turns a checked configuration (a [`Plan`]) and a [`Library`] of element classes into a [`Router`] that runs
//! on one or several workers, and lets the control side read and write handlers and replace the graph while
//! packets flow.
//!
//! # The parts
//!
//! * [`Element`] is one step of the router; [`Spec`] is what its class says of itself; [`Conf`] reads its
//!   configuration; [`Cx`] is what it may do while it runs; [`Error`] is why it refuses what it is given. Most elements
//!   are a [`settings!`], a [`drop_reasons!`] and an [`Element::packet`]; [`prelude`] is what their files begin with.
//! * [`Element::lower`] says what an element does, as a program of the intermediate representation ([`ir`]), for
//!   [`Element::fuse`] of one that does the work of others; the run-time asks again when a handler has changed it.
//! * `core` owns one worker's elements and edges and delivers packets: a stack of batches for pushing, a call for
//!   pulling. `task`, `timer` and `signal` schedule; `clock` is live or simulated time.
//! * `assemble` builds a plan: configure, place on workers, connect, wire notifiers, initialise. Edges that cross
//!   workers become rings (`crossing`).
//! * `worker` is what one processor does, piece by piece; `driver` is the thread around it, and [`Pulse`] how anybody sees
//!   that it is not stuck; [`simulation`] runs workers without threads, and work costs what its caller says. `devices` and
//!   [`reception`] decide when a port's packets are taken.
//! * [`Router`] is the control side: start, handlers, hot swap, stop. What it asks of a worker takes the worker no longer
//!   than a step: long tables are read in [`pieces`], a graph is made beside the one that runs. [`measure`] says what the values of handlers are
//!   and how those of replicas make one. [`harness`] puts one element on the bench.
//!
//! # Invariants
//!
//! * An element never holds a reference to another and runs only on its own worker; there is no lock on the
//!   packet path.
//! * Delivery is depth first, outputs in order, without recursion.
//! * Received = forwarded + punted + dropped by reason + held: a packet ends in [`Cx::drop`], in an element that
//!   reports it as held, in a device, or at an unconnected output, which counts it.
//! * The graph of a worker changes only between two rounds. A graph that cannot be built or put in place changes
//!   nothing, here and outside: until then an element only opens and checks ([`Element::initialize`]), and does what
//!   cannot be undone, such as emptying a file, in [`Element::commit`].
//! * Nobody waits for a worker without a limit. A worker that fails says so at once ([`OnFailure`]), also when it
//!   panics.
//! * Nothing is printed: what there is to say is logged.

#![cfg_attr(
    not(test),
    warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::missing_errors_doc)
)]

mod access;
mod affinity;
mod assemble;
mod calls;
pub mod clock;
mod conf;
mod core;
mod counters;
mod crossing;
mod cx;
mod devices;
mod driver;
pub mod drops;
mod element;
mod error;
mod exchange;
mod globals;
pub mod handler;
pub mod harness;
pub mod ir;
mod library;
pub mod measure;
mod names;
mod node;
mod notify;
mod others;
mod outside;
mod peer;
pub mod pieces;
mod place;
mod plan;
pub mod prelude;
mod pulse;
pub mod reception;
mod router;
mod said;
pub mod settings;
mod signal;
pub mod simulation;
mod single;
pub mod spec;
mod spin;
mod storage;
mod task;
mod timer;
pub mod value;
mod verdict;
mod waiter;
pub mod watch;
mod work;
mod worker;

pub use affinity::{unpin, usable_processors};
pub use conf::{Conf, Defaults, Env, Invalid, Persistent};
pub use counters::{Counter, Counters, Line, read_line};
pub use cx::Cx;
pub use driver::{Event, OnFailure};
pub use drops::{DropReason, DropReasons};
pub use element::{ControlSide, Element, PortStatistics, RECEIVED, Settings};
pub use error::{Error, NoAnswer};
pub use globals::Globals;
pub use library::Library;
pub use names::{Addresses, Interfaces, Names, Scope};
pub use outside::{Answer, Named};
pub use peer::Peer;
pub use plan::{End, Plan, PlanElement};
pub use pulse::Pulse;
pub use router::{Edge, MOST_TRACED, Measure, NotAdded, Options, Router, StartError};
pub use said::{ElementError, ElementWarning};
pub use settings::{Configure, configured};
pub use spec::Spec;
pub use spin::{Spin, SpinTime};
pub use storage::Stored;
pub use task::{DEFAULT_TICKETS, MAX_TICKETS, Run};
pub use verdict::{OrDrop, Verdict, each};
