//! SetIP6Address.

use causeway_engine::ir::Field;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIP6Address",
    category: "ip6",
    summary: "sets packets' IPv6 destination annotation",
    doc: "Sets the IPv6 destination annotation of each packet to IPADDR, whatever its header says: a route without a \
          lookup, to one gateway.",
    args: SetIP6Address::ARGS,
    example: "InfiniteSource(LIMIT 5) -> SetIP6Address(2001:db8::9) -> Discard;",
    see: &["GetIP6Address", "LookupIP6Route", "SetIPAddress"],
    build: configured::<SetIP6Address>,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct SetIP6Address {
        address: Ipv6Addr = required("IPADDR", "IPv6 address", "the address");
    }
}

impl Element for SetIP6Address {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        packet.set_dst_ip6(self.address.octets());
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let (address, anno) = (self.address.to_bits(), Anno::DST_IP6.offset);
        b.put(Field::Anno(anno, 8), (address >> 64) as u64);
        b.put(Field::Anno(anno + 8, 8), address as u64);
        b.leave(0);
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn the_annotation_is_set() {
        let out = verdict(&SPEC, "2001:db8::9", packet(b"x")).unwrap();
        assert_eq!(Ipv6Addr::from(out.dst_ip6()), "2001:db8::9".parse::<Ipv6Addr>().unwrap());
        let errors = |text: &str| Harness::new(&SPEC, text, 1, 1).err().unwrap();
        assert_eq!(errors(""), ["IPADDR: required argument missing"]);
        assert_eq!(errors("1.2.3"), ["IPADDR: parse error"]);
    }
}
