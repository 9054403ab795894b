//! Policy rules: in which tables the kernel looks, in which order, for which packets.
//!
//! A rule that selects by destination only, or not at all, is followed: prefixes lead to what the tables come to in the order of
//! the rules, and each rule's prefix is one of them. A table that has no route for a destination is passed by, as the kernel does.
//!
//! Of the others it is known which packets they can be about, and those are left to the kernel:
//!
//! - packets from the rule's sources, if it names some: they all have [`ReversePath::Ruled`](crate::ReversePath::Ruled);
//! - packets that come in by the rule's port, if it names one: [`Mirror::is_ruled`];
//! - all packets to the destinations for which the rule comes to something, if it selects by more than that.
//!
//! Rules about packets of this machine, or about those of interfaces that are no ports, are about none that is forwarded here. A
//! rule is about the interface that had its name when the rule was made; where that can be another than the one that goes by it
//! now (`altname`), it may be about any packet.
//!
//! A check of sources looks up the source as if packets went back there, from the destination, and had come in by the way out.
//! Rules may select by either. So it may come to any of the routes of the rules that may apply, and what is said of the way back
//! holds for all of them.

use std::collections::BTreeSet;

use super::hops::HopKey;
use super::kernel::Kernel;
use super::suspects::Suspect;
use super::table::{Candidate, Table, best};
use super::{Mirror, Seen};
use crate::decode::Operation;
use crate::model::{Family, Link, Rule, RuleAction};
use crate::prefix::Prefix;
use crate::reason::PuntReason;
use crate::uapi::RT_TABLE_LOCAL;

/// Which of the packets to its destinations a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applies {
    All,
    /// Those that are the kernel's already, by their source or by the port that they come in by.
    Kernels,
    /// Only the kernel knows.
    Unclear,
}

/// A rule as it is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// None: only the kernel knows what becomes of packets.
    table: Option<u32>,
    to: Prefix,
    /// Routes to shorter prefixes do not count.
    shortest: u8,
    applies: Applies,
}

impl Step {
    /// Whether nothing behind it counts for prefixes that its table has, or for any if it has no table.
    fn is_last_for_its_own(&self) -> bool {
        self.applies == Applies::All && self.to.len() == 0 && self.shortest == 0
    }
}

/// The rules of a family, as they are followed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    steps: Vec<Step>,
    /// Sources that some rule is about.
    sources: Vec<Prefix>,
    /// Names of the ports by which packets come in that are the kernel's by that alone.
    ports: BTreeSet<String>,
    /// The tables in which rules look.
    tables: BTreeSet<u32>,
    /// Prefixes at whose bounds rules begin to apply, or cease to.
    bounds: BTreeSet<Prefix>,
}

impl Rules {
    pub fn uses(&self, table: u32) -> bool {
        self.tables.contains(&table)
    }

    /// The tables whose own prefixes may come to something else when a route of `table` changes.
    pub fn behind(&self, table: u32) -> BTreeSet<u32> {
        let settled = |step: &&Step| step.is_last_for_its_own() && step.table != Some(table);
        let rest = self.steps.iter().skip_while(settled);
        rest.filter_map(|step| step.table).filter(|&other| other != table).collect()
    }

    /// Of the prefixes of `table`, what comes of those that are shorter may hang on the routes of shorter ones still.
    pub fn shortest(&self, table: u32) -> u8 {
        let of_table = self.steps.iter().filter(|step| step.table == Some(table));
        of_table.map(|step| step.shortest).max().unwrap_or(0)
    }

    /// Prefixes inside `prefix` at whose bounds rules begin to apply, or cease to.
    pub fn bounds_in(&self, prefix: Prefix) -> impl Iterator<Item = Prefix> {
        self.bounds.range(prefix..=Prefix::host(prefix.last())).copied()
    }

    /// Whether rules are about packets from there.
    pub fn are_about(&self, source: Prefix) -> bool {
        self.sources.iter().any(|from| from.covers(source))
    }
}

/// What the rules come to for a prefix: the route of a hop, or why that cannot be said.
pub(super) type Found = Result<u32, PuntReason>;

