//! Annotations and the other fields of a packet's metadata.

use crate::Packet;
use crate::meta::{ANNO_BYTES, Anno, Far, NEAR_ANNO_BYTES, PacketType};

/// Annotations and the other fields of the metadata.
impl Packet {
    /// Annotation byte at `offset`; 0 outside the area.
    #[inline]
    pub fn anno_u8(&self, offset: u8) -> u8 {
        self.anno_bytes::<1>(offset)[0]
    }

    /// Sets the annotation byte at `offset`; outside the area nothing happens.
    #[inline]
    pub fn set_anno_u8(&mut self, offset: u8, value: u8) {
        self.set_anno_bytes(offset, [value]);
    }

    /// `N` annotation bytes from `offset`; zeros outside the area.
    #[inline]
    pub fn anno_bytes<const N: usize>(&self, offset: u8) -> [u8; N] {
        match self.m().anno.get(offset as usize..).and_then(|a| a.first_chunk()) {
            Some(bytes) => *bytes,
            None => self.far_anno_bytes(offset),
        }
    }

    /// As [`Packet::anno_bytes`], where some of them are not near.
    fn far_anno_bytes<const N: usize>(&self, offset: u8) -> [u8; N] {
        let mut all = [0; ANNO_BYTES];
        let (near, far) = all.split_at_mut(NEAR_ANNO_BYTES);
        near.copy_from_slice(&self.m().anno);
        far.copy_from_slice(&self.far().unwrap_or(&Far::EMPTY).anno);
        all.get(offset as usize..).and_then(|a| a.first_chunk()).copied().unwrap_or([0; N])
    }

    /// Sets `N` annotation bytes from `offset`; what does not fit the area is not written.
    #[inline]
    pub fn set_anno_bytes<const N: usize>(&mut self, offset: u8, value: [u8; N]) {
        match self.mm().anno.get_mut(offset as usize..).and_then(|a| a.first_chunk_mut()) {
            Some(bytes) => *bytes = value,
            None => self.set_far_anno_bytes(offset, value),
        }
    }

    /// As [`Packet::set_anno_bytes`], where some of them are not near.
    fn set_far_anno_bytes<const N: usize>(&mut self, offset: u8, value: [u8; N]) {
        let offset = offset as usize;
        if offset + N > ANNO_BYTES {
            return;
        }
        for (at, byte) in (offset..).zip(value) {
            match at.checked_sub(NEAR_ANNO_BYTES) {
                None => self.mm().anno[at] = byte,
                Some(at) => self.far_mut().anno[at] = byte,
            }
        }
    }

    /// Annotation word at `offset`, in host order.
    #[inline]
    pub fn anno_u32(&self, offset: u8) -> u32 {
        u32::from_ne_bytes(self.anno_bytes(offset))
    }

    /// Sets the annotation word at `offset`, in host order.
    #[inline]
    pub fn set_anno_u32(&mut self, offset: u8, value: u32) {
        self.set_anno_bytes(offset, value.to_ne_bytes());
    }

    /// Sets all annotations to zero.
    pub fn clear_annos(&mut self) {
        self.mm().anno = [0; NEAR_ANNO_BYTES];
        if self.far().is_some() {
            self.far_mut().anno = Far::EMPTY.anno;
        }
    }

    /// Destination address for lookups (Click's DST_IP annotation) in network order, as its four bytes.
    #[inline]
    pub fn dst_ip(&self) -> [u8; 4] {
        self.anno_bytes(Anno::DST_IP.offset)
    }

    /// Sets the destination address for lookups.
    #[inline]
    pub fn set_dst_ip(&mut self, address: [u8; 4]) {
        self.set_anno_bytes(Anno::DST_IP.offset, address);
    }

    /// IPv6 destination address for lookups (Click's DST_IP6 annotation).
    #[inline]
    pub fn dst_ip6(&self) -> [u8; 16] {
        self.anno_bytes(Anno::DST_IP6.offset)
    }

