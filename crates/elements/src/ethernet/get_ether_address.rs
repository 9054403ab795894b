//! GetEtherAddress.

use super::store_ether_address::Place;
use causeway_engine::ir::{At, Field};
use causeway_engine::prelude::*;
use causeway_engine::value::Value;

pub(crate) static SPEC: Spec = Spec {
    name: "GetEtherAddress",
    category: "ethernet",
    summary: "copies an Ethernet address from the packet to an annotation",
    ports: "1/1-2",
    processing: "a/a",
    doc: "Copies the six bytes at OFFSET to the annotation ANNO. Packets that end before go to output 1 if it is connected, and \
          are dropped otherwise.",
    args: GetEtherAddress::ARGS,
    handlers: &[CONFIG],
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> GetEtherAddress(0, src) -> Discard;",
    see: &["SetEtherAddress", "StoreEtherAddress"],
    build,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct GetEtherAddress {
        anno: Anno = required("ANNO", "annotation", "where to put it, six bytes");
        offset: Place = required("OFFSET", "bytes, `src` or `dst`", "where it is; in an Ethernet header `dst` is 0 and `src` is 6");
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let anno = conf.required("ANNO");
    let word: String = conf.required("OFFSET");
    let place = if conf.errors().is_empty() { conf.parse("", &word) } else { None };
    conf.finish()?;
    Ok(Box::new(GetEtherAddress { anno, offset: place.unwrap_or_else(Place::placeholder) }))
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it ends before, and output 1 is not connected";
    }
}

impl Element for GetEtherAddress {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let address =
            packet.data().get(self.offset.0 as usize..).and_then(|data| data.first_chunk::<6>()).copied();
        address.map(|address| packet.set_anno_bytes(self.anno.offset, address)).or_divert(1, Reason::Short)
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        let address = b.load(At::data(self.offset.0), 6);
        b.put(Field::Anno(self.anno.offset, 6), address);
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
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_address_is_noted_if_it_is_there() {
        for (config, noted) in [
            ("20, src", Some(b"ghijkl")),
            ("20, dst", Some(b"abcdef")),
            ("20, 7", Some(b"hijklm")),
            ("20, 8", None),
        ] {
            let mut h = Harness::new(&SPEC, config, 1, 2).unwrap();
            h.push(0, packet(b"abcdefghijklm"));
            let (out, short) = (h.take(0), h.take(1));
            assert_eq!(out.first().map(|p| p.anno_bytes(20)), noted.copied(), "{config}");
            assert_eq!(short.len(), usize::from(noted.is_none()));
        }
        let error = Harness::new(&SPEC, "20, up", 1, 1).err().unwrap();
        assert_eq!(error, ["type mismatch: bad OFFSET"]);
    }
}
