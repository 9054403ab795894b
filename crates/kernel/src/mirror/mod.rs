//! The state of the mirror: plain data that messages are applied to. No I/O, no clock.

mod collect;
mod hops;
mod kernel;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::{BitOr, BitOrAssign};

use crate::changes::{HopId, Snapshot};
use crate::decode::{Message, Object, Operation};
use crate::model::{Address, Family, Link, Neighbour, NextHop, NextHopKind, Path, Qdisc, Rule};
use crate::prefix::Prefix;
use crate::uapi::NUD_STALE;
use hops::{AdjacencyKey, AdjacencyState, HopKey, HopState, Interned};
use kernel::{Kernel, Seen};
use routes::Table;

/// Which of the kernel's tables: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope(u8);

impl Scope {
    /// Links.
    pub const LINKS: Scope = Scope(1);
    /// Addresses.
    pub const ADDRESSES: Scope = Scope(2);
    /// Neighbours.
    pub const NEIGHBOURS: Scope = Scope(4);
    /// Next hop objects.
    pub const NEXT_HOPS: Scope = Scope(8);
    /// IPv4 routes.
    pub const ROUTES4: Scope = Scope(16);
    /// IPv6 routes.
    pub const ROUTES6: Scope = Scope(32);
    /// Policy rules.
    pub const RULES: Scope = Scope(64);
    /// Queueing disciplines.
    pub const QDISCS: Scope = Scope(128);
    /// Everything.
    pub const ALL: Scope = Scope(255);

    /// Whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two sets have something in common.
    pub fn touches(self, other: Scope) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in the set and not in the other.
    pub fn without(self, other: Scope) -> Scope {
        Scope(self.0 & !other.0)
    }

    /// The tables in the set, in the order in which they are best dumped: what others refer to comes first.
    pub fn tables(self) -> impl Iterator<Item = Scope> {
        (0..8).map(|bit| Scope(1 << bit)).filter(move |table| self.touches(*table))
    }
}

impl BitOr for Scope {
    type Output = Scope;

    fn bitor(self, other: Scope) -> Scope {
        Scope(self.0 | other.0)
    }
}

impl BitOrAssign for Scope {
    fn bitor_assign(&mut self, other: Scope) {
        self.0 |= other.0;
    }
}

/// A mirror of what the kernel knows that bears on forwarding.
///
/// Messages go in by [`Mirror::apply`], in the order in which the kernel sent them; what they come to is taken out by
/// [`Mirror::collect`]. A dump is bracketed by [`Mirror::begin_resync`] and [`Mirror::end_resync`], which removes what the
/// dump did not show. When the messages alone cannot tell what the kernel did, [`Mirror::take_needs`] names the tables to dump
/// again.
#[derive(Debug, Default)]
pub struct Mirror {
    kernel: Kernel,
    /// The routing tables in the order in which the kernel looks them up: local, main, default.
    tables: [Table; 3],
    hops: Interned<HopKey, HopState>,
    adjacencies: Interned<AdjacencyKey, AdjacencyState>,
    generation: u32,
    needs: Scope,
    urgent: bool,
    pending: Pending,
    /// Hosts on the links of ports whose entries grew stale.
    stale_hosts: BTreeSet<AdjacencyKey>,
    /// What users were told.
    published: BTreeMap<Prefix, HopId>,
    addresses: BTreeSet<IpAddr>,
}

/// What has to be looked at by the next [`Mirror::collect`].
#[derive(Debug, Default)]
struct Pending {
    prefixes: Vec<Prefix>,
    hops: bool,
    adjacencies: bool,
    addresses: bool,
    links: BTreeSet<u32>,
    findings: bool,
}

impl Mirror {
    /// An empty mirror for a router that holds the interfaces with these indices.
    pub fn new(ports: impl IntoIterator<Item = u32>) -> Self {
        let kernel = Kernel { ports: ports.into_iter().collect(), ..Kernel::default() };
        Mirror { kernel, ..Mirror::default() }
    }

    /// Takes in one message.
    pub fn apply(&mut self, message: Message) {
        let Message { operation, object } = message;
        let removed = operation == Operation::Removed;
        match object {
            Object::Link(link) => {
                // The kernel removes the IPv4 routes and the objects of such a link without saying so. That holds also if the
                // link is known to be down from a dump: messages from before the dump may just have brought routes back.
                if operation != Operation::Dumped && (removed || !link.alive()) && self.uses(link.index) {
                    self.needs |= Scope::NEXT_HOPS | Scope::ROUTES4 | Scope::ROUTES6;
                }
                if removed { self.remove_link(link.index) } else { self.put_link(link) }
            }
            Object::Address(address) => self.address(address, removed),
            Object::Neighbour(neighbour) => self.neighbour(neighbour, removed),
            Object::NextHop(next_hop) => self.next_hop(next_hop, removed),
            Object::Route(route) => self.route(route, operation),
            Object::Rule(rule) => self.rule(rule, removed),
            Object::Qdisc(qdisc) => self.qdisc(qdisc, removed),
            Object::Setting => self.pending.findings = true,
        }
    }