/// What is found when the rules are gone through for a prefix.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// What the first rule comes to that applies to all packets; none if none does.
    last: Option<Found>,
    /// What those before it come to.
    before: Vec<Found>,
    /// One of those may apply to packets that are not known to be the kernel's.
    is_unclear: bool,
}

impl Walk {
    /// Where packets to the prefix go.
    pub fn ahead(&self) -> Option<Found> {
        if self.is_unclear { Some(Err(PuntReason::PolicyRules)) } else { self.last }
    }

    /// What a check of packets from the prefix may find, if that is not what packets to it do.
    pub fn back(self) -> Vec<Found> {
        if self.before.is_empty() {
            return self.before;
        }
        let last = self.last.unwrap_or(Err(PuntReason::PolicyRules));
        self.before.into_iter().chain([last]).collect()
    }
}

impl Kernel {
    /// Which of the packets to its destinations a rule applies to; none: to none that is forwarded.
    pub fn applies(&self, rule: &Rule) -> Option<Applies> {
        let of_name = |name: &String| {
            let named = |link: &&Link| link.name == *name && !self.other_names.contains(name);
            self.links.values().map(|seen| &seen.value).find(named).map(|link| link.index)
        };
        match (&rule.from, rule.iif.as_ref().map(of_name)) {
            _ if !rule.is_of_transit() => None,
            (_, Some(Some(index))) if !self.ports.contains(&index) => None,
            (Some(_), _) | (None, Some(Some(_))) => Some(Applies::Kernels),
            // The interface that it is about may have that name besides its own, or have had it.
            (None, Some(None)) => Some(Applies::Unclear),
            (None, None) if rule.more => Some(Applies::Unclear),
            (None, None) => Some(Applies::All),
        }
    }

    fn rules_of(&self, family: Family) -> Rules {
        let mut rules = Rules::default();
        for rule in self.rules.iter().map(|seen| &seen.value).filter(|rule| rule.family == family) {
            // Also of one that is away, or no port for now.
            rules.ports.extend(rule.ruled_port().map(str::to_owned));
            let Some(applies) = self.applies(rule) else { continue };
            let table = match rule.action {
                RuleAction::LookUp(table) => Some(table),
                RuleAction::Nothing | RuleAction::Other => None,
            };
            let to = rule.to.unwrap_or(Prefix::all(family));
            rules.sources.extend(rule.from);
            rules.tables.extend(table);
            rules.bounds.extend(rule.to.into_iter().chain(rule.from));
            rules.steps.push(Step { table, to, shortest: rule.shortest, applies });
        }
        rules
    }
}

impl Mirror {
    /// Whether a policy rule is about packets that come in by the port of that name.
    pub fn is_ruled(&self, family: Family, port: &str) -> bool {
        self.rules().any(|rule| rule.family == family && rule.ruled_port() == Some(port))
    }

    pub(super) fn rule(&mut self, rule: Rule, operation: Operation) {
        let rules = &mut self.kernel.rules;
        let known = rules.iter().position(|seen| seen.value == rule);
        let (family, priority) = (rule.family, rule.priority);
        let insert = |rules: &mut Vec<Seen<Rule>>, generation| {
            let place = |seen: &Seen<Rule>| (seen.value.family, seen.value.priority) <= (family, priority);
            let index = rules.partition_point(place);
            rules.insert(index, Seen { value: rule.clone(), generation });
        };
        match (operation, known) {
            // The kernel's order among those of one priority is that of its dump.
            (Operation::Dumped, Some(index)) if rules[index].generation != self.generation => {
                rules.remove(index);
                insert(rules, self.generation);
            }
            (Operation::Removed, Some(index)) => drop(rules.remove(index)),
            (Operation::Removed, None) => {}
            _ => insert(rules, self.generation),
        }
        // A message that says what is known already, or comes from before the last dump, does not tell how many there are alike,
        // nor in which order.
        let is_news = (operation == Operation::Removed) == known.is_some() && !self.replaying;
        if operation != Operation::Dumped && !is_news {
            self.suspect(Suspect::Rules);
        }
        self.pending.hops = true;
        self.urgent = true;
    }

