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
          if that is connected, and are dropped otherwise. Click takes whatever the protocol is for UDP.",
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
    use crate::ip::corpus;
    use causeway_engine::harness::verdict;

    /// A datagram of UDP with `word` for its flags and fragment offset, and no checksum.
    fn datagram(word: u16) -> Vec<u8> {
        corpus::datagram(&[], &[0, 1, 0, 2, 0, 11, 7, 7, 9, 9, 9], 9, word)
    }

    #[test]
    fn whole_datagrams_are_summed() {
        let out = verdict(&SPEC, "", corpus::marked(&datagram(0x4000), 0)).unwrap();
        let ip = Ipv4::new_checked(out.data()).unwrap();
        let udp = Udp::new_checked(ip.payload()).unwrap();
        assert!(udp.checksum() != 0x0707 && udp.checksum_ok(ip.pseudo_header(udp.length())));
        let mut tcp = datagram(0);
        tcp[9] = protocol::TCP;
        for other in [&datagram(0x2000)[..], &tcp, &datagram(0)[..30], &[]] {
            assert_eq!(verdict(&SPEC, "", corpus::marked(other, 0)).err(), Some("not-whole-udp"));
        }
    }
}
