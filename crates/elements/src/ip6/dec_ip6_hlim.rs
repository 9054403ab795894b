//! DecIP6HLIM.

use causeway_engine::prelude::*;
use causeway_packet::wire::ipv6::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "DecIP6HLIM",
    category: "ip6",
    summary: "decrements the IPv6 hop limit and drops packets that have come too far",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Decrements the hop limit of each packet. A packet whose hop limit is 1 or 0 goes to output 1 unchanged, where \
          an ICMPv6 error may answer it, or is dropped if that is not connected (RFC 8200 §3). The network header must \
          be marked.",
    handlers: DecIP6HLIM::HANDLERS,
    drops: Reason::DOCS,
    example: r"InfiniteSource(DATA \<60000000 0000 3b 40 20010db8000000000000000000000001
              20010db8000000000000000000000002>, LIMIT 5) -> CheckIP6Header -> DecIP6HLIM -> Discard;",
    see: &["CheckIP6Header", "DecIPTTL"],
    build: configured::<DecIP6HLIM>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Expired = "expired", "the hop limit was 1 or 0";
        NoHeader = "no-header", "no IPv6 header is marked";
    }
}

settings! {
    struct DecIP6HLIM {}
    counts {
        expired: u64 = reads("drops", "packets whose hop limit was over").counts(Unit::Packets);
    }
}

impl Element for DecIP6HLIM {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let header = packet.network_header_mut().and_then(|h| h.first_chunk_mut::<HEADER_LEN>());
        let Some([.., hop_limit]) = header.and_then(|h| h.first_chunk_mut::<8>()) else {
            return Verdict::drop(Reason::NoHeader);
        };
        if *hop_limit <= 1 {
            self.expired += 1;
            return Verdict::divert(1, Reason::Expired);
        }
        *hop_limit -= 1;
        Verdict::Pass
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_ip6_header::tests::packet;
    use super::*;
    use causeway_engine::harness::Harness;
    use proptest::prelude::*;

    fn marked(hops: u8) -> Packet {
        let mut p = Packet::from_bytes(&packet(hops, b"payload")).unwrap();
        p.set_network_header(0);
        p
    }

    #[test]
    fn expired_packets_are_diverted_unchanged_or_dropped() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "", 1, outputs).unwrap();
            h.push_all(0, [marked(1), marked(2), marked(0), Packet::from_bytes(b"no header").unwrap()]);
            assert_eq!(h.take(0).iter().map(|p| p.data()).collect::<Vec<_>>(), [packet(1, b"payload")]);
            let diverted: Vec<u8> = h.take(1).iter().map(|p| p.data()[7]).collect();
            assert_eq!(diverted, if outputs == 2 { vec![1, 0] } else { vec![] });
            assert_eq!(h.read("drops").unwrap(), "2");
            h.assert_balanced();
        }
    }

    proptest! {
        #[test]
        fn any_bytes_pass_or_are_counted(bytes in prop::collection::vec(any::<u8>(), 0..60), at in 0usize..30) {
            let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
            let mut p = Packet::from_bytes(&bytes).unwrap();
            p.set_network_header(at);
            h.push(0, p);
            h.assert_balanced();
            prop_assert_eq!(h.take(0).len() == 1, bytes.len() >= at + 40 && bytes[at + 7] > 1);
        }
    }
}
