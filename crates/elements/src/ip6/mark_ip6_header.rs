//! MarkIP6Header.

use causeway_engine::ir::{At, Field, Test};
use causeway_engine::prelude::*;
use causeway_packet::wire::ipv6::HEADER_LEN;

pub(crate) static SPEC: Spec = Spec {
    name: "MarkIP6Header",
    category: "ip6",
    summary: "marks where packets' IPv6 headers are",
    doc: "Marks the network header at OFFSET bytes into the packet, and the end of the fixed header behind it. Nothing is \
          checked; CheckIP6Header marks and checks. In a packet that ends before OFFSET no header is marked.",
    args: MarkIP6Header::ARGS,
    example: "InfiniteSource(LIMIT 5) -> MarkIP6Header(14) -> Discard;",
    see: &["CheckIP6Header", "MarkIPHeader"],
    build: configured::<MarkIP6Header>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct MarkIP6Header {
        offset: u16 = optional("OFFSET", "bytes", "where the IPv6 header is; default 0"), or(0);
    }
}

impl Element for MarkIP6Header {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let offset = self.offset as usize;
        if packet.len() > offset {
            packet.set_network_headers(offset, HEADER_LEN);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let offset = u64::from(self.offset);
        let mut b = Builder::new();
        let (there, next) = (b.block(), b.block());
        b.branch(Test::Has(At::data(self.offset.into()), 1), there, next);
        b.at(there);
        b.put(Field::Network, offset);
        b.put(Field::Transport, offset + HEADER_LEN as u64);
        b.go(next);
        b.at(next);
        b.leave(0);
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn headers_are_marked_by_offset() {
        for (config, len, network, transport) in
            [("", 60, Some(0), Some(40)), ("OFFSET 14", 60, Some(14), Some(54)), ("14", 14, None, None)]
        {
            let out = verdict(&SPEC, config, packet(&[0x60; 60][..len])).unwrap();
            assert_eq!((out.network_offset(), out.transport_offset()), (network, transport), "{config}");
        }
    }
}
