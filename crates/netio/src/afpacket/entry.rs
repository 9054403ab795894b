//! One packet of a ring's block, as its header describes it. Lengths are checked, though they come from the kernel.

use causeway_packet::{Packet, PacketType};

const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// Offsets in the header of a packet, `struct tpacket3_hdr` and the address after it.
mod header {
    pub const NEXT: usize = 0;
    pub const SECONDS: usize = 4;
    pub const NANOSECONDS: usize = 8;
    pub const CAPTURED: usize = 12;
    pub const LENGTH: usize = 16;
    pub const STATUS: usize = 20;
    pub const MAC: usize = 24;
    pub const HASH: usize = 28;
    pub const VLAN_TCI: usize = 32;
    pub const VLAN_TPID: usize = 36;
    pub const PACKET_TYPE: usize = 48 + 10;
}

/// The 32-bit word at `at`, in this machine's order.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|w| u32::from_ne_bytes(*w))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|w| u16::from_ne_bytes(*w))
}

/// One packet of a block, as its header describes it.
pub struct Entry<'a> {
    pub data: &'a [u8],
    /// Bytes that came: more than `data` has if the ring had no room for all.
    pub length: usize,
    pub tag: Option<[u8; 4]>,
    pub timestamp_ns: u64,
    pub hash: u32,
    pub kind: PacketType,
    pub unfinished: bool,
    /// Bytes to the next entry.
    pub next: usize,
}

/// Reads the entry at `at` of a block; `None` if a length leads out of it.
pub fn entry(block: &[u8], at: usize) -> Option<Entry<'_>> {
    let head = block.get(at..)?;
    let captured = word(head, header::CAPTURED)? as usize;
    let from = half(head, header::MAC)? as usize;
    let status = word(head, header::STATUS)?;
    let seconds = u64::from(word(head, header::SECONDS)?);
    let tag = (status & TP_STATUS_VLAN_VALID != 0).then(|| {
        let known = status & TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = half(head, header::VLAN_TPID).filter(|_| known).unwrap_or(0x8100).to_be_bytes();
        let tci = (word(head, header::VLAN_TCI).unwrap_or(0) as u16).to_be_bytes();
        [tpid[0], tpid[1], tci[0], tci[1]]
    });
    Some(Entry {
        data: head.get(from..from.checked_add(captured)?)?,
        length: word(head, header::LENGTH)? as usize,
        tag,
        timestamp_ns: seconds * 1_000_000_000 + u64::from(word(head, header::NANOSECONDS)?),
        hash: word(head, header::HASH)?,
        kind: match head.get(header::PACKET_TYPE)? {
            1 => PacketType::Broadcast,
            2 => PacketType::Multicast,
            3 => PacketType::OtherHost,
            _ => PacketType::Host,
        },
        unfinished: status & TP_STATUS_CSUMNOTREADY != 0,
        next: word(head, header::NEXT)? as usize,
    })
}

impl Entry<'_> {
    /// Whether the ring had no room for all of it.
    pub fn is_cut(&self) -> bool {
        self.data.len() < self.length
    }

    /// Copies the entry into a packet, with its VLAN tag where it was on the wire; `None` if it was cut, or no frame is free
    /// that has room for it.
    pub fn packet(&self) -> Option<Packet> {
        if self.is_cut() {
            return None;
        }
        let mut packet = match (self.tag, self.data.split_at_checked(12)) {
            (Some(tag), Some((addresses, rest))) => {
                let mut packet = Packet::new()?;
                let room = packet.put(self.data.len() + 4).ok()?;
                room[..12].copy_from_slice(addresses);
                room[12..16].copy_from_slice(&tag);
                room[16..].copy_from_slice(rest);
                packet
            }
            _ => Packet::from_bytes(self.data)?,
        };
        packet.set_timestamp_ns(self.timestamp_ns);
        packet.set_flow_hash(self.hash);
        packet.set_packet_type(self.kind);
        packet.set_wire_len(self.length + self.tag.map_or(0, |_| 4));
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Headers that lie lead to nothing worse than a refusal.
        #[test]
        fn any_block(bytes in proptest::collection::vec(any::<u8>(), 0..256), at in 0usize..300) {
            if let Some(entry) = entry(&bytes, at) {
                prop_assert!(entry.data.len() <= bytes.len());
            }
        }
    }
}
