//! Candidate routes by prefix: what a message adds, replaces or takes away, and which candidate counts.
//!
//! IPv4 keeps an ordered list a prefix: "append" goes behind, "prepend" before, "replace" takes the place of the first with
//! the same type of service and metric. IPv6 joins routes of equal metric that have gateways into one with several paths
//! ([`super::joins`]).
//!
//! Where a message does not tell which of several routes is meant, or does not agree with what is known, the prefix gets a
//! candidate of its own that wins over all and leaves packets to the kernel. The next dump does not show it, so it goes. In
//! order, and with no message lost, that does not happen often: the kernel refuses routes that it cannot tell apart, and says
//! what it does. While messages are read that may be older than the last dump, what they take away that is not there is taken
//! to be gone already, and what is not alone in its place is unclear.

use super::hops::{HopKey, HopState};
use super::interned::Interned;
use super::joins::{joined, parted};
use super::table::{Candidate, Kind};
use super::{Mirror, Scope};
use crate::decode::Operation;
use crate::model::{Family, Path, Route, Target};
use crate::prefix::Prefix;
use crate::reason::PuntReason;
use crate::uapi::{RTPROT_KERNEL, RTPROT_RA, RTPROT_REDIRECT};

/// What happened to a list of candidates.
#[derive(Clone, Copy)]
struct Outcome {
    changed: bool,
    /// The hop that lost a reference: of what was there, or of what came and is not kept.
    released: Option<u32>,
}

impl Outcome {
    const NOTHING: Outcome = Outcome { changed: false, released: None };
    const ADDED: Outcome = Outcome { changed: true, released: None };
}

/// The message does not tell what the kernel has now; nothing was done to the list.
#[derive(Clone, Copy)]
struct Unclear;

impl Mirror {
    pub(super) fn route(&mut self, mut route: Route, operation: Operation) {
        let prefix = route.prefix;
        let family = prefix.family();
        let table = route.table;
        let dead = std::mem::take(&mut route.dead);
        let mut new = self.candidate(route);
        let list = self.tables.entry(table).or_default().list(prefix);
        let outcome = match (operation, family) {
            (Operation::Removed, _) if new.joins() => part6(list, &mut self.hops, &new, self.replaying),
            (Operation::Removed, _) => remove(list, &new, self.replaying),
            (Operation::Dumped, _) => Ok(dumped(list, new)),
            (Operation::Added { replace, append }, Family::V4) => add4(list, new, replace, append),
            (Operation::Added { replace, .. }, Family::V6) => add6(list, &mut self.hops, &mut new, replace),
        };
        let empty = list.is_empty();
        let crowded = self.replaying && list.iter().filter(|c| c.same_place(&new)).count() > 1;
        if operation != Operation::Removed && outcome.is_ok() {
            self.tell_dead(new.hop, dead);
        }
        match outcome {
            Ok(Outcome { changed, released }) => {
                released.into_iter().for_each(|hop| self.hops.release(hop));
                if changed {
                    self.route_changed(table, prefix);
                }
            }
            Err(Unclear) => self.unclear(table, prefix),
        }
        if operation == Operation::Removed || matches!(outcome, Err(Unclear)) {
            self.hops.release(new.hop);
        }
        if crowded {
            self.unclear(table, prefix);
        } else if empty {
            self.drop_if_empty(table, prefix);
        }
    }

    fn drop_if_empty(&mut self, table: u32, prefix: Prefix) {
        if let Some(table) = self.tables.get_mut(&table) {
            table.drop_if_empty(prefix);
        }
    }

    /// The candidate that a route is, with a reference to its hop.
    fn candidate(&mut self, route: Route) -> Candidate {
        let (metric, tos, protocol) = (route.metric, route.tos, route.protocol);
        let source_specific = route.source_specific;
        let (key, joins) = hop_key(route);
        let kind = match (source_specific, joins) {
            (true, _) => Kind::SourceSpecific,
            (false, true) => Kind::Joining,
            (false, false) => Kind::Plain,
        };
        let hop = self.hops.acquire(key);
        Candidate { hop, metric, generation: self.generation, tos, protocol, kind }
    }

    /// Which devices are dead in a hop. Several routes can be one hop; those of one dump are taken together.
    fn tell_dead(&mut self, hop: u32, mut dead: Vec<u32>) {
        let Some((_, HopState { dead: (told, since), .. })) = self.hops.get_mut(hop) else { return };
        if dead.is_empty() && told.is_empty() {
            return;
        }
        if *since == self.generation {
            dead.extend(told.iter());
        }
        dead.sort_unstable();
        dead.dedup();
        *since = self.generation;
        if *told != dead {
            *told = dead;
            self.pending.hops = true;
        }
    }

