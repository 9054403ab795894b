//! IPOutputCombo.

use super::dec_ip_ttl;
use super::fix_ip_src::fix_source;
use super::ip_gw_options::{Fault, Recorder};
use crate::annotations::paint_tee::emit_copy;
use crate::ethernet::drop_broadcasts::to_many;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "IPOutputCombo",
    category: "ip",
    summary: "does the last steps of an IPv4 router before an interface in one",
    ports: "1/5",
    processing: "h/h",
    doc: "Does what `DropBroadcasts -> PaintTee(COLOR) -> IPGWOptions(IPADDR) -> FixIPSrc(IPADDR) -> DecIPTTL \
          -> CheckLength(MTU)` do, touching each packet once. Packets that may leave do so by output 0. The others are \
          those that an ICMPError has to see: output 1 has copies of packets whose paint is COLOR (`redirect`), 2 \
          packets with malformed options (`parameterproblem`), 3 those that have lived too long (`timeexceeded`), \
          and 4 those longer than MTU, which an IPFragmenter cuts or diverts to another ICMPError \
          (`unreachable, needfrag`). The network header must be marked.",
    args: IPOutputCombo::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> o :: IPOutputCombo(1, 1.0.0.2, 1500) \
              -> Discard; o[1] -> d :: Discard; o[2] -> d; o[3] -> d; o[4] -> IPFragmenter(1500) -> d;",
    see: &[
        "IPInputCombo",
        "DropBroadcasts",
        "PaintTee",
        "IPGWOptions",
        "FixIPSrc",
        "DecIPTTL",
        "CheckLength",
        "IPFragmenter",
    ],
    build: configured::<IPOutputCombo>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Broadcast = "broadcast", "the packet came as a link-level broadcast or multicast";
        NoHeader = "no-header", "no IPv4 header is marked";
        NoBuffer = "no-buffer", "there was no frame for a copy";
    }
}

/// Outputs of packets that may not leave as they are.
mod output {
    pub const BAD_OPTION: usize = 2;
    pub const EXPIRED: usize = 3;
    pub const TOO_LONG: usize = 4;
}

settings! {
    struct IPOutputCombo {
        color: u8 = required("COLOR", "byte", "the paint of packets that came in by the interface");
        address: Ipv4Addr = required("IPADDR", "IP address", "address of the interface");
        mtu: u32 = required("MTU", "bytes", "longest IP packet that the interface takes");
    }
}

impl Element for IPOutputCombo {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if to_many(packet.packet_type()) {
            return Verdict::drop(Reason::Broadcast);
        }
        if packet.paint() == self.color {
            emit_copy(packet, Reason::NoBuffer, cx);
        }
        match (Recorder { address: self.address, others: &[] }).process(packet, || cx.now_ns()) {
            Ok(()) => {}
            Err(Fault::Option) => return Verdict::Out(output::BAD_OPTION),
            Err(Fault::NoHeader) => return Verdict::drop(Reason::NoHeader),
        }
        fix_source(packet, self.address);
        let Some(header) = packet.network_header_mut().and_then(|h| h.first_chunk_mut::<20>()) else {
            return Verdict::drop(Reason::NoHeader);
        };
        if !dec_ip_ttl::decrement(header) {
            return Verdict::Out(output::EXPIRED);
        }
        if packet.len() > self.mtu as usize { Verdict::Out(output::TOO_LONG) } else { Verdict::Pass }
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::PacketType;

    #[test]
    fn each_kind_has_its_output() {
        let mut h = Harness::new(&SPEC, "3, 1.2.3.4, 100", 1, 5).unwrap();
        let packet = |options: &[u8], len: usize, ttl: u8| {
            corpus::marked(&corpus::datagram(options, &vec![0; len], ttl, 0), 0)
        };
        let [mut broadcast, mut painted] = [packet(&[], 0, 9), packet(&[], 0, 9)];
        broadcast.set_packet_type(PacketType::Broadcast);
        painted.set_paint(3);
        h.push_all(0, [packet(&[], 80, 9), broadcast, painted, packet(&[7, 1, 0, 0], 0, 9)]);
        h.push_all(0, [packet(&[], 0, 1), packet(&[], 81, 9), Packet::from_bytes(b"unmarked").unwrap()]);
        assert_eq!([0, 1, 2, 3, 4].map(|port| h.take(port).len()), [2, 1, 1, 1, 1]);
        assert_eq!(h.drops(), [("broadcast", 1), ("no-header", 1)]);
    }
}
