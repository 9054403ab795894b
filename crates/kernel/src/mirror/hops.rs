//! Hops and adjacencies, each kept once and counted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};

use crate::changes::{Adjacency, Hop};
use crate::model::{Family, Path, ReversePath};
use crate::reason::PuntReason;

/// What the kernel says becomes of packets; equal keys are one hop.
///
/// `identity` tells routes apart that differ in nothing else that is kept here, as the kernel does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum HopKey {
    Punt {
        family: Family,
        reason: PuntReason,
        reverse_path: ReversePath,
        source: Option<Ipv4Addr>,
        identity: u64,
    },
    Paths {
        family: Family,
        paths: Vec<Path>,
        mtu_bytes: Option<u32>,
        source: Option<Ipv4Addr>,
        identity: u64,
    },
    Object {
        family: Family,
        id: u32,
        mtu_bytes: Option<u32>,
        source: Option<Ipv4Addr>,
        identity: u64,
    },
    /// A host on the link of a port.
    Host {
        ifindex: u32,
        address: IpAddr,
        mtu_bytes: Option<u32>,
    },
}

impl HopKey {
    /// A punt of which nothing else is known.
    pub fn unknown(family: Family, reason: PuntReason) -> Self {
        HopKey::Punt { family, reason, reverse_path: ReversePath::Unknown, source: None, identity: 0 }
    }

    pub fn family(&self) -> Family {
        match self {
            HopKey::Punt { family, .. } | HopKey::Paths { family, .. } | HopKey::Object { family, .. } => {
                *family
            }
            HopKey::Host { address, .. } => Family::of(*address),
        }
    }

    /// The address of this machine that routes of this kind go with.
    pub fn source(&self) -> Option<Ipv4Addr> {
        match self {
            HopKey::Punt { source, .. } | HopKey::Paths { source, .. } | HopKey::Object { source, .. } => {
                *source
            }
            HopKey::Host { .. } => None,
        }
    }
}

/// What a key comes to, given links, objects and rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolution {
    pub way: Way,
    pub reverse_path: ReversePath,
}

impl Resolution {
    /// A punt of which nothing else is known.
    pub fn unknown(reason: PuntReason) -> Self {
        Resolution { way: Way::Punt(reason), reverse_path: ReversePath::Unknown }
    }
}

/// Where packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forward {
        legs: Vec<(AdjacencyKey, u16)>,
        mtu_bytes: Option<u32>,
    },
    /// The destinations themselves are on this link.
    OnLink {
        ifindex: u32,
        mtu_bytes: Option<u32>,
    },
    Punt(PuntReason),
}

/// Interface index and address of a neighbour.
pub(super) type AdjacencyKey = (u32, IpAddr);

/// A hop and who points to it.
#[derive(Debug, Default)]
pub(super) struct HopState {
    pub resolution: Option<Resolution>,
    /// The resolution is not what `shown` was made from.
    pub changed: bool,
    /// What users were told.
    pub shown: Option<Hop>,
    /// Prefixes that point to it, as users were told.
    pub prefixes: u32,
    /// Devices whose paths the kernel told to be dead, and the generation in which it did.
    pub dead: (Vec<u32>, u32),
}

/// An adjacency, as users were told.
#[derive(Debug, Default)]
pub(super) struct AdjacencyState {
    pub shown: Option<Adjacency>,
}

/// Values by key, numbered densely and counted; a number is free only after [`Interned::sweep`].
#[derive(Debug)]
pub(super) struct Interned<K, V> {
    slots: Vec<Option<Slot<K, V>>>,
    /// The lowest is taken first, because users' tables are as long as the highest number in use.
    free: BinaryHeap<Reverse<u32>>,
    ids: HashMap<K, u32>,
}

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    references: u32,
}

impl<K, V> Default for Interned<K, V> {
    fn default() -> Self {
        Interned { slots: Vec::new(), free: BinaryHeap::new(), ids: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Interned<K, V> {
    /// The number of `key`, with one more reference to it.
    pub fn acquire(&mut self, key: K) -> u32 {
        if let Some(&id) = self.ids.get(&key) {
            self.retain(id);
            return id;
        }
        let slot = Slot { key: key.clone(), value: V::default(), references: 1 };
        let id = match self.free.pop() {
            Some(Reverse(id)) => {
                self.slots[id as usize] = Some(slot);
                id
            }
            None => {
                self.slots.push(Some(slot));
                (self.slots.len() - 1) as u32
            }
        };
        self.ids.insert(key, id);
        id
    }

    /// One more reference.
    pub fn retain(&mut self, id: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(id as usize) {
            slot.references += 1;
        }
    }

    /// One reference less.
    pub fn release(&mut self, id: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(id as usize) {
            slot.references = slot.references.saturating_sub(1);
        }
    }

    /// The number of `key`, if it has one.
    pub fn find(&self, key: &K) -> Option<u32> {
        self.ids.get(key).copied()
    }

    pub fn get(&self, id: u32) -> Option<(&K, &V)> {
        self.slots.get(id as usize)?.as_ref().map(|slot| (&slot.key, &slot.value))
    }

    pub fn get_mut(&mut self, id: u32) -> Option<(&K, &mut V)> {
        self.slots.get_mut(id as usize)?.as_mut().map(|slot| (&slot.key, &mut slot.value))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.slots.iter().enumerate().filter_map(|(id, slot)| {
            let slot = slot.as_ref()?;
            Some((id as u32, &slot.key, &slot.value))
        })
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &K, &mut V)> {
        self.slots.iter_mut().enumerate().filter_map(|(id, slot)| {
            let slot = slot.as_mut()?;
            Some((id as u32, &slot.key, &mut slot.value))
        })
    }

    /// Frees what nothing refers to; calls `freed` for each.
    pub fn sweep(&mut self, mut freed: impl FnMut(u32, V)) {
        for (id, place) in self.slots.iter_mut().enumerate() {
            if let Some(slot) = place.take_if(|slot| slot.references == 0) {
                self.ids.remove(&slot.key);
                self.free.push(Reverse(id as u32));
                freed(id as u32, slot.value);
            }
        }
    }
}
