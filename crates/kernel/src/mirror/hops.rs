//! Hops and adjacencies: what they are known by, what they come to, and what users were told.

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
    /// As another hop, but policy rules bear on packets from there. It has a reference to each hop that it names.
    Ruled {
        family: Family,
        /// Where packets to the prefix go.
        ahead: u32,
        /// What a check of packets from the prefix may find; empty: rules are about those packets.
        back: Vec<u32>,
    },
}

impl HopKey {
    /// A punt of which nothing else is known.
    pub fn unknown(family: Family, reason: PuntReason) -> Self {
        HopKey::Punt { family, reason, reverse_path: ReversePath::Unknown, source: None, identity: 0 }
    }

    pub fn family(&self) -> Family {
        match self {
            HopKey::Punt { family, .. }
            | HopKey::Paths { family, .. }
            | HopKey::Object { family, .. }
            | HopKey::Ruled { family, .. } => *family,
            HopKey::Host { address, .. } => Family::of(*address),
        }
    }

    /// The address of this machine that routes of this kind go with.
    pub fn source(&self) -> Option<Ipv4Addr> {
        match self {
            HopKey::Punt { source, .. } | HopKey::Paths { source, .. } | HopKey::Object { source, .. } => {
                *source
            }
            HopKey::Host { .. } | HopKey::Ruled { .. } => None,
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
