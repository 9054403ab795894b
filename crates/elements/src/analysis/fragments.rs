//! Packets that are held until it is known to which flow fragments belong.

use crate::nat::get_u16;
use causeway_packet::wire::{icmpv4, protocol};
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

/// A packet that is held.
struct Held {
    hosts: Hosts,
    packet: Packet,
    /// The key of its flow, once that is known.
    key: Option<u128>,
}

/// The packets, in order. They are few, and looked through one by one.
pub(super) struct Fragments {
    packets: Vec<Held>,
    counts: HashMap<Hosts, u32>,
}

/// The IP header that says to which flow a packet belongs: its own, or the one that an ICMP error quotes.
pub(super) fn flow_header(packet: &Packet, with_icmp: bool) -> Option<(&[u8], bool)> {
    let ip = packet.network_header().filter(|ip| ip.len() >= 20)?;
    let is_first = get_u16(ip, 6) & 0x1fff == 0;
    if ip[9] != protocol::ICMP || !is_first || !with_icmp {
        return Some((ip, false));
    }
    let message = packet.transport_header()?;
    let is_error = matches!(
        message.first()?,
        4 | &icmpv4::kind::UNREACHABLE
            | &icmpv4::kind::REDIRECT
            | &icmpv4::kind::TIME_EXCEEDED
            | &icmpv4::kind::PARAMETER_PROBLEM
    );
    let quoted = message.get(8..).filter(|_| is_error)?;
    let header_len = usize::from(quoted.first()? & 15) * 4;
    (header_len >= 20 && quoted.len() >= header_len).then_some((quoted, true))
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

    /// Holds a packet of the flow with that key, if it is known, or gives it back if there is no place.
    pub fn add(&mut self, hosts: Hosts, packet: Packet, key: Option<u128>) -> Result<(), Packet> {
        if self.packets.len() >= MOST {
            return Err(packet);
        }
        *self.counts.entry(hosts).or_insert(0) += 1;
        self.packets.push(Held { hosts, packet, key });
        Ok(())
    }

    /// Takes the first packet between `hosts`, if it came before second `old_s` or is no fragment. What it knows of its
    /// flow the other pieces of its datagram are told, and the reverse; the flow's key comes with it.
    pub fn take_if(&mut self, hosts: Hosts, old_s: u64, with_icmp: bool) -> Option<(Packet, Option<u128>)> {
        if !self.has(hosts) {
            return None;
        }
        let at = self.packets.iter().position(|h| h.hosts == hosts)?;
        let head = &self.packets[at].packet;
        let is_fragment = flow_header(head, with_icmp).is_some_and(|(ip, _)| get_u16(ip, 6) & 0x3fff != 0);
        if is_fragment && head.timestamp_ns() / 1_000_000_000 >= old_s {
            return None;
        }
        let mut head = self.packets.remove(at);
        if let Some(count) = self.counts.get_mut(&hosts) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&hosts);
            }
        }
        let id = identification(&head.packet);
        let mut same =
            self.packets[at..].iter_mut().filter(|h| h.hosts == hosts && identification(&h.packet) == id);
        let number = |h: &Held| h.packet.anno_u32(Anno::AGGREGATE.offset);
        let tell = |from: &Held, to: &mut Held| {
            to.packet.set_anno_u32(Anno::AGGREGATE.offset, number(from));
            to.packet.set_paint(from.packet.paint());
            to.key = from.key;
        };
        if number(&head) > 0 {
            same.for_each(|h| tell(&head, h));
        } else if let Some(h) = same.find(|h| number(h) > 0) {
            tell(h, &mut head);
        }
        Some((head.packet, head.key))
    }
}
