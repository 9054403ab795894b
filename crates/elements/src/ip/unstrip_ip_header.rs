//! UnstripIPHeader.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "UnstripIPHeader",
    category: "ip",
    summary: "puts a stripped IP header back",
    doc: "Grows packets at their front to the marked network header, which StripIPHeader or Strip has taken off. Packets that \
          still have it pass unchanged. Packets without a mark are dropped.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> StripIPHeader -> UnstripIPHeader \
              -> CheckIPHeader -> Discard;",
    see: &["StripIPHeader", "StripToNetworkHeader", "CheckIPHeader", "MarkIPHeader"],
    build: configured::<UnstripIPHeader>,
    ..Spec::DEFAULT
};

settings! {
    struct UnstripIPHeader {}
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no network header is marked";
    }
}

impl Element for UnstripIPHeader {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Some(distance) = packet.network_distance() else { return Verdict::drop(Reason::NoHeader) };
        packet.push(distance.min(0).unsigned_abs() as usize).or_drop(Reason::NoHeader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn the_header_comes_back_and_no_more() {
        for (stripped, data) in
            [(0, &b"ehheaderpay"[..]), (2, b"headerpay"), (8, b"headerpay"), (11, b"headerpay")]
        {
            let mut p = packet(b"ehheaderpay");
            p.set_network_header(2);
            p.pull(stripped).unwrap();
            assert_eq!(verdict(&SPEC, "", p).unwrap().data(), data, "{stripped}");
        }
        assert_eq!(verdict(&SPEC, "", packet(b"abc")).err(), Some("no-header"));
    }
}
