//! What users of the mirror see: a forwarding table by reference, and what changed in it.
//!
//! Prefixes point to hops, hops to adjacencies, all by number. A link that goes down or a gateway that moves changes one hop
//! or one adjacency, whatever the number of prefixes that point to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::model::{Link, Mac, ReversePath};
use crate::prefix::Prefix;
use crate::reason::PuntReason;

/// The number of a [`Hop`]. Numbers are small, dense and used again after a removal has been announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HopId(pub u32);

/// The number of an [`Adjacency`]. Numbers are small, dense and used again after a removal has been announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdjacencyId(pub u32);

/// What becomes of the packets of a prefix, and what the prefix says of packets that come from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// What becomes of packets to the prefix.
    pub action: Action,
    /// What a check of the source of packets from the prefix finds.
    pub reverse_path: ReversePath,
}

/// What becomes of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// They are forwarded by one of the legs, chosen by flow.
    Forward {
        /// The ways out, at least one, in the kernel's order. The kernel gives the first leg whose bound is not below the
        /// flow's hash of 31 bits; the bound of a leg is the sum of the weights up to it, as a share of the sum of all, times
        /// 2^31, rounded, less one. A flow whose leg is unresolved is left to the kernel.
        legs: Vec<Leg>,
        /// The largest packet that the route allows, octets; the adjacency's own limit holds besides.
        mtu_bytes: Option<u32>,
    },
    /// They are left to the kernel.
    Punt(PuntReason),
}

/// One way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Who to send to. Two legs of a hop may have the same.
    pub adjacency: AdjacencyId,
    /// Share of the flows, from 1.
    pub weight: u16,
}

/// A neighbour that packets are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjacency {
    /// Interface index of the port.
    pub ifindex: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// How to reach it; none while the kernel has not found out or the link is not alive, and then packets are left to the
    /// kernel.
    pub rewrite: Option<Rewrite>,
}

/// What a frame to a neighbour needs; by a link without link-layer header ([`Link::bare`](crate::Link::bare)) the addresses are
/// zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The neighbour's MAC address.
    pub destination: Mac,
    /// The port's MAC address.
    pub source: Mac,
    /// The largest IP packet, octets; larger ones are left to the kernel, which fragments or answers.
    pub mtu_bytes: u32,
}

impl Rewrite {
    /// Of packets that leave without a link-layer header, however long.
    pub const BARE: Rewrite = Rewrite { destination: [0; 6], source: [0; 6], mtu_bytes: u32::MAX };
}

/// What changed since the last time: each entry gives the new value, or none for what is gone.
///
/// Applied in the order of the fields, with removals of hops and adjacencies last, no prefix ever points to a hop that is not
/// there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Other policy rules are followed than before. Until all of this is put to use, destinations and sources may be judged by
    /// different ones, which the kernel never does: nothing is to be forwarded meanwhile.
    pub rules: bool,
    /// Links by interface index.
    pub links: Vec<(u32, Option<Link>)>,
    /// Addresses of this machine: whether each is there.
    pub addresses: Vec<(IpAddr, bool)>,
    /// Adjacencies.
    pub adjacencies: Vec<(AdjacencyId, Option<Adjacency>)>,
    /// Hops.
    pub hops: Vec<(HopId, Option<Hop>)>,
    /// Prefixes. A packet that no prefix covers is left to the kernel.
    pub routes: Vec<(Prefix, Option<HopId>)>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

/// All that the changes add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Links by interface index.
    pub links: BTreeMap<u32, Link>,
    /// Addresses of this machine.
    pub addresses: BTreeSet<IpAddr>,
    /// Adjacencies.
    pub adjacencies: BTreeMap<AdjacencyId, Adjacency>,
    /// Hops.
    pub hops: BTreeMap<HopId, Hop>,
    /// Prefixes.
    pub routes: BTreeMap<Prefix, HopId>,
}

impl Snapshot {
    /// Brings the snapshot up to date.
    pub fn apply(&mut self, changes: &Changes) {
        put_all(&mut self.links, &changes.links);
        for &(address, there) in &changes.addresses {
            if there {
                self.addresses.insert(address);
            } else {
                self.addresses.remove(&address);
            }
        }
        put_all(&mut self.adjacencies, &changes.adjacencies);
        put_all(&mut self.hops, &changes.hops);
        put_all(&mut self.routes, &changes.routes);
    }

    /// The hop of the longest prefix that covers `address`.
    pub fn lookup(&self, address: IpAddr) -> Option<&Hop> {
        let longest = Prefix::host(address).len();
        (0..=longest).rev().find_map(|len| self.hops.get(self.routes.get(&Prefix::new(address, len))?))
    }
}

fn put_all<K: Ord + Copy, V: Clone>(map: &mut BTreeMap<K, V>, changes: &[(K, Option<V>)]) {
    for (key, value) in changes {
        match value {
            Some(value) => map.insert(*key, value.clone()),
            None => map.remove(key),
        };
    }
}
