//! SetIPChecksum.

use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv4;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIPChecksum",
    category: "ip",
    summary: "sets the checksum of IP headers",
    doc: "Computes the header checksum of each IP packet and stores it. Where no header is marked the packet must begin \
          with it. A packet without whole IPv4 header is dropped.",
    handlers: &[reads("drops", "packets dropped").counts(Unit::Packets)],
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

    fn read(&mut self, _handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(cx.dropped().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn the_whole_header_is_summed_marked_or_at_the_start() {
        for (marked, first, len, whole) in [
            (true, 0x45, 20, true),
            (false, 0x46, 24, true),
            (true, 0x46, 23, false),
            (false, 0x65, 40, false),
            (true, 0x44, 40, false),
        ] {
            let mut p = packet(&[&[first][..], &vec![7; len - 1]].concat());
            if marked {
                p.set_network_header(0);
            }
            let out = verdict(&SPEC, "", p);
            assert_eq!(
                out.is_ok_and(|p| Ipv4::new_quoted(p.data()).unwrap().checksum_ok()),
                whole,
                "{first:x}"
            );
        }
    }
}
