//! The tables that workers look up in, changed as the kernel's change.
//!
//! Every hop of the mirror has an index of its own, so a hop that changes moves all its prefixes by one store. When
//! no index is left, a hop shares that of the kernel: right, only slow. That is said, and it ends when an index is free
//! again. What finds no room because of workers that have yet to move on is tried again for a while; what does not fit at all is
//! the kernel's, with what is around it ([`routes`]).

mod apart;
mod routes;

use super::driver::{Driver, Forwarded, Memory, NOT_IN_DRIVER, Settings, Ways};
use anyhow::{Context, Result};
use causeway_elements::kernel::{Deadline, Forwarding, KERNEL, Neighbour, Paths};
use causeway_fastpath::Marks;
use causeway_fib::{Adjacencies, AdjacencyIndex, Domain, FibError, Lines6, Rank24, Shared, Target};
use causeway_kernel::{
    Action, Adjacency, AdjacencyId, Changes, Hop, HopId, Leg, Prefix, PuntReason, ReversePath,
};
use causeway_netio::front::Front;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apart::Apart;
use routes::{Patience, Routes, WAIT};

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
    /// Where workers announce that they look something up.
    domain: Domain,
    /// Interface indices by number of the port; 0 where there is no interface.
    ports: Vec<u32>,
    v4: Routes<u32, Rank24>,
    v6: Routes<u128, Lines6>,
    neighbours: Adjacencies<Neighbour>,
    /// The entry that leaves packets to the kernel.
    kernel: AdjacencyIndex,
    adjacencies: HashMap<AdjacencyId, Adjacency>,
    /// Hops by the adjacencies in them.
    users: HashMap<AdjacencyId, BTreeSet<HopId>>,
    hops: HashMap<HopId, Entry>,
    /// Hops that are the kernel's because there is no index for them or for their ways out.
    waiting: BTreeSet<HopId>,
    /// The hops of the prefixes that lead to the kernel's index because the hop has none.
    strays: HashMap<Prefix, HopId>,
    serial: u32,
    patience: Patience,
    /// What forwards in the driver.
    driver: Option<Driver>,
    /// Routes that it is not to follow.
    apart: Apart,
}

impl Tables {
    /// Empty tables for ports with these names and indices, by which packets are forwarded while the lease stands.
    pub fn new(names: Vec<String>, ports: Vec<u32>, lease: Arc<dyn Deadline>) -> Result<Tables> {
        let domain = Domain::new();
        let fibs = (Rank24::in_domain(&domain)?, Lines6::in_domain(&domain)?);
        Tables::of(&domain, fibs, names, ports, lease, |forwarding| forwarding)
    }

    /// The same, in memory that programs behind `front` share, which forward in the driver what they can.
    pub fn in_driver(
        names: Vec<String>,
        ports: Vec<u32>,
        front: Arc<Front>,
        settings: Settings,
    ) -> Result<Tables> {
        let (domain, memory) = (Domain::new(), Arc::new(Memory::new().context(NOT_IN_DRIVER)?));
        let fibs = memory.tables(&domain)?;
        let told = memory.clone();
        let with = |forwarding: Forwarding| forwarding.with_driver(told);
        let mut tables = Tables::of(&domain, fibs, names, Vec::new(), front.clone(), with)?;
        let mut driver = Driver::new(front, &memory, &tables.forwarding, &domain, &settings)?;
        driver.doubt(tables.apart.index);
        tables.patience = Patience::new(Some(driver.readers()));
        tables.driver = Some(driver);
        tables.set_ports(ports);
        Ok(tables)
    }

