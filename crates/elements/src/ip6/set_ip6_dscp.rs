//! SetIP6DSCP.

use crate::ip::set_ip_dscp::Dscp;
use causeway_engine::ir::{Alu, At, Test};
use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv6;
use causeway_packet::wire::ipv6::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIP6DSCP",
    category: "ip6",
    summary: "sets the differentiated services code point of IPv6 packets",
    doc: "Writes DSCP (RFC 2474), the upper six bits of the traffic class, into the marked IPv6 header. Packets without a \
          whole header are dropped.",
    args: SetIP6DSCP::ARGS,
    handlers: handlers!(SetIP6DSCP::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIP6Encap(2001:db8::1, 53, 2001:db8::2, 53) -> SetIP6DSCP(46) -> Discard;",
    see: &["SetIPDSCP", "MarkIP6Header"],
    build: |conf| Ok(Box::new(SetIP6DSCP { dscp: Dscp::configured(conf)? })),
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct SetIP6DSCP {
        dscp: Dscp = required("DSCP", "0 to 63", "the code point"), live("dscp", "the code point");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no whole IPv6 header is marked";
    }
}

impl Element for SetIP6DSCP {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let header = packet.network_header_mut().map(Ipv6::new_quoted);
        let Some(Ok(mut ip)) = header else { return Verdict::drop(Reason::NoHeader) };
        ip.set_traffic_class(ip.traffic_class() & 3 | self.dscp.0 << 2);
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.require(Test::Has(At::network(0), HEADER_LEN as u32));
        let first = b.load(At::network(0), 2);
        let version = b.compute(Alu::Shr, first, 12);
        b.require(Test::Equal(version.into(), 6.into()));
        // Version, six bits of DSCP, two of ECN, and four of the flow label.
        let kept = b.compute(Alu::And, first, 0xf03f);
        let word = b.compute(Alu::Or, kept, u64::from(self.dscp.0) << 6);
        b.store(At::network(0), 2, word);
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
    use causeway_engine::harness::{Harness, verdict};
    use causeway_engine::ir::Outcome;

    #[test]
    fn the_code_point_is_set_and_the_rest_stays() {
        let mut good = bytes(9, b"payload");
        (good[0], good[1]) = (0x6a, 0xbc);
        let out = verdict(&SPEC, "46", marked(&good, 0)).unwrap();
        assert_eq!(out.data()[..2], [0x6b, 0xbc]);
        assert_eq!(verdict(&SPEC, "1", marked(&good, 0)).unwrap().data()[..2], [0x60, 0x7c]);
        assert_eq!(verdict(&SPEC, "46", marked(&good[..39], 0)).err(), Some("no-header"));
        let mut h = Harness::new(&SPEC, "46", 1, 1).unwrap();
        let (mut program, mut lowered) = (h.lower().expect("a program"), marked(&good, 0));
        assert_eq!((program.run(&mut lowered, 0), lowered.data()), (Outcome::Leave(0), out.data()));
        h.write("dscp", "8").unwrap();
        assert_eq!(h.read("dscp").unwrap(), "8");
        assert_eq!(Harness::new(&SPEC, "64", 1, 1).err().unwrap(), ["diffserv code point out of range"]);
    }
}
