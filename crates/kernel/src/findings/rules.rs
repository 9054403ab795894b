//! Findings about policy rules.

use super::{Check, Finding};
use crate::mirror::Mirror;
use crate::model::{Family, Rule};
use crate::uapi::{RT_TABLE_DEFAULT, RT_TABLE_LOCAL, RT_TABLE_MAIN};

/// The kernel's own rules: priority, table and its name. IPv6 has no default.
const OWN: [(u32, u32, &str); 3] =
    [(0, RT_TABLE_LOCAL, "local"), (32766, RT_TABLE_MAIN, "main"), (32767, RT_TABLE_DEFAULT, "default")];

pub(super) fn findings(mirror: &Mirror) -> Vec<Finding> {
    [Family::V4, Family::V6]
        .into_iter()
        .filter(|&family| !mirror.follows_rules(family))
        .flat_map(|family| of(mirror, family))
        .collect()
}

fn of(mirror: &Mirror, family: Family) -> Vec<Finding> {
    let (command, own) = if family == Family::V4 { ("ip rule", &OWN[..]) } else { ("ip -6 rule", &OWN[..2]) };
    let is_own = |rule: &&Rule| {
        rule.plain && OWN.iter().any(|&(priority, table, _)| (rule.priority, rule.table) == (priority, table))
    };
    let rules = mirror.rules().filter(|rule| rule.family == family);
    let (usual, others): (Vec<&Rule>, Vec<&Rule>) = rules.partition(is_own);
    let other = |rule: &&Rule| {
        Check::PolicyRule.refuse(
            command,
            format!("the rule of priority {} selects routes by more than the destination", rule.priority),
            format!("{command} del priority {}", rule.priority),
        )
    };
    let missing = |&&(priority, _, table): &&(u32, u32, &str)| {
        Check::PolicyRule.refuse(
            command,
            format!("the kernel's own rule for the table {table} is missing"),
            format!("{command} add priority {priority} table {table}"),
        )
    };
    let gone = own.iter().filter(|(priority, ..)| !usual.iter().any(|rule| rule.priority == *priority));
    others.iter().map(other).chain(gone.collect::<Vec<_>>().iter().map(missing)).collect()
}
