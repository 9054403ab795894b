//! SetIPChecksum.

use causeway_engine::spec::drops;
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;
use causeway_packet::wire::Ipv4;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIPChecksum",
    category: "ip",
    summary: "sets the checksum of IP headers",
    doc: "Computes the header checksum of each IP packet, whose header must be marked, and stores it. A packet \
          without whole IPv4 header is dropped.",
    drops: &[drops("no-header", "the packet has no whole IPv4 header, or it is not marked")],
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> SetIPChecksum -> Discard;",
    see: &["CheckIPHeader", "SetUDPChecksum"],
    build,
    ..Spec::DEFAULT
};

struct SetIpChecksum;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(SetIpChecksum))
}

impl Element for SetIpChecksum {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|mut packet| {
            if let Some(Ok(mut ip)) = packet.network_header_mut().map(Ipv4::new_quoted) {
                ip.fill_checksum();
                return Some(packet);
            }
            cx.drop(0, packet);
            None
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    #[test]
    fn the_whole_header_is_summed() {
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        for (first, len) in [(0x45, 20), (0x46, 24), (0x46, 23), (0x65, 40), (0x44, 40)] {
            let mut bytes = vec![7; len];
            bytes[0] = first;
            let mut p = Packet::from_bytes(&bytes).unwrap();
            p.set_network_header(0);
            h.push(0, p);
        }
        let out = h.take(0);
        assert!(out.iter().all(|p| Ipv4::new_quoted(p.data()).unwrap().checksum_ok()));
        assert_eq!((out.len(), h.drops()), (2, vec![("no-header", 3)]));
        h.assert_balanced();
    }
}