    /// Has all prefixes looked at anew whose answer may be another under the rules as they are now.
    pub(super) fn follow_rules(&mut self) {
        for family in [Family::V4, Family::V6] {
            let now = self.kernel.rules_of(family);
            if now == self.rules[family as usize] {
                continue;
            }
            let whole = Prefix::all(family)..=Prefix::host(Prefix::all(family).last());
            let of_family = |prefix: &&Prefix| prefix.family() == family;
            let prefixes = &mut self.pending.prefixes;
            prefixes.extend(self.published.keys().filter(of_family));
            for table in now.tables.iter().filter_map(|table| self.tables.get(table)) {
                prefixes.extend(table.routes.range(whole.clone()).map(|(prefix, _)| *prefix));
            }
            prefixes.extend(&now.bounds);
            self.rules[family as usize] = now;
            self.pending.rules = true;
        }
    }

    /// Goes through the rules for a prefix that is in all of a rule's destinations or in none of them.
    pub(super) fn walk(&self, prefix: Prefix) -> Walk {
        let mut walk = Walk::default();
        for step in &self.rules[prefix.family() as usize].steps {
            let found = match step.table {
                _ if !step.to.covers(prefix) => continue,
                None => Err(PuntReason::PolicyRules),
                Some(table) => match self.look_up(table, prefix, step.shortest) {
                    Some(found) => found,
                    None => continue,
                },
            };
            if step.applies == Applies::All {
                walk.last = Some(found);
                break;
            }
            walk.is_unclear |= step.applies == Applies::Unclear;
            walk.before.push(found);
        }
        walk
    }

    /// What a rule comes to that looks a prefix up in a table where routes to prefixes of fewer bits than `shortest` do not
    /// count; none: the next rule is asked.
    fn look_up(&self, table: u32, prefix: Prefix, shortest: u8) -> Option<Found> {
        let family = prefix.family();
        let mut covering = self.tables.get(&table)?.covering(prefix);
        let (len, candidates) = covering.next()?;
        let found = best(family, candidates);
        if len < shortest {
            // Without a path that is alive the kernel takes one of a higher metric or a shorter prefix, which does not count
            // either. One that rejects packets counts all the same.
            let by_paths = |list: &[Candidate]| {
                best(family, list).is_ok() && list.iter().all(|candidate| self.is_by_paths(candidate.hop))
            };
            let none_counts = by_paths(candidates) && covering.all(|(_, list)| by_paths(list));
            return (!none_counts).then_some(Err(PuntReason::PolicyRules));
        }
        match found {
            Ok(hop) if table == RT_TABLE_LOCAL && self.is_amid_main(hop) => Some(Err(PuntReason::LocalTable)),
            found => Some(found),
        }
    }

    /// Whether a route of the table local may be of no account to the kernel where main has a longer prefix: IPv4's two tables
    /// are one to it until there is another rule than its own, and stay two from then on, which nobody can ask. What it keeps
    /// to itself by the one it is left by the other as well, since it is this machine's here, also as a source.
    fn is_amid_main(&self, hop: u32) -> bool {
        use PuntReason::{Anycast, Broadcast, Local, Multicast};
        let Some((key, _)) = self.hops.get(hop) else { return true };
        let is_own = matches!(key, HopKey::Punt { reason: Local | Broadcast | Anycast | Multicast, .. });
        key.family() == Family::V4 && !is_own
    }

    fn is_by_paths(&self, hop: u32) -> bool {
        matches!(self.hops.get(hop), Some((HopKey::Paths { .. }, _)))
    }

    /// Whether a prefix is one where the answer may change.
    pub(super) fn is_bound(&self, prefix: Prefix) -> bool {
        let rules = &self.rules[prefix.family() as usize];
        let has = |table: &Table| table.routes.contains_key(&prefix);
        rules.bounds.contains(&prefix)
            || rules.tables.iter().any(|table| self.tables.get(table).is_some_and(has))
    }

    /// The hop of what was found, with a reference to it.
    pub(super) fn acquire(&mut self, family: Family, found: Found) -> u32 {
        match found {
            Ok(hop) => {
                self.hops.retain(hop);
                hop
            }
            Err(reason) => self.hops.acquire(HopKey::unknown(family, reason)),
        }
    }
}
