//! GetIP6Address.

use causeway_engine::ir::{At, Field, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "GetIP6Address",
    category: "ip6",
    summary: "copies an IPv6 address from the packet to its destination annotation",
    doc: "Copies the 16 bytes at OFFSET to the IPv6 destination annotation, by which LookupIP6Route looks up. The \
          destination of an IPv6 header is 24 bytes into it. A packet too short is passed on unchanged.",
    args: GetIP6Address::ARGS,
    example: "InfiniteSource(LIMIT 5) -> GetIP6Address(24) -> Discard;",
    see: &["CheckIP6Header", "LookupIP6Route", "GetIPAddress"],
    build: configured::<GetIP6Address>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct GetIP6Address {
        offset: u32 = required("OFFSET", "bytes", "where the address is");
    }
}

impl Element for GetIP6Address {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if let Some(&address) = packet.data().get(self.offset as usize..).and_then(|b| b.first_chunk()) {
            packet.set_dst_ip6(address);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let second = self.offset.checked_add(8)?;
        let mut b = Builder::new();
        let (there, next) = (b.block(), b.block());
        b.branch(Test::Has(At::data(self.offset), 16), there, next);
        b.at(there);
        let words = [self.offset, second].map(|at| b.load(At::data(at), 8));
        for (word, anno) in words.into_iter().zip([0, 8]) {
            b.put(Field::Anno(Anno::DST_IP6.offset + anno, 8), word);
        }
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
    fn the_address_is_copied_if_it_is_there() {
        let bytes: Vec<u8> = (0..40).collect();
        for (config, len, first) in [("24", 40, 24), ("24", 39, 0), ("3", 40, 3), ("4000000000", 40, 0)] {
            let address = verdict(&SPEC, config, packet(&bytes[..len])).unwrap().dst_ip6();
            assert_eq!((address[0], address[15]), (first, if first == 0 { 0 } else { first + 15 }));
        }
    }
}
