//! StripToNetworkHeader.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "StripToNetworkHeader",
    category: "basic",
    summary: "lets packets begin with their network header",
    doc: "Strips packets of what is in front of the marked network header. Where the header has been stripped off it is put \
          back, and what was in front of it is not. Packets without a mark are dropped.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) \
              -> MarkIPHeader(14) -> StripToNetworkHeader -> CheckIPHeader -> Discard;",
    see: &["Strip", "StripIPHeader", "UnstripIPHeader"],
    build: configured::<StripToNetworkHeader>,
    ..Spec::DEFAULT
};

settings! {
    struct StripToNetworkHeader {}
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no network header is marked, or the packet ends before it";
    }
}

impl Element for StripToNetworkHeader {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let moved = match packet.network_distance() {
            None => None,
            Some(before @ ..0) => packet.push(before.unsigned_abs() as usize).ok().map(|_| ()),
            Some(behind) => packet.pull(behind as usize).ok(),
        };
        moved.or_drop(Reason::NoHeader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn packets_begin_with_the_header() {
        for stripped in [0, 2, 3, 8, 11] {
            let mut p = packet(b"ehheaderpay");
            p.set_network_header(2);
            p.pull(stripped).unwrap();
            assert_eq!(verdict(&SPEC, "", p).unwrap().data(), b"headerpay", "{stripped}");
        }
        assert_eq!(verdict(&SPEC, "", packet(b"abc")).err(), Some("no-header"));
        let mut cut = packet(b"ehheaderpay");
        cut.set_network_header(2);
        cut.truncate(1);
        assert_eq!(verdict(&SPEC, "", cut).err(), Some("no-header"));
    }
}
