//! Findings about policy rules: those that the tables follow select by destination alone.

use super::{Check, Finding};
use crate::mirror::Mirror;
use crate::model::{Family, Link, Rule, RuleAction};
use crate::settings::Settings;
use crate::uapi::{RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RT_TABLE_MAIN};

/// The kernel's own rules: priority, table and its name. IPv6 has no default.
const OWN: [(u32, u32, &str); 3] =
    [(0, RT_TABLE_LOCAL, "local"), (32766, RT_TABLE_MAIN, "main"), (32767, RT_TABLE_DEFAULT, "default")];

pub(super) fn findings(mirror: &Mirror) -> Vec<Finding> {
    let others = mirror.rules().filter(|rule| rule.is_of_transit() && !rule.is_by_destination()).map(other);
    let missing = [Family::V4, Family::V6].into_iter().flat_map(|family| missing(mirror, family));
    others.chain(missing).collect()
}

fn command(family: Family) -> &'static str {
    if family == Family::V4 { "ip rule" } else { "ip -6 rule" }
}

fn other(rule: &Rule) -> Finding {
    let (command, priority) = (command(rule.family), rule.priority);
    let what =
        format!("the rule of priority {priority} selects routes by more than the destination, or discards");
    Check::PolicyRule.refuse(command, what, format!("{command} del priority {priority}"))
}

/// The kernel's own rules that are missing, or are not where the kernel has put them.
fn missing(mirror: &Mirror, family: Family) -> Vec<Finding> {
    let rules: Vec<&Rule> = mirror.rules().filter(|rule| rule.family == family).collect();
    let is_there = |priority, table| {
        let is_own = |rule: &&Rule| (rule.priority, rule.action) == (priority, RuleAction::LookUp(table));
        rules.iter().any(|rule| is_own(rule) && rule.is_by_destination() && rule.to.is_none())
    };
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
pub(super) fn note(mirror: &Mirror, ports: &[&Link], settings: &mut Settings) {
    for port in ports {
        if let Some(settings) = settings.ports.get_mut(&port.name) {
            settings.v4.ruled = mirror.is_ruled(Family::V4, &port.name);
            settings.v6.ruled = mirror.is_ruled(Family::V6, &port.name);
        }
    }
}
