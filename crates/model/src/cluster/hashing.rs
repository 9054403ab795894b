//! Which node a flow goes through, and which flows move when nodes come and go.
//!
//! The hash is the kernel's, of addresses and ports with the seed of `conf/cluster/front.sysctl`. Three ways from a hash to a
//! node: regions (RFC 2992, the kernel's default), buckets that stay where they are (Linux,
//! Documentation/networking/nexthop-group-resilient), and the remainder of a division, as some switches do.

use causeway_elements::kernel::{FlowHash, FlowPolicy};
use std::net::Ipv4Addr;

/// The seed of `conf/cluster/front.sysctl`.
const SEED: u32 = 1;
/// Buckets of `conf/cluster/resilient-group`.
pub const BUCKETS: usize = 128;
/// Where the hosts are (RFC 2544, C.2.2).
const SOURCES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const SINKS: Ipv4Addr = Ipv4Addr::new(198, 18, 64, 0);
const PORTS: u32 = 64_000;

/// The hash of a flow: UDP between two hosts, as the laboratory's cluster sends it. Flows beyond its ports have other hosts.
pub fn flow_hash(flow: u32) -> u32 {
    let more = flow / PORTS;
    let host = |network: Ipv4Addr, n: u32| (u32::from(network) + more * 256 + 2 + n).to_be_bytes();
    let (source, destination) = (host(SOURCES, flow % 250), host(SINKS, flow % 251));
    let port = (1_024 + flow % PORTS) as u16;
    let mut packet = [0; 28];
    (packet[0], packet[3], packet[8], packet[9]) = (0x45, 28, 64, 17);
    packet[12..16].copy_from_slice(&source);
    packet[16..20].copy_from_slice(&destination);
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[22..24].copy_from_slice(&7u16.to_be_bytes());
    packet[24..26].copy_from_slice(&8u16.to_be_bytes());
    FlowHash::new(FlowPolicy::L4, SEED).v4(&packet).unwrap_or_default()
}

/// How a front chooses a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashing {
    /// A region of the hash's values for each node.
    Threshold,
    /// Buckets, of which only those move that have to.
    Resilient,
    /// The remainder of the hash by the number of nodes.
    Modulo,
}

impl Hashing {
    /// All of them.
    pub const ALL: [Hashing; 3] = [Hashing::Threshold, Hashing::Resilient, Hashing::Modulo];

    /// For people: as the laboratory calls it.
    pub fn name(self) -> &'static str {
        match self {
            Hashing::Threshold => "hash-threshold",
            Hashing::Resilient => "resilient",
            Hashing::Modulo => "modulo",
        }
    }
}

/// The nodes that a front uses, and how it chooses among them.
#[derive(Clone, Debug)]
pub struct Group {
    hashing: Hashing,
    /// Which nodes, in order.
    nodes: Vec<usize>,
    /// The node of each bucket.
    buckets: Vec<usize>,
}

impl Group {
    /// A group of so many nodes, from 0 on, that came one after the other while there was no traffic.
    pub fn new(hashing: Hashing, nodes: usize) -> Group {
        let mut group = Group { hashing, nodes: Vec::new(), buckets: vec![usize::MAX; BUCKETS] };
        for node in 0..nodes {
            group.comes(node, true);
        }
        group
    }

    /// The node of a hash, if there is any.
    pub fn node(&self, hash: u32) -> Option<usize> {
        // The kernel has 31 bits of it.
        let (hash, count) = (u64::from(hash >> 1), self.nodes.len() as u64);
        if count == 0 {
            return None;
        }
        match self.hashing {
            Hashing::Modulo => self.nodes.get((hash % count) as usize).copied(),
            Hashing::Resilient => self.buckets.get(hash as usize % BUCKETS).copied(),
            Hashing::Threshold => {
                let bound = |n: u64| (((n + 1) << 31) + count / 2) / count - 1;
                let place = (0..count).find(|&n| hash <= bound(n))?;
                self.nodes.get(place as usize).copied()
            }
        }
    }

    /// A node is used no more.
    pub fn goes(&mut self, node: usize) {
        self.nodes.retain(|&one| one != node);
        self.balance(false);
    }

    /// A node is used from now on. Where buckets are idle they move to it, else none does.
    pub fn comes(&mut self, node: usize, idle: bool) {
        let place = self.nodes.partition_point(|&one| one < node);
        self.nodes.insert(place, node);
        self.balance(idle);
    }

    /// Buckets of nodes that are gone get others; those of nodes that have too many, if they are idle.
    fn balance(&mut self, idle: bool) {
        let count = self.nodes.len();
        if count == 0 {
            return;
        }
        let upper = |n: usize| (BUCKETS * n + count / 2) / count;
        let wanted: Vec<usize> = (0..count).map(|n| upper(n + 1) - upper(n)).collect();
        let place = |nodes: &[usize], node: usize| nodes.iter().position(|&one| one == node);
        let mut has = vec![0; count];
        for &node in &self.buckets {
            if let Some(n) = place(&self.nodes, node) {
                has[n] += 1;
            }
        }
        for bucket in 0..BUCKETS {
            let now = place(&self.nodes, self.buckets[bucket]);
            let must = now.is_none_or(|n| idle && has[n] > wanted[n]);
            // Who came last is served first.
            let Some(to) = (0..count).rev().find(|&n| must && has[n] < wanted[n]) else { continue };
            if let Some(n) = now {
                has[n] -= 1;
            }
            has[to] += 1;
            self.buckets[bucket] = self.nodes[to];
        }
    }

    /// The node of each of so many flows.
    pub fn ways(&self, flows: u32) -> Vec<Option<usize>> {
        (0..flows).map(|flow| self.node(flow_hash(flow))).collect()
    }
}

/// Flows through each of so many nodes.
pub fn shares(ways: &[Option<usize>], nodes: usize) -> Vec<usize> {
    let mut shares = vec![0; nodes];
    for node in ways.iter().flatten() {
        shares[*node] += 1;
    }
    shares
}

/// Flows that go another way than before: those of `node`, and others.
pub fn moved(before: &[Option<usize>], after: &[Option<usize>], node: usize) -> [usize; 2] {
    let mut moved = [0; 2];
    for (before, after) in before.iter().zip(after) {
        if before != after {
            moved[usize::from(*before != Some(node))] += 1;
        }
    }
    moved
}
