//! StripIPHeader.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "StripIPHeader",
    category: "ip",
    summary: "strips the outermost IP header",
    doc: "Strips packets of all up to the marked transport header: of the IP header and of what is in front of it. The marks \
          stay, so an inner header must be marked anew. Packets without a mark are dropped.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> IPEncap(4, 1.0.0.1, 1.0.0.2) -> MarkIPHeader -> StripIPHeader -> Discard;",
    see: &["Strip", "MarkIPHeader", "CheckIPHeader", "IPEncap"],
    build: configured::<StripIPHeader>,
    ..Spec::DEFAULT
};

settings! {
    struct StripIPHeader {}
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no transport header is marked";
    }
}

impl Element for StripIPHeader {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let behind = packet.transport_offset();
        behind.and_then(|n| packet.pull(n).ok()).or_drop(Reason::NoHeader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn what_is_in_front_of_the_transport_header_goes() {
        let mut p = packet(b"etherheaderpayload");
        p.set_network_header(5);
        p.set_transport_header(11);
        assert_eq!(verdict(&SPEC, "", p).unwrap().data(), b"payload");
        assert_eq!(verdict(&SPEC, "", packet(b"abc")).err(), Some("no-header"));
    }
}
