//! Findings about policy rules.

use super::{Check, Finding};
use crate::mirror::{Applies, Mirror};
use crate::model::{Family, Rule, RuleAction};
use crate::settings::Settings;
use crate::uapi::{RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RT_TABLE_MAIN};

/// The kernel's own rules: priority, table and its name. IPv6 has no default.
const OWN: [(u32, u32, &str); 3] =
    [(0, RT_TABLE_LOCAL, "local"), (32766, RT_TABLE_MAIN, "main"), (32767, RT_TABLE_DEFAULT, "default")];

pub(super) fn findings(mirror: &Mirror) -> Vec<Finding> {
    let others = mirror.rules().filter_map(|rule| other(rule, mirror.applies(rule)?));
    let missing = [Family::V4, Family::V6].into_iter().flat_map(|family| missing(mirror, family));
    others.chain(missing).collect()
}

fn command(family: Family) -> &'static str {
    if family == Family::V4 { "ip rule" } else { "ip -6 rule" }
}

/// A rule that leaves packets to the kernel which the others would have forwarded here.
fn other(rule: &Rule, applies: Applies) -> Option<Finding> {
    let Rule { family, priority, action, to, from, iif, .. } = rule;
    let command = command(*family);
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

/// The kernel's own rules that are missing, or are not where the kernel has put them.
fn missing(mirror: &Mirror, family: Family) -> Vec<Finding> {
    let rules: Vec<&Rule> = mirror.rules().filter(|rule| rule.family == family).collect();
    let is_there =
        |priority, table| rules.iter().any(|rule| rule.priority == priority && rule.is_plain(table));
    let own = if family == Family::V4 { &OWN[..] } else { &OWN[..2] };
    let missing = own.iter().filter(|(priority, table, _)| !is_there(*priority, *table));
    missing
        .map(|(priority, _, name)| {
            let command = command(family);
            let what = format!("the kernel's own rule for the table {name} is missing");
            Check::PolicyRule.refuse(command, what, format!("{command} add priority {priority} table {name}"))
        })
        .collect()
}

/// Notes the ports whose packets are the kernel's because of rules.
pub(super) fn note(mirror: &Mirror, settings: &mut Settings) {
    for (port, settings) in &mut settings.ports {
        settings.v4.ruled = mirror.is_ruled(Family::V4, port);
        settings.v6.ruled = mirror.is_ruled(Family::V6, port);
    }
}