    /// Leaves a prefix to the kernel until its table has been dumped.
    fn unclear(&mut self, table: u32, prefix: Prefix) {
        let family = prefix.family();
        self.needs |= Scope::routes(family);
        let list = self.tables.entry(table).or_default().list(prefix);
        if list.iter().any(|c| c.kind == Kind::Unclear) {
            return;
        }
        self.unclear += 1;
        let hop = self.hops.acquire(HopKey::unknown(family, PuntReason::Unclear));
        let (generation, kind) = (self.generation, Kind::Unclear);
        list.push(Candidate { hop, metric: 0, generation, tos: 0, protocol: 0, kind });
        self.route_changed(table, prefix);
    }

    fn route_changed(&mut self, table: u32, prefix: Prefix) {
        let rules = &self.rules[prefix.family() as usize];
        if !rules.uses(table) {
            return;
        }
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
        for table in rules.behind(table).iter().filter_map(|behind| self.tables.get(behind)) {
            self.pending.prefixes.extend(table.routes.range(prefix..=last).map(|(inner, _)| *inner));
        }
        let shortest = rules.shortest(table);
        if prefix.len() < shortest
            && let Some(table) = self.tables.get(&table)
        {
            let inside = table.routes.range(prefix..=last).map(|(inner, _)| *inner);
            self.pending.prefixes.extend(inside.filter(|inner| inner.len() < shortest));
        }
        self.pending.prefixes.extend(rules.bounds_in(prefix));
    }

    pub(super) fn sweep_routes(&mut self, family: Family) {
        let now = self.generation;
        let whole = Prefix::all(family)..=Prefix::host(Prefix::all(family).last());
        let mut changed = Vec::new();
        for (&id, table) in &mut self.tables {
            for (prefix, list) in table.routes.range_mut(whole.clone()) {
                let before = list.len();
                list.retain(|candidate| {
                    let keep = candidate.generation == now;
                    if !keep {
                        self.hops.release(candidate.hop);
                    }
                    keep
                });
                if list.len() != before {
                    changed.push((id, *prefix));
                }
            }
        }
        for (table, prefix) in changed {
            self.drop_if_empty(table, prefix);
            self.route_changed(table, prefix);
        }
    }
}

fn hop_key(route: Route) -> (HopKey, bool) {
    let family = route.prefix.family();
    let Route { mtu_bytes, source, identity, .. } = route;
    match route.target {
        Target::Punt { reason, reverse_path } => {
            // The kernel says when its own routes go, and has some for each address.
            let source = source.filter(|_| route.protocol != RTPROT_KERNEL);
            (HopKey::Punt { family, reason, reverse_path, source, identity }, false)
        }
        Target::Object(id) => (HopKey::Object { family, id, mtu_bytes, source, identity }, false),
        Target::Paths(paths) => {
            let learned = matches!(route.protocol, RTPROT_RA | RTPROT_REDIRECT);
            let joins = family == Family::V6 && !learned && paths.iter().all(|path| path.gateway.is_some());
            (HopKey::Paths { family, paths, mtu_bytes, source, identity }, joins)
        }
    }
}

fn dumped(list: &mut Vec<Candidate>, candidate: Candidate) -> Outcome {
    if candidate.joins()
        && let Some(whole) = list.iter_mut().find(|c| c.joins() && c.same_place(&candidate))
    {
        return replace(whole, candidate);
    }
    // Dumps come in the kernel's order: what is shown goes behind what was shown before it.
    let shown = list.iter().rposition(|c| c.generation == candidate.generation);
    match list.iter().position(|c| c.same_as(&candidate)) {
        Some(index) if list[index].generation == candidate.generation => {
            Outcome { released: Some(candidate.hop), ..Outcome::NOTHING }
        }
        Some(index) => {
            list.remove(index);
            let place = shown.map_or(index, |shown| shown.max(index));
            list.insert(place, candidate);
            Outcome { changed: place != index, released: Some(candidate.hop) }
        }
        None => {
            list.insert(shown.map_or(0, |shown| shown + 1), candidate);
            Outcome::ADDED
        }
    }
}

fn replace(old: &mut Candidate, new: Candidate) -> Outcome {
    let changed = !old.same_as(&new);
    let released = Some(old.hop);
    *old = new;
    Outcome { changed, released }
}

