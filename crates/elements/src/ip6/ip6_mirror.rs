//! IP6Mirror.

use causeway_engine::prelude::*;
use causeway_packet::wire::ipv6_ext::UpperLayer;
use causeway_packet::wire::{Ipv6, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "IP6Mirror",
    category: "ip6",
    summary: "swaps source and destination of IPv6 packets",
    doc: "Swaps the addresses in the marked IPv6 header and, of TCP and UDP, also behind extension headers, the ports, where \
          the packet has them. The sums stay what they were. Packets without a whole header are dropped.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIP6Encap(2001:db8::1, 53, 2001:db8::2, 54) -> IP6Mirror -> Discard;",
    see: &["IPMirror", "EtherMirror"],
    build: configured::<IP6Mirror>,
    ..Spec::DEFAULT
};

settings! {
    struct IP6Mirror {}
}

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "no whole IPv6 header is marked";
    }
}

/// Swaps what there is to swap.
fn mirror(packet: &mut Packet) -> Option<()> {
    let bytes = packet.network_header_mut()?;
    let ip = Ipv6::new_quoted(&bytes[..]).ok()?;
    let ports = match ip.upper_layer() {
        Ok(UpperLayer::At { protocol: protocol::TCP | protocol::UDP, offset, .. }) => Some(offset),
        _ => None,
    };
    bytes.get_mut(8..40)?.rotate_left(16);
    if let Some(ports) = ports.and_then(|at| bytes.get_mut(at..at + 8)) {
        ports[..4].rotate_left(2);
    }
    Some(())
}

impl Element for IP6Mirror {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        mirror(packet).or_drop(Reason::NoHeader)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_ip6_header::tests::packet as bytes;
    use super::*;
    use crate::ip::corpus::marked;
    use causeway_engine::harness::verdict;

    #[test]
    fn both_ends_change_places() {
        for (next, payload, swapped) in [
            (17, &[1, 2, 3, 4, 5, 6, 7, 8][..], &[3, 4, 1, 2, 5, 6, 7, 8][..]),
            (6, &[1, 2, 3, 4, 5, 6, 7, 8], &[3, 4, 1, 2, 5, 6, 7, 8]),
            (58, &[1, 2, 3, 4, 5, 6, 7, 8], &[1, 2, 3, 4, 5, 6, 7, 8]),
            (17, &[1, 2, 3, 4, 5, 6, 7], &[1, 2, 3, 4, 5, 6, 7]),
            // Destination options with six bytes of padding in front of UDP.
            (
                60,
                &[17, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
                &[17, 0, 1, 4, 0, 0, 0, 0, 3, 4, 1, 2, 5, 6, 7, 8],
            ),
            // A later fragment.
            (
                44,
                &[17, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8],
                &[17, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8],
            ),
        ] {
            let mut good = bytes(9, payload);
            good[6] = next;
            let out = verdict(&SPEC, "", marked(&good, 0)).unwrap();
            assert_eq!((out.data()[23], out.data()[39], &out.data()[40..]), (2, 1, swapped), "{next}");
        }
        assert_eq!(verdict(&SPEC, "", marked(&bytes(9, b"")[..39], 0)).err(), Some("no-header"));
    }
}
