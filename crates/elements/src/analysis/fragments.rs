//! Packets that are held until it is known to which flow fragments belong.

use super::aggregate_ip_flows::flow_header;
use crate::nat::get_u16;
use causeway_packet::{Anno, Packet};
use std::collections::HashMap;

/// Most packets held.
const MOST: usize = 4_096;

/// Two hosts that talk by one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hosts {
    pub is_tcp: bool,
    pub low: u32,
    pub high: u32,
}

impl Hosts {
    /// The key of one of their flows.
    pub fn key(self, low_port: u16, high_port: u16) -> u128 {
        let addresses = u128::from(self.low) << 32 | u128::from(self.high);
        u128::from(self.is_tcp) << 96 | u128::from(low_port) << 80 | u128::from(high_port) << 64 | addresses
    }
}

/// The packets, in order. They are few, and looked through one by one.
pub(super) struct Fragments {
    packets: Vec<(Hosts, Packet)>,
    counts: HashMap<Hosts, u32>,
}

fn identification(packet: &Packet) -> u16 {
    flow_header(packet, true).map_or(0, |(ip, _)| get_u16(ip, 4))
}

impl Fragments {
    pub fn new() -> Fragments {
        Fragments { packets: Vec::with_capacity(MOST), counts: HashMap::with_capacity(MOST) }
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether packets between these are held.
    pub fn has(&self, hosts: Hosts) -> bool {
        !self.packets.is_empty() && self.counts.contains_key(&hosts)
    }

    /// All hosts between which packets are held.
    pub fn all(&self) -> Vec<Hosts> {
        self.counts.keys().copied().collect()
    }

    /// Holds a packet, or gives it back if there is no place.
    pub fn add(&mut self, hosts: Hosts, packet: Packet) -> Result<(), Packet> {
        if self.packets.len() >= MOST {
            return Err(packet);
        }
        *self.counts.entry(hosts).or_insert(0) += 1;
        self.packets.push((hosts, packet));
        Ok(())
    }

    /// Takes the first packet between `hosts`, if it came before second `old_s` or is no fragment. What it knows of its
    /// flow the other pieces of its datagram are told, and the reverse.
    pub fn take_if(&mut self, hosts: Hosts, old_s: u64, with_icmp: bool) -> Option<Packet> {
        if !self.has(hosts) {
            return None;
        }
        let at = self.packets.iter().position(|(h, _)| *h == hosts)?;
        let head = &self.packets[at].1;
        let is_fragment = flow_header(head, with_icmp).is_some_and(|(ip, _)| get_u16(ip, 6) & 0x3fff != 0);
        if is_fragment && head.timestamp_ns() / 1_000_000_000 >= old_s {
            return None;
        }
        let (_, mut head) = self.packets.remove(at);
        if let Some(count) = self.counts.get_mut(&hosts) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&hosts);
            }
        }
        let id = identification(&head);
        let mut same = self.packets[at..].iter_mut().filter(|(h, p)| *h == hosts && identification(p) == id);
        let number = |p: &Packet| p.anno_u32(Anno::AGGREGATE.offset);
        let tell = |from: &Packet, to: &mut Packet| {
            to.set_anno_u32(Anno::AGGREGATE.offset, from.anno_u32(Anno::AGGREGATE.offset));
            to.set_paint(from.paint());
        };
        if number(&head) > 0 {
            same.for_each(|(_, p)| tell(&head, p));
        } else if let Some((_, p)) = same.find(|(_, p)| number(p) > 0) {
            tell(p, &mut head);
        }
        Some(head)
    }
}
