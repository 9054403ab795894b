//! SetIPAddress.

use causeway_engine::ir::Field;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIPAddress",
    category: "ip",
    summary: "sets packets' destination annotation",
    doc: "Sets the destination annotation of each packet to IPADDR, whatever its header says: a route without a lookup, \
          to one gateway.",
    args: SetIPAddress::ARGS,
    handlers: handlers!(SetIPAddress::HANDLERS, &[CONFIG]),
    example: "InfiniteSource(LIMIT 5) -> SetIPAddress(1.0.0.9) -> Discard;",
    see: &["GetIPAddress", "StaticIPLookup"],
    build: configured::<SetIPAddress>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct SetIPAddress {
        address: Ipv4Addr = required("IPADDR", "IP address", "the address"), live("addr", "the address");
        anno: Anno = optional("ANNO", "annotation", "where to put it, four bytes; default DST_IP"), or(Anno::DST_IP);
    }
}

impl Element for SetIPAddress {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.set_anno_bytes(self.anno.offset, self.address.octets());
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.put(Field::Anno(self.anno.offset, 4), u64::from(self.address.to_bits()));
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn the_annotation_is_set_where_it_is_told() {
        for (config, offset) in [("1.2.3.4", 0), ("1.2.3.4, ANNO 20", 20), ("1.2.3.4, 4", 4)] {
            let out = verdict(&SPEC, config, packet(b"x")).unwrap();
            assert_eq!(out.anno_bytes(offset), [1, 2, 3, 4], "{config}");
            assert_eq!(out.dst_ip() == [0; 4], offset != 0);
        }
    }
}
