//! Packets that stand for several.

use super::fields::view::first_timestamp_ns;
use crate::nat::{get_u16, put_u16};
use causeway_packet::wire::protocol;
use causeway_packet::{Anno, Packet};

/// Of a line that stands for several packets, what is still to be emitted.
pub(super) struct Several {
    packet: Packet,
    left: u32,
    len: usize,
    /// Bytes of the others, beyond this packet's.
    extra: usize,
    step_ns: u64,
    end_ns: u64,
}

impl Several {
    /// All packets for which `packet` stands: itself, and those that its EXTRA_PACKETS annotation counts.
    pub fn new(mut packet: Packet) -> Several {
        let left = packet.anno_u32(Anno::EXTRA_PACKETS.offset).saturating_add(1).max(2);
        let count = left as usize;
        let mut extra = packet.anno_u32(Anno::EXTRA_LENGTH.offset) as usize;
        let (own, mut len) = (packet.len(), (packet.len() + extra) / count);
        if len < own {
            (len, extra) = (own, own * (count - 1));
        }
        let (first_ns, end_ns) = (first_timestamp_ns(&packet), packet.timestamp_ns());
        let step_ns = if first_ns > 0 { end_ns.saturating_sub(first_ns) / (count as u64 - 1) } else { 0 };
        if first_ns > 0 {
            packet.set_timestamp_ns(first_ns);
        }
        Several { packet, left, len, extra, step_ns, end_ns }
    }

    /// How many are left.
    pub fn left(&self) -> usize {
        self.left as usize
    }

    /// The next packet, if a frame is free for it, and the others.
    pub fn split(mut self) -> (Option<Packet>, Option<Several>) {
        let own = self.packet.len();
        if self.left == 1 {
            self.packet.set_timestamp_ns(self.end_ns);
            return (Some(single(self.packet, self.extra)), None);
        }
        let packet = self.packet.copy().map(|p| single(p, self.len - own));
        self.left -= 1;
        self.extra = self.extra.saturating_sub(self.len);
        let ns = self.packet.timestamp_ns() + self.step_ns;
        self.packet.set_timestamp_ns(ns);
        (packet, Some(self))
    }
}

/// A packet that stands for itself alone, `extra` bytes longer than it is.
fn single(mut packet: Packet, extra: usize) -> Packet {
    packet.set_anno_u32(Anno::EXTRA_PACKETS.offset, 0);
    packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, extra as u32);
    let (Some(network), Some(transport)) = (packet.network_offset(), packet.transport_offset()) else {
        return packet;
    };
    let total_len = (packet.len() - network + extra) as u16;
    let data = packet.data_mut();
    if get_u16(data, network + 2) != total_len {
        put_u16(data, network + 2, total_len);
        if data.get(network + 9) == Some(&protocol::UDP) {
            put_u16(data, transport + 4, total_len.wrapping_sub((transport - network) as u16));
        }
    }
    packet
}
