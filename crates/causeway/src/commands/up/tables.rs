//! The tables that workers look up in, changed as the kernel's change.
//!
//! Every hop of the mirror has an index of its own, so a hop that changes moves all its prefixes by one store. When
//! no index is left, a hop shares that of the kernel: right, only slow.

use anyhow::Result;
use causeway_elements::kernel::{Forwarding, KERNEL, Neighbor};
use causeway_fib::{Adjacencies, AdjacencyIndex, Fib, Fib4, Fib6, FibError, Shared, Structure, Table};
use causeway_kernel::{Action, Adjacency, AdjacencyId, Changes, Hop, HopId, Leg, Prefix};
use causeway_netio::bpf::classify::LocalAddresses;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

/// A hop of the mirror in the table of adjacencies.
struct Entry {
    index: AdjacencyIndex,
    hop: Hop,
    /// Entries of the ways out, when there are several.
    legs: BTreeMap<AdjacencyId, AdjacencyIndex>,
}

/// The control side of [`Forwarding`].
pub struct Tables {
    forwarding: Arc<Forwarding>,
    local: Arc<LocalAddresses>,
    /// Interface indices by number of the port.
    ports: Vec<u32>,
    v4: Fib4,
    v6: Fib6,
    neighbors: Adjacencies<Neighbor>,
    /// The entry that leaves packets to the kernel.
    kernel: AdjacencyIndex,
    adjacencies: HashMap<AdjacencyId, Adjacency>,
    /// Hops by the adjacencies in them.
    users: HashMap<AdjacencyId, BTreeSet<HopId>>,
    hops: HashMap<HopId, Entry>,
    serial: u32,
    /// A route did not fit: the tables are wrong for good.
    full: bool,
}

