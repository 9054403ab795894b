//! EtherMirror.

use causeway_engine::ir::{At, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "EtherMirror",
    category: "ethernet",
    summary: "swaps the addresses of Ethernet headers",
    doc: "Swaps source and destination of the Ethernet header that packets begin with. Packets too short for one pass as \
          they are.",
    example: "InfiniteSource(LIMIT 5) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> EtherMirror -> Discard;",
    see: &["EtherRewrite", "EtherEncap"],
    build: configured::<EtherMirror>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct EtherMirror {}
}

impl Element for EtherMirror {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if let Some(addresses) = packet.data_mut().first_chunk_mut::<12>() {
            addresses.rotate_left(6);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let (there, next) = (b.block(), b.block());
        b.branch(Test::Has(At::data(0), 12), there, next);
        b.at(there);
        let [to, from] = [0, 6].map(|at| b.load(At::data(at), 6));
        b.store(At::data(0), 6, from);
        b.store(At::data(6), 6, to);
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
    fn source_and_destination_change_places() {
        let out = verdict(&SPEC, "", packet(b"aaaaaabbbbbbcd")).unwrap();
        assert_eq!(out.data(), b"bbbbbbaaaaaacd");
        assert_eq!(verdict(&SPEC, "", packet(b"aaaaaabbbbb")).unwrap().data(), b"aaaaaabbbbb");
    }
}
