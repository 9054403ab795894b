//! Links, their settings and their addresses, and what the kernel does to routes when they change.
//!
//! What happens to a link happens to its routes at once, by what is known of the kernel; what is not known becomes a suspect
//! ([`super::suspects`]), and a dump is asked for.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::hops::HopKey;
use super::kernel::Seen;
use super::suspects::Suspect;
use super::{Mirror, Scope};
use crate::decode::Operation;
use crate::model::{Address, Family, Link, NextHopKind, Setting};

/// What has to be dumped to know which routes are left of a link.
const ROUTING: [Scope; 3] = [Scope::NEXT_HOPS, Scope::ROUTES4, Scope::ROUTES6];

impl Mirror {
    pub(super) fn link_message(&mut self, link: Link, operation: Operation) {
        if operation == Operation::Removed {
            return self.remove_link(link.index);
        }
        let (index, seen) = (link.index, operation != Operation::Dumped);
        let (up, alive) = (link.up, link.alive());
        self.kernel.other_names.extend(link.other_names.iter().cloned());
        let value = Seen { value: link, generation: self.generation };
        let before = self.kernel.links.insert(index, value).map(|seen| seen.value);
        let was_alive = before.as_ref().is_some_and(Link::alive);
        let changed = before.as_ref() != Some(&self.kernel.links[&index].value);
        // If it is without carrier now, that came about just now, or when it did was not seen.
        match before {
            Some(before) if before.up && !before.carrier => {}
            _ if seen => self.kernel.linkdown.settle(index),
            _ => self.kernel.linkdown.doubt(index),
        }
        // That a link is down may come from before the dump that showed it up, or tell of a link that a dump showed down
        // already: in either case the routes that messages have brought back since are gone again.
        if (seen && !alive) || was_alive != alive {
            self.routes_hang_on(index, !up || !seen);
        } else if seen && self.told_dead(index) {
            // The kernel revives paths of IPv6 some time after the link is up, and then announces the link again.
            self.need_routes();
        }
        if !alive {
            self.prune_objects(index);
        }
        if changed {
            self.urgent |= self.kernel.ports.contains(&index);
            self.link_changed(index);
        }
    }

    pub(super) fn remove_link(&mut self, index: u32) {
        let known = self.kernel.links.remove(&index).is_some();
        self.routes_hang_on(index, true);
        self.prune_objects(index);
        if !known {
            return;
        }
        self.urgent |= self.kernel.ports.contains(&index);
        self.kernel.linkdown.forget(index);
        // All that is the link's goes with it: another that comes by the same number has none of it.
        let neighbours: Vec<_> =
            self.kernel.neighbours.keys().filter(|(_, of)| *of == index).copied().collect();
        for key in neighbours {
            self.kernel.neighbours.remove(&key);
            self.neighbour_changed(key);
        }
        self.kernel.qdiscs.retain(|(of, ..), _| *of != index);
        self.kernel.addresses.retain(|address, _| address.ifindex != index);
        self.pending.addresses = true;
        self.link_changed(index);
    }

    /// The kernel may have changed routes and objects of a link; of those that are `lost` a dump only knows what is left.
    fn routes_hang_on(&mut self, index: u32, lost: bool) {
        // On a machine where the links of containers come and go, most have no routes, and are not worth a dump.
        if !self.uses(index) {
            return;
        }
        self.urgent |= !self.kernel.links.get(&index).is_some_and(|link| link.value.alive());
        self.need_routes();
        if lost {
            for family in [Family::V4, Family::V6] {
                self.suspect(Suspect::Device(family, index));
            }
        }
    }

    fn need_routes(&mut self) {
        ROUTING.into_iter().for_each(|table| self.needs |= table);
    }

    /// Whether routes, objects or addresses hang on the link.
    fn uses(&self, index: u32) -> bool {
        self.kernel.addresses.keys().any(|address| address.ifindex == index)
            || self.paths_on(index)
            || self.kernel.objects.values().any(|object| object.value.is_on(index))
    }

    fn paths_on(&self, index: u32) -> bool {
        self.hops.iter().any(|(_, key, _)| match key {
            HopKey::Paths { paths, .. } => paths.iter().any(|path| path.ifindex == index),
            HopKey::Punt { reverse_path, .. } => reverse_path.has(index),
            HopKey::Object { .. } | HopKey::Host { .. } | HopKey::Ruled { .. } => false,
        })
    }

    /// Whether the kernel told paths by the link to be dead.
    fn told_dead(&self, index: u32) -> bool {
        self.hops.iter().any(|(_, _, state)| state.dead.0.contains(&index))
    }

    fn link_changed(&mut self, index: u32) {
        self.pending.links.insert(index);
        self.pending.hops = true;
        self.pending.adjacencies = true;
    }

    /// Removes the objects that the kernel removes with a link that has no carrier, or is down, or gone, without saying so:
    /// those on it, and from the groups their members; a group without members goes, too.
    fn prune_objects(&mut self, index: u32) {
        let on_link = |(&id, seen): (&u32, &Seen<NextHopKind>)| seen.value.is_on(index).then_some(id);
        let mut gone: BTreeSet<u32> = self.kernel.objects.iter().filter_map(on_link).collect();
        if gone.is_empty() {
            return;
        }
        let singles = gone.clone();
        for (&id, seen) in &mut self.kernel.objects {
            if let NextHopKind::Group { members, .. } = &mut seen.value {
                members.retain(|(member, _)| !singles.contains(member));
                gone.extend(members.is_empty().then_some(id));
            }
        }
        self.kernel.objects.retain(|id, _| !gone.contains(id));
        gone.into_iter().for_each(|id| self.object_gone(id));
        self.pending.hops = true;
    }

    pub(super) fn setting(&mut self, setting: Setting) {
        self.kernel.linkdown.set(setting, self.kernel.links.keys().copied(), self.generation);
        self.pending.hops = true;
    }

    pub(super) fn sweep_settings(&mut self, family: Family) {
        self.kernel.linkdown.sweep(family, self.generation);
        self.pending.hops = true;
    }

    /// Says that messages were lost, so that what is known of the order of events does not hold. A new dump must follow.
    pub fn lost(&mut self) {
        self.kernel.links.keys().for_each(|&index| self.kernel.linkdown.doubt(index));
        self.pending.hops = true;
    }

    pub(super) fn address(&mut self, address: Address, operation: Operation) {
        if operation == Operation::Removed {
            self.kernel.addresses.remove(&address);
            self.address_gone(address);
        } else {
            self.kernel.addresses.insert(address, self.generation);
            // The first address brings dead paths back.
            if operation != Operation::Dumped && self.told_dead(address.ifindex) {
                self.need_routes();
            }
        }
        self.pending.addresses = true;
    }

    /// IPv4 routes that prefer this source address go without a message, and with the last address of a family all routes by
    /// the device.
    pub(super) fn address_gone(&mut self, address: Address) {
        let family = Family::of(address.address);
        self.needs |= Scope::routes(family);
        if let IpAddr::V4(source) = address.address
            && self.hops.iter().any(|(_, key, _)| key.source() == Some(source))
        {
            self.suspect(Suspect::Source(source));
        }
        let mut left = self.kernel.addresses.keys();
        let is_left = |a: &Address| a.ifindex == address.ifindex && Family::of(a.address) == family;
        if !left.any(is_left) && self.paths_on(address.ifindex) {
            self.suspect(Suspect::Device(family, address.ifindex));
        }
    }
}
