//! Candidate routes by prefix: what a message adds, replaces or takes away, and which candidate counts.
//!
//! IPv4 keeps an ordered list a prefix: "append" goes behind, "prepend" before, "replace" takes the place of the first with
//! the same type of service and metric. IPv6 joins routes of equal metric that have gateways into one with several paths, and
//! announces the whole of it when a path comes, but only the path when one goes.

use std::collections::BTreeMap;

use super::hops::{HopKey, HopState, Interned};
use super::{Mirror, Scope};
use crate::decode::Operation;
use crate::model::{Family, Path, PuntReason, Route, Target};
use crate::prefix::Prefix;
use crate::uapi::*;

/// A route to a prefix; whether it is used depends on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub hop: u32,
    pub metric: u32,
    pub generation: u32,
    pub tos: u8,
    pub protocol: u8,
    pub source_specific: bool,
    /// IPv6: joined with others of the same metric.
    pub joins: bool,
}

impl Candidate {
    fn same_as(&self, other: &Candidate) -> bool {
        Candidate { generation: other.generation, ..*self } == *other
    }

    fn same_place(&self, other: &Candidate) -> bool {
        (self.tos, self.metric, self.source_specific) == (other.tos, other.metric, other.source_specific)
    }
}

/// One routing table.
#[derive(Debug)]
pub(super) struct Table {
    pub routes: BTreeMap<Prefix, Vec<Candidate>>,
    /// Prefixes by length, to look for covering ones only where there are some.
    lengths: [[u32; 129]; 2],
}

impl Default for Table {
    fn default() -> Self {
        Table { routes: BTreeMap::new(), lengths: [[0; 129]; 2] }
    }
}

impl Table {
    pub fn candidates(&self) -> usize {
        self.routes.values().map(Vec::len).sum()
    }

    /// The candidates of the longest prefix that covers `prefix`.
    pub fn covering(&self, prefix: Prefix) -> Option<&[Candidate]> {
        let lengths = &self.lengths[prefix.family() as usize];
        (0..=prefix.len())
            .rev()
            .filter(|&len| lengths[usize::from(len)] > 0)
            .find_map(|len| self.routes.get(&Prefix::new(prefix.address(), len)).map(Vec::as_slice))
    }

    fn list(&mut self, prefix: Prefix) -> &mut Vec<Candidate> {
        let lengths = &mut self.lengths[prefix.family() as usize];
        self.routes.entry(prefix).or_insert_with(|| {
            lengths[usize::from(prefix.len())] += 1;
            Vec::with_capacity(1)
        })
    }

    fn drop_if_empty(&mut self, prefix: Prefix) {
        if self.routes.get(&prefix).is_some_and(Vec::is_empty) {
            self.routes.remove(&prefix);
            self.lengths[prefix.family() as usize][usize::from(prefix.len())] -= 1;
        }
    }
}

/// Which candidate the kernel takes for every packet to the prefix, or why that cannot be said.
pub(super) fn best(family: Family, candidates: &[Candidate]) -> Result<u32, PuntReason> {
    if candidates.iter().any(|c| c.source_specific) {
        return Err(PuntReason::SourceSpecific);
    }
    if candidates.iter().any(|c| c.tos != 0) {
        return Err(PuntReason::TypeOfService);
    }
    // Of equal ones IPv4 takes the first; IPv6 judges by reachability and by the interface asked for.
    let Some(best) = candidates.iter().min_by_key(|c| c.metric) else { return Err(PuntReason::UnknownType) };
    let equals = candidates.iter().filter(|c| c.metric == best.metric).count();
    if family == Family::V6 && equals > 1 { Err(PuntReason::Ambiguous) } else { Ok(best.hop) }
}

/// What happened to a list of candidates.
struct Outcome {
    changed: bool,
    /// Hops that lost a reference.
    released: Option<u32>,
    also_released: Option<u32>,
}

impl Outcome {
    const NOTHING: Outcome = Outcome { changed: false, released: None, also_released: None };
    const ADDED: Outcome = Outcome { changed: true, ..Outcome::NOTHING };
}

