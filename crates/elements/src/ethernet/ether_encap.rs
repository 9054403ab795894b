//! EtherEncap.

use super::header_cache::words;
use causeway_engine::ir::{At, Field, Value};
use causeway_engine::prelude::*;
use causeway_engine::value::Ether;
use causeway_packet::wire::ethernet::HEADER_LEN;
use causeway_packet::wire::{EthernetHeader, MacAddr};

pub(crate) static SPEC: Spec = Spec {
    name: "EtherEncap",
    category: "ethernet",
    summary: "puts a fixed Ethernet header in front of packets",
    doc: "Prepends an Ethernet header with type ETHERTYPE from SRC to DST, and marks it as the link-layer header.",
    args: EtherEncap::ARGS,
    handlers: handlers!(EtherEncap::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;",
    see: &["ARPQuerier", "Strip"],
    build: configured::<EtherEncap>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeadroom = "no-headroom", "the packet's frame had no room for a header";
    }
}

settings! {
    struct EtherEncap {
        ether_type: u16 = required("ETHERTYPE", "number from 0 to 65535", "the type, such as 0x0800"),
            live("ethertype", "the type"), live("etht", "the same as `ethertype`");
        src: Ether = required("SRC", "Ethernet address", "the source"), live("src", "the source address");
        dst: Ether = required("DST", "Ethernet address", "the destination"), live("dst", "the destination address");
    }
}

/// Puts an Ethernet header in front, given as the first eight bytes of its addresses, the four behind them, and its type. That is
/// written by itself: who has several packets in one needs to know it.
pub(super) fn lower_encap(b: &mut Builder, [front, back]: [impl Into<Value>; 2], ether_type: u16) {
    b.push(HEADER_LEN as u32);
    b.store(At::data(0), 8, front);
    b.store(At::data(8), 4, back);
    b.store(At::data(12), 2, u64::from(ether_type));
    b.put(Field::Mac, 0);
}

impl Element for EtherEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Ok(Some(header)) = packet.push(HEADER_LEN).map(|data| data.first_chunk_mut()) else {
            return Verdict::drop(Reason::NoHeadroom);
        };
        let EtherEncap { ether_type, src, dst } = self;
        EthernetHeader { dst: MacAddr(dst.0), src: MacAddr(src.0), ether_type: *ether_type }.emit(header);
        packet.set_mac_header(0);
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let mut header = [0; HEADER_LEN];
        let (dst, src) = (MacAddr(self.dst.0), MacAddr(self.src.0));
        EthernetHeader { dst, src, ether_type: self.ether_type }.emit(&mut header);
        let [front, back, _] = words(&header);
        lower_encap(&mut b, [front, back], self.ether_type);
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn the_header_is_what_the_configuration_says_if_there_is_room() {
        let (config, mut p) = ("0x86dd, 1:2:3:4:5:6, 7:8:9:a:b:c", packet(b"xy"));
        p.set_network_header(0);
        let out = verdict(&SPEC, config, p).unwrap();
        assert_eq!(out.data(), [7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 0x86, 0xdd, b'x', b'y']);
        assert_eq!((out.mac_distance(), out.network_offset()), (Some(0), Some(14)));
        let mut full = Packet::with_headroom(0).unwrap();
        full.put(full.tailroom() - (HEADER_LEN - 1)).unwrap();
        assert_eq!(verdict(&SPEC, config, full).err(), Some("no-headroom"));
    }
}
