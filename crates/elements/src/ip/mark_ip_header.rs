//! MarkIPHeader.

use causeway_engine::ir::{Alu, At, Field, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "MarkIPHeader",
    category: "ip",
    summary: "marks where packets' IP headers are",
    doc: "Marks the network header at OFFSET bytes into the packet, and the transport header behind it by the header \
          length found there. Nothing is checked; CheckIPHeader marks and checks. In a packet that ends before \
          OFFSET no header is marked.",
    args: MarkIPHeader::ARGS,
    example: "InfiniteSource(LIMIT 5) -> MarkIPHeader(14) -> Discard;",
    see: &["CheckIPHeader", "IPClassifier"],
    build: configured::<MarkIPHeader>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct MarkIPHeader {
        offset: u16 = optional("OFFSET", "bytes", "where the IP header is; default 0"), or(0);
    }
}

impl Element for MarkIPHeader {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let offset = self.offset as usize;
        if let Some(first) = packet.data().get(offset).copied() {
            packet.set_network_headers(offset, (first & 15) as usize * 4);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let offset = u64::from(self.offset);
        let at = At::data(self.offset.into());
        let mut b = Builder::new();
        let (there, next) = (b.block(), b.block());
        b.branch(Test::Has(at, 1), there, next);
        b.at(there);
        let first = b.load(at, 1);
        let words = b.compute(Alu::And, first, 15);
        let len = b.compute(Alu::Shl, words, 2);
        let behind = b.compute(Alu::Add, len, offset);
        b.put(Field::Network, offset);
        b.put(Field::Transport, behind);
        b.go(next);
        b.at(next);
        b.leave(0);
        b.finish()
    }

    fn lookahead(&self) -> usize {
        4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn headers_are_marked_by_offset_and_length() {
        for (config, bytes, network, transport) in [
            ("", &[0x45; 40][..], Some(0), Some(20)),
            ("OFFSET 14", &[0x4f; 40], Some(14), Some(74)),
            ("14", &[0x45; 14], None, None),
        ] {
            let out = verdict(&SPEC, config, packet(bytes)).unwrap();
            assert_eq!((out.network_offset(), out.transport_offset()), (network, transport), "{config}");
        }
    }
}
