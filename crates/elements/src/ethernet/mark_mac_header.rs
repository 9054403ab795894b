//! MarkMACHeader.

use causeway_engine::ir::Field;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "MarkMACHeader",
    category: "ethernet",
    summary: "marks where the link-layer header is",
    doc: "Marks the link-layer header OFFSET bytes into packets, and with LENGTH the network header as many bytes behind \
          that. It does not look at packets.",
    args: MarkMacHeader::ARGS,
    example: "InfiniteSource(LIMIT 5) -> MarkMACHeader(0, 14) -> Discard;",
    see: &["MarkIPHeader", "Strip"],
    build: configured::<MarkMacHeader>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct MarkMacHeader {
        offset: u16 = optional("OFFSET", "bytes", "where it begins; default 0"), or(0);
        length: u16 = optional("LENGTH", "bytes", "how long it is; 0 = unknown; default 0"), or(0);
    }
}

impl Element for MarkMacHeader {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.set_mac_header(self.offset.into());
        if self.length > 0 {
            packet.set_network_header(usize::from(self.offset) + usize::from(self.length));
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.put(Field::Mac, u64::from(self.offset));
        if self.length > 0 {
            b.put(Field::Network, u64::from(self.offset) + u64::from(self.length));
        }
        b.leave(0);
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn headers_are_marked() {
        for (config, mac, network) in [("", 0, None), ("2", 2, None), ("2, 14", 2, Some(16))] {
            let out = verdict(&SPEC, config, packet(&[0; 40])).unwrap();
            assert_eq!((out.mac_distance(), out.network_offset()), (Some(mac), network), "{config}");
        }
    }
}
