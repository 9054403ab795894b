//! What is done to a packet when all its fields are set: lengths, checksums, annotations.

use super::make::{Maker, TooLong};
use super::view::is_first;
use crate::nat::{get_u16, put_u16};
use causeway_packet::checksum::{Sum, pseudo_header_v4};
use causeway_packet::wire::protocol;
use causeway_packet::{Anno, Packet};

impl Maker {
    /// The packet, with lengths, and with checksums and all its bytes if `whole`.
    pub fn finish(mut self, whole: bool) -> Result<Packet, TooLong> {
        if self.flow.is_some() {
            self.make_ip(None)?;
        }
        if self.is_ip && self.has_ip() {
            self.make_transport()?;
            self.set_lengths();
            let network = self.network();
            let destination = self.packet.data()[network + 16..network + 20].first_chunk().copied();
            self.packet.set_dst_ip(destination.unwrap_or_default());
            if whole {
                let total_len = usize::from(get_u16(self.ip(), 2));
                self.put((network + total_len).saturating_sub(self.packet.len()))?;
                self.set_checksums();
            }
        }
        if self.wanted > self.packet.len() {
            let extra = self.wanted - self.packet.len();
            self.packet.set_anno_u32(Anno::EXTRA_LENGTH.offset, extra as u32);
        }
        Ok(self.packet)
    }

    fn set_lengths(&mut self) {
        let network = self.network();
        if get_u16(self.ip(), 2) == 0 {
            let wanted = if self.wanted >= network { self.wanted - network } else { self.wanted };
            let len = if wanted == 0 { self.packet.len() - network } else { wanted.min(0xffff) };
            put_u16(self.ip(), 2, len as u16);
        }
        let (total_len, header_len) = (get_u16(self.ip(), 2), self.transport() - network);
        let is_udp = self.ip()[9] == protocol::UDP && is_first(self.ip());
        if is_udp && self.segment_len() >= 6 && get_u16(self.segment(), 4) == 0 {
            put_u16(self.segment(), 4, total_len.wrapping_sub(header_len as u16));
        }
    }

    fn set_checksums(&mut self) {
        let (network, transport) = (self.network(), self.transport());
        let header_len = usize::from(self.ip()[0] & 15) * 4;
        let ip = self.ip();
        put_u16(ip, 10, 0);
        let sum = Sum::new().bytes(ip.get(..header_len).unwrap_or(ip)).finish();
        put_u16(ip, 10, sum);
        if get_u16(ip, 6) & 0x3fff != 0 {
            return;
        }
        let number = ip[9];
        let address =
            |at: usize| super::text::number(&self.packet.data()[network + at..network + at + 4]) as u32;
        let len = (self.packet.len() - transport) as u16;
        let pseudo = pseudo_header_v4(address(12).into(), address(16).into(), number, len);
        let (at, start) = match number {
            protocol::TCP => (16, pseudo),
            protocol::UDP => (6, pseudo),
            protocol::ICMP => (2, Sum::new()),
            _ => return,
        };
        let segment = self.segment();
        put_u16(segment, at, 0);
        let sum = start.bytes(segment).finish();
        put_u16(segment, at, sum);
    }
}