    /// Sets the IPv6 destination address for lookups.
    #[inline]
    pub fn set_dst_ip6(&mut self, address: [u8; 16]) {
        self.set_anno_bytes(Anno::DST_IP6.offset, address);
    }

    /// Paint annotation.
    #[inline]
    pub fn paint(&self) -> u8 {
        self.anno_u8(Anno::PAINT.offset)
    }

    /// Sets the paint annotation.
    #[inline]
    pub fn set_paint(&mut self, paint: u8) {
        self.set_anno_u8(Anno::PAINT.offset, paint);
    }

    /// How the packet was addressed at the link layer.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        self.m().packet_type
    }

    /// Sets how the packet was addressed at the link layer.
    #[inline]
    pub fn set_packet_type(&mut self, packet_type: PacketType) {
        self.mm().packet_type = packet_type;
    }

    /// Adjacency index found by a lookup; 0 = none.
    #[inline]
    pub fn adjacency(&self) -> u32 {
        self.m().adjacency
    }

    /// Sets the adjacency index.
    #[inline]
    pub fn set_adjacency(&mut self, index: u32) {
        self.mm().adjacency = index;
    }

    /// Hash of the flow; 0 = not computed.
    #[inline]
    pub fn flow_hash(&self) -> u32 {
        self.m().flow_hash
    }

    /// Sets the hash of the flow.
    #[inline]
    pub fn set_flow_hash(&mut self, hash: u32) {
        self.mm().flow_hash = hash;
    }

    /// Number of the port that received the packet.
    #[inline]
    pub fn rx_port(&self) -> u16 {
        self.m().rx_port
    }

    /// Sets the number of the receiving port.
    #[inline]
    pub fn set_rx_port(&mut self, port: u16) {
        self.mm().rx_port = port;
    }

    /// Number that a trace gave the packet; 0 = nobody follows it. Copies have it too.
    #[inline]
    pub fn trace(&self) -> u16 {
        self.m().trace
    }

    /// Gives the packet the number under which it is followed.
    #[inline]
    pub fn set_trace(&mut self, number: u16) {
        self.mm().trace = number;
    }

    /// Timestamp in nanoseconds since the epoch; 0 = not set.
    pub fn timestamp_ns(&self) -> u64 {
        self.far().map_or(0, |far| far.timestamp_ns)
    }

    /// Sets the timestamp.
    pub fn set_timestamp_ns(&mut self, ns: u64) {
        self.far_mut().timestamp_ns = ns;
    }

    /// Number under which the port that transmits the packet is to tell when it has.
    #[inline]
    pub fn transmit_tag(&self) -> Option<u64> {
        self.far().and_then(|far| far.tagged.then_some(far.transmit_tag))
    }

    /// Asks the port that will transmit the packet to tell of it under the number `tag`.
    pub fn set_transmit_tag(&mut self, tag: u64) {
        let far = self.far_mut();
        (far.tagged, far.transmit_tag) = (true, tag);
    }

    /// Bytes that the packet had on the wire, more than `len` when a capture cut it short.
    pub fn wire_len(&self) -> usize {
        self.far().map_or(0, |far| far.wire_len as usize).max(self.len())
    }

    /// Sets the length on the wire.
    pub fn set_wire_len(&mut self, len: usize) {
        self.far_mut().wire_len = len.min(u32::MAX as usize) as u32;
    }

    /// Copies annotations, timestamp and link-layer type from another packet, as a derived packet keeps them.
    pub fn copy_annos(&mut self, from: &Packet) {
        let (to, near) = (self.mm(), from.m());
        to.anno = near.anno;
        to.packet_type = near.packet_type;
        to.rx_port = near.rx_port;
        to.flow_hash = near.flow_hash;
        if to.has_far || near.has_far {
            let (to, far) = (self.far_mut(), from.far().unwrap_or(&Far::EMPTY));
            (to.anno, to.timestamp_ns) = (far.anno, far.timestamp_ns);
        }
    }
}
