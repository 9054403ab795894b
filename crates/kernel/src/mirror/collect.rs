//! From the kernel's state to what users see: the difference to what they were told before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::hops::{AdjacencyKey, AdjacencyState, HopKey, HopState, Resolution, Way};
use super::interned::Interned;
use super::table::best;
use super::{Mirror, Pending};
use crate::changes::{Action, Adjacency, AdjacencyId, Changes, Hop, HopId, Leg};
use crate::model::Link;
use crate::prefix::Prefix;
use crate::reason::PuntReason;

/// Prefixes between two words of progress.
const STRIDE: usize = 4096;

impl Mirror {
    /// What changed since the last call; says by `progress` that it gets on, as there may be millions of prefixes. Not to be
    /// called between [`Mirror::begin_resync`] and [`Mirror::end_resync`], when the state is half of the old and half of the
    /// new.
    pub fn collect(&mut self, progress: impl Fn()) -> Changes {
        let mut pending = std::mem::take(&mut self.pending);
        let mut changes = Changes { links: self.collect_links(&pending.links), ..Changes::default() };
        if pending.addresses {
            changes.addresses = self.collect_addresses();
        }
        if pending.hops {
            self.resolve_all();
            let neighbours = self.kernel.neighbours.keys();
            pending.prefixes.extend(neighbours.map(|(address, _)| Prefix::host(*address)));
        }
        changes.routes = self.collect_routes(std::mem::take(&mut pending.prefixes), progress);
        let (hops, gone) = self.collect_hops();
        changes.hops = hops;
        changes.adjacencies = self.collect_adjacencies(&pending);
        changes.hops.extend(gone);
        changes
    }

    fn collect_links(&self, indices: &BTreeSet<u32>) -> Vec<(u32, Option<Link>)> {
        let now = |index| self.kernel.links.get(index).map(|seen| seen.value.clone());
        indices.iter().map(|index| (*index, now(index))).collect()
    }

    fn collect_addresses(&mut self) -> Vec<(IpAddr, bool)> {
        let now: BTreeSet<IpAddr> = self.kernel.addresses.keys().map(|address| address.address).collect();
        let gone = self.addresses.difference(&now).map(|&address| (address, false));
        let new = now.difference(&self.addresses).map(|&address| (address, true));
        let changes = gone.chain(new).collect();
        self.addresses = now;
        changes
    }

    fn resolve_all(&mut self) {
        for (_, key, state) in self.hops.iter_mut() {
            let now = Some(self.kernel.resolve(key, &state.dead.0));
            state.changed |= now != state.resolution;
            state.resolution = now;
        }
    }

    fn collect_routes(
        &mut self,
        mut prefixes: Vec<Prefix>,
        progress: impl Fn(),
    ) -> Vec<(Prefix, Option<HopId>)> {
        prefixes.sort_unstable();
        prefixes.dedup();
        let mut changes = Vec::new();
        for (index, prefix) in prefixes.into_iter().enumerate() {
            if index % STRIDE == 0 {
                progress();
            }
            // The reference that `effective` takes is the published one.
            let now = self.effective(prefix);
            let before = self.published.get(&prefix).copied();
            if let Some(HopId(hop)) = before {
                self.point(hop, false);
            }
            match now {
                Some(hop) => {
                    self.point(hop, true);
                    if before != Some(HopId(hop)) {
                        self.published.insert(prefix, HopId(hop));
                        changes.push((prefix, Some(HopId(hop))));
                    }
                }
                None => {
                    if self.published.remove(&prefix).is_some() {
                        changes.push((prefix, None));
                    }
                }
            }
        }
        changes
    }

    /// One prefix more or less points to a hop; less also gives back the reference.
    fn point(&mut self, hop: u32, more: bool) {
        if let Some((_, state)) = self.hops.get_mut(hop) {
            state.prefixes = if more { state.prefixes + 1 } else { state.prefixes.saturating_sub(1) };
        }
        if !more {
            self.hops.release(hop);
        }
    }

    /// The hop of a prefix, with a reference to it; none if users need no entry for it.
    fn effective(&mut self, prefix: Prefix) -> Option<u32> {
        if prefix.is_host() && self.exceptions.contains(&prefix.address()) && !self.is_own(prefix) {
            let key = HopKey::unknown(prefix.family(), PuntReason::Exception);
            return Some(self.hops.acquire(key));
        }
        let exact = self.tables.iter().any(|table| table.routes.contains_key(&prefix));
        if !exact && !prefix.is_host() {
            return None;
        }
        let candidates = self.tables.iter().find_map(|table| table.covering(prefix))?;
        let hop = match best(prefix.family(), candidates) {
            Ok(hop) => {
                self.hops.retain(hop);
                hop
            }
            Err(reason) => self.hops.acquire(HopKey::unknown(prefix.family(), reason)),
        };
        if prefix.is_host()
            && let Some(Resolution { way: Way::OnLink { ifindex, mtu_bytes }, .. }) = self.resolution(hop)
        {
            let (ifindex, address, mtu_bytes) = (*ifindex, prefix.address(), *mtu_bytes);
            if self.kernel.usable((ifindex, address)) {
                self.hops.release(hop);
                return Some(self.hops.acquire(HopKey::Host { ifindex, address, mtu_bytes }));
            }
        }
        if exact {
            return Some(hop);
        }
        self.hops.release(hop);
        None
    }

