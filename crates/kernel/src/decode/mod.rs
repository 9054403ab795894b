//! Bytes from the kernel to [`Message`]s.
//!
//! A message that is of no interest (another address family, a cached clone of a route) is `None`; one that does not parse
//! is an error, which the reader counts and answers with a new dump. What parses but is not understood is kept, with
//! [`PuntReason`](crate::PuntReason) as its target, because a route that is ignored would let a shorter one take its packets.

mod link;
mod nexthop;
mod route;

use crate::model::{Address, Link, Neighbour, NextHop, Qdisc, Route, Rule};
use crate::uapi::*;
use crate::wire::{Frame, Malformed};

/// What a message says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is there (answer to a dump).
    Dumped,
    /// It was added.
    Added {
        /// In the place of the first of its kind (`NLM_F_REPLACE`).
        replace: bool,
        /// Behind those of its kind (`NLM_F_APPEND`).
        append: bool,
    },
    /// It was removed.
    Removed,
}

/// An object of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A link.
    Link(Link),
    /// An address of an interface.
    Address(Address),
    /// A neighbour entry.
    Neighbour(Neighbour),
    /// A next hop object.
    NextHop(NextHop),
    /// A route.
    Route(Route),
    /// A policy rule.
    Rule(Rule),
    /// A queueing discipline.
    Qdisc(Qdisc),
    /// Settings such as `forwarding` or `rp_filter` of some interface; what they are is read when it is asked for.
    Setting,
}

/// A message from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What happened.
    pub operation: Operation,
    /// To what.
    pub object: Object,
}

/// Where a frame was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Dump,
    Event,
}

/// Decodes one frame.
pub(crate) fn decode(frame: &Frame<'_>, source: Source) -> Result<Option<Message>, Malformed> {
    let p = frame.payload;
    let object = match frame.kind {
        RTM_NEWLINK | RTM_DELLINK => link::link(p)?.map(Object::Link),
        RTM_NEWADDR | RTM_DELADDR => link::address(p)?.map(Object::Address),
        RTM_NEWNEIGH | RTM_DELNEIGH => link::neighbour(p)?.map(Object::Neighbour),
        RTM_NEWQDISC | RTM_DELQDISC => link::qdisc(p)?.map(Object::Qdisc),
        RTM_NEWROUTE | RTM_DELROUTE => route::route(p)?.map(Object::Route),
        RTM_NEWRULE | RTM_DELRULE => route::rule(p)?.map(Object::Rule),
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => nexthop::next_hop(p)?.map(Object::NextHop),
        RTM_NEWNETCONF => Some(Object::Setting),
        _ => None,
    };
    let removed = matches!(
        frame.kind,
        RTM_DELLINK | RTM_DELADDR | RTM_DELNEIGH | RTM_DELQDISC | RTM_DELROUTE | RTM_DELRULE | RTM_DELNEXTHOP
    );
    let operation = match (removed, source) {
        (true, _) => Operation::Removed,
        (false, Source::Dump) => Operation::Dumped,
        (false, Source::Event) => Operation::Added {
            replace: frame.flags & NLM_F_REPLACE != 0,
            append: frame.flags & NLM_F_APPEND != 0,
        },
    };
    Ok(object.map(|object| Message { operation, object }))
}

/// The octet at `offset` of a fixed header.
fn octet(payload: &[u8], offset: usize, what: &'static str) -> Result<u8, Malformed> {
    payload.get(offset).copied().ok_or(Malformed(what))
}

/// The word at `offset` of a fixed header or of an attribute.
fn word(bytes: &[u8], offset: usize, what: &'static str) -> Result<u32, Malformed> {
    crate::wire::u32_at(bytes, offset).ok_or(Malformed(what))
}
