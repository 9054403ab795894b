//! UDPIP6Encap.

use super::udp_ip_encap::Port;
use crate::ip6::ip6_encap::Destination6;
use causeway_engine::prelude::*;
use causeway_packet::checksum::pseudo_header_v6;
use causeway_packet::wire::{Ipv6Header, Udp, UdpHeader, ipv6, protocol, udp};

pub(crate) static SPEC: Spec = Spec {
    name: "UDPIP6Encap",
    category: "udp",
    summary: "puts UDP and IPv6 headers in front of packets",
    doc: "Prepends a UDP header from SPORT to DPORT, with its checksum, and an IPv6 header from SRC to DST with hop limit \
          255. Marks both headers and sets the IPv6 destination annotation to DST. With `DST_ANNO` for DST the annotation \
          says where the packet goes. Ports may be given by service name.",
    args: UDPIP6Encap::ARGS,
    handlers: handlers!(UDPIP6Encap::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIP6Encap(2001:db8::1, 1234, 2001:db8::2, domain) -> Discard;",
    see: &["UDPIPEncap", "IP6Encap", "EtherEncap"],
    build: configured::<UDPIP6Encap>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeadroom = "no-headroom", "the packet's frame had no room for the headers";
        TooLong = "too-long", "the packet would be longer than UDP allows";
    }
}

const HOP_LIMIT: u8 = 255;

settings! {
    struct UDPIP6Encap {
        src: Ipv6Addr = required("SRC", "IPv6 address", "the source"), live("src", "the source address");
        sport: Port = required("SPORT", "UDP port", "the source port"), live("sport", "the source port");
        dst: Destination6 = required("DST", "IPv6 address or DST_ANNO", "the destination"),
            live("dst", "the destination address, or DST_ANNO");
        dport: Port = required("DPORT", "UDP port", "the destination port"), live("dport", "the destination port");
    }
}

impl UDPIP6Encap {
    fn encapsulate(&self, packet: &mut Packet) -> Result<(), Reason> {
        let dst = self.dst.0.unwrap_or_else(|| packet.dst_ip6().into());
        let data = packet.push(ipv6::HEADER_LEN + udp::HEADER_LEN).map_err(|_| Reason::NoHeadroom)?;
        let (ip, rest) = data.split_first_chunk_mut().ok_or(Reason::NoHeadroom)?;
        let length = u16::try_from(rest.len()).map_err(|_| Reason::TooLong)?;
        Ipv6Header {
            traffic_class: 0,
            flow_label: 0,
            payload_len: length,
            next_header: protocol::UDP,
            hop_limit: HOP_LIMIT,
            src: self.src,
            dst,
        }
        .emit(ip);
        let (src_port, dst_port) = (self.sport.0, self.dport.0);
        UdpHeader { src_port, dst_port, length }.emit(rest.first_chunk_mut().ok_or(Reason::NoHeadroom)?);
        if let Ok(mut udp) = Udp::new_checked(rest) {
            udp.fill_checksum(pseudo_header_v6(self.src, dst, protocol::UDP, length.into()));
        }
        packet.set_dst_ip6(dst.octets());
        packet.set_network_headers(0, ipv6::HEADER_LEN);
        Ok(())
    }
}

impl Element for UDPIP6Encap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        self.encapsulate(packet).into()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_packet::wire::Ipv6;

    fn check(p: &Packet, dst: &str, sport: u16) {
        let ip = Ipv6::new_checked(p.data()).unwrap();
        assert_eq!((ip.src().to_string(), ip.dst().to_string()), ("2001:db8::1".into(), dst.into()));
        assert_eq!((ip.hop_limit(), ip.next_header(), ip.payload_len()), (255, 17, 11));
        let udp = Udp::new_checked(ip.payload()).unwrap();
        assert_eq!((udp.src_port(), udp.dst_port(), udp.payload()), (sport, 53, &b"abc"[..]));
        assert!(udp.checksum() != 0 && udp.checksum_ok(ip.pseudo_header(17, 11)));
        assert_eq!((p.dst_ip6(), p.transport_offset()), (ip.dst().octets(), Some(40)));
    }

    #[test]
    fn headers_are_whole() {
        let mut h = Harness::new(&SPEC, "2001:db8::1, 7, 2001:db8::2, domain", 1, 1).unwrap();
        h.push(0, packet(b"abc"));
        check(&h.take(0)[0], "2001:db8::2", 7);
        h.write("dst", "DST_ANNO").unwrap();
        h.write("sport", "9").unwrap();
        let mut p = packet(b"abc");
        p.set_dst_ip6("2001:db8::5".parse::<Ipv6Addr>().unwrap().octets());
        h.push(0, p);
        check(&h.take(0)[0], "2001:db8::5", 9);
    }

    #[test]
    fn arguments_are_checked() {
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors("::1, 7, ::2"), ["DPORT: required argument missing"]);
        assert_eq!(
            errors("1.0.0.1, x, ::2, 70000"),
            ["SRC: parse error", "SPORT: parse error", "DPORT: overflow, range 0-65535"]
        );
    }
}
