//! SetIPChecksum.

use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv4;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIPChecksum",
    category: "ip",
    summary: "sets the checksum of IP headers",
    doc: "Computes the header checksum of each IP packet and stores it. Where no header is marked the packet must begin \
          with it. A packet without whole IPv4 header is dropped.",
    handlers: &[reads("drops", "packets dropped")],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> SetIPChecksum -> Discard;",
    see: &["CheckIPHeader", "SetUDPChecksum"],
    build: configured::<SetIPChecksum>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "the packet has no whole IPv4 header";
    }
}

settings! {
    struct SetIPChecksum {}
}

impl Element for SetIPChecksum {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let at = packet.network_offset().unwrap_or(0);
        let header = packet.data_mut().get_mut(at..).and_then(|bytes| Ipv4::new_quoted(bytes).ok());
        header.map(|mut ip| ip.fill_checksum()).or_drop(Reason::NoHeader)
    }

    fn read(&mut self, _handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(cx.dropped().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn the_whole_header_is_summed() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        for (first, len) in [(0x45, 20), (0x46, 24), (0x46, 23), (0x65, 40), (0x44, 40)] {
            let mut bytes = vec![7; len];
            bytes[0] = first;
            let mut p = Packet::from_bytes(&bytes).unwrap();
            p.set_network_header(0);
            h.push(0, p);
        }
        let out = h.take(0);
        assert!(out.iter().all(|p| Ipv4::new_quoted(p.data()).unwrap().checksum_ok()));
        assert_eq!((out.len(), h.drops()), (2, vec![("no-header", 3)]));
        assert_eq!(h.read("drops").unwrap(), "3");
        h.assert_balanced();
    }

    #[test]
    fn a_header_that_is_not_marked_is_at_the_start() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        let mut bytes = [7; 20];
        bytes[0] = 0x45;
        h.push(0, Packet::from_bytes(&bytes).unwrap());
        assert!(Ipv4::new_quoted(h.take(0)[0].data()).unwrap().checksum_ok());
    }
}
