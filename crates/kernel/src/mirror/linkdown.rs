//! Paths without carrier: which of them the kernel leaves out when it chooses among several.
//!
//! With `ignore_routes_with_linkdown` set for its device a path without carrier is left out, and its share of the flows goes to
//! the others; without the setting it keeps its share. The kernel settles that when the carrier goes (and when the route
//! comes), by the setting of that moment, and does not settle it again when the setting changes. So the setting counts that was
//! known when the carrier was seen to go; where none was, or the setting changed since, or messages were lost, only the kernel
//! knows, until the carrier is back.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Family, Setting, SettingScope};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// The settings, and for which devices they do not tell.
#[derive(Debug, Default)]
pub(super) struct Linkdown {
    /// With the generation that showed each.
    settings: BTreeMap<(Family, SettingScope), (bool, u32)>,
    /// Devices of which it is not known what held when the carrier went; nobody asks of those that have one, or are down.
    unsure: BTreeSet<(Family, u32)>,
}

impl Linkdown {
    /// Whether paths by a device without carrier are left out; none if only the kernel knows.
    pub fn leaves_out(&self, family: Family, ifindex: u32) -> Option<bool> {
        self.set_for(family, ifindex).filter(|_| !self.unsure.contains(&(family, ifindex)))
    }

    /// The setting as it is now.
    fn set_for(&self, family: Family, ifindex: u32) -> Option<bool> {
        let of = |scope| self.settings.get(&(family, scope)).map(|&(set, _)| set);
        let own = of(SettingScope::Interface(ifindex));
        match family {
            // What is set for all holds besides.
            Family::V4 => Some(own? | of(SettingScope::All)?),
            // What is set for all was written to each.
            Family::V6 => own,
        }
    }

    /// Takes in a setting; `devices` are those that there are.
    pub fn set(&mut self, setting: Setting, devices: impl Iterator<Item = u32>, generation: u32) {
        let Some(ignores) = setting.ignores_linkdown else { return };
        let family = setting.family;
        let before: Vec<_> = devices.map(|ifindex| (ifindex, self.set_for(family, ifindex))).collect();
        self.settings.insert((family, setting.scope), (ignores, generation));
        for (ifindex, before) in before {
            if self.set_for(family, ifindex) != before {
                self.unsure.insert((family, ifindex));
            }
        }
    }

    /// A dump of a family's settings is complete.
    pub fn sweep(&mut self, family: Family, generation: u32) {
        self.settings.retain(|(of, _), &mut (_, seen)| *of != family || seen == generation);
    }

    /// If a device is without carrier, that came about just now: it was seen to go, or the device to come up without one.
    pub fn settle(&mut self, ifindex: u32) {
        for family in FAMILIES {
            if self.set_for(family, ifindex).is_some() {
                self.unsure.remove(&(family, ifindex));
            } else {
                self.unsure.insert((family, ifindex));
            }
        }
    }

    /// If a device is without carrier, when that came about was not seen.
    pub fn doubt(&mut self, ifindex: u32) {
        self.unsure.extend(FAMILIES.map(|family| (family, ifindex)));
    }

    /// A device is gone.
    pub fn forget(&mut self, ifindex: u32) {
        for family in FAMILIES {
            self.unsure.remove(&(family, ifindex));
            self.settings.remove(&(family, SettingScope::Interface(ifindex)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(family: Family, scope: SettingScope, ignores: bool) -> Setting {
        Setting { family, scope, ignores_linkdown: Some(ignores) }
    }

    #[test]
    fn the_setting_counts_that_held_when_the_carrier_went() {
        let mut linkdown = Linkdown::default();
        let own = SettingScope::Interface(7);
        linkdown.settle(7);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), None, "no setting is known");
        linkdown.set(setting(Family::V6, own, true), [7].into_iter(), 1);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), None, "nor was one when the carrier went");
        linkdown.settle(7);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), Some(true));
        linkdown.set(setting(Family::V6, own, false), [7].into_iter(), 1);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), None, "it changed meanwhile");
        linkdown.settle(7);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), Some(false));
        linkdown.set(setting(Family::V6, own, false), [7].into_iter(), 1);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), Some(false), "it did not change");
        linkdown.doubt(7);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), None);
    }

    #[test]
    fn ipv4_has_a_setting_for_all_besides() {
        let mut linkdown = Linkdown::default();
        linkdown.set(setting(Family::V4, SettingScope::Interface(7), false), [].into_iter(), 1);
        assert_eq!(linkdown.leaves_out(Family::V4, 7), None);
        linkdown.set(setting(Family::V4, SettingScope::All, true), [].into_iter(), 1);
        assert_eq!(linkdown.leaves_out(Family::V4, 7), Some(true));
        linkdown.set(setting(Family::V4, SettingScope::All, false), [7].into_iter(), 2);
        assert_eq!(linkdown.leaves_out(Family::V4, 7), None);
        linkdown.settle(7);
        assert_eq!(linkdown.leaves_out(Family::V4, 7), Some(false));
        linkdown.sweep(Family::V4, 2);
        assert_eq!(linkdown.leaves_out(Family::V4, 7), None, "the dump did not show the device's own");
    }

    #[test]
    fn either_setting_of_ipv4_is_enough() {
        for (own, all, leaves_out) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, true)]
        {
            let mut linkdown = Linkdown::default();
            linkdown.set(setting(Family::V4, SettingScope::Interface(7), own), [].into_iter(), 1);
            linkdown.set(setting(Family::V4, SettingScope::All, all), [].into_iter(), 1);
            assert_eq!(linkdown.leaves_out(Family::V4, 7), Some(leaves_out), "{own} {all}");
        }
    }

    #[test]
    fn a_dump_takes_away_what_it_does_not_show_of_its_family_alone() {
        let mut linkdown = Linkdown::default();
        let of = |ifindex| SettingScope::Interface(ifindex);
        linkdown.set(setting(Family::V6, of(7), true), [].into_iter(), 1);
        linkdown.set(setting(Family::V6, of(8), true), [].into_iter(), 2);
        linkdown.sweep(Family::V4, 2);
        assert_eq!([7, 8].map(|i| linkdown.leaves_out(Family::V6, i)), [Some(true); 2]);
        linkdown.sweep(Family::V6, 2);
        assert_eq!([7, 8].map(|i| linkdown.leaves_out(Family::V6, i)), [None, Some(true)]);
    }

    #[test]
    fn a_device_that_is_gone_leaves_nothing_to_the_next_of_its_number() {
        let mut linkdown = Linkdown::default();
        let own = |ifindex| setting(Family::V6, SettingScope::Interface(ifindex), true);
        for ifindex in [7, 8] {
            linkdown.set(own(ifindex), [].into_iter(), 1);
            linkdown.doubt(ifindex);
        }
        linkdown.forget(7);
        linkdown.settle(8);
        assert_eq!([7, 8].map(|i| linkdown.leaves_out(Family::V6, i)), [None, Some(true)]);
        linkdown.set(own(7), [].into_iter(), 1);
        assert_eq!(linkdown.leaves_out(Family::V6, 7), Some(true), "the doubt is gone, too");
    }
}
