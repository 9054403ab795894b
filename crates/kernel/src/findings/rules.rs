//! Findings about policy rules.

use super::{Check, Finding};
use crate::mirror::{Applies, Mirror};
use crate::model::{Family, Link, Rule, RuleAction};
use crate::settings::Settings;

/// The rules that leave packets to the kernel which the others would have forwarded here.
pub(super) fn findings(mirror: &Mirror) -> Vec<Finding> {
    mirror.rules().filter_map(|rule| finding(rule, mirror.applies(rule)?)).collect()
}

fn finding(rule: &Rule, applies: Applies) -> Option<Finding> {
    let Rule { family, priority, action, to, from, iif, .. } = rule;
    let command = if *family == Family::V4 { "ip rule" } else { "ip -6 rule" };
    let to = to.map_or(String::new(), |to| format!(" to {to}"));
    let which = match (applies, action, from, iif) {
        (Applies::All, RuleAction::LookUp(_), ..) => return None,
        (Applies::Kernels, _, Some(from), _) => format!("packets from {from}"),
        (Applies::Kernels, _, None, Some(port)) => format!("what comes in by {port}"),
        (_, RuleAction::LookUp(table), ..) => format!("packets{to} for which the table {table} has a route"),
        _ => format!("packets{to} for which no rule before it has a route"),
    };
    let what = format!("the rule of priority {priority} selects by more than the destination, or discards: ");
    let what = what + "the kernel forwards " + &which;
    Some(Check::PolicyRule.warn(command, what, format!("{command} del priority {priority}")))
}

/// Notes the ports whose packets are the kernel's because of rules.
pub(super) fn note(mirror: &Mirror, ports: &[&Link], settings: &mut Settings) {
    for port in ports {
        if let Some(settings) = settings.ports.get_mut(&port.name) {
            settings.v4.ruled = mirror.is_ruled(Family::V4, &port.name);
            settings.v6.ruled = mirror.is_ruled(Family::V6, &port.name);
        }
    }
}
