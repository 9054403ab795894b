//! DecIP6HLIM.

use causeway_engine::ir::{Alu, At, Test};
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
    lowers: Lowers::Straight,
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

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.require(Test::Has(At::network(0), HEADER_LEN as u32));
        let limit = b.load(At::network(7), 1);
        b.require(Test::Above(limit.into(), 1.into()));
        let less = b.compute(Alu::Sub, limit, 1);
        b.store(At::network(7), 1, less);
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_ip6_header::tests::packet as bytes;
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_engine::ir::Outcome;

    #[test]
    fn what_it_says_it_does_it_does() {
        let mut program = DecIP6HLIM { expired: 0 }.lower().expect("a program");
        for (hops, outcome) in [(0, Outcome::GiveUp), (1, Outcome::GiveUp), (2, Outcome::Leave(0))] {
            let mut p = packet(&bytes(hops, b"payload"));
            assert_eq!(program.run(&mut p, 0), Outcome::GiveUp, "no header is marked");
            p.set_network_header(0);
            assert_eq!(program.run(&mut p, 0), outcome);
            assert_eq!(p.data()[7], if outcome == Outcome::GiveUp { hops } else { hops - 1 });
        }
    }

    #[test]
    fn expired_packets_are_diverted_unchanged_or_dropped() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "", 1, outputs).unwrap();
            for (hops, len) in [(1, 40), (2, 40), (0, 47), (9, 39)] {
                let mut p = packet(&bytes(hops, b"payload")[..len]);
                p.set_network_header(0);
                h.push(0, p);
            }
            let hops = |packets: Vec<Packet>| packets.iter().map(|p| p.data()[7]).collect::<Vec<_>>();
            assert_eq!((hops(h.take(0)), hops(h.take(1)).len()), (vec![1], 2 * (outputs - 1)));
            assert_eq!((h.read("drops").unwrap(), h.drops().len()), ("2".to_owned(), 3 - outputs));
            h.assert_balanced();
        }
    }
}
