//! Translation of network addresses and ports.
//!
//! [`rewriter`] is the one element behind the six classes of rewriters; [`kind`] is what they have of their own; [`configure`]
//! and [`handlers`] are its arguments and handlers. The flows of one, or of several that share a capacity, are in a table of
//! [`flows`]; [`input`] reads what becomes of new ones, and [`pattern`] chooses their addresses and ports. [`apply`] writes into
//! packets, [`sequence`] knows what lengths have changed.
//! Mappers are shared and have no lock; elements that work on others' tables ask the run-time for them
//! ([`causeway_engine::Peer`]), so that a table lives on one worker and nobody locks it.

use causeway_engine::Spec;

pub(crate) use apply::{Headers, get_u16, get_u32, put_u16, put_u32};

mod apply;
mod configure;
mod ended;
mod flow;
pub(crate) mod flow_id;
mod flows;
mod ftp_port_mapper;
mod handlers;
mod icmp_ping_rewriter;
mod icmp_rewriter;
mod input;
mod ip_addr_pair_rewriter;
mod ip_addr_rewriter;
mod ip_rewriter;
mod ip_rewriter_patterns;
mod kind;
mod options;
mod order;
mod pattern;
mod rewriter;
mod round_robin_ip_mapper;
mod sequence;
mod shown;
mod source_ip_hash_mapper;
mod tcp_rewriter;
mod udp_rewriter;

/// The classes of this subject.
pub(crate) const SPECS: &[&Spec] = &[
    &ftp_port_mapper::SPEC,
    &icmp_ping_rewriter::SPEC,
    &icmp_rewriter::SPEC,
    &ip_addr_pair_rewriter::SPEC,
    &ip_addr_rewriter::SPEC,
    &ip_rewriter::SPEC,
    &ip_rewriter_patterns::SPEC,
    &round_robin_ip_mapper::SPEC,
    &source_ip_hash_mapper::SPEC,
    &tcp_rewriter::SPEC,
    &udp_rewriter::SPEC,
];