/// Where the candidates of one place are: the first, and how many.
fn in_place(list: &[Candidate], new: &Candidate) -> (Option<usize>, usize) {
    let mut places = (0..list.len()).filter(|&index| list[index].same_place(new));
    let first = places.next();
    (first, usize::from(first.is_some()) + places.count())
}

fn add4(
    list: &mut Vec<Candidate>,
    new: Candidate,
    replaces: bool,
    appends: bool,
) -> Result<Outcome, Unclear> {
    let same = list.iter().position(|c| c.same_as(&new));
    match (same, in_place(list, &new)) {
        // A message about what a dump has shown already.
        (Some(index), (_, 1)) => Ok(replace(&mut list[index], new)),
        (Some(_), _) => Err(Unclear),
        (None, (Some(first), _)) if replaces => Ok(replace(&mut list[first], new)),
        (None, (Some(first), _)) if !appends => {
            list.insert(first, new);
            Ok(Outcome::ADDED)
        }
        (None, _) => {
            list.push(new);
            Ok(Outcome::ADDED)
        }
    }
}

fn remove(list: &mut Vec<Candidate>, gone: &Candidate, replaying: bool) -> Result<Outcome, Unclear> {
    // Which source it was for is not kept.
    let same = |c: &Candidate| c.kind != Kind::SourceSpecific && c.same_as(gone);
    match list.iter().position(same) {
        Some(index) => Ok(Outcome { changed: true, released: Some(list.remove(index).hop) }),
        None => nothing_to_remove(list, gone, replaying),
    }
}

fn nothing_to_remove(list: &[Candidate], gone: &Candidate, replaying: bool) -> Result<Outcome, Unclear> {
    let other = list.iter().any(|c| c.same_place(gone));
    if other && (!replaying || gone.kind == Kind::SourceSpecific) {
        Err(Unclear)
    } else {
        Ok(Outcome::NOTHING)
    }
}

fn paths(hops: &Interned<HopKey, HopState>, hop: u32) -> &[Path] {
    match hops.get(hop) {
        Some((HopKey::Paths { paths, .. }, _)) => paths,
        _ => &[],
    }
}

/// The number of the hop that is as `hop` but has these paths, with a reference to it.
fn with_paths(hops: &mut Interned<HopKey, HopState>, hop: u32, paths: Vec<Path>) -> Option<u32> {
    let mut key = hops.get(hop)?.0.clone();
    if let HopKey::Paths { paths: old, .. } = &mut key {
        *old = paths;
    }
    Some(hops.acquire(key))
}

/// Adds or replaces a route; the hop of `new` becomes that of the joined route.
fn add6(
    list: &mut Vec<Candidate>,
    hops: &mut Interned<HopKey, HopState>,
    new: &mut Candidate,
    replaces: bool,
) -> Result<Outcome, Unclear> {
    let (first, count) = in_place(list, new);
    let same = |c: &Candidate| if new.joins() { c.joins() && c.same_place(new) } else { c.same_as(new) };
    match list.iter().position(same) {
        Some(index) if new.joins() && !replaces => {
            let now = joined(paths(hops, list[index].hop), paths(hops, new.hop)).ok_or(Unclear)?;
            let hop = with_paths(hops, new.hop, now).ok_or(Unclear)?;
            hops.release(std::mem::replace(&mut new.hop, hop));
            Ok(replace(&mut list[index], *new))
        }
        Some(index) if count == 1 || !replaces => Ok(replace(&mut list[index], *new)),
        None if replaces && count == 1 => {
            // There is one, which is the first.
            let Some(old) = first.and_then(|index| list.get_mut(index)) else { return Err(Unclear) };
            Ok(replace(old, *new))
        }
        _ if replaces && count > 1 => Err(Unclear),
        _ => {
            list.push(*new);
            Ok(Outcome::ADDED)
        }
    }
}

/// Takes paths away from a joined route.
fn part6(
    list: &mut Vec<Candidate>,
    hops: &mut Interned<HopKey, HopState>,
    gone: &Candidate,
    replaying: bool,
) -> Result<Outcome, Unclear> {
    let Some(index) = list.iter().position(|c| c.joins() && c.same_place(gone)) else {
        return nothing_to_remove(list, gone, replaying);
    };
    let whole = list[index].hop;
    let left = parted(paths(hops, whole), paths(hops, gone.hop)).ok_or(Unclear)?;
    if left.is_empty() {
        list.remove(index);
    } else {
        list[index].hop = with_paths(hops, whole, left).ok_or(Unclear)?;
    }
    Ok(Outcome { changed: true, released: Some(whole) })
}