    fn of(
        domain: &Domain,
        (v4, v6): (Rank24, Lines6),
        names: Vec<String>,
        ports: Vec<u32>,
        lease: Arc<dyn Deadline>,
        with: impl FnOnce(Forwarding) -> Forwarding,
    ) -> Result<Tables> {
        // A worker announces itself once for all three.
        let mut neighbours = Adjacencies::in_domain(domain);
        let kernel = neighbours.acquire(left_to_kernel(0, PuntReason::TableFull))?;
        let (v4, v6) = (Routes::new(v4, kernel), Routes::new(v6, kernel));
        let tables = (domain, v4.fib(), v6.fib(), &neighbours);
        let forwarding = Arc::new(with(Forwarding::new(names, PuntReason::NAMES, lease, tables)));
        let apart = Apart::new(neighbours.acquire(left_to_kernel(1, PuntReason::SelfCheck))?);
        // Sources behind them are the kernel's too.
        for index in [kernel, apart.index] {
            forwarding.set_paths(index, Paths::ours());
        }
        let (adjacencies, users, hops) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Tables {
            forwarding,
            domain: domain.clone(),
            ports,
            v4,
            v6,
            neighbours,
            kernel,
            adjacencies,
            users,
            hops,
            waiting: BTreeSet::new(),
            strays: HashMap::new(),
            serial: 1,
            patience: Patience::new(None),
            driver: None,
            apart,
        })
    }

    /// What the elements read.
    pub fn forwarding(&self) -> Arc<Forwarding> {
        self.forwarding.clone()
    }

    /// What is forwarded in the driver, if anything is.
    pub fn forwarded(&self) -> Option<Forwarded> {
        self.driver.as_ref().map(Driver::forwarded)
    }

    /// The ways out that the driver may use, if anything is.
    pub fn ways(&self) -> Option<Arc<Ways>> {
        self.driver.as_ref().map(Driver::ways)
    }

    /// Which neighbours the driver has sent packets to.
    pub fn marks(&self) -> Option<Marks> {
        self.driver.as_ref().map(Driver::marks)
    }

    /// Waits until all workers and programs are done with what they looked up before; says whether that is so, or it is to
    /// `stop` before. Who begins later sees what was done before, such as that the right to forward was taken away.
    pub fn outlast_readers(&self, stop: &AtomicBool) -> bool {
        let moment = self.domain.moment();
        while !stop.load(Ordering::Relaxed) {
            if let Some(driver) = &self.driver {
                driver.readers().move_on();
            }
            if self.domain.has_outlasted(moment) {
                return true;
            }
            std::thread::sleep(WAIT);
        }
        false
    }

    #[cfg(test)]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    #[cfg(test)]
    pub fn driver(&mut self) -> &mut Driver {
        self.driver.as_mut().expect("with a driver")
    }

    /// Routes that are followed, IPv4 and IPv6, whether there is room for them or not.
    pub fn routes(&self) -> (usize, usize) {
        (self.v4.len(), self.v6.len())
    }

    /// Whether the tables hold all routes; what finds no room is left to the kernel.
    fn fit(&self) -> bool {
        self.v4.fit() && self.v6.fit()
    }

    /// Whether there is room for all routes and next hops. Where there is not, the next [`apply`](Self::apply) tries
    /// again, also without changes.
    pub fn are_whole(&self) -> bool {
        self.fit() && self.waiting.is_empty()
    }

    /// The ports have these interface indices from now on; 0 for one that has none.
    pub fn set_ports(&mut self, ports: Vec<u32>) {
        // What leads to a port that changes leads to the kernel before its number stands for another interface.
        let was = std::mem::take(&mut self.ports);
        self.ports = was.iter().zip(&ports).map(|(was, now)| if was == now { *now } else { 0 }).collect();
        self.publish_all();
        if let Some(driver) = &mut self.driver {
            driver.settle();
            driver.set_ports(&ports);
        }
        self.ports = ports;
        self.publish_all();
    }

    fn publish_all(&mut self) {
        let hops: Vec<HopId> = self.hops.keys().copied().collect();
        hops.into_iter().for_each(|hop| self.publish(hop));
    }

    /// Brings the tables up to date. `progress` is called again and again meanwhile.
    pub fn apply(&mut self, changes: &Changes, progress: &mut dyn FnMut()) {
        self.patience = Patience::new(self.driver.as_ref().map(Driver::readers));
        let all_fitted = self.waiting.is_empty();
        for (n, (id, adjacency)) in changes.adjacencies.iter().enumerate() {
            say(n, progress);
            if let Some(adjacency) = adjacency {
                self.adjacencies.insert(*id, *adjacency);
                for hop in self.users.get(id).cloned().unwrap_or_default() {
                    self.publish(hop);
                }
            }
        }
        for (n, (id, hop)) in changes.hops.iter().enumerate() {
            say(n, progress);
            if let Some(hop) = hop {
                self.set_hop(*id, hop.clone());
            }
        }
        self.set_routes(&changes.routes, progress);
        for (n, (id, _)) in changes.hops.iter().filter(|(_, hop)| hop.is_none()).enumerate() {
            say(n, progress);
            self.remove_hop(*id);
        }
        for (id, _) in changes.adjacencies.iter().filter(|(_, adjacency)| adjacency.is_none()) {
            self.adjacencies.remove(id);
        }
        self.serve_waiting(progress);
        self.apart.note_change();
        if let Some(driver) = &mut self.driver {
            driver.note_change();
        }
        match (all_fitted, self.waiting.len()) {
            (true, 1..) => log::error!(
                code = "table-full";
                "no index is left for {} next hops, so the kernel forwards what leads to them", self.waiting.len()
            ),
            (false, 0) => log::info!(code = "table-full"; "all next hops have an index again"),
            _ => {}
        }
    }

    /// Gives indices to those that wait for one, as far as there are any by now, and takes their routes there.
    fn serve_waiting(&mut self, progress: &mut dyn FnMut()) {
        while let Some(id) = self.waiting.pop_first() {
            let fresh = left_to_kernel(self.next_serial(), PuntReason::TableFull);
            let Some(entry) = self.hops.get_mut(&id) else { continue };
            if entry.index == self.kernel
                && let Ok(index) = self.neighbours.acquire(fresh)
            {
                entry.index = index;
            }
            self.publish(id);
            if self.waiting.contains(&id) {
                break;
            }
        }
        let has_index = |hop: &HopId| self.hops.get(hop).is_some_and(|entry| entry.index != self.kernel);
        let strays = self.strays.iter().filter(|(_, hop)| has_index(hop));
        let found: Vec<_> = strays.map(|(&prefix, &hop)| (prefix, Some(hop))).collect();
        if !found.is_empty() {
            self.set_routes(&found, progress);
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
                let fresh = left_to_kernel(self.next_serial(), PuntReason::TableFull);
                let index = self.acquire(fresh).unwrap_or(self.kernel);
                self.hops.insert(id, Entry { index, hop, legs: BTreeMap::new() });
            }
        }
        self.publish(id);
    }

    fn remove_hop(&mut self, id: HopId) {
        self.waiting.remove(&id);
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
        let mut fits = entry.index != self.kernel;
        if fits {
            self.forwarding.set_paths(entry.index, self.paths(&entry.hop));
            fits = self.publish_entry(&mut entry).is_ok();
            if !fits {
                // No index is left for the ways out.
                let hop = left_to_kernel(self.next_serial(), PuntReason::TableFull);
                // The index is in use, so this cannot fail.
                let _ = self.neighbours.replace(entry.index, Target::NextHop(hop));
            }
        }
        if let Some(driver) = self.driver.as_mut().filter(|_| entry.index != self.kernel) {
            for &index in entry.legs.values() {
                driver.set_hop(index, self.neighbours.next_hop(index));
            }
            match self.neighbours.regions(entry.index) {
                members if members.is_empty() => {
                    driver.set_hop(entry.index, self.neighbours.next_hop(entry.index));
                }
                members => driver.set_group(entry.index, &members),
            }
        }
        if fits {
            self.waiting.remove(&id)
        } else {
            self.waiting.insert(id)
        };
        self.hops.insert(id, entry);
    }

    /// What a hop's routes are as ways back.
    fn paths(&self, hop: &Hop) -> Paths {
        use PuntReason::{Anycast, Blackhole, Broadcast, Local, Multicast, Prohibit, Unreachable};
        match (&hop.reverse_path, &hop.action) {
            // Nothing from there is taken, as nothing is whose source is an address of this machine.
            (ReversePath::Ruled, _) => Paths::ours(),
            (ReversePath::Interfaces(interfaces), _) => {
                let port = |ifindex: &u32| self.ports.iter().position(|p| p == ifindex);
                Paths::unicast(interfaces.iter().filter_map(port))
            }
            (_, Action::Punt(Local | Broadcast | Anycast | Multicast)) => Paths::ours(),
            (ReversePath::NotUnicast, Action::Punt(Blackhole | Unreachable | Prohibit)) => Paths::nowhere(),
            _ => Paths::unknown(),
        }
    }

    fn publish_entry(&mut self, entry: &mut Entry) -> Result<(), FibError> {
        let mut before = std::mem::take(&mut entry.legs);
        let done = match &entry.hop.action {
            Action::Punt(reason) => {
                let hop = left_to_kernel(self.next_serial(), *reason);
                self.neighbours.replace(entry.index, Target::NextHop(hop))
            }
            Action::Forward { legs, mtu_bytes } if legs.len() == 1 => {
                let hop = self.neighbour(legs[0].adjacency, *mtu_bytes);
                self.neighbours.replace(entry.index, Target::NextHop(hop))
            }
            Action::Forward { legs, mtu_bytes } => {
                // In the kernel's order, which decides where a flow goes.
                let mut members = Vec::with_capacity(legs.len());
                let mut added = Ok(());
                for leg in legs {
                    let hop = self.neighbour(leg.adjacency, *mtu_bytes);
                    let held = before.remove(&leg.adjacency).or(entry.legs.get(&leg.adjacency).copied());
                    let index = match held {
                        Some(index) => self.neighbours.set_next_hop(index, hop).map(|()| index),
                        None => self.acquire(hop),
                    };
                    match index {
                        Ok(index) => {
                            entry.legs.insert(leg.adjacency, index);
                            members.push((index, u32::from(leg.weight)));
                        }
                        Err(error) => added = Err(error),
                    }
                }
                added.and_then(|()| self.neighbours.replace(entry.index, Target::Group(&members)))
            }
        };
        before.into_values().for_each(|index| self.release(index));
        done
    }

    fn acquire(&mut self, hop: Neighbour) -> Result<AdjacencyIndex, FibError> {
        self.patience.until(|| self.neighbours.acquire(hop))
    }

    fn release(&mut self, index: AdjacencyIndex) {
        // Only indices that were acquired are released, and once each.
        let _ = self.neighbours.release(index);
    }

    fn next_serial(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.serial
    }

    /// What a frame to an adjacency needs; the kernel, while that is not resolved or not behind one of our ports.
    fn neighbour(&mut self, id: AdjacencyId, mtu_bytes: Option<u32>) -> Neighbour {
        let serial = self.next_serial();
        let unresolved = left_to_kernel(serial, PuntReason::OnLink);
        let Some(adjacency) = self.adjacencies.get(&id) else { return unresolved };
        let port = self.ports.iter().position(|&p| p == adjacency.ifindex);
        let (Some(rewrite), Some(port)) = (adjacency.rewrite, port) else { return unresolved };
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&rewrite.destination);
        addresses[6..].copy_from_slice(&rewrite.source);
        let mtu_bytes = rewrite.mtu_bytes.min(mtu_bytes.unwrap_or(u32::MAX));
        let reason = PuntReason::NotEthernet as u8;
        Neighbour { port: port as u16, reason, mtu_bytes, addresses, mark: id.0 as u16, serial }
    }

    fn set_routes(&mut self, routes: &[(Prefix, Option<HopId>)], progress: &mut dyn FnMut()) {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, hop) in routes {
            // A hop that is not there would be an error of the mirror; the kernel knows better.
            let index = hop.map(|hop| self.hops.get(&hop).map_or(self.kernel, |entry| entry.index));
            let index = self.apart.index_of(*prefix, *hop, index);
            match hop {
                Some(hop) if index == Some(self.kernel) => self.strays.insert(*prefix, *hop),
                _ => self.strays.remove(prefix),
            };
            match prefix {
                Prefix::V4(prefix) => v4.push((*prefix, index)),
                Prefix::V6(prefix) => v6.push((*prefix, index)),
            }
        }
        let fitted = self.fit();
        let patience = &mut self.patience;
        let done = [self.v4.change(v4, patience, progress), self.v6.change(v6, patience, progress)];
        match done.into_iter().collect::<Result<(), _>>() {
            Err(error) if fitted => {
                let outside = self.v4.outside() + self.v6.outside();
                log::error!(
                    code = "table-full";
                    "no room is left for the routes to {outside} prefixes, so the kernel forwards there: {error}"
                );
            }
            Ok(()) if !fitted => log::info!(code = "table-full"; "the routes fit the tables again"),
            _ => {}
        }
    }
}

/// A sign of progress, now and then.
fn say(done: usize, progress: &mut dyn FnMut()) {
    /// Hops or neighbours between two of them: a few milliseconds.
    const STRETCH: usize = 64;
    if done.is_multiple_of(STRETCH) {
        progress();
    }
}

fn legs(hop: &Hop) -> &[Leg] {
    match &hop.action {
        Action::Forward { legs, .. } => legs,
        Action::Punt(_) => &[],
    }
}

fn left_to_kernel(serial: u32, reason: PuntReason) -> Neighbour {
    Neighbour { port: KERNEL, reason: reason as u8, mtu_bytes: 0, addresses: [0; 12], mark: 0, serial }
}

#[cfg(test)]
mod tests;
