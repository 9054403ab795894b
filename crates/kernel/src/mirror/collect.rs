//! From the kernel's state to what users see: the difference to what they were told before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::hops::{AdjacencyKey, AdjacencyState, HopKey, HopState, Resolution, Way};
use super::interned::Interned;
use super::rules::Found;
use super::{Mirror, Pending};
use crate::changes::{Action, Adjacency, AdjacencyId, Changes, Hop, HopId, Leg};
use crate::model::{Link, ReversePath};
use crate::prefix::Prefix;
use crate::reason::PuntReason;
use crate::uapi::RT_TABLE_LOCAL;

/// Prefixes between two words of progress.
const STRIDE: usize = 256;

impl Mirror {
    /// What changed since the last call; says by `progress` that it gets on, as there may be millions of prefixes. Not to be
    /// called between [`Mirror::begin_resync`] and [`Mirror::end_resync`], when the state is half of the old and half of the
    /// new.
    pub fn collect(&mut self, progress: impl Fn()) -> Changes {
        if self.pending.hops {
            self.follow_rules();
        }
        let mut pending = std::mem::take(&mut self.pending);
        let links = self.collect_links(&pending.links);
        let mut changes = Changes { rules: pending.rules, links, ..Changes::default() };
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
        let mut ruled = Vec::new();
        for (id, key, state) in self.hops.iter_mut() {
            if let HopKey::Ruled { ahead, back, .. } = key {
                ruled.push((id, *ahead, back.clone()));
                continue;
            }
            let now = Some(self.kernel.resolve(key, &state.dead.0));
            state.changed |= now != state.resolution;
            state.resolution = now;
        }
        for (id, ahead, back) in ruled {
            self.resolve_ruled(id, ahead, &back);
        }
    }

    fn resolve_ruled(&mut self, id: u32, ahead: u32, back: &[u32]) {
        let way = match self.resolution(ahead) {
            Some(resolution) => resolution.way.clone(),
            None => Way::Punt(PuntReason::Unclear),
        };
        let mut reverse_path = if back.is_empty() { Some(ReversePath::Ruled) } else { None };
        for &hop in back {
            let found = self.resolution(hop).map_or(ReversePath::Unknown, |found| found.reverse_path.clone());
            reverse_path = Some(match reverse_path {
                Some(before) => before.and(&found),
                None => found,
            });
        }
        let now = Some(Resolution { way, reverse_path: reverse_path.unwrap_or(ReversePath::Unknown) });
        if let Some((_, state)) = self.hops.get_mut(id) {
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
        let family = prefix.family();
        let is_source = self.rules[family as usize].are_about(prefix);
        if prefix.is_host() && self.exceptions.contains(&prefix.address()) && !self.is_own(prefix) {
            let hop = self.acquire(family, Err(PuntReason::Exception));
            return Some(self.ruled(hop, Vec::new(), is_source));
        }
        let is_bound = self.is_bound(prefix);
        if !is_bound && !prefix.is_host() {
            return None;
        }
        let walk = self.walk(prefix);
        let ahead = walk.ahead();
        let back = walk.back();
        // Without a route there is nothing to be said of packets to the prefix, but there may be of those from it.
        let says_more = is_bound && (is_source || !back.is_empty());
        let ahead = ahead.or(says_more.then_some(Err(PuntReason::PolicyRules)))?;
        let hop = self.acquire(family, ahead);
        match self.host(prefix, hop) {
            Some(host) => {
                self.hops.release(hop);
                Some(self.ruled(host, back, is_source))
            }
            None if is_bound => Some(self.ruled(hop, back, is_source)),
            None => {
                self.hops.release(hop);
                None
            }
        }
    }

    /// The hop of a host that is on the link by this hop and known there, with a reference to it.
    fn host(&mut self, prefix: Prefix, hop: u32) -> Option<u32> {
        if !prefix.is_host() {
            return None;
        }
        let Way::OnLink { ifindex, mtu_bytes } = self.resolution(hop)?.way else { return None };
        let address = prefix.address();
        let is_known = self.kernel.usable((ifindex, address));
        is_known.then(|| self.hops.acquire(HopKey::Host { ifindex, address, mtu_bytes }))
    }

    /// The hop that is as `ahead` where rules bear on packets from its prefix; takes over the reference to it.
    fn ruled(&mut self, ahead: u32, back: Vec<Found>, is_source: bool) -> u32 {
        if !is_source && back.is_empty() {
            return ahead;
        }
        let (key, _) = self.hops.get(ahead).expect("there is a reference to it");
        let family = key.family();
        let back = if is_source { Vec::new() } else { back };
        let mut back: Vec<u32> = back.into_iter().map(|found| self.acquire(family, found)).collect();
        back.sort_unstable();
        back.dedup_by(|a, b| {
            let same = a == b;
            if same {
                self.hops.release(*a);
            }
            same
        });
        if back == [ahead] {
            self.hops.release(ahead);
            return ahead;
        }
        let key = HopKey::Ruled { family, ahead, back: back.clone() };
        match self.hops.find(&key) {
            Some(id) => {
                self.hops.retain(id);
                self.hops.release(ahead);
                back.iter().for_each(|&hop| self.hops.release(hop));
                id
            }
            None => {
                let id = self.hops.acquire(key);
                self.resolve_ruled(id, ahead, &back);
                id
            }
        }
    }

    /// The key of the hop that says where packets go.
    pub(super) fn bare<'a>(&'a self, key: &'a HopKey) -> &'a HopKey {
        match key {
            HopKey::Ruled { ahead, .. } => self.hops.get(*ahead).map_or(key, |(key, _)| key),
            _ => key,
        }
    }

    /// Whether the kernel's table of what is this machine's has this prefix.
    fn is_own(&self, prefix: Prefix) -> bool {
        self.tables.get(&RT_TABLE_LOCAL).is_some_and(|local| local.routes.contains_key(&prefix))
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
        let mut named = Vec::new();
        self.hops.sweep(|_, key, _| {
            if let HopKey::Ruled { ahead, back, .. } = key {
                named.push(ahead);
                named.extend(back);
            }
        });
        named.into_iter().for_each(|hop| self.hops.release(hop));
        (new, gone)
    }

    fn collect_adjacencies(&mut self, pending: &Pending) -> Vec<(AdjacencyId, Option<Adjacency>)> {
        let mut changes = Vec::new();
        self.adjacencies.sweep(|id, _, state| {
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
                (&state.resolution, matches!(self.bare(key), HopKey::Host { .. }))
                && state.prefixes > 0
            {
                gateways.extend(legs.iter().map(|(adjacency, _)| *adjacency));
            }
        }
        let asks = |link: &Link| link.alive() && !link.bare;
        gateways.retain(|(ifindex, _)| self.link_by_index(*ifindex).is_some_and(asks));
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
