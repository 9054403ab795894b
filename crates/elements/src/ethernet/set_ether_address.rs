//! SetEtherAddress.

use causeway_engine::prelude::*;
use causeway_engine::value::Ether;

pub(crate) static SPEC: Spec = Spec {
    name: "SetEtherAddress",
    category: "ethernet",
    summary: "puts an Ethernet address into an annotation",
    doc: "Sets the six bytes of the annotation ANNO to ADDR.",
    args: SetEtherAddress::ARGS,
    handlers: handlers!(SetEtherAddress::HANDLERS, &[CONFIG]),
    example: "InfiniteSource(LIMIT 5) -> SetEtherAddress(2:0:0:0:0:1, 0) -> Discard;",
    see: &["GetEtherAddress", "StoreEtherAddress"],
    build: configured::<SetEtherAddress>,
    ..Spec::DEFAULT
};

settings! {
    struct SetEtherAddress {
        address: Ether = required("ADDR", "Ethernet address", "the address"), live("addr", "the address");
        anno: Anno = required("ANNO", "annotation", "where to put it, six bytes");
    }
}

impl Element for SetEtherAddress {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.set_anno_bytes(self.anno.offset, self.address.0);
        Verdict::Pass
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
    fn the_annotation_is_set() {
        let out = verdict(&SPEC, "1:2:3:4:5:6, 20", packet(b"x")).unwrap();
        assert_eq!(out.anno_bytes(20), [1, 2, 3, 4, 5, 6]);
    }
}
