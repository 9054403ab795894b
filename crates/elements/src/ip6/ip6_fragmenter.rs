//! IP6Fragmenter.

use causeway_engine::ir::{Alu, At, Field, Test};
use causeway_engine::prelude::*;
use causeway_packet::wire::ipv6::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "IP6Fragmenter",
    category: "ip6",
    summary: "sorts out IPv6 packets that are too long",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Passes packets of at most MTU bytes. Longer ones go to output 1, where an ICMP6Error may answer them with \
          type 2, packet too big, or are dropped if that is not connected. They are never cut, because only \
          the source of an IPv6 packet may do that (RFC 8200 §4.5). The IPv6 header must be marked; what is in front of \
          it does not count.",
    args: IP6Fragmenter::ARGS,
    handlers: IP6Fragmenter::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LENGTH 1000, LIMIT 5) -> UDPIP6Encap(2001:db8::1, 53, 2001:db8::2, 53) \
              -> IP6Fragmenter(1280) -> Discard;",
    see: &["ICMP6Error", "IPFragmenter", "CheckLength"],
    build: configured::<IP6Fragmenter>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        TooBig = "too-big", "the packet is too long, and output 1 is not connected";
        NoHeader = "no-header", "no whole IPv6 header is marked";
    }
}

settings! {
    struct IP6Fragmenter {
        mtu: u32 = required("MTU", "bytes", "longest IPv6 packet that passes");
    }
    counts {
        drops: u64 = reads("drops", "packets that were too long").counts(Unit::Packets);
        _fragments: u64 = reads("fragments", "fragments that were made: none").counts(Unit::Packets);
    }
}

impl Element for IP6Fragmenter {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Some(bytes) = packet.network_header().filter(|h| h.len() >= HEADER_LEN) else {
            return Verdict::drop(Reason::NoHeader);
        };
        if bytes.len() <= self.mtu as usize {
            return Verdict::Pass;
        }
        self.drops += 1;
        Verdict::divert(1, Reason::TooBig)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.require(Test::Has(At::network(0), HEADER_LEN as u32));
        let (length, front) = (b.get(Field::Length), b.get(Field::Network));
        let packet = b.compute(Alu::Sub, length, front);
        b.forbid(Test::Above(packet.into(), u64::from(self.mtu).into()));
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
    use crate::ip::corpus::marked;
    use causeway_engine::harness::Harness;
    use causeway_engine::ir::Outcome;

    #[test]
    fn long_packets_are_diverted_or_dropped() {
        for outputs in [1, 2] {
            let mut h = Harness::new(&SPEC, "60", 1, outputs).unwrap();
            for (payload, front, cut) in [(20, 0, 60), (20, 14, 74), (21, 0, 61), (0, 0, 39)] {
                let all = [vec![0; front], bytes(9, &vec![1; payload])].concat();
                h.push(0, marked(&all[..cut], front));
            }
            assert_eq!((h.take(0).len(), h.take(1).len()), (2, outputs - 1));
            let mut program = h.lower().expect("a program");
            let mut said = |payload: usize| program.run(&mut marked(&bytes(9, &vec![1; payload]), 0), 0);
            assert_eq!((said(20), said(21)), (Outcome::Leave(0), Outcome::GiveUp));
            assert_eq!((h.read("drops").unwrap(), h.read("fragments").unwrap()), ("1".into(), "0".into()));
            h.assert_balanced();
        }
    }
}
