//! What happens to routes and objects when links, addresses and settings change: most of it in silence.

use super::*;

fn link(index: u32, up: bool, carrier: bool) -> Link {
    Link {
        index,
        name: format!("p{index}"),
        other_names: Vec::new(),
        kind: None,
        parent: None,
        mac: Some([2, 0, 0, 0, 0, index as u8]),
        ethernet: true,
        bare: false,
        no_arp: false,
        loopback: false,
        up,
        carrier: up && carrier,
        mtu_bytes: 1500,
        mtu6_bytes: 1500,
        master: None,
        master_kind: None,
        takes_from: None,
        rx_queues: 1,
        tx_queues: 1,
        xdp_program: None,
    }
}

impl NaiveKernel {
    pub fn set_link(&mut self, index: u32, up: bool, carrier: bool) {
        let link = link(index, up, carrier);
        let before = self.links.insert(index, link.clone());
        let was_up = before.is_some_and(|before| before.up);
        self.say(ADDED, Object::Link(link.clone()));
        if !link.alive() {
            self.flush_objects(index);
        }
        match (was_up, up) {
            (true, false) => FAMILIES.into_iter().for_each(|family| self.kill(family, index)),
            (false, true) => FAMILIES.into_iter().for_each(|family| self.revive(family, index)),
            _ => {}
        }
        FAMILIES.into_iter().for_each(|family| self.settle_shares_by(family, index));
    }

    /// Objects of a link that is not alive go without a word, and their routes with them.
    fn flush_objects(&mut self, index: u32) {
        let on_link = |(&id, kind): (&u32, &NextHopKind)| {
            matches!(kind, NextHopKind::Path(path) if path.ifindex == index).then_some(id)
        };
        let gone: Vec<u32> = self.objects.iter().filter_map(on_link).collect();
        for id in gone {
            self.objects.remove(&id);
            self.drop_routes_of(id);
            self.leave_groups(id);
        }
    }

    /// Paths by a device become dead, and routes of which all are go: those of IPv4 in silence, those of IPv6 path by path.
    fn kill(&mut self, family: Family, index: u32) {
        let mut said = Vec::new();
        for entry in self.routes.values_mut().flatten().filter(|entry| entry.family() == family) {
            for (path, leg) in paths(&entry.route.target).iter().zip(&mut entry.legs) {
                leg.dead |= path.ifindex == index;
            }
        }
        for list in self.routes.values_mut() {
            list.retain(|entry| {
                let all = !entry.legs.is_empty() && entry.legs.iter().all(|leg| leg.dead);
                if all && entry.family() == Family::V6 {
                    let gone =
                        |path: &Path| Route { target: Target::Paths(vec![*path]), ..entry.route.clone() };
                    said.extend(paths(&entry.route.target).iter().map(gone));
                }
                !all
            });
        }
        said.into_iter().for_each(|route| self.say(Operation::Removed, Object::Route(route)));
    }

    fn revive(&mut self, family: Family, index: u32) {
        for entry in self.routes.values_mut().flatten().filter(|entry| entry.family() == family) {
            for (path, leg) in paths(&entry.route.target).iter().zip(&mut entry.legs) {
                leg.dead &= path.ifindex != index;
            }
        }
    }

    /// Settles the shares of the routes that use a device.
    fn settle_shares_by(&mut self, family: Family, index: u32) {
        let mut routes = std::mem::take(&mut self.routes);
        for entry in routes.values_mut().flatten().filter(|e| e.family() == family && e.uses(index)) {
            self.settle_shares(entry);
        }
        self.routes = routes;
    }

    /// Which paths get a share, by the state and the settings of this moment.
    pub(super) fn settle_shares(&self, entry: &mut Entry) {
        let family = entry.family();
        for (path, leg) in paths(&entry.route.target).iter().zip(&mut entry.legs) {
            let ignored = !self.links[&path.ifindex].carrier && self.ignores[&(family, path.ifindex)];
            leg.counts = !leg.dead && !ignored;
        }
    }

    pub fn set_ignores(&mut self, family: Family, index: u32, set: bool) {
        if self.ignores.insert((family, index), set) != Some(set) {
            let scope = SettingScope::Interface(index);
            self.say(ADDED, Object::Setting(Setting { family, scope, ignores_linkdown: Some(set) }));
        }
    }

    /// IPv4 routes that prefer an address go with it in silence, and with the last of a device its paths become dead.
    pub fn set_address(&mut self, address: Address, there: bool) {
        let IpAddr::V4(source) = address.address else { return };
        let changed = if there { self.addresses.insert(address) } else { self.addresses.remove(&address) };
        if !changed {
            return;
        }
        self.say(if there { ADDED } else { Operation::Removed }, Object::Address(address));
        let index = address.ifindex;
        if there {
            if self.links[&index].up {
                self.revive(Family::V4, index);
            }
        } else {
            self.routes.values_mut().for_each(|list| list.retain(|e| e.route.source != Some(source)));
            if !self.addresses.iter().any(|a| a.ifindex == index) {
                self.kill(Family::V4, index);
            }
        }
        self.settle_shares_by(Family::V4, index);
    }
}
