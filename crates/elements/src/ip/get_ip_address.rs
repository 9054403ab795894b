//! GetIPAddress.

use causeway_engine::Scope;
use causeway_engine::ir::{At, Base, Field, Test};
use causeway_engine::prelude::*;
use causeway_engine::value::Value;

pub(crate) static SPEC: Spec = Spec {
    name: "GetIPAddress",
    category: "ip",
    summary: "copies an IPv4 address from the packet to its destination annotation",
    doc: "Copies the four bytes at OFFSET, or with IP the source or destination of the marked header, to the \
          annotation ANNO. A packet too short is passed on unchanged.",
    args: GetIPAddress::ARGS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> GetIPAddress(16) -> Discard;",
    see: &["CheckIPHeader", "StaticIPLookup"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct GetIPAddress {
        offset: Option<u32> = optional("OFFSET", "bytes", "where the address is"), or(None);
        ip: Option<Which> = keyword("IP", "`src` or `dst`", "the address of the marked IPv4 header instead of an offset"), or(None);
        anno: Anno = keyword("ANNO", "annotation", "where to put it, four bytes; default DST_IP"), or(Anno::DST_IP);
    }
}

/// An address of an IPv4 header: its place there.
#[derive(Clone, Copy)]
struct Which(u32);

impl Value for Which {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        match text {
            "src" => Ok(Which(12)),
            "dst" => Ok(Which(16)),
            _ => Err(Error::new("bad IP").whole()),
        }
    }

    fn placeholder() -> Self {
        Which(0)
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let get = GetIPAddress::configure(conf);
    if get.offset.is_none() && get.ip.is_none() && conf.errors().is_empty() {
        conf.bad_argument("OFFSET", "required argument missing");
    }
    conf.finish()?;
    Ok(Box::new(get))
}

impl GetIPAddress {
    /// Where the address is: from what, and how many bytes behind it.
    fn place(&self) -> (Base, u32) {
        self.ip.map_or((Base::Data, self.offset.unwrap_or(0)), |which| (Base::Network, which.0))
    }
}

impl Element for GetIPAddress {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let (base, offset) = self.place();
        let bytes = if base == Base::Network { packet.network_header() } else { Some(packet.data()) };
        if let Some(&address) = bytes.and_then(|b| b.get(offset as usize..)?.first_chunk()) {
            packet.set_anno_bytes::<4>(self.anno.offset, address);
        }
        Verdict::Pass
    }

    fn lower(&self) -> Option<Program> {
        let (base, offset) = self.place();
        let at = At { base, offset };
        let mut b = Builder::new();
        let (there, next) = (b.block(), b.block());
        b.branch(Test::Has(at, 4), there, next);
        b.at(there);
        let address = b.load(at, 4);
        b.put(Field::Anno(self.anno.offset, 4), address);
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
        let bytes: Vec<u8> = (0..24).collect();
        for (config, len, first) in [
            ("16", 20, 16),
            ("16", 19, 0),
            ("4000000000", 0, 0),
            ("IP src", 24, 16),
            ("IP dst", 24, 20),
            ("IP dst", 23, 0),
        ] {
            let mut p = packet(&bytes[..len]);
            p.set_network_header(4.min(len));
            let address = verdict(&SPEC, config, p).unwrap().dst_ip();
            assert_eq!((address[0], address[3]), (first, if first == 0 { 0 } else { first + 3 }), "{config}");
        }
    }
}
