//! The state of the mirror: plain data that messages are applied to. No I/O, no clock.

mod collect;
mod hops;
mod interned;
mod joins;
mod kernel;
mod linkdown;
mod links;
mod objects;
mod routes;
mod rules;
mod scope;
mod suspects;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use crate::changes::{AdjacencyId, HopId, Snapshot};
use crate::decode::{Message, Object, Operation, Source, decode};
use crate::model::{Address, Family, Link, Neighbour, Qdisc, Rule};
use crate::prefix::Prefix;
use crate::uapi::NUD_STALE;
use crate::wire::Frames;
use hops::{AdjacencyKey, AdjacencyState, HopKey, HopState};
use interned::Interned;
use kernel::{Kernel, Seen};
pub(crate) use rules::Applies;
use rules::Rules;
pub use scope::Scope;
use suspects::Suspect;
use table::Table;

/// A mirror of what the kernel knows that bears on forwarding.
///
/// Messages go in by [`Mirror::apply`], in the order in which the kernel sent them; what they come to is taken out by
/// [`Mirror::collect`]. A dump is bracketed by [`Mirror::begin_resync`] and [`Mirror::end_resync`], which removes what the
/// dump did not show. When the messages alone cannot tell what the kernel did, [`Mirror::take_needs`] names the tables to dump
/// again, and until then all that is not sure is a punt.
#[derive(Debug, Default)]
pub struct Mirror {
    kernel: Kernel,
    /// The routing tables by number.
    tables: BTreeMap<u32, Table>,
    /// Those of each family, as prefixes were last looked at.
    rules: [Rules; 2],
    hops: Interned<HopKey, HopState>,
    adjacencies: Interned<AdjacencyKey, AdjacencyState>,
    generation: u32,
    replaying: bool,
    needs: Scope,
    urgent: bool,
    unclear: u64,
    pending: Pending,
    /// Destinations of which the kernel has learned what its routes do not say.
    exceptions: BTreeSet<IpAddr>,
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
    /// Other rules are followed than before.
    rules: bool,
}

impl Mirror {
    /// An empty mirror for a router that holds the interfaces with these indices.
    pub fn new(ports: impl IntoIterator<Item = u32>) -> Self {
        let kernel = Kernel { ports: ports.into_iter().collect(), ..Kernel::default() };
        Mirror { kernel, ..Mirror::default() }
    }

    /// The router holds these interfaces from now on.
    pub fn set_ports(&mut self, ports: impl IntoIterator<Item = u32>) {
        let ports: BTreeSet<u32> = ports.into_iter().collect();
        if self.kernel.ports != ports {
            self.kernel.ports = ports;
            self.urgent = true;
            self.pending.hops = true;
            self.pending.adjacencies = true;
        }
    }

    /// The kernel has learned of these destinations what its routes do not say: their packets are the kernel's from now on. Says
    /// whether these are others than before.
    pub fn set_exceptions(&mut self, exceptions: BTreeSet<IpAddr>) -> bool {
        let changed = self.exceptions.symmetric_difference(&exceptions);
        let before = self.pending.prefixes.len();
        self.pending.prefixes.extend(changed.map(|&address| Prefix::host(address)));
        self.exceptions = exceptions;
        self.pending.prefixes.len() > before
    }

    /// Takes in messages that the kernel has sent by itself, laid end to end, such as somebody has recorded. Says how many there
    /// were, also those that are of no interest.
    ///
    /// # Errors
    /// A message that does not parse; those before it are taken in.
    pub fn take_in(&mut self, messages: &[u8]) -> io::Result<usize> {
        let mut count = 0;
        for frame in Frames(messages) {
            let frame = frame.map_err(io::Error::other)?;
            if let Some(message) = decode(&frame, Source::Event).map_err(io::Error::other)? {
                self.apply(message);
            }
            count += 1;
        }
        Ok(count)
    }

    /// Takes in one message.
    pub fn apply(&mut self, message: Message) {
        let Message { operation, object } = message;
        let removed = operation == Operation::Removed;
        match object {
            Object::Link(link) => self.link_message(link, operation),
            Object::Address(address) => self.address(address, operation),
            Object::Neighbour(neighbour) => self.neighbour(neighbour, removed),
            Object::NextHop(next_hop) => self.next_hop(next_hop, removed),
            Object::Route(route) => self.route(route, operation),
            Object::Rule(rule) => self.rule(rule, operation),
            Object::Qdisc(qdisc) => self.qdisc(qdisc, removed),
            Object::Setting(setting) => self.setting(setting),
        }
    }

    /// Says whether the messages that follow may be older than the last dump, so that it may have shown already what they say.
    pub fn set_replaying(&mut self, replaying: bool) {
        self.replaying = replaying;
    }