impl Mirror {
    pub(super) fn route(&mut self, route: Route, operation: Operation) {
        let Some(rank) = rank(route.table) else { return };
        let prefix = route.prefix;
        let (key, joins) = hop_key(prefix.family(), route.protocol, route.target, route.mtu_bytes);
        let candidate = Candidate {
            hop: self.hops.acquire(key),
            metric: route.metric,
            generation: self.generation,
            tos: route.tos,
            protocol: route.protocol,
            source_specific: route.source_specific,
            joins,
        };
        let outcome = match (operation, prefix.family()) {
            (Operation::Removed, _) => {
                let outcome = self.remove(rank, prefix, &candidate);
                self.hops.release(candidate.hop);
                outcome
            }
            (Operation::Dumped, _) => Ok(dumped(self.tables[rank].list(prefix), candidate)),
            (Operation::Added { replace, append }, Family::V4) => {
                add4(self.tables[rank].list(prefix), candidate, replace, append)
            }
            (Operation::Added { replace, .. }, Family::V6) => {
                add6(self.tables[rank].list(prefix), candidate, replace)
            }
        };
        self.tables[rank].drop_if_empty(prefix);
        match outcome {
            Ok(Outcome { changed, released, also_released }) => {
                released.into_iter().chain(also_released).for_each(|hop| self.hops.release(hop));
                if changed {
                    self.route_changed(rank, prefix);
                }
            }
            Err(Unclear(unused)) => {
                unused.into_iter().for_each(|hop| self.hops.release(hop));
                self.needs |= if prefix.family() == Family::V4 { Scope::ROUTES4 } else { Scope::ROUTES6 };
            }
        }
    }

    fn route_changed(&mut self, rank: usize, prefix: Prefix) {
        self.pending.prefixes.push(prefix);
        if prefix.is_host() {
            return;
        }
        // A neighbour inside may have been on the link, or be so now.
        let last = Prefix::host(prefix.last());
        let inside = (prefix.address(), 0)..=(prefix.last(), u32::MAX);
        self.pending
            .prefixes
            .extend(self.kernel.neighbours.range(inside).map(|((address, _), _)| Prefix::host(*address)));
        // The kernel looks into a later table only where the earlier ones say nothing at all.
        for table in &self.tables[rank + 1..] {
            self.pending.prefixes.extend(table.routes.range(prefix..=last).map(|(inner, _)| *inner));
        }
    }

    fn remove(&mut self, rank: usize, prefix: Prefix, gone: &Candidate) -> Result<Outcome, Unclear> {
        // Which source it was for is not kept.
        if gone.source_specific {
            return Err(Unclear(None));
        }
        let Some(list) = self.tables[rank].routes.get_mut(&prefix) else { return Ok(Outcome::NOTHING) };
        if !gone.joins {
            return Ok(remove_exact(list, gone));
        }
        let Some(index) = list.iter().position(|c| c.joins && c.same_place(gone)) else {
            return Ok(Outcome::NOTHING);
        };
        let whole = list[index].hop;
        let staying = remaining(&self.hops, whole, gone.hop).ok_or(Unclear(None))?;
        match staying {
            Some(key) => list[index].hop = self.hops.acquire(key),
            None => {
                list.remove(index);
            }
        }
        Ok(Outcome { changed: true, released: Some(whole), also_released: None })
    }

    pub(super) fn sweep_routes(&mut self, family: Family) {
        let now = self.generation;
        for rank in 0..self.tables.len() {
            let mut changed = Vec::new();
            let whole = Prefix::all(family)..=Prefix::host(Prefix::all(family).last());
            for (prefix, list) in self.tables[rank].routes.range_mut(whole) {
                let before = list.len();
                list.retain(|candidate| {
                    let keep = candidate.generation == now;
                    if !keep {
                        self.hops.release(candidate.hop);
                    }
                    keep
                });
                if list.len() != before {
                    changed.push(*prefix);
                }
            }
            for prefix in changed {
                self.tables[rank].drop_if_empty(prefix);
                self.route_changed(rank, prefix);
            }
        }
    }
}

/// The kernel's order of lookups; other tables are reached by rules only, and then nothing is forwarded here.
fn rank(table: u32) -> Option<usize> {
    match table {
        RT_TABLE_LOCAL => Some(0),
        RT_TABLE_MAIN => Some(1),
        RT_TABLE_DEFAULT => Some(2),
        _ => None,
    }
}

fn hop_key(family: Family, protocol: u8, target: Target, mtu_bytes: Option<u32>) -> (HopKey, bool) {
    match target {
        Target::Punt(reason) => (HopKey::Punt(reason), false),
        Target::Object(id) => (HopKey::Object { family, id, mtu_bytes }, false),
        Target::Paths(mut paths) => {
            // The order means nothing, and the kernel does not always give the same.
            paths.sort_unstable();
            let learned = matches!(protocol, RTPROT_RA | RTPROT_REDIRECT);
            let joins = family == Family::V6 && !learned && paths.iter().all(|path| path.gateway.is_some());
            (HopKey::Paths { family, paths, mtu_bytes }, joins)
        }
    }
}