    /// Says that dumps follow. A dump that was interrupted is begun again by calling this again.
    pub fn begin_resync(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Says that the dumps of `scope` are complete: what they did not show is gone.
    pub fn end_resync(&mut self, scope: Scope) {
        for table in scope.tables() {
            self.sweep(table);
        }
    }

    /// The tables that have to be dumped to know what the kernel did, since the last call.
    pub fn take_needs(&mut self) -> Scope {
        std::mem::take(&mut self.needs)
    }

    /// Whether something happened, since the last call, that should not wait for more: a link went down.
    pub fn take_urgent(&mut self) -> bool {
        std::mem::take(&mut self.urgent)
    }

    /// The hosts in use, as interface index and address, whose entries grew stale since the last call.
    pub fn take_stale_hosts(&mut self) -> BTreeSet<(u32, IpAddr)> {
        std::mem::take(&mut self.stale_hosts)
    }

    /// The links, by index.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.kernel.links.values().map(|seen| &seen.value)
    }

    /// The link with that name.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links().find(|link| link.name == name)
    }

    /// The addresses of the machine.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.kernel.addresses.keys()
    }

    /// The policy rules in their order, IPv4 before IPv6.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.kernel.rules.keys()
    }

    /// Whether the rules of a family are the kernel's own, so that lookups can be mirrored.
    pub fn follows_rules(&self, family: Family) -> bool {
        self.kernel.follows_rules(family)
    }

    /// The queueing disciplines.
    pub fn qdiscs(&self) -> impl Iterator<Item = &Qdisc> {
        self.kernel.qdiscs.values().map(|seen| &seen.value)
    }

    /// The interfaces that the router holds.
    pub fn ports(&self) -> impl Iterator<Item = u32> {
        self.kernel.ports.iter().copied()
    }

    /// A neighbour entry.
    pub fn neighbour_entry(&self, ifindex: u32, address: IpAddr) -> Option<&Neighbour> {
        self.kernel.neighbours.get(&(address, ifindex)).map(|seen| &seen.value)
    }

    /// Candidate routes that are held, of all tables and both families.
    pub fn route_count(&self) -> usize {
        self.tables.iter().map(Table::candidates).sum()
    }

    /// All that [`Mirror::collect`] has told so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            links: self.kernel.links.iter().map(|(&index, seen)| (index, seen.value.clone())).collect(),
            addresses: self.addresses.clone(),
            adjacencies: collect::shown_adjacencies(&self.adjacencies),
            hops: collect::shown_hops(&self.hops),
            routes: self.published.clone(),
        }
    }

    fn put_link(&mut self, link: Link) {
        let index = link.index;
        let seen = Seen { value: link, generation: self.generation };
        let before = self.kernel.links.insert(index, seen).map(|seen| seen.value);
        let now = &self.kernel.links[&index].value;
        if before.as_ref() == Some(now) {
            return;
        }
        let revived = now.alive();
        if before.is_some_and(|before| before.alive() != revived) && self.uses(index) {
            self.urgent |= !revived;
            self.needs |= Scope::NEXT_HOPS | Scope::ROUTES4 | Scope::ROUTES6;
        }
        self.link_changed(index);
    }

    fn remove_link(&mut self, index: u32) {
        if let Some(before) = self.kernel.links.remove(&index) {
            self.urgent |= before.value.alive() && self.uses(index);
            self.needs |= Scope::NEIGHBOURS | Scope::QDISCS;
            self.link_changed(index);
        }
    }

    /// Whether routes or addresses hang on the link, so that the kernel removes them with it. On a machine where the links of
    /// containers come and go, most have none, and are not worth a dump.
    fn uses(&self, index: u32) -> bool {
        let on_link = |path: &Path| path.ifindex == index;
        self.hops
            .iter()
            .any(|(_, key, _)| matches!(key, HopKey::Paths { paths, .. } if paths.iter().any(on_link)))
            || self
                .kernel
                .objects
                .values()
                .any(|o| matches!(&o.value, NextHopKind::Path(path) if on_link(path)))
            || self.kernel.addresses.keys().any(|address| address.ifindex == index)
    }

    fn link_changed(&mut self, index: u32) {
        self.pending.links.insert(index);
        self.pending.hops = true;
        self.pending.adjacencies = true;
        self.pending.findings = true;
    }

    fn address(&mut self, address: Address, removed: bool) {
        if removed {
            self.kernel.addresses.remove(&address);
            // Routes that prefer this source address, or the device's last address, go without a message.
            self.needs |= if address.address.is_ipv4() { Scope::ROUTES4 } else { Scope::ROUTES6 };
        } else {
            self.kernel.addresses.insert(address, self.generation);
        }
        self.pending.addresses = true;
    }

    fn neighbour(&mut self, neighbour: Neighbour, removed: bool) {
        let key = (neighbour.address, neighbour.ifindex);
        let host = HopKey::Host { ifindex: neighbour.ifindex, address: neighbour.address };
        if neighbour.state == NUD_STALE && self.hops.find(&host).is_some() {
            self.stale_hosts.insert((neighbour.ifindex, neighbour.address));
        }
        if removed {
            self.kernel.neighbours.remove(&key);
        } else {
            self.kernel.neighbours.insert(key, Seen { value: neighbour, generation: self.generation });
        }
        self.neighbour_changed(key);
    }

    fn neighbour_changed(&mut self, (address, ifindex): (IpAddr, u32)) {
        if self.kernel.ports.contains(&ifindex) {
            self.pending.adjacencies = true;
            self.pending.prefixes.push(Prefix::host(address));
        }
    }

    fn next_hop(&mut self, next_hop: NextHop, removed: bool) {
        let changed = if removed {
            // The routes that use it go with it, in silence.
            self.needs |= Scope::NEXT_HOPS | Scope::ROUTES4 | Scope::ROUTES6;
            self.kernel.objects.remove(&next_hop.id).is_some()
        } else {
            let seen = Seen { value: next_hop.kind, generation: self.generation };
            let before = self.kernel.objects.insert(next_hop.id, seen);
            before.map(|seen| seen.value)
                != self.kernel.objects.get(&next_hop.id).map(|seen| seen.value.clone())
        };
        self.pending.hops |= changed;
    }

    fn rule(&mut self, rule: Rule, removed: bool) {
        let changed = if removed {
            let known = self.kernel.rules.remove(&rule).is_some();
            if !known {
                self.needs |= Scope::RULES;
            }
            known
        } else {
            self.kernel.rules.insert(rule, self.generation).is_none()
        };
        self.pending.hops |= changed;
        self.pending.findings |= changed;
    }

    fn qdisc(&mut self, qdisc: Qdisc, removed: bool) {
        let key = (qdisc.ifindex, qdisc.parent, qdisc.handle);
        if removed {
            self.kernel.qdiscs.remove(&key);
        } else {
            self.kernel.qdiscs.insert(key, Seen { value: qdisc, generation: self.generation });
        }
        self.pending.findings = true;
    }

    /// Removes from one table what the present generation has not shown.
    fn sweep(&mut self, table: Scope) {
        let now = self.generation;
        match table {
            Scope::LINKS => {
                let stale = stale(&self.kernel.links, now);
                stale.into_iter().for_each(|index| self.remove_link(index));
            }
            Scope::ADDRESSES => {
                self.kernel.addresses.retain(|_, &mut generation| generation == now);
                self.pending.addresses = true;
            }
            Scope::NEIGHBOURS => {
                for key in stale(&self.kernel.neighbours, now) {
                    self.kernel.neighbours.remove(&key);
                    self.neighbour_changed(key);
                }
            }
            Scope::NEXT_HOPS => {
                self.kernel.objects.retain(|_, seen| seen.generation == now);
                self.pending.hops = true;
            }
            Scope::ROUTES4 => self.sweep_routes(Family::V4),
            Scope::ROUTES6 => self.sweep_routes(Family::V6),
            Scope::RULES => {
                self.kernel.rules.retain(|_, &mut generation| generation == now);
                self.pending.hops = true;
                self.pending.findings = true;
            }
            _ => {
                self.kernel.qdiscs.retain(|_, seen| seen.generation == now);
                self.pending.findings = true;
            }
        }
    }
}

fn stale<K: Copy + Ord, T>(map: &BTreeMap<K, Seen<T>>, now: u32) -> Vec<K> {
    map.iter().filter(|(_, seen)| seen.generation != now).map(|(&key, _)| key).collect()
}