    /// Says that dumps follow. A dump that was interrupted is begun again by calling this again.
    pub fn begin_resync(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Says that the dumps of `scope` are complete: what they did not show is gone.
    pub fn end_resync(&mut self, scope: Scope) {
        for table in scope.tables() {
            self.sweep(table);
            self.pending.hops |= self.kernel.suspects.settle(table, self.generation);
        }
    }

    /// The tables that have to be dumped to know what the kernel did, since the last call.
    pub fn take_needs(&mut self) -> Scope {
        std::mem::take(&mut self.needs)
    }

    /// Whether something happened, since the last call, that should not wait for more: a port changed, or a link with routes
    /// went down.
    pub fn take_urgent(&mut self) -> bool {
        std::mem::take(&mut self.urgent)
    }

    /// The hosts in use on the links of ports, as interface index and address, whose entries are stale.
    pub fn stale_hosts(&self) -> impl Iterator<Item = (u32, IpAddr)> {
        let stale = |&(ifindex, address): &(u32, IpAddr)| {
            self.neighbour_entry(ifindex, address).is_some_and(|entry| entry.state == NUD_STALE)
        };
        let host = |(_, key, state): (u32, &HopKey, &HopState)| match self.bare(key) {
            HopKey::Host { ifindex, address, .. } if state.prefixes > 0 => Some((*ifindex, *address)),
            _ => None,
        };
        self.hops.iter().filter_map(host).filter(stale)
    }

    /// The number of the adjacency to a neighbour, if some hop has it.
    pub fn adjacency_id(&self, ifindex: u32, address: IpAddr) -> Option<AdjacencyId> {
        self.adjacencies.find(&(ifindex, address)).map(AdjacencyId)
    }

    /// The links, by index.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.kernel.links.values().map(|seen| &seen.value)
    }

    /// The link with that name.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links().find(|link| link.name == name)
    }

    /// The link with that index.
    pub fn link_by_index(&self, ifindex: u32) -> Option<&Link> {
        self.kernel.links.get(&ifindex).map(|seen| &seen.value)
    }

    /// The addresses of the machine.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.kernel.addresses.keys()
    }

    /// The policy rules in their order, IPv4 before IPv6.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.kernel.rules.iter().map(|seen| &seen.value)
    }

    /// Which of the packets to its destinations a rule applies to; none: to none that is forwarded.
    pub(crate) fn applies(&self, rule: &Rule) -> Option<Applies> {
        self.kernel.applies(rule)
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
        self.tables.values().map(Table::candidates).sum()
    }

    /// How often a prefix was left to the kernel because messages did not tell which route it has.
    pub fn unclear_count(&self) -> u64 {
        self.unclear
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

    /// What hangs on the suspect is left to the kernel until the table that tells is dumped.
    fn suspect(&mut self, suspect: Suspect) {
        self.needs |= suspect.table();
        self.kernel.suspects.add(suspect, self.generation);
        self.pending.hops = true;
    }

    fn neighbour(&mut self, neighbour: Neighbour, removed: bool) {
        let key = (neighbour.address, neighbour.ifindex);
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

    fn qdisc(&mut self, qdisc: Qdisc, removed: bool) {
        let key = (qdisc.ifindex, qdisc.parent, qdisc.handle);
        if removed {
            self.kernel.qdiscs.remove(&key);
        } else {
            self.kernel.qdiscs.insert(key, Seen { value: qdisc, generation: self.generation });
        }
    }

    /// Removes from one table what the present generation has not shown.
    fn sweep(&mut self, table: Scope) {
        let now = self.generation;
        match table {
            Scope::SETTINGS4 => self.sweep_settings(Family::V4),
            Scope::SETTINGS6 => self.sweep_settings(Family::V6),
            Scope::LINKS => {
                for index in stale(&self.kernel.links, now) {
                    self.remove_link(index);
                }
            }
            Scope::ADDRESSES => {
                let stale = self.kernel.addresses.iter().filter(|&(_, &generation)| generation != now);
                let gone: Vec<Address> = stale.map(|(&address, _)| address).collect();
                self.kernel.addresses.retain(|_, &mut generation| generation == now);
                gone.into_iter().for_each(|address| self.address_gone(address));
                self.pending.addresses = true;
            }
            Scope::NEIGHBOURS => {
                for key in stale(&self.kernel.neighbours, now) {
                    self.kernel.neighbours.remove(&key);
                    self.neighbour_changed(key);
                }
            }
            Scope::NEXT_HOPS => {
                for id in stale(&self.kernel.objects, now) {
                    self.kernel.objects.remove(&id);
                    self.object_gone(id);
                }
                self.pending.hops = true;
            }
            Scope::ROUTES4 => self.sweep_routes(Family::V4),
            Scope::ROUTES6 => self.sweep_routes(Family::V6),
            Scope::RULES => {
                self.kernel.rules.retain(|seen| seen.generation == now);
                self.pending.hops = true;
            }
            _ => {
                self.kernel.qdiscs.retain(|_, seen| seen.generation == now);
            }
        }
    }
}

fn stale<K: Copy + Ord, T>(map: &BTreeMap<K, Seen<T>>, now: u32) -> Vec<K> {
    map.iter().filter(|(_, seen)| seen.generation != now).map(|(&key, _)| key).collect()
}
