//! ICMPPingResponder.

use causeway_engine::prelude::*;
use causeway_packet::wire::icmpv4::kind;
use causeway_packet::wire::{Icmpv4, Ipv4, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "ICMPPingResponder",
    category: "icmp",
    summary: "answers ICMP echo requests",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Turns each ICMP echo request, whose IP header must be marked, into the reply to it: addresses change \
          places, the TTL starts anew at 255, and \"don't fragment\" is cleared (RFC 792). The reply is a new packet \
          of the router: its destination annotation is its destination, its paint annotation 0, so that no PaintTee \
          takes it for one that leaves where it came in, and its timestamp now. Other packets, fragments, \
          and requests to or from addresses that are not one host's go to output 1 if that is connected, and are \
          dropped otherwise.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> MarkIPHeader -> ICMPPingResponder -> Discard;",
    see: &["ICMPError", "IPClassifier"],
    build: configured::<ICMPPingResponder>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoRequest = "no-request", "not an echo request from one host to another";
    }
}

/// TTL of the replies: they reach whoever could ask, however far.
const TTL: u8 = 255;

settings! {
    struct ICMPPingResponder {}
}

fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}

/// Makes a reply of `packet` and returns where it goes; anything but a request stays as it is.
fn reply(packet: &mut Packet) -> Option<Ipv4Addr> {
    let mut ip = Ipv4::new_checked(packet.network_header_mut()?).ok()?;
    let (src, dst) = (ip.src(), ip.dst());
    if ip.protocol() != protocol::ICMP || ip.is_fragment() || !is_host(src) || !is_host(dst) {
        return None;
    }
    let mut icmp = Icmpv4::new_checked(ip.payload_mut()).ok()?;
    if icmp.message_type() != kind::ECHO_REQUEST {
        return None;
    }
    icmp.make_echo_reply();
    ip.set_src(dst);
    ip.set_dst(src);
    ip.set_ttl(TTL);
    ip.set_flags_fragment(0);
    ip.fill_checksum();
    Some(src)
}

impl Element for ICMPPingResponder {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(dst) = reply(packet) else { return Verdict::divert(1, Reason::NoRequest) };
        packet.set_dst_ip(dst.octets());
        packet.set_paint(0);
        packet.set_timestamp_ns(cx.now_ns());
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::PacketType;
    use causeway_packet::wire::Ipv4Header;
    use causeway_packet::wire::ipv4::DONT_FRAGMENT;

    fn echo(message_type: u8, dst: [u8; 4], flags_fragment: u16) -> Packet {
        let mut bytes = [5; 38];
        let header = Ipv4Header {
            tos: 0,
            total_len: 37,
            identification: 1,
            flags_fragment,
            ttl: 3,
            protocol: protocol::ICMP,
            src: [10, 0, 0, 1].into(),
            dst: dst.into(),
        };
        header.emit(bytes.first_chunk_mut().unwrap());
        let mut icmp = Icmpv4::new_checked(&mut bytes[20..37]).unwrap();
        icmp.set_message_type(message_type);
        icmp.fill_checksum();
        let mut p = Packet::from_bytes(&bytes).unwrap();
        p.set_network_header(0);
        p.set_paint(7);
        p
    }

    #[test]
    fn requests_are_answered_and_others_are_not() {
        let mut h = Harness::new(&SPEC, "", 1, 2).unwrap();
        h.push_all(
            0,
            [
                echo(8, [10, 0, 0, 2], DONT_FRAGMENT),
                echo(0, [10, 0, 0, 2], 0),
                echo(8, [255; 4], 0),
                echo(8, [10, 0, 0, 2], 0x2000),
                Packet::from_bytes(&[]).unwrap(),
            ],
        );
        let out = h.take(0);
        assert_eq!((out.len(), h.take(1).len()), (1, 4));
        let ip = Ipv4::new_checked(out[0].data()).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!((ip.src(), ip.dst(), ip.ttl()), ([10, 0, 0, 2].into(), [10, 0, 0, 1].into(), 255));
        assert_eq!((ip.flags_fragment(), out[0].paint(), out[0].packet_type()), (0, 0, PacketType::Host));
        assert!(out[0].timestamp_ns() > 0);
        let icmp = Icmpv4::new_checked(ip.payload()).unwrap();
        assert!(icmp.checksum_ok());
        assert_eq!((icmp.message_type(), icmp.identifier(), out[0].dst_ip()), (0, 0x0505, [10, 0, 0, 1]));
        h.assert_balanced();
    }
}
