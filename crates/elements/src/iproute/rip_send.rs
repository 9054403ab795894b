//! RIPSend.

use causeway_engine::prelude::*;
use causeway_engine::value::Prefix4;
use causeway_packet::checksum::pseudo_header_v4;
use causeway_packet::wire::{Ipv4Header, ipv4, protocol, udp};

pub(crate) static SPEC: Spec = Spec {
    name: "RIPSend",
    category: "iproute",
    summary: "announces a route by RIP every 30 seconds",
    ports: "0/1",
    processing: "h/h",
    doc: "Pushes an IPv4 packet with a RIP response (RFC 2453 §4) from SRC to DST that announces the route to PREFIX by SRC with METRIC: \
          the first after 3 seconds, and then one every 30. It is no routing daemon: it learns nothing, and announces that \
          route alone.",
    args: RIPSend::ARGS,
    drops: Reason::DOCS,
    example: "RIPSend(18.26.4.24, 18.26.4.255, 10.0.0.0/8, 10) -> EtherEncap(0x0800, 2:0:0:0:0:1, ff:ff:ff:ff:ff:ff) \
              -> Queue -> ToDevice(eth0);",
    see: &["IPLookup"],
    copies: Copies::One,
    build: configured::<RIPSend>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoFrame = "no-frame", "no frame was free for the packet";
    }
}

settings! {
    struct RIPSend {
        src: Ipv4Addr = required("SRC", "IPv4 address", "the packets' source, and the route's next hop");
        dst: Ipv4Addr = required("DST", "IPv4 address", "the packets' destination");
        prefix: Prefix4 = required("PREFIX", "IPv4 prefix", "where the route leads");
        metric: i32 = required("METRIC", "hops", "how far that is; 16 = it cannot be reached");
    }
}

/// The only timer, and when it runs out first and then.
const NEXT: u32 = 0;
const FIRST_NS: u64 = 3_000_000_000;
const INTERVAL_NS: u64 = 30_000_000_000;
/// Port of RIP (RFC 2453 §3.1).
const PORT: u16 = 520;
const TTL: u8 = 200;
/// Command 2 is a response, version 2; the entry's address family 2 is IP.
const RESPONSE: [u8; 8] = [2, 2, 0, 0, 0, 2, 0, 0];
const HEADERS_LEN: usize = ipv4::HEADER_LEN + udp::HEADER_LEN;
const LEN: usize = HEADERS_LEN + 24;

impl RIPSend {
    fn packet(&self) -> Option<Packet> {
        let mut packet = Packet::new()?;
        let (ip, udp) = packet.put(LEN).ok()?.split_first_chunk_mut::<{ ipv4::HEADER_LEN }>()?;
        let udp_len = udp.len() as u16;
        let address = u32::from(self.prefix.address);
        let mask = self.prefix.mask();
        let entry = [address, mask, self.src.into(), self.metric as u32];
        udp.fill(0);
        udp[..2].copy_from_slice(&PORT.to_be_bytes());
        udp[2..4].copy_from_slice(&PORT.to_be_bytes());
        udp[4..6].copy_from_slice(&udp_len.to_be_bytes());
        udp[8..16].copy_from_slice(&RESPONSE);
        for (to, word) in udp[16..].chunks_exact_mut(4).zip(entry) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        let sum = pseudo_header_v4(self.src, self.dst, protocol::UDP, udp_len).bytes(udp).finish();
        udp[6..8].copy_from_slice(&if sum == 0 { u16::MAX } else { sum }.to_be_bytes());
        Ipv4Header {
            tos: 0,
            total_len: LEN as u16,
            identification: 0,
            flags_fragment: 0,
            ttl: TTL,
            protocol: protocol::UDP,
            src: self.src,
            dst: self.dst,
        }
        .emit(ip);
        packet.set_network_headers(0, ipv4::HEADER_LEN);
        Some(packet)
    }
}

impl Element for RIPSend {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let first_ns = cx.now_ns() + FIRST_NS;
        cx.set_timer(NEXT, first_ns);
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        match RIPSend::packet(self) {
            Some(packet) => cx.emit(0, packet),
            None => cx.count_drops(Reason::NoFrame, 1),
        }
        let next_ns = cx.now_ns() + INTERVAL_NS;
        cx.set_timer(NEXT, next_ns);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::{Ipv4, Udp};

    #[test]
    fn a_route_is_announced_again_and_again() {
        let mut h = Harness::new(&SPEC, "18.26.4.24, 18.26.4.255, 10.0.0.0/8, 10", 0, 1).unwrap();
        let came = [2_900, 200, 29_800, 300, 60_000].map(|ms| {
            h.advance(ms * 1_000_000);
            h.take(0)
        });
        assert_eq!(came.each_ref().map(Vec::len), [0, 1, 0, 1, 2]);
        assert_eq!((came[1][0].network_offset(), came[1][0].transport_offset()), (Some(0), Some(20)));
        let ip = Ipv4::new_checked(came[1][0].data()).unwrap();
        assert!(ip.checksum_ok() && ip.dst() == Ipv4Addr::new(18, 26, 4, 255) && ip.ttl() == 200);
        let udp = Udp::new_checked(ip.payload()).unwrap();
        assert!(
            udp.checksum_ok(ip.pseudo_header(udp.length())) && (udp.src_port(), udp.dst_port()) == (520, 520)
        );
        assert_eq!(
            udp.payload(),
            [2, 2, 0, 0, 0, 2, 0, 0, 10, 0, 0, 0, 255, 0, 0, 0, 18, 26, 4, 24, 0, 0, 0, 10]
        );
    }
}
