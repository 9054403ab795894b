//! The optimiser: finds chains of the standard router and puts fused elements in front of them.
//!
//! A fused element does in one pass what the chain does to an ordinary packet, and hands every other packet to the
//! chain's first element untouched. The chain stays in the graph as it is: it treats the rare packets, keeps its
//! handlers, and its drop reasons are the only ones there are.
//!
//! An *ordinary* packet is an Ethernet frame with an IPv4 packet of 20 bytes of header, which is sound, from a good
//! source; it came neither as broadcast nor as multicast, asks for no other source address, has a route, lives long
//! enough, fits the MTU, and is copied nowhere.
//!
//! Rules of an IPFilter or IPClassifier in front of the table are asked as well; who does not leave by output 0 there goes to
//! their element in the state that it has there ([`rules`]).
//!
//! What a chain does its elements say themselves, by the programs that they lower to: when all are built, and again
//! whenever one was changed by a handler ([`pass`], [`ordinary`]). The plan only says where to ask ([`chain`]).
//!
//! Under simulated time, which each reading moves on by a nanosecond, a chain reads the clock more often than the pass, so
//! that times differ by nanoseconds with and without it. Nothing else does.
//!
//! Packets of one destination stay in order: once one of a batch goes to the chain, so do those behind it.

use causeway_engine::{Plan, Spec};
use chain::Classes;

mod chain;
mod fused_ip_forward;
mod ordinary;
mod pass;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) const SPECS: &[&Spec] = &[&fused_ip_forward::SPEC];

/// A plan after the optimiser.
pub struct Optimised {
    /// The plan to run.
    pub plan: Plan,
    /// Which chains were found, or why none, a line each. Whether they can be fused their elements say, when they
    /// are built.
    pub explanation: String,
}

/// Optimises `plan`.
pub fn optimise(plan: &Plan) -> Optimised {
    let mut optimised = plan.clone();
    let mut explanation = String::new();
    let classes = Classes::new(plan, &crate::library());
    for classifier in classes.classifiers() {
        match classes.chains(classifier) {
            Ok(chains) => {
                for chain in chains {
                    explanation += &chain.explain(plan);
                    chain.insert(plan, &mut optimised);
                }
            }
            Err(why) => explanation += &format!("{}: not fused: {why}\n", plan.elements[classifier].name),
        }
    }
    if explanation.is_empty() {
        explanation = "nothing to fuse: no classifier in front of a routing table\n".to_owned();
    }
    Optimised { plan: optimised, explanation }
}