impl Tables {
    /// Empty tables for ports with these names and indices, and the set of this machine's addresses.
    pub fn new(names: Vec<String>, ports: Vec<u32>, local: Arc<LocalAddresses>) -> Result<Tables> {
        let (v4, v6, mut neighbors) = (Fib4::new(), Fib6::new(), Adjacencies::new());
        let forwarding = Arc::new(Forwarding::new(names, &v4, &v6, &neighbors));
        let kernel = neighbors.acquire(left_to_kernel(0))?;
        let (adjacencies, users, hops) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Tables {
            forwarding,
            local,
            ports,
            v4,
            v6,
            neighbors,
            kernel,
            adjacencies,
            users,
            hops,
            serial: 0,
            full: false,
        })
    }

    /// What the elements read.
    pub fn forwarding(&self) -> Arc<Forwarding> {
        self.forwarding.clone()
    }

    /// Lets the workers forward by the tables, unless these are wrong.
    pub fn trust(&self) {
        self.forwarding.trust(!self.full);
    }

    /// Makes the workers leave everything to the kernel.
    pub fn distrust(&self) {
        self.forwarding.trust(false);
    }

    /// Routes in the tables, IPv4 and IPv6.
    pub fn routes(&self) -> (usize, usize) {
        (self.v4.rib().len(), self.v6.rib().len())
    }

    /// Brings the tables up to date.
    pub fn apply(&mut self, changes: &Changes) {
        for (address, there) in &changes.addresses {
            self.set_local(*address, *there);
        }
        for (id, adjacency) in &changes.adjacencies {
            if let Some(adjacency) = adjacency {
                self.adjacencies.insert(*id, *adjacency);
                for hop in self.users.get(id).cloned().unwrap_or_default() {
                    self.publish(hop);
                }
            }
        }
        for (id, hop) in &changes.hops {
            if let Some(hop) = hop {
                self.set_hop(*id, hop.clone());
            }
        }
        self.set_routes(&changes.routes);
        for (id, _) in changes.hops.iter().filter(|(_, hop)| hop.is_none()) {
            self.remove_hop(*id);
        }
        for (id, _) in changes.adjacencies.iter().filter(|(_, adjacency)| adjacency.is_none()) {
            self.adjacencies.remove(id);
        }
        self.trust();
    }

    /// An address that the set does not take only comes to the kernel by way of the graph.
    fn set_local(&self, address: IpAddr, there: bool) {
        let done = match (address, there) {
            (IpAddr::V4(a), true) => self.local.insert_v4(a),
            (IpAddr::V6(a), true) => self.local.insert_v6(a),
            (IpAddr::V4(a), false) => self.local.remove_v4(a).map(drop),
            (IpAddr::V6(a), false) => self.local.remove_v6(a).map(drop),
        };
        if let Err(error) = done {
            eprintln!("causeway: {address} is not told apart in the driver: {error}");
        }
    }

    fn set_hop(&mut self, id: HopId, hop: Hop) {
        self.forget_uses(id);
        for leg in legs(&hop) {
            self.users.entry(leg.adjacency).or_default().insert(id);
        }
        match self.hops.get_mut(&id) {
            Some(entry) => entry.hop = hop,
            None => {
                let fresh = left_to_kernel(self.next_serial());
                let index = self.neighbors.acquire(fresh).unwrap_or(self.kernel);
                self.hops.insert(id, Entry { index, hop, legs: BTreeMap::new() });
            }
        }
        self.publish(id);
    }

    fn remove_hop(&mut self, id: HopId) {
        self.forget_uses(id);
        if let Some(entry) = self.hops.remove(&id) {
            let own = (entry.index != self.kernel).then_some(entry.index);
            own.into_iter().chain(entry.legs.into_values()).for_each(|index| self.release(index));
        }
    }

    fn forget_uses(&mut self, id: HopId) {
        let Some(entry) = self.hops.get(&id) else { return };
        for leg in legs(&entry.hop) {
            if let Some(hops) = self.users.get_mut(&leg.adjacency) {
                hops.remove(&id);
                if hops.is_empty() {
                    self.users.remove(&leg.adjacency);
                }
            }
        }
    }

    /// Shows the workers what a hop is now.
    fn publish(&mut self, id: HopId) {
        let Some(mut entry) = self.hops.remove(&id) else { return };
        if entry.index != self.kernel && self.publish_entry(&mut entry).is_err() {
            // No index is left for the ways out.
            let hop = left_to_kernel(self.next_serial());
            // The index is in use, so this cannot fail.
            let _ = self.neighbors.set_next_hop(entry.index, hop);
        }
        self.hops.insert(id, entry);
    }

    fn publish_entry(&mut self, entry: &mut Entry) -> Result<(), FibError> {
        let mut before = std::mem::take(&mut entry.legs);
        let done = match &entry.hop.action {
            Action::Punt(_) => {
                let hop = left_to_kernel(self.next_serial());
                self.neighbors.set_next_hop(entry.index, hop)
            }
            Action::Forward { legs, mtu_bytes } if legs.len() == 1 => {
                let hop = self.neighbor(legs[0].adjacency, *mtu_bytes);
                self.neighbors.set_next_hop(entry.index, hop)
            }
            Action::Forward { legs, mtu_bytes } => {
                let mut members: BTreeMap<AdjacencyIndex, u32> = BTreeMap::new();
                let mut added = Ok(());
                for leg in legs {
                    let hop = self.neighbor(leg.adjacency, *mtu_bytes);
                    // A way that stays keeps its entry, and so its flows.
                    let index =
                        match before.remove(&leg.adjacency).or(entry.legs.get(&leg.adjacency).copied()) {
                            Some(index) => self.neighbors.set_next_hop(index, hop).map(|()| index),
                            None => self.neighbors.acquire(hop),
                        };
                    match index {
                        Ok(index) => {
                            entry.legs.insert(leg.adjacency, index);
                            *members.entry(index).or_default() += u32::from(leg.weight);
                        }
                        Err(error) => added = Err(error),
                    }
                }
                let members: Vec<(AdjacencyIndex, u32)> = members.into_iter().collect();
                added.and_then(|()| self.neighbors.set_members(entry.index, &members))
            }
        };
        before.into_values().for_each(|index| self.release(index));
        done
    }

    fn release(&mut self, index: AdjacencyIndex) {
        // Only indices that were acquired are released, and once each.
        let _ = self.neighbors.release(index);
    }

    fn next_serial(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.serial
    }

    /// What a frame to an adjacency needs; the kernel, while that is not resolved or not behind one of our ports.
    fn neighbor(&mut self, id: AdjacencyId, mtu_bytes: Option<u32>) -> Neighbor {
        let serial = self.next_serial();
        let Some(adjacency) = self.adjacencies.get(&id) else { return left_to_kernel(serial) };
        let port = self.ports.iter().position(|&p| p == adjacency.ifindex);
        let (Some(rewrite), Some(port)) = (adjacency.rewrite, port) else { return left_to_kernel(serial) };
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&rewrite.destination);
        addresses[6..].copy_from_slice(&rewrite.source);
        let mtu_bytes = rewrite.mtu_bytes.min(mtu_bytes.unwrap_or(u32::MAX));
        Neighbor { port: port as u16, mtu_bytes, addresses, serial }
    }

    fn set_routes(&mut self, routes: &[(Prefix, Option<HopId>)]) {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, hop) in routes {
            // A hop that is not there would be an error of the mirror; the kernel knows better.
            let index = hop.map(|hop| self.hops.get(&hop).map_or(self.kernel, |entry| entry.index));
            match prefix {
                Prefix::V4(prefix) => v4.push((*prefix, index)),
                Prefix::V6(prefix) => v6.push((*prefix, index)),
            }
        }
        let done = change(&mut self.v4, v4).and_then(|()| change(&mut self.v6, v6));
        if let (Err(error), false) = (done, self.full) {
            // To leave a route out would let a shorter prefix take its packets.
            eprintln!("causeway: a route does not fit the tables, so the kernel forwards alone: {error}");
            self.full = true;
        }
    }
}

/// A route of one family, with the index it leads to, or none if it is gone.
type Change<A> = (causeway_fib::Prefix<A>, Option<AdjacencyIndex>);

fn change<A: causeway_fib::Address, S>(fib: &mut Fib<A, S>, changes: Vec<Change<A>>) -> Result<(), FibError>
where
    S: Structure<A> + Shared<A>,
{
    if fib.rib().is_empty() {
        // One build is much cheaper than a change for each of a million routes.
        let routes: Vec<_> = changes.iter().filter_map(|&(prefix, index)| Some((prefix, index?))).collect();
        return fib.load(&routes);
    }
    for (prefix, index) in changes {
        match index {
            Some(index) => drop(fib.replace(prefix, index)?),
            None => match fib.withdraw(prefix) {
                Ok(_) | Err(FibError::NotFound) => {}
                Err(error) => return Err(error),
            },
        }
    }
    Ok(())
}

fn legs(hop: &Hop) -> &[Leg] {
    match &hop.action {
        Action::Forward { legs, .. } => legs,
        Action::Punt(_) => &[],
    }
}

fn left_to_kernel(serial: u32) -> Neighbor {
    Neighbor { port: KERNEL, mtu_bytes: 0, addresses: [0; 12], serial }
}

#[cfg(test)]
mod tests;
