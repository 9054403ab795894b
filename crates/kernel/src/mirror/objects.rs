//! Next hop objects.

use super::hops::HopKey;
use super::kernel::Seen;
use super::suspects::Suspect;
use super::{Mirror, Scope};
use crate::model::{Family, NextHop};

impl Mirror {
    pub(super) fn next_hop(&mut self, next_hop: NextHop, removed: bool) {
        if removed {
            self.needs |= Scope::NEXT_HOPS;
            self.pending.hops |= self.kernel.objects.remove(&next_hop.id).is_some();
            self.object_gone(next_hop.id);
            return;
        }
        let seen = Seen { value: next_hop.kind, generation: self.generation };
        let before = self.kernel.objects.insert(next_hop.id, seen).map(|seen| seen.value);
        self.pending.hops |= before.as_ref() != self.kernel.objects.get(&next_hop.id).map(|seen| &seen.value);
    }

    /// The routes that use an object go with it, those of IPv4 in silence.
    pub(super) fn object_gone(&mut self, id: u32) {
        for family in [Family::V4, Family::V6] {
            let uses = |key: &HopKey| matches!(key, HopKey::Object { family: of, id: used, .. } if (*of, *used) == (family, id));
            if self.hops.iter().any(|(_, key, _)| uses(key)) {
                self.suspect(Suspect::Object(family, id));
            }
        }
    }
}
