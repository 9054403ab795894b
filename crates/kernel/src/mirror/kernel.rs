//! The kernel's objects other than routes, and what a hop comes to under them.
//!
//! Which of several paths count for the choice by hash (the others' shares go to them):
//!
//! - a path whose device is down does not: the kernel has marked it dead;
//! - a path that the kernel told to be dead though its device is up makes the whole a punt, because the mark goes in silence;
//! - a path without carrier counts or not as [`Linkdown`] says; if it counts, its flows are the kernel's;
//! - all members of a group of next hop objects count: the kernel takes those out whose device has no carrier, and so does the
//!   mirror ([`super::objects`]).
//!
//! A neighbour that is not resolved does not change the shares. The kernel may give its flows to others (groups of objects and
//! `fib_multipath_use_neigh`), but never moves a flow away from a neighbour that is; so such flows are left to the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::hops::{AdjacencyKey, HopKey, Resolution, Way};
use super::linkdown::Linkdown;
use super::suspects::{Suspect, Suspects};
use crate::changes::{Adjacency, Rewrite};
use crate::model::{Address, Family, Link, Mac, Neighbour, NextHopKind, Path, Qdisc, ReversePath, Rule};
use crate::reason::PuntReason;
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
    /// Names besides their own that links were seen to have: rules that were made about these may still be about that link,
    /// which may be a port by now, whoever goes by the name. What was before the first dump cannot be seen.
    pub other_names: BTreeSet<String>,
    pub linkdown: Linkdown,
    pub addresses: BTreeMap<Address, u32>,
    /// By address first, so that the neighbours inside a prefix are a range.
    pub neighbours: BTreeMap<(IpAddr, u32), Seen<Neighbour>>,
    pub objects: BTreeMap<u32, Seen<NextHopKind>>,
    /// In the kernel's order, IPv4 before IPv6.
    pub rules: Vec<Seen<Rule>>,
    /// By interface, place and handle: one place can hold the old and the new for a moment.
    pub qdiscs: BTreeMap<(u32, u32, u32), Seen<Qdisc>>,
    pub suspects: Suspects,
}

/// What a path is to the choice among several.
enum Share {
    Counts,
    LeftOut,
    Unclear,
}

impl Kernel {
    /// What a hop comes to now; `dead` are the devices that the kernel told to be dead in it.
    pub fn resolve(&self, key: &HopKey, dead: &[u32]) -> Resolution {
        let family = key.family();
        let sure = match key {
            _ if self.suspects.hold(Suspect::Rules) => Err(PuntReason::Unclear),
            _ if key.source().is_some_and(|source| self.suspects.hold(Suspect::Source(source))) => {
                Err(PuntReason::Unclear)
            }
            HopKey::Object { id, .. } if self.suspects.hold(Suspect::Object(family, *id)) => {
                Err(PuntReason::Unclear)
            }
            _ => Ok(()),
        };
        match (sure, key) {
            // Whatever route the kernel takes, these packets are its own.
            (Err(_), HopKey::Punt { reason, .. }) => Resolution::unknown(*reason),
            (Err(reason), _) => Resolution::unknown(reason),
            (Ok(()), HopKey::Punt { reason, reverse_path, .. }) => {
                Resolution { way: Way::Punt(*reason), reverse_path: self.vouched(family, reverse_path, dead) }
            }
            (Ok(()), HopKey::Paths { paths, mtu_bytes, .. }) => {
                self.by(family, self.way(family, paths, *mtu_bytes, Some(dead)), paths, dead)
            }
            (Ok(()), HopKey::Object { id, mtu_bytes, .. }) => self.object(family, *id, *mtu_bytes),
            (Ok(()), HopKey::Host { ifindex, address, mtu_bytes }) => {
                let path = [Path { ifindex: *ifindex, gateway: Some(*address), weight: 1 }];
                self.by(family, self.way(family, &path, *mtu_bytes, None), &path, &[])
            }
            // What others come to, which is not known here.
            (Ok(()), HopKey::Ruled { .. }) => Resolution::unknown(PuntReason::Unclear),
        }
    }

    fn object(&self, family: Family, id: u32, mtu_bytes: Option<u32>) -> Resolution {
        match self.objects.get(&id).map(|seen| &seen.value) {
            None => Resolution::unknown(PuntReason::NextHopMissing),
            Some(NextHopKind::Punt { reason, reverse_path }) => {
                Resolution { way: Way::Punt(*reason), reverse_path: self.vouched(family, reverse_path, &[]) }
            }
            Some(NextHopKind::Path(path)) => {
                let path = [*path];
                self.by(family, self.way(family, &path, mtu_bytes, None), &path, &[])
            }
            Some(NextHopKind::Group { members, resilient }) => match self.members(members) {
                Err(reason) => Resolution::unknown(reason),
                Ok(paths) if *resilient => {
                    self.by(family, Way::Punt(PuntReason::ResilientGroup), &paths, &[])
                }
                Ok(paths) => self.by(family, self.way(family, &paths, mtu_bytes, None), &paths, &[]),
            },
        }
    }

    /// The paths of a group. Groups hold no groups.
    fn members(&self, members: &[(u32, u16)]) -> Result<Vec<Path>, PuntReason> {
        let member = |&(id, weight): &(u32, u16)| match self.objects.get(&id).map(|seen| &seen.value) {
            None => Err(PuntReason::NextHopMissing),
            Some(NextHopKind::Path(path)) => Ok(Path { weight, ..*path }),
            Some(NextHopKind::Punt { reason, .. }) => Err(*reason),
            Some(NextHopKind::Group { .. }) => Err(PuntReason::UnknownType),
        };
        members.iter().map(member).collect()
    }

