//! ARPFaker.

use causeway_engine::prelude::*;
use causeway_engine::value::Ether;
use causeway_packet::wire::ethernet::{self, ether_type};
use causeway_packet::wire::{ArpPacket, EthernetHeader, MacAddr, arp};

pub(crate) static SPEC: Spec = Spec {
    name: "ARPFaker",
    category: "ethernet",
    summary: "sends an ARP reply that nobody asked for, every ten seconds",
    ports: "0/1",
    processing: "h/h",
    doc: "A second after the start and every 10 s from then on, tells DSTIP, whose Ethernet address is DSTETH, that SRCIP has \
          the Ethernet address SRCETH: an ARP reply (RFC 826) in an Ethernet frame from SRCETH to DSTETH. ARPResponder \
          answers those who ask, and is what one usually wants.",
    args: ARPFaker::ARGS,
    example: "ARPFaker(1.0.0.2, 2:0:0:0:0:2, 1.0.0.1, 2:0:0:0:0:1) -> Discard;",
    see: &["ARPQuerier", "ARPResponder"],
    copies: Copies::One,
    build: configured::<ARPFaker>,
    ..Spec::DEFAULT
};

settings! {
    struct ARPFaker {
        dst_ip: Ipv4Addr = required("DSTIP", "IP address", "whom to tell");
        dst_ether: Ether = required("DSTETH", "Ethernet address", "of the one to tell");
        src_ip: Ipv4Addr = required("SRCIP", "IP address", "of whom to tell");
        src_ether: Ether = required("SRCETH", "Ethernet address", "what to tell");
    }
}

const FIRST_NS: u64 = 1_000_000_000;
const INTERVAL_NS: u64 = 10_000_000_000;
const NEXT: u32 = 0;

impl ARPFaker {
    fn reply(&self) -> Option<Packet> {
        let (src, dst) = (MacAddr(self.src_ether.0), MacAddr(self.dst_ether.0));
        let mut packet = Packet::new()?;
        let (header, body) =
            packet.put(ethernet::HEADER_LEN + arp::PACKET_LEN).ok()?.split_first_chunk_mut()?;
        EthernetHeader { dst, src, ether_type: ether_type::ARP }.emit(header);
        ArpPacket {
            operation: arp::REPLY,
            sender_mac: src,
            sender_ip: self.src_ip,
            target_mac: dst,
            target_ip: self.dst_ip,
        }
        .emit(body.first_chunk_mut()?);
        packet.set_mac_header(0);
        packet.set_network_header(ethernet::HEADER_LEN);
        Some(packet)
    }
}

impl Element for ARPFaker {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let when_ns = cx.now_ns() + FIRST_NS;
        cx.set_timer(NEXT, when_ns);
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        // Without a frame to be had this one is left out.
        if let Some(packet) = self.reply() {
            cx.emit(0, packet);
        }
        let when_ns = cx.now_ns() + INTERVAL_NS;
        cx.set_timer(NEXT, when_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::Arp;

    #[test]
    fn replies_come_again_and_again() {
        let mut h = Harness::new(&SPEC, "1.0.0.2, 2:0:0:0:0:2, 1.0.0.1, 2:0:0:0:0:1", 0, 1).unwrap();
        h.advance(900_000_000);
        assert_eq!(h.take(0).len(), 0);
        h.advance(200_000_000);
        let out = h.take(0);
        assert_eq!(out[0].data()[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6]);
        let reply = Arp::new_checked(out[0].network_header().unwrap()).unwrap();
        assert_eq!((reply.operation(), out[0].len()), (arp::REPLY, 42));
        assert_eq!(
            (reply.sender_ip(), reply.sender_mac()),
            ([1, 0, 0, 1].into(), MacAddr([2, 0, 0, 0, 0, 1]))
        );
        assert_eq!(
            (reply.target_ip(), reply.target_mac()),
            ([1, 0, 0, 2].into(), MacAddr([2, 0, 0, 0, 0, 2]))
        );
        h.advance(20_000_000_000);
        assert_eq!(h.take(0).len(), 2);
        assert!(Harness::new(&SPEC, "1.0.0.2, 2:0:0:0:0:2, 1.0.0.1", 0, 1).is_err());
    }
}