    /// Whether the kernel's first table, which has what is this machine's, has this prefix.
    fn is_own(&self, prefix: Prefix) -> bool {
        self.tables.first().is_some_and(|local| local.routes.contains_key(&prefix))
    }

    fn resolution(&mut self, hop: u32) -> Option<&Resolution> {
        let (key, state) = self.hops.get_mut(hop)?;
        if state.resolution.is_none() {
            state.resolution = Some(self.kernel.resolve(key, &state.dead.0));
        }
        state.resolution.as_ref()
    }

    /// New values of hops, and apart from them those that are gone.
    #[allow(clippy::type_complexity)] // Two lists of the one kind that `Changes` has.
    fn collect_hops(&mut self) -> (Vec<(HopId, Option<Hop>)>, Vec<(HopId, Option<Hop>)>) {
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        for (id, key, state) in self.hops.iter_mut() {
            let used = state.prefixes > 0;
            if used == state.shown.is_some() && !(used && std::mem::take(&mut state.changed)) {
                continue;
            }
            let resolution = state.resolution.get_or_insert_with(|| self.kernel.resolve(key, &state.dead.0));
            let now = used.then(|| show(resolution, &mut self.adjacencies));
            forget(state.shown.as_ref(), &mut self.adjacencies);
            if now != state.shown {
                let list = if used { &mut new } else { &mut gone };
                list.push((HopId(id), now.clone()));
                state.shown = now;
            }
        }
        self.hops.sweep(|_, _| {});
        (new, gone)
    }

    fn collect_adjacencies(&mut self, pending: &Pending) -> Vec<(AdjacencyId, Option<Adjacency>)> {
        let mut changes = Vec::new();
        self.adjacencies.sweep(|id, state| {
            if state.shown.is_some() {
                changes.push((AdjacencyId(id), None));
            }
        });
        for (id, key, state) in self.adjacencies.iter_mut() {
            if !pending.adjacencies && state.shown.is_some() {
                continue;
            }
            let now = Some(self.kernel.adjacency(*key));
            if now != state.shown {
                changes.push((AdjacencyId(id), now));
                state.shown = now;
            }
        }
        changes
    }

    /// The gateways that some prefix is forwarded by and that can be asked for now, as interface index and address: those to
    /// keep resolved.
    pub fn gateways(&self) -> BTreeSet<(u32, IpAddr)> {
        let mut gateways = BTreeSet::new();
        for (_, key, state) in self.hops.iter() {
            if let (Some(Resolution { way: Way::Forward { legs, .. }, .. }), false) =
                (&state.resolution, matches!(key, HopKey::Host { .. }))
                && state.prefixes > 0
            {
                gateways.extend(legs.iter().map(|(adjacency, _)| *adjacency));
            }
        }
        gateways.retain(|(ifindex, _)| self.link_by_index(*ifindex).is_some_and(Link::alive));
        gateways
    }
}

fn show(resolution: &Resolution, adjacencies: &mut Interned<AdjacencyKey, AdjacencyState>) -> Hop {
    let action = match &resolution.way {
        Way::Punt(reason) => Action::Punt(*reason),
        Way::OnLink { .. } => Action::Punt(PuntReason::OnLink),
        Way::Forward { legs, mtu_bytes } => {
            let leg = |&(key, weight): &(AdjacencyKey, u16)| Leg {
                adjacency: AdjacencyId(adjacencies.acquire(key)),
                weight,
            };
            Action::Forward { legs: legs.iter().map(leg).collect(), mtu_bytes: *mtu_bytes }
        }
    };
    Hop { action, reverse_path: resolution.reverse_path.clone() }
}

fn forget(hop: Option<&Hop>, adjacencies: &mut Interned<AdjacencyKey, AdjacencyState>) {
    if let Some(Hop { action: Action::Forward { legs, .. }, .. }) = hop {
        legs.iter().for_each(|leg| adjacencies.release(leg.adjacency.0));
    }
}

pub(super) fn shown_hops(hops: &Interned<HopKey, HopState>) -> BTreeMap<HopId, Hop> {
    hops.iter().filter_map(|(id, _, state)| Some((HopId(id), state.shown.clone()?))).collect()
}

pub(super) fn shown_adjacencies(
    adjacencies: &Interned<AdjacencyKey, AdjacencyState>,
) -> BTreeMap<AdjacencyId, Adjacency> {
    adjacencies.iter().filter_map(|(id, _, state)| Some((AdjacencyId(id), state.shown?))).collect()
}