/// What is left of the joined route `whole` without the paths of `gone`; none if nothing is. Outer none: cannot be said.
fn remaining(hops: &Interned<HopKey, HopState>, whole: u32, gone: u32) -> Option<Option<HopKey>> {
    let (HopKey::Paths { family, paths, mtu_bytes }, _) = hops.get(whole)? else { return None };
    let (HopKey::Paths { paths: leaving, .. }, _) = hops.get(gone)? else { return None };
    let leaves = |path: &Path| leaving.iter().any(|p| (p.ifindex, p.gateway) == (path.ifindex, path.gateway));
    let paths: Vec<Path> = paths.iter().filter(|path| !leaves(path)).copied().collect();
    let (family, mtu_bytes) = (*family, *mtu_bytes);
    Some((!paths.is_empty()).then_some(HopKey::Paths { family, paths, mtu_bytes }))
}

/// The messages do not tell which of several routes is meant. Holds a hop that is of no use then.
struct Unclear(Option<u32>);

fn dumped(list: &mut Vec<Candidate>, candidate: Candidate) -> Outcome {
    if candidate.joins
        && let Some(whole) = list.iter_mut().find(|c| c.joins && c.same_place(&candidate))
    {
        return replace(whole, candidate);
    }
    match list.iter().position(|c| c.same_as(&candidate)) {
        // Dumps come in the kernel's order: what has been shown goes behind what was shown before it.
        Some(index) if list[index].generation != candidate.generation => {
            list.remove(index);
            list.push(candidate);
            Outcome { changed: list.len() > 1, released: Some(candidate.hop), also_released: None }
        }
        Some(_) => Outcome { released: Some(candidate.hop), ..Outcome::NOTHING },
        None => {
            list.push(candidate);
            Outcome::ADDED
        }
    }
}

fn replace(old: &mut Candidate, new: Candidate) -> Outcome {
    let changed = !old.same_as(&new);
    let released = Some(old.hop);
    *old = new;
    Outcome { changed, released, also_released: None }
}

fn add4(
    list: &mut Vec<Candidate>,
    new: Candidate,
    replaces: bool,
    appends: bool,
) -> Result<Outcome, Unclear> {
    let same = list.iter().position(|c| c.same_as(&new));
    let in_place: Vec<usize> = (0..list.len()).filter(|&i| list[i].same_place(&new)).collect();
    match (same, &in_place[..]) {
        // A message about what a dump has shown already.
        (Some(index), [_]) => Ok(replace(&mut list[index], new)),
        (Some(index), _) if !replaces => Ok(replace(&mut list[index], new)),
        // The one to be replaced was brought back by a message that is older than the dump.
        (Some(index), [first, last]) if index == *last => {
            let outcome = replace(&mut list[index], new);
            Ok(Outcome { changed: true, also_released: Some(list.remove(*first).hop), ..outcome })
        }
        (Some(_), _) => Err(Unclear(Some(new.hop))),
        (None, [first, ..]) if replaces => Ok(replace(&mut list[*first], new)),
        (None, [first, ..]) if !appends => {
            list.insert(*first, new);
            Ok(Outcome::ADDED)
        }
        (None, _) => {
            list.push(new);
            Ok(Outcome::ADDED)
        }
    }
}

/// Removes the route that equals `gone`. If there is none, the message is older than the last dump.
fn remove_exact(list: &mut Vec<Candidate>, gone: &Candidate) -> Outcome {
    match list.iter().position(|c| c.same_as(gone)) {
        Some(index) => Outcome { changed: true, released: Some(list.remove(index).hop), also_released: None },
        None => Outcome::NOTHING,
    }
}

fn add6(list: &mut Vec<Candidate>, new: Candidate, replaces: bool) -> Result<Outcome, Unclear> {
    let same =
        list.iter().position(|c| if new.joins { c.joins && c.same_place(&new) } else { c.same_as(&new) });
    let in_place: Vec<usize> = (0..list.len()).filter(|&i| list[i].same_place(&new)).collect();
    match (same, &in_place[..]) {
        (Some(index), [_]) => Ok(replace(&mut list[index], new)),
        (Some(index), _) if !replaces => Ok(replace(&mut list[index], new)),
        (None, [only]) if replaces => Ok(replace(&mut list[*only], new)),
        (_, [_, _, ..]) if replaces => Err(Unclear(Some(new.hop))),
        _ => {
            list.push(new);
            Ok(Outcome::ADDED)
        }
    }
}
