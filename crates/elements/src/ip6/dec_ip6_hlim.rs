//! DecIP6HLIM.

use causeway_engine::measure::Unit;
use causeway_engine::spec::{drops, reads};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::wire::ipv6::HEADER_LEN;
use causeway_packet::{Batch, Packet};

pub(crate) static SPEC: Spec = Spec {
    name: "DecIP6HLIM",
    category: "ip6",
    summary: "decrements the IPv6 hop limit and drops packets that have come too far",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Decrements the hop limit of each packet. A packet whose hop limit is 1 or 0 goes to output 1 unchanged, where \
          an ICMPv6 error may answer it, or is dropped if that is not connected (RFC 8200 §3). The network header must \
          be marked.",
    handlers: &[reads("drops", "packets whose hop limit was over").counts(Unit::Packets)],
    drops: &[drops("expired", "the hop limit was 1 or 0"), drops("no-header", "no IPv6 header is marked")],
    example: r"InfiniteSource(DATA \<60000000 0000 3b 40 20010db8000000000000000000000001
              20010db8000000000000000000000002>, LIMIT 5) -> CheckIP6Header -> DecIP6HLIM -> Discard;",
    see: &["CheckIP6Header", "DecIPTTL"],
    build,
    ..Spec::DEFAULT
};

const EXPIRED: usize = 0;
const NO_HEADER: usize = 1;

struct DecIP6HLIM {
    expired: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(DecIP6HLIM { expired: 0 }))
}

/// Decrements the hop limit if it is above 1; the error is the reason why it was not.
#[inline]
fn decrement(packet: &mut Packet) -> Result<(), usize> {
    let header = packet.network_header_mut().and_then(|h| h.first_chunk_mut::<HEADER_LEN>());
    let hop_limit = &mut header.ok_or(NO_HEADER)?[7];
    if *hop_limit <= 1 {
        return Err(EXPIRED);
    }
    *hop_limit -= 1;
    Ok(())
}

impl Element for DecIP6HLIM {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.filter_map(|mut packet| match decrement(&mut packet) {
            Ok(()) => Some(packet),
            Err(NO_HEADER) => {
                cx.drop(NO_HEADER, packet);
                None
            }
            Err(reason) => {
                self.expired += 1;
                cx.divert(1, reason, packet);
                None
            }
        });
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.expired.to_string())
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
