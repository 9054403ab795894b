//! The kernel's objects other than routes, and what a hop comes to under them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::hops::{AdjacencyKey, HopKey, Resolution};
use crate::changes::{Adjacency, Rewrite};
use crate::model::{Address, Family, Link, Neighbour, NextHopKind, Path, PuntReason, Qdisc, Rule};
use crate::uapi::*;

/// States in which the kernel itself would send to a neighbour. `NOARP` is left out: there is no address to send to.
const USABLE: u16 = NUD_PERMANENT | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;

/// A value and the dump or event that it was last seen in.
#[derive(Clone, Debug)]
pub(super) struct Seen<T> {
    pub value: T,
    pub generation: u32,
}

/// The kernel's objects other than routes.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    pub ports: BTreeSet<u32>,
    pub links: BTreeMap<u32, Seen<Link>>,
    pub addresses: BTreeMap<Address, u32>,
    /// By address first, so that the neighbours inside a prefix are a range.
    pub neighbours: BTreeMap<(IpAddr, u32), Seen<Neighbour>>,
    pub objects: BTreeMap<u32, Seen<NextHopKind>>,
    pub rules: BTreeMap<Rule, u32>,
    /// By interface, place and handle: one place can hold the old and the new for a moment.
    pub qdiscs: BTreeMap<(u32, u32, u32), Seen<Qdisc>>,
}

impl Kernel {
    /// The rules of a family that are not the kernel's own, or the lack of those: why lookups cannot be mirrored.
    pub fn follows_rules(&self, family: Family) -> bool {
        const OWN: [(u32, u32); 3] = [(0, RT_TABLE_LOCAL), (32766, RT_TABLE_MAIN), (32767, RT_TABLE_DEFAULT)];
        let own = if family == Family::V4 { &OWN[..] } else { &OWN[..2] };
        let rules = self.rules.keys().filter(|rule| rule.family == family);
        rules.clone().all(|rule| rule.plain)
            && rules.map(|rule| (rule.priority, rule.table)).eq(own.iter().copied())
    }

    /// What a hop comes to now.
    pub fn resolve(&self, key: &HopKey) -> Resolution {
        let family = match key {
            HopKey::Punt(reason) => return Resolution::Punt(*reason),
            HopKey::Paths { family, .. } | HopKey::Object { family, .. } => *family,
            HopKey::Host { address, .. } => Family::of(*address),
        };
        if !self.follows_rules(family) {
            return Resolution::Punt(PuntReason::PolicyRules);
        }
        match key {
            HopKey::Punt(reason) => Resolution::Punt(*reason),
            HopKey::Paths { paths, mtu_bytes, .. } => self.paths(paths, *mtu_bytes),
            HopKey::Object { id, mtu_bytes, .. } => match self.object(*id) {
                Ok(paths) => self.paths(&paths, *mtu_bytes),
                Err(reason) => Resolution::Punt(reason),
            },
            HopKey::Host { ifindex, address } => {
                self.paths(&[Path { ifindex: *ifindex, gateway: Some(*address), weight: 1 }], None)
            }
        }
    }

    /// The paths of a next hop object. Groups hold no groups (the kernel allows it to plain ones only by mistake of ours).
    fn object(&self, id: u32) -> Result<Vec<Path>, PuntReason> {
        let members = match self.objects.get(&id).map(|seen| &seen.value) {
            None => return Err(PuntReason::NextHopMissing),
            Some(NextHopKind::Punt(reason)) => return Err(*reason),
            Some(NextHopKind::Path(path)) => return Ok(vec![*path]),
            Some(NextHopKind::Group(members)) => members,
        };
        let member = |&(id, weight): &(u32, u16)| match self.objects.get(&id).map(|seen| &seen.value) {
            None => Err(PuntReason::NextHopMissing),
            Some(NextHopKind::Path(path)) => Ok(Path { weight, ..*path }),
            Some(NextHopKind::Punt(reason)) => Err(*reason),
            Some(NextHopKind::Group(_)) => Err(PuntReason::UnknownType),
        };
        members.iter().map(member).collect()
    }

    fn paths(&self, paths: &[Path], mtu_bytes: Option<u32>) -> Resolution {
        if let Some(reason) = paths.iter().find_map(|path| self.unfit(path.ifindex)) {
            return Resolution::Punt(reason);
        }
        // A path without carrier is dead to us at once; the kernel says nothing of it, but it does not use it either.
        let alive = |path: &&Path| self.links.get(&path.ifindex).is_some_and(|link| link.value.alive());
        let live: Vec<&Path> = paths.iter().filter(alive).collect();
        match live[..] {
            [] => return Resolution::Punt(PuntReason::LinkDown),
            [Path { ifindex, gateway: None, .. }] if paths.len() == 1 => return Resolution::OnLink(*ifindex),
            _ => {}
        }
        let legs: Option<Vec<_>> =
            live.iter().map(|path| Some(((path.ifindex, path.gateway?), path.weight))).collect();
        match legs {
            Some(legs) => Resolution::Forward { legs, mtu_bytes },
            None => Resolution::Punt(PuntReason::MixedPaths),
        }
    }

    /// Why packets cannot be sent by a device other than by the kernel, whatever its present state.
    fn unfit(&self, ifindex: u32) -> Option<PuntReason> {
        let Some(Seen { value: link, .. }) = self.links.get(&ifindex) else {
            return Some(PuntReason::LinkMissing);
        };
        if !self.ports.contains(&ifindex) {
            Some(PuntReason::OutsidePorts)
        } else if !link.ethernet || link.mac.is_none() || link.no_arp || link.loopback {
            Some(PuntReason::NotEthernet)
        } else if link.master.is_some() {
            Some(PuntReason::Enslaved)
        } else {
            None
        }
    }

    /// Whether a neighbour's MAC address is known.
    pub fn usable(&self, (ifindex, address): AdjacencyKey) -> bool {
        self.mac(ifindex, address).is_some()
    }

    fn mac(&self, ifindex: u32, address: IpAddr) -> Option<crate::model::Mac> {
        let neighbour = &self.neighbours.get(&(address, ifindex))?.value;
        neighbour.mac.filter(|_| neighbour.state & USABLE != 0)
    }

    /// An adjacency as it is now.
    pub fn adjacency(&self, (ifindex, address): AdjacencyKey) -> Adjacency {
        let link = self.links.get(&ifindex).map(|seen| &seen.value);
        let rewrite = link.and_then(|link| {
            Some(Rewrite {
                destination: self.mac(ifindex, address)?,
                source: link.mac?,
                mtu_bytes: if address.is_ipv4() { link.mtu_bytes } else { link.mtu6_bytes },
            })
        });
        Adjacency { ifindex, address, rewrite }
    }
}
