//! SetUDPChecksum.

use causeway_engine::prelude::*;
use causeway_packet::wire::{Ipv4, Udp, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "SetUDPChecksum",
    category: "udp",
    summary: "sets the checksum of UDP packets",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Computes the UDP checksum of each packet, whose IP header must be marked, and stores it. Fragments, which \
          do not hold all that the checksum covers, packets cut short and packets that are not UDP go to output 1 \
          if that is connected, and are dropped otherwise.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53, false) -> SetUDPChecksum -> Discard;",
    see: &["UDPIPEncap", "SetIPChecksum"],
    build: configured::<SetUDPChecksum>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NotWholeUdp = "not-whole-udp", "not a whole UDP datagram in IPv4";
    }
}

settings! {
    struct SetUDPChecksum {}
}

/// Sets the checksum, if that can be done.
fn set(packet: &mut Packet) -> Option<()> {
    let mut ip = Ipv4::new_checked(packet.network_header_mut()?).ok()?;
    if ip.protocol() != protocol::UDP || ip.is_fragment() {
        return None;
    }
    let length = Udp::new_checked(ip.payload()).ok()?.length();
    let pseudo_header = ip.pseudo_header(length);
    Udp::new_checked(ip.payload_mut()).ok()?.fill_checksum(pseudo_header);
    Some(())
}

impl Element for SetUDPChecksum {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        set(packet).or_divert(1, Reason::NotWholeUdp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::{Ipv4Header, UdpHeader, udp};
    use proptest::prelude::*;

    fn datagram(flags_fragment: u16) -> Vec<u8> {
        let mut bytes = vec![9; 61];
        let ip = Ipv4Header {
            tos: 0,
            total_len: 0,
            identification: 1,
            flags_fragment,
            ttl: 1,
            protocol: 0,
            src: [10, 0, 0, 1].into(),
            dst: [10, 9, 0, 1].into(),
        };
        udp::encapsulate_v4(ip, UdpHeader { src_port: 1, dst_port: 2, length: 0 }, &mut bytes).unwrap();
        bytes
    }

    fn marked(bytes: &[u8]) -> Packet {
        let mut p = Packet::from_bytes(bytes).unwrap();
        p.set_network_header(0);
        p
    }

    #[test]
    fn whole_datagrams_are_summed() {
        let mut h = Harness::new(&SPEC, "", 1, 2).unwrap();
        let good = datagram(0x4000);
        let mut wrong = good.clone();
        wrong[26..28].copy_from_slice(&[1, 2]);
        let mut tcp = good.clone();
        tcp[9] = protocol::TCP;
        h.push_all(0, [marked(&wrong), marked(&datagram(0x2000)), marked(&tcp), marked(&good[..60])]);
        let out = h.take(0);
        assert_eq!((out.len(), out[0].data(), h.take(1).len()), (1, &good[..], 3));
        h.assert_balanced();
    }

    proptest! {
        #[test]
        fn any_bytes_pass_or_go(bytes in prop::collection::vec(any::<u8>(), 0..60), kept in 0usize..30) {
            let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
            let n = kept.min(bytes.len());
            h.push(0, marked(&[&datagram(0)[..n], &bytes[n..]].concat()));
            h.assert_balanced();
        }
    }
}
