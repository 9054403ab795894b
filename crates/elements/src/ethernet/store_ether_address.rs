//! StoreEtherAddress.

use causeway_engine::Scope;
use causeway_engine::ir::{At, Field, Test, Value as Number};
use causeway_engine::prelude::*;
use causeway_engine::value::{Ether, Value};

pub(crate) static SPEC: Spec = Spec {
    name: "StoreEtherAddress",
    category: "ethernet",
    summary: "writes an Ethernet address into packets",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Writes ADDR, or the six bytes of the annotation ANNO, into packets at OFFSET. Packets that end before go to output 1 \
          if it is connected, and are dropped otherwise.",
    args: StoreEtherAddress::ARGS,
    handlers: &[reads_writes("addr", "the address"), CONFIG],
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> StoreEtherAddress(2:0:0:0:0:1, src) -> Discard;",
    see: &["EtherRewrite", "EtherEncap"],
    build,
    lowers: Lowers::Alone,
    ..Spec::DEFAULT
};

settings! {
    struct StoreEtherAddress {
        addr: Option<Ether> = optional("ADDR", "Ethernet address", "the address"), or(None);
        offset: Place = required("OFFSET", "bytes, `src` or `dst`", "where it is written; in an Ethernet header `dst` is 0 and `src` is 6");
        anno: Option<Anno> = keyword("ANNO", "annotation", "where the address is, in place of ADDR; six bytes"), or(None);
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Short = "short", "it ends before, and output 1 is not connected";
    }
}

/// Where in the packet.
pub(super) struct Place(pub u32);

impl Value for Place {
    fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, Error> {
        match text.to_ascii_lowercase().as_str() {
            "src" => Ok(Place(6)),
            "dst" => Ok(Place(0)),
            _ => u32::parse(text, scope).map(Place).map_err(|_| Error::new("type mismatch: bad OFFSET")),
        }
    }

    fn placeholder() -> Self {
        Place(0)
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let store = StoreEtherAddress::configure(conf);
    if store.addr.is_some() == store.anno.is_some() && conf.errors().is_empty() {
        conf.error("must specify exactly one of ADDR/ANNO");
    }
    conf.finish()?;
    Ok(Box::new(store))
}

impl Element for StoreEtherAddress {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let noted = self.anno.map(|anno| packet.anno_bytes::<6>(anno.offset));
        let address = noted.or(self.addr.map(|addr| addr.0)).unwrap_or_default();
        let place =
            packet.data_mut().get_mut(self.offset.0 as usize..).and_then(|data| data.first_chunk_mut());
        place.map(|place| *place = address).or_divert(1, Reason::Short)
    }

    fn lower(&self) -> Option<Program> {
        let at = At::data(self.offset.0);
        let mut b = Builder::new();
        b.require(Test::Has(at, 6));
        let [c, d, e, f, g, h] = self.addr.unwrap_or_default().0;
        let address: Number = match self.anno {
            Some(anno) => b.get(Field::Anno(anno.offset, 6)).into(),
            None => u64::from_be_bytes([0, 0, c, d, e, f, g, h]).into(),
        };
        b.store(at, 6, address);
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.addr.unwrap_or_default().to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        (self.addr, self.anno) = (Some(cx.value(handler, value)?), None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn the_address_is_written_where_there_is_room() {
        for (config, data) in [
            ("1:2:3:4:5:6, dst", &b"\x01\x02\x03\x04\x05\x06ghijklm"[..]),
            ("1:2:3:4:5:6, src", b"abcdef\x01\x02\x03\x04\x05\x06m"),
            ("1:2:3:4:5:6, 7", b"abcdefg\x01\x02\x03\x04\x05\x06"),
            ("OFFSET 0, ANNO 16", b"\x07\0\0\0\0\0ghijklm"),
        ] {
            let mut p = packet(b"abcdefghijklm");
            p.set_paint(7);
            assert_eq!(verdict(&SPEC, config, p).unwrap().data(), data, "{config}");
        }
        let mut h = Harness::new(&SPEC, "1:1:1:1:1:1, 4000000000", 1, 2).unwrap();
        h.push(0, packet(b"abcdef"));
        assert_eq!(h.take(1).len(), 1);
        h.write("addr", "3:3:3:3:3:3").unwrap();
        assert_eq!(
            (h.read("addr").unwrap(), h.read("config").unwrap()),
            ("03-03-03-03-03-03".into(), "3:3:3:3:3:3, 4000000000".into())
        );
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().join("|");
        assert_eq!(error("OFFSET src"), "must specify exactly one of ADDR/ANNO");
        assert_eq!(error("1:1:1:1:1:1, up"), "OFFSET: type mismatch: bad OFFSET");
    }
}
