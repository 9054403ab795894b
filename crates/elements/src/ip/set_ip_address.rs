//! SetIPAddress.

use crate::anew::{Anew, CONFIG};
use causeway_engine::spec::{optional, reads_writes, required};
use causeway_engine::{Conf, Cx, Element, Invalid, Spec};
use causeway_packet::{Anno, Batch};
use std::net::Ipv4Addr;

pub(crate) static SPEC: Spec = Spec {
    name: "SetIPAddress",
    category: "ip",
    summary: "sets packets' destination annotation",
    doc: "Sets the destination annotation of each packet to IPADDR, whatever its header says: a route without a lookup, \
          to one gateway.",
    args: &[
        required("IPADDR", "IP address", "the address"),
        optional("ANNO", "annotation", "where to put it, four bytes; default DST_IP"),
    ],
    handlers: &[reads_writes("addr", "the address"), CONFIG],
    example: "InfiniteSource(LIMIT 5) -> SetIPAddress(1.0.0.9) -> Discard;",
    see: &["GetIPAddress", "StaticIPLookup"],
    build,
    ..Spec::DEFAULT
};

struct SetIPAddress {
    address: [u8; 4],
    anno: u8,
    anew: Anew,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let address: Ipv4Addr = conf.required("IPADDR");
    let anno: Anno = conf.optional("ANNO", Anno::DST_IP);
    conf.finish()?;
    Ok(Box::new(SetIPAddress { address: address.octets(), anno: anno.offset, anew: Anew::new(conf) }))
}

impl Element for SetIPAddress {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Cx<'_>) {
        for packet in batch.iter_mut() {
            packet.set_anno_bytes(self.anno, self.address);
        }
    }

    fn read(&mut self, handler: &str, _arg: &str, cx: &mut Cx<'_>) -> Result<String, String> {
        Ok(if handler == "config" {
            cx.config().to_owned()
        } else {
            Ipv4Addr::from(self.address).to_string()
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        if handler == "config" {
            *self = *self.anew.element(value, cx)?;
            cx.set_config(value.to_owned());
        } else {
            self.address = crate::handlers::value::<Ipv4Addr>(handler, value)?.octets();
            cx.set_argument("IPADDR", value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use causeway_packet::Packet;

    #[test]
    fn the_annotation_is_set_where_it_is_told() {
        for (config, offset) in [("1.2.3.4", 0), ("1.2.3.4, ANNO 20", 20), ("1.2.3.4, 4", 4)] {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            h.push(0, Packet::from_bytes(b"x").unwrap());
            let out = h.take(0);
            assert_eq!(out[0].anno_bytes(offset), [1, 2, 3, 4], "{config}");
            assert_eq!(out[0].dst_ip() == [0; 4], offset != 0);
        }
        assert_eq!(Harness::new(&SPEC, "", 1, 1).err().unwrap(), ["IPADDR: required argument missing"]);
    }
}
