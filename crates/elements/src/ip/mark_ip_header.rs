//! MarkIPHeader.

use causeway_engine::spec::optional;
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "MarkIPHeader",
    category: "ip",
    summary: "marks where packets' IP headers are",
    doc: "Marks the network header at OFFSET bytes into the packet, and the transport header behind it by the header \
          length found there. Nothing is checked; CheckIPHeader marks and checks. In a packet that ends before \
          OFFSET no header is marked.",
    args: &[optional("OFFSET", "bytes", "where the IP header is; default 0")],
    example: "InfiniteSource(LIMIT 5) -> MarkIPHeader(14) -> Discard;",
    see: &["CheckIPHeader", "IPClassifier"],
    build,
    ..Spec::DEFAULT
};

struct MarkIpHeader {
    offset: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let offset = conf.optional("OFFSET", 0u16);
    conf.finish()?;
    Ok(Box::new(MarkIpHeader { offset: offset as usize }))
}

impl Element for MarkIpHeader {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        for i in 0..batch.len() {
            batch.prefetch_data(i + 4);
            let packet = &mut batch[i];
            if let Some(first) = packet.data().get(self.offset).copied() {
                packet.set_network_header(self.offset);
                packet.set_transport_header(self.offset + (first & 15) as usize * 4);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    fn marked(config: &str, bytes: &[u8]) -> (Option<usize>, Option<usize>) {
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        h.push(0, Packet::from_bytes(bytes).unwrap());
        let out = h.take(0);
        (out[0].network_offset(), out[0].transport_offset())
    }

    #[test]
    fn headers_are_marked_by_offset_and_length() {
        assert_eq!(marked("", &[0x45; 40]), (Some(0), Some(20)));
        assert_eq!(marked("OFFSET 14", &[0x4f; 40]), (Some(14), Some(74)));
        assert_eq!(marked("14", &[0x45; 14]), (None, None));
    }
}
