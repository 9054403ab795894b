//! EraseIPPayload.

use causeway_engine::prelude::*;
use causeway_packet::wire::protocol;

pub(crate) static SPEC: Spec = Spec {
    name: "EraseIPPayload",
    category: "analysis",
    summary: "puts zeros in the place of payloads",
    doc: "What follows the TCP or UDP header becomes zeros, and their checksum 0. ICMP messages stay as they are; packets of other protocols, or without marked headers, are dropped.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 7, 1.0.0.2, 53) -> MarkIPHeader -> EraseIPPayload -> Discard;",
    see: &["AnonymizeIPAddr"],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(EraseIPPayload))
    },
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        OtherProtocol = "other-protocol", "it is not known where its payload is";
    }
}

struct EraseIPPayload;

impl Element for EraseIPPayload {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let number = packet.network_header().and_then(|ip| ip.get(9)).copied();
        let Some(transport) = packet.transport_header_mut() else {
            return Verdict::drop(Reason::OtherProtocol);
        };
        let (payload, sum) = match number {
            Some(protocol::TCP) => (transport.get(12).map_or(20, |offset| usize::from(offset >> 4) * 4), 16),
            Some(protocol::UDP) => (8, 6),
            Some(protocol::ICMP) => return Verdict::Pass,
            _ => return Verdict::drop(Reason::OtherProtocol),
        };
        transport.get_mut(payload..).unwrap_or_default().fill(0);
        transport.get_mut(sum..sum + 2).unwrap_or_default().fill(0);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus::{datagram, marked};
    use causeway_engine::harness::verdict;

    #[test]
    fn payloads_are_erased() {
        let of = |number: u8, transport: &[u8]| {
            let mut bytes = datagram(&[], transport, 64, 0);
            bytes[9] = number;
            verdict(&SPEC, "", marked(&bytes, 0)).map(|p| p.data()[20..].to_vec())
        };
        assert_eq!(of(17, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 9]), Ok(vec![1, 2, 3, 4, 5, 6, 0, 0, 0, 0]));
        let tcp: Vec<u8> = (0..24).map(|i| if i == 12 { 0x50 } else { 1 }).collect();
        let erased = of(6, &tcp).unwrap();
        assert_eq!((&erased[..16], &erased[16..]), (&tcp[..16], &[0, 0, 1, 1, 0, 0, 0, 0][..]));
        assert_eq!(of(1, &[1; 12]), Ok(vec![1; 12]));
        assert_eq!(of(47, &[1; 12]), Err("other-protocol"));
    }
}
