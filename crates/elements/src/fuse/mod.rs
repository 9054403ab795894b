//! The optimiser: recognises chains of the standard router and puts fused elements in front of them.
//!
//! A fused element does in one pass what the chain does to an ordinary packet, and hands every other packet to the
//! chain's first element untouched. The chain stays in the graph as it is: it treats the rare packets, keeps its
//! handlers, and its drop reasons are the only ones there are. What a handler changes in the chain is seen by the
//! fused element too: shared tables and counters at once, anything else by the fused element stepping aside.

use causeway_engine::{Plan, Spec};

mod chain;
mod fused_ip_forward;
pub(crate) mod parts;

pub(crate) const SPECS: &[&Spec] = &[&fused_ip_forward::SPEC];

/// A plan after the optimiser.
pub struct Optimised {
    /// The plan to run.
    pub plan: Plan,
    /// What was done and why, a line each.
    pub explanation: String,
}

/// Optimises `plan`.
pub fn optimise(plan: &Plan) -> Optimised {
    let mut optimised = plan.clone();
    let mut explanation = String::new();
    for classifier in 0..plan.elements.len() {
        if plan.elements[classifier].class != "Classifier" {
            continue;
        }
        match chain::recognise(plan, classifier) {
            Ok(chain) => {
                explanation += &chain.explain(plan);
                chain.insert(plan, &mut optimised);
            }
            Err(why) => explanation += &format!("{}: not fused: {why}\n", plan.elements[classifier].name),
        }
    }
    if explanation.is_empty() {
        explanation = "nothing to fuse: no Classifier in front of an IP chain\n".to_owned();
    }
    Optimised { plan: optimised, explanation }
}
