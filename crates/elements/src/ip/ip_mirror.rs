//! IPMirror.

use causeway_engine::prelude::*;
use causeway_packet::wire::{Ipv4, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "IPMirror",
    category: "ip",
    summary: "swaps source and destination of IP packets",
    doc: "Swaps the addresses in the marked IPv4 header, of TCP and UDP also the ports, and of TCP the sequence and \
          acknowledgement numbers, where the packet has them. The sums stay what they were. The destination annotation \
          becomes the new destination, unless DST_ANNO is false. Packets without a whole header are dropped.",
    args: IPMirror::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 54) -> IPMirror -> Discard;",
    see: &["EtherMirror", "ICMPPingResponder"],
    build: configured::<IPMirror>,
    ..Spec::DEFAULT
};

settings! {
    struct IPMirror {
        dst_anno: bool = optional("DST_ANNO", "boolean", "whether the destination annotation is set; default true"), or(true);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no whole IPv4 header is marked";
    }
}

/// Swaps what there is to swap; returns the new destination.
fn mirror(packet: &mut Packet) -> Option<[u8; 4]> {
    let bytes = packet.network_header_mut()?;
    let ip = Ipv4::new_quoted(&bytes[..]).ok()?;
    let (transport, len) = (ip.protocol(), ip.header_len());
    let first = ip.fragment_offset() == 0 && matches!(transport, protocol::TCP | protocol::UDP);
    bytes[12..20].rotate_left(4);
    let dst = *bytes[16..].first_chunk()?;
    if first && let Some(ports) = bytes.get_mut(len..len + 8) {
        ports[..4].rotate_left(2);
        if transport == protocol::TCP
            && let Some(numbers) = bytes.get_mut(len + 4..len + 12)
        {
            numbers.rotate_left(4);
        }
    }
    Some(dst)
}

impl Element for IPMirror {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Some(dst) = mirror(packet) else { return Verdict::drop(Reason::NoHeader) };
        if self.dst_anno {
            packet.set_dst_ip(dst);
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::verdict;

    #[test]
    fn both_ends_change_places() {
        let payload: Vec<u8> = (1..=20).collect();
        for (protocol, word, swapped) in [
            (protocol::UDP, 0, &[3, 4, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12][..]),
            (protocol::TCP, 0, &[3, 4, 1, 2, 9, 10, 11, 12, 5, 6, 7, 8]),
            (protocol::TCP, 1, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
            (protocol::ICMP, 0, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        ] {
            let mut bytes = corpus::datagram(&[], &payload, 9, word);
            bytes[9] = protocol;
            let (src, dst) = (bytes[12..16].to_vec(), bytes[16..20].to_vec());
            let out = verdict(&SPEC, "", corpus::marked(&bytes, 0)).unwrap();
            assert_eq!((&out.data()[12..16], &out.data()[16..20]), (&dst[..], &src[..]));
            assert_eq!((&out.data()[20..32], &out.dst_ip()[..]), (swapped, &src[..]), "{protocol} {word}");
            let out = verdict(&SPEC, "false", corpus::marked(&bytes, 0)).unwrap();
            assert_ne!(out.dst_ip(), src[..]);
        }
        let short = corpus::datagram(&[], &payload, 9, 0);
        assert_eq!(verdict(&SPEC, "", corpus::marked(&short[..27], 0)).unwrap().data()[20..24], [1, 2, 3, 4]);
        assert_eq!(verdict(&SPEC, "", corpus::marked(&short[..19], 0)).err(), Some("no-header"));
    }
}
