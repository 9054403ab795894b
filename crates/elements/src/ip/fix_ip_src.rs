//! FixIPSrc.

use causeway_engine::ir::Test;
use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv4;

pub(crate) static SPEC: Spec = Spec {
    name: "FixIPSrc",
    category: "ip",
    summary: "sets the source address of packets that ask for it",
    doc: "Puts IPADDR into the source field of IP packets whose fix-source annotation is set, updates their checksum \
          and clears the annotation; other packets pass unchanged. ICMPError sets the annotation: an ICMP error's \
          source is the address of the interface it leaves by (RFC 1812 §4.3.2.4), which is known only after the \
          lookup.",
    args: FixIPSrc::ARGS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) \
              -> ICMPError(2.0.0.1, timeexceeded) -> FixIPSrc(3.0.0.1) -> Discard;",
    see: &["ICMPError"],
    build: configured::<FixIPSrc>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct FixIPSrc {
        address: Ipv4Addr = required("IPADDR", "IP address", "address of the outgoing interface");
    }
}

/// Writes `address` into the source field if the annotation asks for it, and clears the annotation.
#[inline]
pub(crate) fn fix_source(packet: &mut Packet, address: Ipv4Addr) {
    if packet.anno_u8(Anno::FIX_IP_SRC.offset) == 0 {
        return;
    }
    packet.set_anno_u8(Anno::FIX_IP_SRC.offset, 0);
    if let Some(Ok(mut ip)) = packet.network_header_mut().map(Ipv4::new_quoted) {
        ip.rewrite_src(address);
    }
}

impl Element for FixIPSrc {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        fix_source(packet, self.address);
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let asks = b.get(Anno::FIX_IP_SRC.into());
        b.require(Test::Equal(asks.into(), 0.into()));
        b.leave(0);
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::verdict;

    #[test]
    fn only_packets_that_ask_are_changed() {
        let bytes = corpus::datagram(&[], b"x", 9, 0);
        for (asks, bytes) in [(1, &bytes[..]), (0, &bytes), (1, &[])] {
            let mut p = corpus::marked(bytes, 0);
            p.set_anno_u8(Anno::FIX_IP_SRC.offset, asks);
            let out = verdict(&SPEC, "1.2.3.4", p).unwrap();
            let fixed = Ipv4::new_checked(out.data())
                .is_ok_and(|ip| ip.checksum_ok() && ip.src().octets() == [1, 2, 3, 4]);
            assert_eq!(
                (fixed, out.data() == bytes),
                (asks == 1 && !bytes.is_empty(), asks == 0 || bytes.is_empty())
            );
            assert_eq!(out.anno_u8(Anno::FIX_IP_SRC.offset), 0);
        }
    }
}