    /// `dead` is none for the paths of objects, which the kernel never marks.
    fn way(&self, family: Family, paths: &[Path], mtu_bytes: Option<u32>, dead: Option<&[u32]>) -> Way {
        if let Some(reason) = paths.iter().find_map(|path| self.unfit(path.ifindex)) {
            return Way::Punt(reason);
        }
        if paths.iter().any(|path| self.suspected(family, path.ifindex)) {
            return Way::Punt(PuntReason::Unclear);
        }
        if !paths.iter().any(|path| self.alive(path.ifindex)) {
            return Way::Punt(PuntReason::LinkDown);
        }
        if let [Path { ifindex, gateway: None, .. }] = paths
            && !self.is_bare(*ifindex)
        {
            return Way::OnLink { ifindex: *ifindex, mtu_bytes };
        }
        let mut legs = Vec::with_capacity(paths.len());
        for path in paths {
            let share = if paths.len() == 1 { Share::Counts } else { self.share(family, path.ifindex, dead) };
            // By a link without neighbours a gateway says nothing more.
            let gateway = if self.is_bare(path.ifindex) { Some(family.unspecified()) } else { path.gateway };
            match (share, gateway) {
                (Share::LeftOut, _) => {}
                (Share::Unclear, _) => return Way::Punt(PuntReason::Unclear),
                (Share::Counts, None) => return Way::Punt(PuntReason::MixedPaths),
                (Share::Counts, Some(gateway)) => legs.push(((path.ifindex, gateway), path.weight)),
            }
        }
        Way::Forward { legs, mtu_bytes }
    }

    fn share(&self, family: Family, ifindex: u32, dead: Option<&[u32]>) -> Share {
        let Some(Seen { value: link, .. }) = self.links.get(&ifindex) else { return Share::Unclear };
        let told_dead = dead.is_some_and(|dead| dead.contains(&ifindex));
        match (link.up, link.carrier, dead) {
            (false, ..) => Share::LeftOut,
            (true, true, _) if told_dead => Share::Unclear,
            (true, true, _) => Share::Counts,
            (true, false, None) => Share::Unclear,
            (true, false, Some(_)) => match self.linkdown.leaves_out(family, ifindex) {
                Some(true) => Share::LeftOut,
                Some(false) if !told_dead => Share::Counts,
                _ => Share::Unclear,
            },
        }
    }

    /// Adds what a check of sources asks of a route with these paths.
    fn by(&self, family: Family, way: Way, paths: &[Path], dead: &[u32]) -> Resolution {
        let reverse_path = match way {
            Way::Punt(PuntReason::Unclear) => ReversePath::Unknown,
            _ => self.vouched(family, &ReversePath::of(paths.iter().map(|path| path.ifindex)), dead),
        };
        Resolution { way, reverse_path }
    }

    /// The interfaces of a route, if it is sure that the kernel takes the route: it passes by one of which no path is alive.
    fn vouched(&self, family: Family, reverse_path: &ReversePath, dead: &[u32]) -> ReversePath {
        let ReversePath::Interfaces(interfaces) = reverse_path else { return reverse_path.clone() };
        let sure = interfaces.iter().any(|ifindex| self.alive(*ifindex) && !dead.contains(ifindex))
            && !interfaces.iter().any(|&ifindex| self.suspected(family, ifindex));
        if sure { reverse_path.clone() } else { ReversePath::Unknown }
    }

    fn alive(&self, ifindex: u32) -> bool {
        self.links.get(&ifindex).is_some_and(|link| link.value.alive())
    }

    /// Whether routes by a device that is up may be gone. As long as it is down they are of no use, gone or not.
    fn suspected(&self, family: Family, ifindex: u32) -> bool {
        self.suspects.hold(Suspect::Device(family, ifindex))
            && self.links.get(&ifindex).is_some_and(|link| link.value.up)
    }

    fn is_bare(&self, ifindex: u32) -> bool {
        self.links.get(&ifindex).is_some_and(|link| link.value.bare)
    }

    /// Why packets cannot be sent by a device other than by the kernel, whatever its present state.
    fn unfit(&self, ifindex: u32) -> Option<PuntReason> {
        let Some(Seen { value: link, .. }) = self.links.get(&ifindex) else {
            return Some(PuntReason::LinkMissing);
        };
        if !self.ports.contains(&ifindex) {
            Some(PuntReason::OutsidePorts)
        } else if !link.is_plain() {
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

    fn mac(&self, ifindex: u32, address: IpAddr) -> Option<Mac> {
        let neighbour = &self.neighbours.get(&(address, ifindex))?.value;
        neighbour.mac.filter(|_| neighbour.state & USABLE != 0)
    }

    /// An adjacency as it is now.
    pub fn adjacency(&self, (ifindex, address): AdjacencyKey) -> Adjacency {
        let link = self.links.get(&ifindex).map(|seen| &seen.value).filter(|link| link.alive());
        let rewrite = link.and_then(|link| {
            let mtu_bytes = if address.is_ipv4() { link.mtu_bytes } else { link.mtu6_bytes };
            if link.bare {
                return Some(Rewrite { mtu_bytes, ..Rewrite::BARE });
            }
            Some(Rewrite { destination: self.mac(ifindex, address)?, source: link.mac?, mtu_bytes })
        });
        Adjacency { ifindex, address, rewrite }
    }
}
