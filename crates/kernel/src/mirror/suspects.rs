//! What the kernel may have changed without a message, until a dump shows what is left.
//!
//! - Routes by a device that was down, or lost its last address of the family: IPv4 routes are removed in silence, and of a
//!   route with several paths, of either family, those by the device become dead. While the device is down that is all there is
//!   to know; once it is up again only a dump tells which of its routes are still there.
//! - Routes by a next hop object that was removed: IPv4 routes go in silence. While there is no such object they are no way
//!   out; an object that comes under the same number does not bring them back.
//! - IPv4 routes with a preferred source address that the machine has no more.
//! - All routes, while it is not known which policy rules there are.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::Scope;
use crate::model::Family;

/// Something that routes hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suspect {
    Device(Family, u32),
    Object(Family, u32),
    Source(Ipv4Addr),
    Rules,
}

impl Suspect {
    /// The table whose dump tells.
    pub fn table(self) -> Scope {
        match self {
            Suspect::Device(family, _) | Suspect::Object(family, _) => Scope::routes(family),
            Suspect::Source(_) => Scope::ROUTES4,
            Suspect::Rules => Scope::RULES,
        }
    }
}

/// All suspects, with the generation in which each was last seen to change.
#[derive(Debug, Default)]
pub(super) struct Suspects(BTreeMap<Suspect, u32>);

impl Suspects {
    pub fn add(&mut self, suspect: Suspect, generation: u32) {
        self.0.insert(suspect, generation);
    }

    pub fn hold(&self, suspect: Suspect) -> bool {
        self.0.contains_key(&suspect)
    }

    /// A dump of `table`, begun as `generation`, is complete. Returns whether that settled anything.
    pub fn settle(&mut self, table: Scope, generation: u32) -> bool {
        let before = self.0.len();
        self.0.retain(|suspect, &mut since| suspect.table() != table || since == generation);
        self.0.len() != before
    }
}
