//! GetIP6Address.

use causeway_engine::spec::required;
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::Batch;

pub(crate) static SPEC: Spec = Spec {
    name: "GetIP6Address",
    category: "ip6",
    summary: "copies an IPv6 address from the packet to its destination annotation",
    doc: "Copies the 16 bytes at OFFSET to the IPv6 destination annotation, by which LookupIP6Route looks up. The \
          destination of an IPv6 header is 24 bytes into it. A packet too short is passed on unchanged.",
    args: &[required("OFFSET", "bytes", "where the address is")],
    example: "InfiniteSource(LIMIT 5) -> GetIP6Address(24) -> Discard;",
    see: &["CheckIP6Header", "LookupIP6Route", "GetIPAddress"],
    build,
    ..Spec::DEFAULT
};

struct GetIP6Address {
    offset: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let offset: u32 = conf.required("OFFSET");
    conf.finish()?;
    Ok(Box::new(GetIP6Address { offset: offset as usize }))
}

impl Element for GetIP6Address {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        for packet in batch.iter_mut() {
            let address = packet.data().get(self.offset..).and_then(|b| b.first_chunk::<16>());
            if let Some(&address) = address {
                packet.set_dst_ip6(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    #[test]
    fn the_address_is_copied_if_it_is_there() {
        let bytes: Vec<u8> = (0..40).collect();
        for (config, len, first) in [("24", 40, 24), ("24", 39, 0), ("3", 40, 3), ("4000000000", 40, 0)] {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            h.push(0, Packet::from_bytes(&bytes[..len]).unwrap());
            let address = h.take(0)[0].dst_ip6();
            assert_eq!((address[0], address[15]), (first, if first == 0 { 0 } else { first + 15 }));
        }
        assert_eq!(Harness::new(&SPEC, "", 1, 1).err().unwrap(), ["OFFSET: required argument missing"]);
    }
}
