//! A mirror of the kernel's links, addresses, neighbours, next hops, routes and rules.
//!
//! The kernel keeps the machine's interfaces and addresses, answers ARP and neighbour discovery, and holds the routes that
//! people and routing daemons install. The router forwards by a copy of that state, and this crate keeps the copy, over
//! netlink (RFC 3549), for IPv4 and IPv6 alike, whoever writes the routes.
//!
//! # Parts
//!
//! - [`Mirror`] is the copy: plain data that [`Message`]s are applied to, without I/O or a clock.
//! - [`Watcher`] is the I/O around it. It subscribes first and dumps then, dumps again when messages were lost or cannot tell
//!   what happened, coalesces what changes (50 ms of quiet, 1 s at most), and keeps the gateways in use resolved.
//! - [`Changes`] is what comes out: prefixes point to [`Hop`]s, hops to [`Adjacency`]s, by number, so that one change moves any
//!   number of prefixes. [`Snapshot`] is what the changes add up to.
//! - [`Doubt`] is said when what came out cannot be relied on, by the thread that comes to know it first; [`Pulse`] is the sign
//!   of life of who follows; [`Watcher::as_of`] says how old what came out is.
//! - [`ManagedNeighbour`]s are what the kernel was told to keep resolved; [`release_managed`] gives them back for a watcher that
//!   could not.
//! - [`Finding`]s say what the kernel does to packets that the router would not: packet filter, policy rules, traffic control,
//!   IPsec. [`inspect`] looks for them once; an [`Inspector`] is a thread that follows them, says [`InspectionDoubt`] before it looks,
//!   and tells the [`Settings`] that a data plane has to follow. Their table of codes is with [`Check`].
//!   What the kernel has learned of single destinations comes with it, and goes to [`Watcher::set_exceptions`].
//! - [`interfaces`] lists the machine's interfaces.
//!
//! # Invariants
//!
//! - **Sure or pass.** Whatever is not fully understood (an encapsulation, an unknown attribute or type, routes that differ by
//!   type of service or source, a lifetime, a device that the router does not hold, a neighbour that is not resolved) is a hop that leaves its packets to the kernel, with a named [`PuntReason`]. It is never dropped, and never
//!   ignored: an ignored route would let a shorter prefix take its packets. A packet that no prefix covers is the kernel's too.
//! - The answer for an address is that of the kernel's own lookup: the tables in the order of the policy rules, the longest
//!   prefix of the first table that has one, the lowest metric. Rules that select by destination are followed. Of those that
//!   select by more it is known which packets they may be about: from sources ([`ReversePath::Ruled`]), by ports
//!   ([`Mirror::is_ruled`], [`PortSettings`]), or to destinations, which are punts. So is what a route in IPv4's table local
//!   covers ([`PuntReason::LocalTable`]), which nobody can tell to be a table of its own to the kernel.
//! - Destinations of which the kernel has learned something that its routes do not say (a path MTU, a redirect) are punts, as
//!   soon as it was asked for: it sends no message of them.
//! - Of several paths the legs are those that count in the kernel's choice by hash, in its order, with its weights.
//! - What the kernel does without a message (it removes routes of a link that goes down, of a deleted next hop object, of a
//!   preferred source address that goes; it marks paths dead and alive) is done here as far as it is known, and what is not
//!   known is a punt until a dump tells what is left. So is a prefix of which a message does not tell which route is meant.
//!   Whatever happened, each answer is the kernel's or a punt.
//! - Applying messages one by one and dumping anew give the same result.
//! - What is lost is said at once. All is said to be known again only when it is in use: after a dump begun since, handed out,
//!   and come back for more.
//! - Entries in the kernel's neighbour tables that somebody else made are not touched, and those that are made here are given
//!   back resolved.
//! - Bytes from the kernel never make it panic; what does not parse leads to a new dump, and if that does not parse, to an error.
//!
//! # A forwarding table that follows the kernel
//!
//! ```no_run
//! use causeway_fib::{Fib4, Table};
//! use causeway_kernel::{Doubt, HopId, Prefix, Watcher, WatcherConfig, interfaces};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicBool, Ordering};
//! use std::time::Duration;
//!
//! /// The table's index for all hops that have no index of their own. What it leads to must be a punt: to leave the route out
//! /// would let a shorter prefix take its packets.
//! const PUNT: u32 = 1;
//!
//! // Packets are forwarded only while this is set, and while the pulse goes.
//! let sure = Arc::new(AtomicBool::new(false));
//! let switch = sure.clone();
//! let ports = interfaces()?.into_iter().filter(|i| i.link.name == "eth0" || i.link.name == "eth1");
//! let config = WatcherConfig {
//!     on_doubt: Arc::new(move |doubt| switch.store(doubt == Doubt::Cleared, Ordering::SeqCst)),
//!     ..WatcherConfig::new(ports.map(|i| i.link.index))
//! };
//! let pulse = config.pulse.clone();
//! let mut watcher = Watcher::open(config)?;
//! let mut fib = Fib4::new()?;
//! loop {
//!     let changes = watcher.wait(Duration::from_secs(1))?;
//!     // First what changes.adjacencies and changes.hops say is new, for the index of each hop.
//!     let index = |HopId(hop)| if hop < 30_000 { PUNT + 1 + hop } else { PUNT };
//!     for (prefix, hop) in &changes.routes {
//!         match (prefix, hop) {
//!             (Prefix::V4(prefix), Some(hop)) => drop(fib.replace(*prefix, index(*hop))?),
//!             (Prefix::V4(prefix), None) => drop(fib.withdraw(*prefix)?),
//!             (Prefix::V6(_), _) => {} // The same with another table.
//!         }
//!     }
//!     // Then what they say is gone. If that takes long, meanwhile:
//!     pulse.touch();
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros))]

mod changes;
mod decode;
mod doubt;
mod findings;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod inspector;
mod interfaces;
mod keeper;
mod managed;
mod mirror;
mod model;
mod prefix;
mod pulse;
mod reader;
mod reason;
mod requests;
mod schedule;
mod settings;
mod socket;
mod uapi;
mod watcher;
mod wire;

pub use changes::{Action, Adjacency, AdjacencyId, Changes, Hop, HopId, Leg, Rewrite, Snapshot};
pub use decode::{Message, Object, Operation};
pub use doubt::{Cause, Doubt, OnDoubt};
pub use findings::{Attachment, Check, Finding, Probe, Program, Severity, inspect};
pub use inspector::{
    Doubt as InspectionDoubt, Inspection, Inspector, InspectorConfig, Prepared as PreparedInspector,
};
pub use interfaces::{Interface, interfaces};
pub use managed::{ManagedNeighbour, OnManaged, WasUsed, release_managed};
pub use mirror::{Mirror, Scope};
pub use model::{
    Address, Family, Link, Mac, Neighbour, NextHop, NextHopKind, Path, Qdisc, ReversePath, Route, Rule,
    RuleAction, Setting, SettingScope, Target,
};
pub use prefix::Prefix;
pub use pulse::Pulse;
pub use reason::PuntReason;
pub use settings::{MultipathSettings, PortSettings, PortSettings4, PortSettings6, Settings, SourceCheck};
pub use watcher::{Watcher, WatcherConfig, WatcherStats};
pub use wire::Malformed;
